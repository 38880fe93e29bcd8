"""The dtypes as attributes of ``ops``, and their facts: limits, kinds, promotion."""

from __future__ import annotations

import builtins
from typing import Any

from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import (
    EmberDType,
    as_dtype,
    bfloat16,
    complex64,
    complex128,
    find_dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ember_ml.core.promotion import can_hold, integer_range, promote
from ember_ml.dispatch.declare import plain
from ember_ml.ops.arrays.properties import dtype as dtype_of
from ember_ml.typing import DTypeLike, TensorLike

__all__ = [
    "FInfo",
    "IInfo",
    "bfloat16",
    "bool",
    "can_cast",
    "complex64",
    "complex128",
    "finfo",
    "float16",
    "float32",
    "float64",
    "iinfo",
    "int8",
    "int16",
    "int32",
    "int64",
    "isdtype",
    "result_type",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

bool: EmberDType = dt.bool_

# dtype: bits of the fraction, and the power of two that its largest number just misses
_FLOAT_FORMATS = {"float16": (10, 16), "bfloat16": (7, 128), "float32": (23, 128), "float64": (52, 1024)}
_PARTS = {"complex64": float32, "complex128": float64}
_KINDS: dict[str, frozenset[EmberDType]] = {
    "bool": dt.BOOL,
    "signed integer": dt.SIGNED,
    "unsigned integer": dt.UNSIGNED,
    "integral": dt.INTEGERS,
    "real floating": dt.FLOATS,
    "complex floating": dt.COMPLEX,
    "numeric": dt.INTEGERS | dt.FLOATS | dt.COMPLEX,
}
_SCALARS = frozenset({builtins.bool, int, float, complex})


class _Limits:
    """Facts that do not change; a dataclass would take a millisecond of every import to make."""

    __slots__ = ("bits", "dtype", "max", "min")

    bits: int
    max: Any
    min: Any
    dtype: EmberDType

    def __init__(self, **facts: Any) -> None:
        for name, value in facts.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"the limits of a dtype are what they are: {name} cannot be set")

    def __eq__(self, other: object) -> builtins.bool:
        return type(other) is type(self) and other.dtype is self.dtype

    def __hash__(self) -> int:
        return hash((type(self), self.dtype))

    def __reduce__(self) -> tuple[Any, ...]:
        return (finfo if isinstance(self, FInfo) else iinfo), (self.dtype,)

    def __repr__(self) -> str:
        names = [name for cls in reversed(type(self).__mro__) for name in getattr(cls, "__slots__", ())]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


class FInfo(_Limits):
    """The limits of a floating dtype, which ``ops.finfo`` returns; of a complex one, those of its parts.

    Args:
        facts: The limits by the names of the attributes.
    """

    __slots__ = ("eps", "smallest_normal")

    eps: float
    smallest_normal: float


class IInfo(_Limits):
    """The limits of an integer dtype, which ``ops.iinfo`` returns.

    Args:
        facts: The limits by the names of the attributes.
    """

    __slots__ = ()


def _dtype(value: Any) -> EmberDType:
    """Return the dtype that ``value`` stands for, or that it has where it is a tensor."""
    return find_dtype(value) or dtype_of(value)


@plain
def finfo(type: DTypeLike | TensorLike) -> FInfo:
    """The limits of a floating dtype, given by any of its names or by a tensor; of a complex one, those of its parts.

    >>> from ember_ml import ops
    >>> ops.finfo("float16").max, ops.finfo(ops.float32).bits
    (65504.0, 32)
    """
    dtype = _dtype(type)
    part = _PARTS.get(dtype.name, dtype)
    if part.name not in _FLOAT_FORMATS:
        raise TypeError(f"ops.finfo takes floating and complex dtypes, not {dtype}; ops.iinfo takes integers")
    fraction, top = _FLOAT_FORMATS[part.name]
    eps = 2.0**-fraction
    largest = (2.0 - eps) * 2.0 ** (top - 1)
    return FInfo(bits=part.bits, eps=eps, max=largest, min=-largest, smallest_normal=2.0 ** (2 - top), dtype=part)


@plain
def iinfo(type: DTypeLike | TensorLike) -> IInfo:
    """The limits of an integer dtype, given by any of its names or by a tensor.

    >>> from ember_ml import ops
    >>> ops.iinfo("int8").min, ops.iinfo(ops.uint16).max
    (-128, 65535)
    """
    dtype = _dtype(type)
    if dtype not in dt.INTEGERS:
        raise TypeError(f"ops.iinfo takes integer dtypes, not {dtype}; ops.finfo takes floating ones")
    smallest, largest = integer_range(dtype)
    return IInfo(bits=dtype.bits, max=largest, min=smallest, dtype=dtype)


@plain
def isdtype(dtype: DTypeLike, kind: Any) -> builtins.bool:
    """Whether ``dtype`` is of that kind: a kind's name, a dtype, or a tuple of them, of which one must fit.

    The kinds are "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
    "numeric".

    >>> from ember_ml import ops
    >>> ops.isdtype("int8", "integral"), ops.isdtype(ops.float32, ("bool", "float64"))
    (True, False)
    """
    own = as_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(own, one) for one in kind)
    if isinstance(kind, str) and kind in _KINDS:
        return own in _KINDS[kind]
    found = find_dtype(kind)
    if found is None:
        raise ValueError(f"{kind!r} is neither a dtype nor a kind of dtypes; the kinds are {', '.join(_KINDS)}")
    return own is found


@plain
def can_cast(from_: DTypeLike | TensorLike, to: DTypeLike) -> builtins.bool:
    """Whether the promotion rules lead from that dtype, or the tensor's, to ``to``.

    >>> from ember_ml import ops
    >>> ops.can_cast("int8", "int16"), ops.can_cast("float64", "float32")
    (True, False)
    """
    return can_hold(_dtype(from_), as_dtype(to))


@plain
def result_type(*arrays_and_dtypes: Any) -> EmberDType:
    """The dtype that these tensors, dtypes and Python numbers have in common; numbers are weak.

    >>> from ember_ml import ops
    >>> ops.result_type("int8", "uint8"), ops.result_type(ops.zeros(2), 1), ops.result_type("int64", 1.5)
    (int16, float32, float32)
    """
    scalars = [type(value) for value in arrays_and_dtypes if type(value) in _SCALARS]
    return promote([_dtype(value) for value in arrays_and_dtypes if type(value) not in _SCALARS], scalars)
