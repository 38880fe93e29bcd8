"""Bringing data in, and from one dtype to another."""

from __future__ import annotations

from typing import Any

from ember_ml.backend.contract import Backend
from ember_ml.backend.devices import default_device
from ember_ml.backend.host_arrays import as_host, shares_memory
from ember_ml.backend.selection import active
from ember_ml.core.dtypes import as_dtype
from ember_ml.dispatch.arguments import native_dtype
from ember_ml.dispatch.declare import derived, gradient, primitive, views
from ember_ml.dispatch.declare import view as declare_view
from ember_ml.dispatch.dtype_rules import CREATION, KEEP
from ember_ml.ops.arrays.dtypes import finfo, iinfo
from ember_ml.ops.arrays.gradient_rules import helpers
from ember_ml.tensor.in_place import ViewRule, link_view
from ember_ml.typing import DataLike, DeviceLike, DTypeLike, Tensor, TensorLike

__all__ = [
    "array",
    "asarray",
    "astype",
    "cast",
    "convert_to_tensor",
    "copy",
    "from_dlpack",
    "saturate_cast",
    "stop_gradient",
    "view",
]

_PYTHON_DATA = frozenset({bool, int, float, complex, list, tuple, range})


def _convert(data: Any, dtype: Any, device: str | None, copied: bool | None) -> Any:
    """Return ``data`` as a tensor of the active backend; ``copied`` says whether it must, must not or may be a copy."""
    backend = active()
    if not backend.is_native(data):
        return _import(backend, data, dtype, device or default_device(backend), copied)
    result = data if dtype is None else backend.cast(data, dtype)
    if device is not None and backend.device_of(result) != device:
        result = backend.to_device(result, device)
    if result is not data:
        if copied is False:
            raise ValueError("another dtype or device needs a copy, and copy=False forbids it")
        return result
    return copy(data) if copied else data


def _import(backend: Backend, data: Any, dtype: Any, device: str, copied: bool | None) -> Any:
    """Foreign data, through a NumPy array."""
    if backend.compilation is not None and backend.is_tracing() and type(data) in _PYTHON_DATA:
        return backend.compilation.from_python(data, dtype, device)
    host = as_host(data, None if dtype is None else as_dtype(dtype))
    native_dtype(backend, as_dtype(host.dtype))  # raises where the backend lacks it
    result = backend.from_host(host, device, bool(copied) and type(data) not in _PYTHON_DATA)
    if copied is False and not (shares_memory(host, as_host(data)) and shares_memory(host, backend.to_host(result))):
        raise ValueError(f"{type(data).__name__} cannot become a tensor of {backend.name} without a copy")
    return result


