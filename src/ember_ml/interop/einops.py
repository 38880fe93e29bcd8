"""EmberTensor for einops.

einops finds a framework by the subclasses of its ``AbstractBackend``, so defining one is all that registration takes.
It is small (3 ms) and loads no framework, hence it is imported along with the first backend where it is installed.
"""

from __future__ import annotations

from typing import Any

from ember_ml.dispatch.bind_tensor import on_own_backend
from ember_ml.dispatch.declare import OPS
from ember_ml.tensor import EmberTensor

__all__: list[str] = []

try:
    from einops._backends import AbstractBackend
except ImportError:
    AbstractBackend = None

if AbstractBackend is not None:

    class EmberBackend(AbstractBackend):
        """The ops that einops needs, on the tensors' own backend."""

        framework_name = "ember_ml"

        def is_appropriate_type(self, tensor: Any) -> bool:
            return type(tensor) is EmberTensor

        def from_numpy(self, x: Any) -> EmberTensor:
            return EmberTensor(x)

        def to_numpy(self, x: EmberTensor) -> Any:
            return x.numpy()

        def arange(self, start: int, stop: int) -> EmberTensor:
            return EmberTensor(range(start, stop))

        def stack_on_zeroth_dimension(self, tensors: list[EmberTensor]) -> EmberTensor:
            return on_own_backend(OPS["stack"], (tensors, 0))

        def add_axis(self, x: EmberTensor, new_position: int) -> EmberTensor:
            return x.expand_dims(new_position)

        def tile(self, x: EmberTensor, repeats: tuple[int, ...]) -> EmberTensor:
            return on_own_backend(OPS["tile"], (x, repeats))

        def concat(self, tensors: list[EmberTensor], axis: int) -> EmberTensor:
            return on_own_backend(OPS["concatenate"], (tensors, axis))

        def is_float_type(self, x: EmberTensor) -> bool:
            return x.dtype.kind in ("float", "complex")

        def einsum(self, pattern: str, *x: EmberTensor) -> EmberTensor:
            return on_own_backend(OPS["einsum"], (pattern, x))
