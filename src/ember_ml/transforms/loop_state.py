"""The state of loops and branches: flatten it, and check that each step keeps its structure, dtypes and shapes.

Inside, they are native tensors of the active backend; functions see portable ones where any value that came in is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.backend.capabilities import ControlFlow
from ember_ml.backend.contract import Backend
from ember_ml.backend.devices import default_device
from ember_ml.core.dtypes import EmberDType, as_dtype
from ember_ml.core.promotion import check_integer, check_scalar
from ember_ml.core.trees import Structure, flatten
from ember_ml.dispatch.arguments import bring, native_dtype
from ember_ml.tensor.ember_tensor import EmberTensor, wrap_native
from ember_ml.tensor.var import Var

__all__ = [
    "LoopState",
    "Tree",
    "constant",
    "device_of",
    "is_portable",
    "to_tensor",
    "traced_control_flow",
    "wrap_portable",
]

Tree = Any
"""A tensor, or a dict, list, tuple or named tuple of trees, or None."""

_NUMBERS = frozenset({bool, int, float, complex})


def is_portable(*trees: Any) -> bool:
    """Return whether any tensor in the trees is a portable one."""
    return any(type(leaf) is EmberTensor for leaf in flatten(trees)[0])


def device_of(trees: Any, backend: Backend) -> str:
    """Return the device of the first tensor in the trees, for numbers and new tensors; the default without any."""
    for leaf in flatten(trees)[0]:
        native = leaf._array if type(leaf) is EmberTensor else leaf
        if type(native) is Var:
            native = native.plain()
        if backend.is_native(native):
            return backend.device_of(native)
    return default_device(backend)


def to_tensor(leaf: Any, backend: Backend, dtype: EmberDType | None = None, device: str | None = None) -> Any:
    """Return ``leaf`` as a native tensor; a Python number takes ``dtype``, or the default dtype of its kind."""
    if type(leaf) is EmberTensor:
        leaf = leaf._array
    if type(leaf) is Var:
        return leaf
    if type(leaf) in _NUMBERS:
        dtype = dtype or as_dtype(type(leaf))
        if type(leaf) is int and dtype.kind in ("int", "uint"):
            check_integer(leaf, dtype)
        return backend.scalar(leaf, native_dtype(backend, dtype), device or default_device(backend))
    return bring(leaf, backend, device or default_device(backend))


def wrap_portable(native: Any, backend: Backend) -> EmberTensor:
    """Return a portable tensor that holds ``native``."""
    return wrap_native(native, native.tape if type(native) is Var else backend)


def traced_control_flow(backend: Backend) -> ControlFlow | None:
    """Return the backend's own branches and loops while it traces a function; None where Python's are used."""
    return backend.control_flow if backend.control_flow is not None and backend.is_tracing() else None


def constant(x: Any) -> Any:
    """Return ``x``, a native tensor, detached from gradients."""
    return x.plain() if type(x) is Var else ops.stop_gradient(x)


class LoopState:
    """A tree of tensors whose structure, dtypes and shapes every step of a loop keeps."""

    __slots__ = ("_expected", "_op", "_thing", "backend", "device", "leaves", "portable", "structure")

    backend: Backend
    device: str
    structure: Structure
    leaves: list[Any]
    portable: bool

    def __init__(
        self, op: str, thing: str, tree: Any, backend: Backend, portable: bool, device: str | None = None
    ) -> None:
        leaves, self.structure = flatten(tree)
        self.device = device or device_of(leaves, backend)
        self._op, self._thing, self.backend, self.portable = op, thing, backend, portable
        self.leaves = [to_tensor(leaf, backend, None, self.device) for leaf in leaves]
        self._expected = [_describe(leaf) for leaf in self.leaves]

    def tree(self, leaves: Sequence[Any]) -> Any:
        """Rebuild the tree from native tensors, portable where the functions expect that."""
        return self.structure([wrap_portable(x, self.backend) for x in leaves] if self.portable else leaves)

    def keep(self, tree: Any) -> list[Any]:
        """Return the native tensors of a step's result, which must be like the first one."""
        try:
            leaves = self.structure.leaves(tree)
        except ValueError as error:
            raise ValueError(f"ops.{self._op}: the {self._thing} must keep its structure, and {error}") from None
        return [self._check_leaf(place, leaf) for place, leaf in enumerate(leaves)]

    def _check_leaf(self, place: int, leaf: Any) -> Any:
        dtype, shape = self._expected[place]
        if type(leaf) in _NUMBERS:
            check_scalar(self._op, leaf, dtype)
            native = to_tensor(leaf, self.backend, dtype, self.device)
        else:
            native = to_tensor(leaf, self.backend, None, self.device)
        found = _describe(native)
        if found[0] is not dtype:
            raise TypeError(
                f"{self._explain_change(place, 'dtype')}: it was {dtype} and became {found[0]}; "
                "start with the dtype that the step gives, or cast in the step"
            )
        if found[1] != shape:
            raise ValueError(f"{self._explain_change(place, 'shape')}: it was {shape} and became {found[1]}")
        return native

    def _explain_change(self, place: int, fact: str) -> str:
        where = "" if self.structure.count == 1 else f" (tensor {place + 1} of {self.structure})"
        return f"ops.{self._op}: the {self._thing}{where} must keep its {fact}"


def _describe(x: Any) -> tuple[EmberDType, tuple[int, ...]]:
    return as_dtype(x.dtype), tuple(x.shape)
