"""Read tensors of any kind, recorded ones too, while a model computes."""

from __future__ import annotations

import math
from typing import Any

from ember_ml import ops
from ember_ml.backend.selection import active, backend_of
from ember_ml.core import trees
from ember_ml.core.dtypes import as_dtype
from ember_ml.tensor.ember_tensor import EmberTensor
from ember_ml.tensor.var import Var

__all__ = ["count_bytes", "find_tensors", "is_number", "read", "size_of", "wait_for"]


def find_tensors(tree: Any) -> list[Any]:
    """Return the tensors in a tree."""
    return [x for x in trees.flatten(tree)[0] if type(x) in (EmberTensor, Var) or backend_of(x) is not None]


def is_number(x: Any) -> bool:
    """Return whether ``x`` is a tensor of floating-point or complex numbers."""
    native = x._array if type(x) is EmberTensor else x
    if type(native) is not Var and backend_of(native) is None:
        return False
    return as_dtype(native.dtype).kind in ("float", "complex")


def size_of(x: Any) -> int:
    """Return the number of elements of a tensor."""
    return math.prod(x.shape)


def count_bytes(tensors: list[Any]) -> int:
    """Return how many bytes the elements of the tensors take."""
    return sum(size_of(x) * as_dtype(x.dtype).itemsize for x in tensors)


def read(x: Any) -> Any:
    """Return the plain native tensor of ``x``; None where its values cannot be read now."""
    x = ops.stop_gradient(x)
    native = x._array if type(x) is EmberTensor else x
    native = native.plain() if type(native) is Var else native  # emberlint: ignore[EMB402] a recorded tensor of ours
    owner = backend_of(native) or active()
    return None if owner.is_traced(native) else native


def wait_for(tensors: list[Any]) -> None:
    """Wait until the tensors are computed, on a lazy backend or a device that computes beside the program."""
    backend = active()
    if backend.laziness is None:
        backend.synchronize(None)
        return
    backend.laziness.evaluate(*[native for native in map(read, tensors) if native is not None])
