"""What stands between the brackets of ``x[key] = value``, made native: the items of a key, and the value to store."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from ember_ml.backend.contract import Backend
from ember_ml.backend.host_arrays import as_host, as_host_for, host_dtypes
from ember_ml.core.dtypes import EmberDType, int64
from ember_ml.core.promotion import can_hold, check_scalar

__all__ = ["read_basic_key", "read_index", "read_key", "read_value"]

_SCALARS = frozenset({bool, int, float, complex})


def read_key(item: Any, backend: Backend, device: str | None) -> Any:
    """One item of a key: an int, a slice of ints, None, Ellipsis, or a native tensor of integers or bools."""
    kind = type(item)
    if kind is int or item is None or item is Ellipsis:
        return item
    if kind is slice:
        return slice(_bound(item.start), _bound(item.stop), _bound(item.step))
    if not (kind is backend.tensor_type or backend.is_native(item)):
        if kind is not bool and hasattr(kind, "__index__") and not hasattr(item, "shape"):
            return item.__index__()
        item = backend.from_host(_as_indices(item), device)
    dtype = backend.dtype_of(item)
    if dtype.kind not in ("int", "uint", "bool"):
        raise IndexError(f"a tensor is indexed by integers, slices, None, ... and masks, not by {dtype} values")
    return item


def read_basic_key(key: Any) -> tuple[Any, ...] | None:
    """Return a key of integers, slices, None and Ellipsis as a tuple that nobody can change; None for any other.

    Such a key selects by position alone, and what it selects is a view.
    """
    items = key if type(key) is tuple else (key,)
    basic: list[Any] = []
    for item in items:
        if type(item) is slice:
            basic.append(slice(_bound(item.start), _bound(item.stop), _bound(item.step)))
        elif item is None or item is Ellipsis:
            basic.append(item)
        elif isinstance(item, Integral) and not isinstance(item, bool):
            basic.append(int(item))
        else:
            return None
    return tuple(basic)


def read_index(item: Any, backend: Backend, device: str | None) -> Any:
    """A native tensor of integers; ``IndexError`` where ``item`` holds anything else."""
    if not (type(item) is backend.tensor_type or backend.is_native(item)):
        item = backend.from_host(_as_indices(item), device)
    dtype = backend.dtype_of(item)
    if dtype.kind not in ("int", "uint"):
        raise IndexError(f"indices are integers, not {dtype}")
    return item


def _bound(value: Any) -> int | None:
    """One bound of a slice; a 0-d integer tensor is read, since the shape of the result depends on it."""
    if value is None or type(value) is int:
        return value
    if getattr(value, "shape", None) == ():
        host = as_host(value)
        if host.dtype.kind in "iu":
            return int(host)
    if not hasattr(value, "__index__"):
        raise TypeError(f"the bounds of a slice are integers or None, not {type(value).__name__}")
    return value.__index__()


def _as_indices(item: Any) -> Any:
    try:
        host = as_host(item)
    except (TypeError, ValueError) as error:
        raise IndexError(f"a tensor is indexed by integers, slices, None, ... and masks ({error})") from error
    # an empty list says nothing of its kind; it selects nothing
    return host.astype(host_dtypes[int64]) if host.size == 0 and isinstance(item, list | tuple) else host


def read_value(op: str, value: Any, dtype: EmberDType, backend: Backend, device: str | None) -> Any:
    """``value`` as a native tensor of ``dtype``, the dtype of the tensor that it goes into; ``TypeError`` for a loss.

    Python numbers, alone or in lists, take that dtype unless their kind is higher.
    """
    native = backend.dtypes[dtype]
    if type(value) in _SCALARS:
        check_scalar(op, value, dtype)
        return backend.scalar(value, native, device)
    if not (type(value) is backend.tensor_type or backend.is_native(value)):
        value = backend.from_host(as_host_for(value, dtype), device)
    own = backend.dtype_of(value)
    if own is dtype:
        return value
    if not can_hold(own, dtype):
        raise TypeError(
            f"ops.{op} would lose something by storing {own} into a tensor of {dtype}; cast the values first"
        )
    return backend.cast(value, native)
