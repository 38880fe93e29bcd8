"""Convert Python data to NumPy arrays, from which every backend makes its tensors.

NumPy is always installed, shares memory with PyTorch and MLX where that is safe, and reads every array-like: data of
any origin becomes a NumPy array first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ember_ml.backend.contract import Backend
from ember_ml.backend.selection import backend_of
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType, find_dtype
from ember_ml.core.promotion import integer_range, promote, weak_promote
from ember_ml.errors import LostGradient

__all__ = [
    "as_float32",
    "as_host",
    "as_host_for",
    "cast_host",
    "host_dtypes",
    "keep_gradient",
    "open_portable_with",
    "shares_memory",
    "unbox_objects",
    "zeros_without_memory",
]


class _HostDTypes(dict[EmberDType, np.dtype]):
    """NumPy's dtypes; that of bfloat16 joins them when it is first asked for, since its package loads slowly."""

    def __missing__(self, dtype: EmberDType) -> np.dtype:
        import ml_dtypes

        self[dtype] = np.dtype(getattr(ml_dtypes, dtype.name))
        return self[dtype]


host_dtypes = _HostDTypes({dtype: np.dtype(dtype.name) for dtype in dt.ALL if dtype is not dt.bfloat16})
_PYTHON_SCALARS = {bool, int, float, complex}
_openers: list[Callable[[Any], tuple[Any, Any] | None]] = []


def _leaves(data: Any, kinds: set[type], depth: int = 0) -> None:
    """Collect the types of the innermost elements of nested lists and tuples."""
    if depth > 64:
        raise ValueError("the data is nested more than 64 deep; a tensor has at most 64 dimensions")
    types = set(map(type, data))
    nested = types & {list, tuple}
    kinds |= types - nested
    if nested:
        for item in data:
            if type(item) is list or type(item) is tuple:
                _leaves(item, kinds, depth + 1)


def as_host(data: Any, dtype: EmberDType | None = None, detach: bool = False) -> np.ndarray:
    """Return a NumPy array of ``data``: Python numbers take the default dtypes, typed data keeps its own.

    With ``dtype`` the result has that dtype; Python integers that do not fit raise ``OverflowError``, floats that
    become integers are truncated. The result may share memory with ``data``. A tensor that is being differentiated
    raises ``LostGradient``, unless the caller says ``detach``.
    """
    kind = type(data)
    if kind is np.ndarray:
        array = data
    elif kind in _PYTHON_SCALARS:
        return _of_numbers(data, {kind}, dtype)
    elif kind is list or kind is tuple:
        kinds: set[type] = set()
        _leaves(data, kinds)
        if kinds <= _PYTHON_SCALARS:
            return _of_numbers(data, kinds, dtype)
        array = _of_mixed(data, kinds, dtype, detach)
    else:
        array = _of_object(data, detach)
    own = _own_dtype(array, kind)
    native = host_dtypes[own]
    if array.dtype is not native:  # another object for the same dtype, or another byte order
        array = array.view(native) if array.dtype == native else array.astype(native)
    return array if dtype is None or dtype is own else cast_host(array, host_dtypes[dtype])


def _own_dtype(array: np.ndarray, kind: type) -> EmberDType:
    own = find_dtype(array.dtype if array.dtype.isnative else array.dtype.newbyteorder("="))
    if own is None:
        raise TypeError(f"a tensor holds numbers and bools, not the {array.dtype} elements of this {kind.__name__}")
    return own


def as_host_for(data: Any, dtype: EmberDType) -> np.ndarray:
    """Convert what is stored in a tensor of ``dtype``; lists of Python numbers take it unless of a higher kind."""
    if type(data) is list or type(data) is tuple:
        kinds: set[type] = set()
        _leaves(data, kinds)
        if kinds <= _PYTHON_SCALARS and all(weak_promote(dtype, kind) is dtype for kind in kinds):
            return _of_numbers(data, kinds, dtype)
    return as_host(data)


def _of_numbers(data: Any, kinds: set[type], dtype: EmberDType | None) -> np.ndarray:
    """Convert Python numbers: exactly in 64 bits first, then to the requested or the default dtype."""
    if complex in kinds and dtype is not None and dtype.kind not in ("complex", "bool"):
        raise TypeError(f"complex numbers cannot become {dtype}; take real() or imag() first")
    wide = np.complex128 if complex in kinds else np.float64 if float in kinds or not kinds else np.int64
    try:
        array = np.array(data, dtype=np.bool_ if kinds == {bool} else wide)
    except ValueError as error:
        raise ValueError(f"nested lists must have equal lengths at each level ({error})") from error
    except OverflowError as error:
        if wide is not np.int64:
            raise OverflowError("an integer among the numbers is too large for any floating dtype") from error
        return _big_integers(data, dtype)
    if dtype is None:
        dtype = promote((), kinds) if kinds else dt.DEFAULT_FLOAT
    elif dtype.kind in ("int", "uint") and array.dtype.kind == "i" and array.size:
        _check_range(int(array.min()), int(array.max()), dtype)
    return cast_host(array, host_dtypes[dtype])