@derived(CREATION)
def array(data: DataLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """A new tensor that holds a copy of ``data``: numbers, nested lists, tensors of any library, data frames, buffers.

    Without ``dtype``, Python floats become float32, ints int64, bools bool, complex numbers complex64, and typed data
    keeps its dtype. An integer that does not fit raises ``OverflowError``; a float that becomes an integer is
    truncated.

    >>> from ember_ml import ops
    >>> x = ops.array([[1, 2], [3, 4]], dtype="float64")
    >>> ops.dtype(x), ops.to_numpy(x).tolist()
    (float64, [[1.0, 2.0], [3.0, 4.0]])
    """
    return _convert(data, dtype, device, True)


gradient(array, data=lambda g, _data: helpers.cast_back(g, _data))


@derived(CREATION)
def asarray(
    x: DataLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None, copy: bool | None = None
) -> Tensor:
    """``x`` as a tensor; it may share memory with ``x`` unless ``copy`` is True, and must where ``copy`` is False.

    The dtype follows the rules of :func:`array`. Where sharing is asked for and impossible, ``ValueError``.

    >>> from ember_ml import ops
    >>> x = ops.ones(2)
    >>> ops.asarray(x) is x, ops.asarray(x, copy=True) is x
    (True, False)
    """
    return _convert(x, dtype, device, copy)


gradient(asarray, x=lambda g, _x: helpers.cast_back(g, _x))
_SAME = ViewRule("asarray", lambda x: x, lambda v, _x: v)


def _link_same(args: tuple[Any, ...], result: Any) -> None:
    x, _, _, copy = args
    if type(x) is type(result) and not copy and x._kind is result._kind and x.device == result.device:
        link_view(x, _SAME, (), result)


views(asarray, _link_same)


@derived(CREATION)
def convert_to_tensor(data: DataLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """``data`` as a tensor of the active backend, without a copy where that is safe.

    The dtype follows the rules of :func:`array`, which always copies.

    >>> from ember_ml import ops
    >>> x = ops.convert_to_tensor([1.0, 2.0])
    >>> ops.convert_to_tensor(x) is x
    True
    """
    return _convert(data, dtype, device, None)


gradient(convert_to_tensor, data=lambda g, _data: helpers.cast_back(g, _data))


@derived(CREATION)
def from_dlpack(x: DataLike, device: DeviceLike | None = None, copy: bool | None = None) -> Tensor:
    """A tensor of anything that has ``__dlpack__``, sharing its memory where the library and ``copy`` allow.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.from_dlpack(ops.to_numpy(ops.arange(3)))).tolist()
    [0, 1, 2]
    """
    if not hasattr(x, "__dlpack__"):  # emberlint: ignore[EMB502] the protocol that this op is for
        raise TypeError(f"{type(x).__name__} has no __dlpack__; ops.asarray takes more")
    return _convert(x, None, device, copy)


gradient(from_dlpack, x=lambda g, _x: helpers.cast_back(g, _x))


@primitive(KEEP)
def copy(x: TensorLike) -> Tensor:
    """A tensor with the same values in memory of its own.

    >>> from ember_ml import ops
    >>> x = ops.ones(2)
    >>> y = ops.copy(x)
    >>> y is x, ops.to_numpy(y).tolist()
    (False, [1.0, 1.0])
    """
    ...


gradient(copy, x=lambda g: g)


@derived(CREATION, "astype")
def cast(x: DataLike, dtype: DTypeLike) -> Tensor:
    """``x`` in another dtype; ``x`` itself where it has that one.

    Floats become integers by truncation; those out of range become the nearest integer there is, and NaN becomes 0.
    Integers wrap around. Anything but zero is True as a bool. Complex numbers become complex or bool only, else
    ``TypeError``: take ``real`` or ``imag`` first.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.cast([1.9, -1.9, 300.0], "uint8")).tolist()
    [1, 0, 255]
    """
    return _convert(x, dtype, None, None)


gradient(cast, x=lambda g, _x: helpers.cast_back(g, _x))


@derived(KEEP.giving("own"))
def saturate_cast(x: TensorLike, dtype: DTypeLike) -> Tensor:
    """``x`` in another dtype, where what is out of its range becomes the nearest value that it holds.

    Unlike :func:`cast`, integers do not wrap around and floats do not become infinite. NaN becomes 0 in an integer.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.saturate_cast([300, -5, 7], "uint8")).tolist()
    [255, 0, 7]
    """
    from ember_ml.ops.elementwise.arithmetic import clip

    source, target = as_dtype(x.dtype), as_dtype(dtype)
    if source.kind in ("bool", "complex") or target.kind in ("bool", "complex"):
        return cast(x, dtype)
    own, other = (iinfo(d) if d.kind in ("int", "uint") else finfo(d) for d in (source, target))
    low, high = max(own.min, other.min), min(own.max, other.max)
    if source.kind in ("int", "uint"):
        return cast(clip(x, int(low), int(high)), dtype)
    if target.kind in ("int", "uint"):
        return cast(x, dtype)
    return cast(clip(x, low, high), dtype)


@primitive(KEEP.giving("own"))
def view(x: TensorLike, dtype: DTypeLike) -> Tensor:
    """The same bytes read as another dtype; where the sizes differ, the last axis grows or shrinks.

    A last axis whose bytes do not divide evenly, or a 0-d tensor and another size, raise ``ValueError``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.view(ops.array([1.0]), "int32")).tolist()
    [1065353216]
    """
    ...


declare_view(view, lambda v, x, _dtype: view(v, x.dtype), keeps_elements=False, may_copy=True)


astype = cast


@primitive(KEEP)
def stop_gradient(x: TensorLike) -> Tensor:
    """``x`` itself, as a constant to every gradient.

    >>> from ember_ml import ops
    >>> ops.item(ops.grad(lambda x: x * ops.stop_gradient(x))(3.0))
    3.0
    """
    ...


gradient(stop_gradient, x=None)
