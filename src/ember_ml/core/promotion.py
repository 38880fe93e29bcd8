"""Promote dtypes of tensors and Python scalars: one table for every backend.

The Array API's table, extended: an integer with a float promotes to that float, bool to anything, float16 with
bfloat16 to float32; uint64 with a signed integer has no common dtype. Python scalars are weak: they take the tensor's
dtype, unless their kind is higher, and then they bring the default dtype of that kind.
"""

from __future__ import annotations

from collections.abc import Iterable

from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType

__all__ = ["can_hold", "check_integer", "check_scalar", "integer_range", "promote", "promote_types", "weak_promote"]

_KIND_RANK = {"bool": 0, "int": 1, "uint": 1, "float": 2, "complex": 3}
_SCALAR_DTYPES: dict[type, EmberDType] = {
    bool: dt.bool_,
    int: dt.DEFAULT_INT,
    float: dt.DEFAULT_FLOAT,
    complex: dt.DEFAULT_COMPLEX,
}
_SIGNED_BY_BITS = {8: dt.int8, 16: dt.int16, 32: dt.int32, 64: dt.int64}


def _common(a: EmberDType, b: EmberDType) -> EmberDType | None:
    if a is b:
        return a
    if _KIND_RANK[a.kind] > _KIND_RANK[b.kind]:
        a, b = b, a
    if a.kind == "bool" or (a.kind in ("int", "uint") and b.kind in ("float", "complex")):
        return b
    if a.kind == "float" and b.kind == "complex":
        return dt.complex128 if a is dt.float64 else b
    if a.kind == b.kind:
        if a.bits == b.bits:  # float16 and bfloat16: neither holds the other
            return dt.float32
        return a if a.bits > b.bits else b
    signed, unsigned = (a, b) if a.kind == "int" else (b, a)
    return _SIGNED_BY_BITS.get(max(signed.bits, 2 * unsigned.bits))


def _with_scalar(dtype: EmberDType, scalar: type) -> EmberDType:
    strong = _SCALAR_DTYPES[scalar]
    if _KIND_RANK[dtype.kind] >= _KIND_RANK[strong.kind]:
        return dtype
    if scalar is complex and dtype is dt.float64:
        return dt.complex128
    return strong


# Tables rather than caches: torch 2.13 warns of each cache that torch.compile traces. By names: torch 2.12 refuses to
# compile what hashes objects of ours.
_COMMON = {(a.name, b.name): _common(a, b) for a in dt.ALL for b in dt.ALL}
_WITH_SCALAR = {(dtype.name, scalar): _with_scalar(dtype, scalar) for dtype in dt.ALL for scalar in _SCALAR_DTYPES}


def promote_types(a: EmberDType, b: EmberDType) -> EmberDType:
    """Return the dtype that holds both ``a`` and ``b``; ``TypeError`` where none does."""
    found = _COMMON[a.name, b.name]
    if found is None:
        raise TypeError(f"{a} and {b} have no common integer dtype; cast one of them first")
    return found


def weak_promote(dtype: EmberDType, scalar: type) -> EmberDType:
    """Return the dtype of a tensor of ``dtype`` met by a Python scalar of type ``scalar``."""
    return _WITH_SCALAR[dtype.name, scalar]


def promote(tensor_dtypes: Iterable[EmberDType], scalars: Iterable[type]) -> EmberDType:
    """Return the common dtype of tensors and Python scalars; scalars alone have their default dtype."""
    result: EmberDType | None = None
    for dtype in tensor_dtypes:
        result = dtype if result is None else promote_types(result, dtype)
    for scalar in scalars:
        result = _SCALAR_DTYPES[scalar] if result is None else weak_promote(result, scalar)
    if result is None:
        raise TypeError("at least one tensor or number is needed to find a dtype")
    return result


def integer_range(dtype: EmberDType) -> tuple[int, int]:
    """Return the smallest and largest integer that ``dtype`` holds (integers and bool only)."""
    if dtype.kind == "bool":
        return 0, 1
    if dtype.kind == "uint":
        return 0, (1 << dtype.bits) - 1
    return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1


def can_hold(source: EmberDType, target: EmberDType) -> bool:
    """Whether ``source`` becomes ``target`` by the promotion rules, without a loss of kind or width."""
    try:
        return promote_types(source, target) is target
    except TypeError:
        return False


def check_scalar(op: str, value: complex, dtype: EmberDType) -> None:
    """Raise for a Python number that ``dtype`` cannot hold: of a higher kind, or an integer out of range."""
    if weak_promote(dtype, type(value)) is not dtype:
        kind = type(value).__name__
        raise TypeError(f"ops.{op} cannot store the {kind} {value!r} into a tensor of {dtype}; cast one of them")
    if type(value) is int and dtype.kind in ("int", "uint"):
        check_integer(value, dtype, f"ops.{op}: ")


def check_integer(value: int, dtype: EmberDType, prefix: str = "") -> None:
    """Raise for an integer that does not fit ``dtype``; ``prefix`` begins the message."""
    low, high = integer_range(dtype)
    if not low <= value <= high:
        raise OverflowError(f"{prefix}the integer {value} does not fit {dtype} ({low} to {high})")