def _check_range(low: int, high: int, dtype: EmberDType) -> None:
    smallest, largest = integer_range(dtype)
    if low < smallest or high > largest:
        worst = low if low < smallest else high
        raise OverflowError(f"the integer {worst} does not fit {dtype} ({smallest} to {largest})")


def _big_integers(data: Any, dtype: EmberDType | None) -> np.ndarray:
    """Convert integers of which some do not fit int64: to uint64, to a requested floating dtype, or raise."""
    if dtype is not None and dtype.kind in ("float", "complex"):
        return _of_numbers(data, {float}, dtype)
    array = np.array(data, dtype=object)
    if dtype is not None and dtype.kind == "bool":
        return array.astype(np.bool_)
    flat = array.ravel().tolist()
    _check_range(min(flat), max(flat), dtype or dt.DEFAULT_INT)
    return array.astype(host_dtypes[dtype or dt.DEFAULT_INT])


def _of_mixed(data: Any, kinds: set[type], dtype: EmberDType | None, detach: bool) -> np.ndarray:
    """Convert lists that hold tensors or typed scalars to their common dtype; Python numbers are weak."""
    if len(kinds) == 1 and issubclass(next(iter(kinds)), np.generic):
        return np.array(data)
    if dtype is None:
        typed: list[EmberDType] = []
        _typed_leaves(data, typed, detach)
        dtype = promote(typed, kinds & _PYTHON_SCALARS)
    parts = [as_host(item, dtype, detach) for item in data]
    if len({part.shape for part in parts}) > 1:
        raise ValueError(f"a tensor cannot be made of parts of different shapes: {[part.shape for part in parts]}")
    return np.stack(parts)


def _typed_leaves(data: Any, dtypes: list[EmberDType], detach: bool) -> None:
    """Collect the dtypes of the innermost elements that have one."""
    for item in data:
        if type(item) is list or type(item) is tuple:
            _typed_leaves(item, dtypes, detach)
        elif type(item) not in _PYTHON_SCALARS:
            dtypes.append(_own_dtype(as_host(item, detach=detach), type(item)))


def _of_object(data: Any, detach: bool) -> np.ndarray:
    """Convert tensors of any library, NumPy scalars and subclasses, buffers, data frames: whatever NumPy can read."""
    owner, native = _open_tensor(data)
    if owner is not None:
        if not detach:
            keep_gradient(native, owner)
        return owner.to_host(native)
    if data is None or isinstance(data, str | bytes | dict | set):
        raise TypeError(f"a tensor cannot be made of {type(data).__name__} {str(data)[:40]!r}")
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        raise TypeError("a tensor has no masked elements; fill them first: data.filled(value)")
    if hasattr(data, "__dlpack__") and not hasattr(data, "__array__"):
        return np.from_dlpack(data)
    array = np.asarray(data)
    if array.dtype == object:
        raise TypeError(f"a tensor cannot be made of {type(data).__name__}: its elements are not all numbers")
    return array


def unbox_objects(data: Any) -> Any:
    """Return ``data``, but arrays and data frames of Python objects as arrays of floats."""
    if not isinstance(data, np.ndarray):
        if _open_tensor(data)[0] is not None or not hasattr(data, "__array__"):
            return data
        data = np.asarray(data)
    return data.astype(np.float64) if data.dtype == object else data


def _open_tensor(data: Any) -> tuple[Any, Any]:
    """Return the backend of ``data`` and its native tensor; None twice for what is not a tensor."""
    for opened in _openers:
        found = opened(data)
        if found is not None:
            return found
    return backend_of(data), data


def keep_gradient(native: Any, backend: Backend) -> None:
    """Raise where ``native``, a tensor of ``backend``, is being differentiated and would become plain data."""
    if backend.is_recorded(native):
        raise LostGradient(
            f"a tensor that is being differentiated on {backend.name} would lose its gradient here: it cannot go to "
            "another library or backend, or into a list of numbers; compute with ops on its own backend (ops.stack "
            "makes one tensor of several), finish the gradient first, or cut it with ops.stop_gradient(x)"
        )


def shares_memory(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether the two arrays lie in the same memory; empty ones always do."""
    return not x.size or np.may_share_memory(x, y)


def open_portable_with(opened: Callable[[Any], tuple[Any, Any] | None]) -> None:
    """Register ``opened``, which returns backend and native tensor of a portable tensor; a higher floor provides it."""
    _openers.append(opened)


def cast_host(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Cast ``array``: float to integer saturates and NaN becomes 0, integers wrap, complex to real raises."""
    if array.dtype is dtype or array.dtype == dtype:
        return array
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        raise TypeError(f"{array.dtype} cannot become {dtype}; take real() or imag() first")
    if dtype.kind in "iu" and (array.dtype.kind == "f" or array.dtype == host_dtypes[dt.bfloat16]):
        return _saturate(array, dtype)
    if array.dtype.char == "e" and dtype.char == "f" and array.size >= _MANY_HALVES:
        return _look_up(array)
    if array.dtype.char == "f" and dtype.char == "e" and array.size >= _MANY_HALVES:
        return _round_to_halves(array)
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def as_float32(array: np.ndarray) -> np.ndarray:
    """Return ``array`` in float32."""
    return cast_host(array, host_dtypes[dt.float32])


_MANY_HALVES = 16384
_LOOKED_UP = 65536  # elements at a time: their indices, which NumPy makes of 8 bytes each, stay in the cache


@cache
def _float32_of_halves() -> np.ndarray:
    """Return the float32 number of each of the 65,536 float16 numbers."""
    return np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)


