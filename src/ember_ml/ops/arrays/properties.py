"""What a tensor is, as plain Python values: its shape, its dtype, its elements."""

from __future__ import annotations

from typing import Any

from ember_ml.backend.host_arrays import as_host, to_python
from ember_ml.backend.selection import backend_of
from ember_ml.core.dtypes import EmberDType, as_dtype
from ember_ml.dispatch.declare import plain
from ember_ml.tensor.ember_tensor import EmberTensor
from ember_ml.tensor.var import Var
from ember_ml.tensor.variable import Variable
from ember_ml.typing import TensorLike

__all__ = ["dtype", "is_tensor", "item", "ndim", "shape", "size", "to_numpy"]


@plain
def is_tensor(x: Any) -> bool:
    """Whether ``x`` is a tensor: a portable one, or a native one of any backend; Python data and NumPy scalars are not.

    >>> from ember_ml import ops
    >>> ops.is_tensor(ops.zeros(2)), ops.is_tensor([0.0, 0.0])
    (True, False)
    """
    return type(x) is EmberTensor or type(x) is Var or backend_of(x) is not None


@plain
def shape(x: TensorLike) -> tuple[int, ...]:
    """The length of each dimension of ``x``, as a tuple of ints.

    >>> from ember_ml import ops
    >>> ops.shape(ops.zeros((2, 3))), ops.shape([[1.0], [2.0]]), ops.shape(1.5)
    ((2, 3), (2, 1), ())
    """
    return tuple(_with_facts(x).shape)


@plain
def ndim(x: TensorLike) -> int:
    """The number of dimensions of ``x``.

    >>> from ember_ml import ops
    >>> ops.ndim(ops.zeros((2, 3))), ops.ndim(1.5)
    (2, 0)
    """
    return len(_with_facts(x).shape)


@plain
def size(x: TensorLike) -> int:
    """The number of elements of ``x``.

    >>> from ember_ml import ops
    >>> ops.size(ops.zeros((2, 3))), ops.size([])
    (6, 0)
    """
    total = 1
    for length in _with_facts(x).shape:
        total *= length
    return total


@plain
def dtype(x: TensorLike) -> EmberDType:
    """The dtype of ``x``; of Python data, the one that a tensor made of it would have.

    >>> from ember_ml import ops
    >>> ops.dtype(ops.zeros(2, dtype="int8")), ops.dtype(1.5), ops.dtype([1, 2])
    (int8, float32, int64)
    """
    if type(x) is EmberTensor or type(x) is Var:
        return x.dtype
    x = _read(x)
    owner = backend_of(x)
    return owner.dtype_of(x) if owner is not None else as_dtype(as_host(x, detach=True).dtype)


@plain
def item(x: TensorLike) -> Any:
    """The one element of ``x`` as a Python number; ``ValueError`` where there is not exactly one.

    >>> from ember_ml import ops
    >>> ops.item(ops.array([[2.5]]))
    2.5
    """
    host = as_host(_read(x), detach=True)
    if host.size != 1:
        raise ValueError(f"ops.item needs exactly one element, and this tensor has shape {host.shape}")
    return to_python(host.reshape(()))


@plain
def to_numpy(x: TensorLike) -> Any:
    """The values of ``x`` as a NumPy array; it may share memory with ``x``, and is read-only where ``x`` is immutable.

    bfloat16 comes as the dtype of that name of ``ml_dtypes``. A gradient that ``x`` carries is left behind.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.arange(3)).tolist()
    [0, 1, 2]
    """
    return as_host(_read(x), detach=True)


def _with_facts(x: Any) -> Any:
    """Return ``x`` itself where it is a tensor, or the array that Python data describes."""
    found = _read(x)
    return found if is_tensor(found) else as_host(found, detach=True)


def _read(x: Any) -> Any:
    """Return the tensor of a parameter, and anything else as it is."""
    return x.value if isinstance(x, Variable) else x