def _look_up(array: np.ndarray) -> np.ndarray:
    """Return many float16 numbers as float32."""
    # NumPy 2.4: converts them one by one, in more than twice the time that a table takes
    table, result = _float32_of_halves(), np.empty(array.shape, np.float32)
    bits, flat = array.view(np.uint16).reshape(-1), result.reshape(-1)
    for start in range(0, len(flat), _LOOKED_UP):
        piece = slice(start, start + _LOOKED_UP)
        np.take(table, bits[piece], out=flat[piece], mode="wrap")  # which, unlike "raise", writes there at once
    return result


def _word(value: int) -> np.ndarray:
    return np.array(value, np.uint32)


_MAGNITUDE, _EXPONENT, _SIGN = _word(0x7FFFFFFF), _word(0x7F800000), _word(0x80000000)
_TOO_LARGE = 65536.0  # for a float16
_LOST_BITS, _BIAS = _word(13), _word(126 << 10)
_LEAST_RULER = np.full(_LOOKED_UP, 0.5, np.float32).view(np.uint32)  # NumPy 2.4: thrice as fast as one number


def _round_to_halves(array: np.ndarray) -> np.ndarray:
    """Return many float32 numbers as float16.

    Beside a number 2**13 times as large, its ruler, a number of 24 bits keeps the 11 of a float16, rounded to even; a
    ruler of 1/2 does it for what is subnormal as float16. The bits of the sum count from those of the ruler.
    """
    # NumPy 2.4: converts them one by one, in twice the time
    result, numbers = np.empty(array.shape, np.float16), array.reshape(-1)
    halves, memory = result.reshape(-1), np.empty((2, min(_LOOKED_UP, array.size)), np.uint32)
    for start in range(0, len(numbers), _LOOKED_UP):
        piece = slice(start, start + _LOOKED_UP)
        words = numbers[piece].view(np.uint32)
        x, ruler = memory[:, : len(words)]
        np.bitwise_and(words, _MAGNITUDE, x)
        if not x.view(np.float32).max() < _TOO_LARGE:  # NaN, too
            with np.errstate(all="ignore"):
                halves[piece] = numbers[piece]
            continue
        np.bitwise_and(x, _EXPONENT, ruler)
        np.add(ruler, _LOST_BITS << 23, ruler)
        np.maximum(ruler, _LEAST_RULER[: len(ruler)], out=ruler)
        np.add(x.view(np.float32), ruler.view(np.float32), x.view(np.float32))
        np.subtract(x, ruler, x)
        np.right_shift(ruler, _LOST_BITS, ruler)
        np.add(x, ruler, x)
        np.subtract(x, _BIAS, x)
        np.bitwise_and(words, _SIGN, ruler)
        np.right_shift(ruler, 16, ruler)
        np.bitwise_or(x, ruler, x)
        np.copyto(halves[piece].view(np.uint16), x, casting="unsafe")
    return result


def _saturate(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if array.dtype.itemsize < 4:  # halves reach neither bound of the wider integers
        array = array.astype(np.float32)
    info = np.iinfo(dtype)
    with np.errstate(all="ignore"):
        result = array.astype(dtype)
        # the upper bound rounds up to a power of two as a float, so reaching it is already too large
        result = np.where(array >= float(info.max), dtype.type(info.max), result)
        result = np.where(array <= float(info.min), dtype.type(info.min), result)
    return np.where(np.isnan(array), dtype.type(0), result)


def from_bytes(data: bytes, dtype: EmberDType, shape: tuple[int, ...]) -> np.ndarray:
    """Return the array whose elements ``data`` holds in C order."""
    return np.frombuffer(bytearray(data), dtype=host_dtypes[dtype]).reshape(shape)


def zeros_without_memory(dtype: EmberDType, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of zeros that are one and the same element, and so cannot be changed."""
    return np.ndarray(shape, host_dtypes[dtype], bytes(dtype.itemsize), strides=(0,) * len(shape))


def have_same_bytes(x: np.ndarray, y: np.ndarray) -> bool:
    """Return whether two arrays of one shape and dtype hold the same bytes, so that NaN is the same as NaN."""
    return np.array_equal(x.reshape(-1).view(np.uint8), y.reshape(-1).view(np.uint8))


def to_python(array: np.ndarray) -> Any:
    """Return the elements as nested lists of Python numbers; of a 0-d array, the number."""
    return (array.astype(np.float32) if array.dtype == host_dtypes[dt.bfloat16] else array).tolist()


def text_of(array: np.ndarray, prefix: str) -> str:
    """Return the elements as text, abridged if long, in lines indented to ``prefix``."""
    return np.array2string(array, separator=", ", prefix=prefix)
