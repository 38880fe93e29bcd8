"""The kind of a tensor: which backend holds it, in which dtype.

There is one object per pair, so that an operator learns in one comparison that its operands agree in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ember_ml.backend.contract import Backend
from ember_ml.core.dtypes import EmberDType, float32, float64

__all__ = ["BINARY_OPERATORS", "COMPARISONS", "UNARY_OPERATORS", "Kind", "kind_of", "kinds_of", "on_new_kinds"]


# The ops behind EmberTensor's operators, by the name between the underscores.
BINARY_OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "mod",
    "pow": "power",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
COMPARISONS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
UNARY_OPERATORS = {"neg": "negative", "pos": "positive", "abs": "abs", "invert": "bitwise_invert"}
_OPERATORS = tuple((BINARY_OPERATORS | COMPARISONS | UNARY_OPERATORS).values())


class Kind:
    """A backend and a dtype.

    ``boolean`` is the kind of a comparison's result. The slots named after ops hold the native function that computes
    the op for this kind as the contract says; the floor above fills them, and leaves None in those that need dispatch.
    """

    __slots__ = (
        "backend",
        "boolean",
        "dtype",
        "native",
        "weak",
        *_OPERATORS,
    )

    def __init__(self, backend: Backend, dtype: EmberDType) -> None:
        self.backend = backend
        self.dtype = dtype
        self.native: type = backend.tensor_type
        self.weak: bool = dtype is float32 or dtype is float64
        self.boolean: Kind = self
        for name in _OPERATORS:
            setattr(self, name, None)

    def __repr__(self) -> str:
        return f"<kind {self.backend.name} {self.dtype}>"


_KINDS: dict[str, dict[str, Kind]] = {}  # by names: torch 2.12 refuses to compile what hashes objects of ours
_on_new_kinds: list[Callable[[Iterable[Kind]], None]] = []


def on_new_kinds(function: Callable[[Iterable[Kind]], None]) -> None:
    """Call ``function`` with the kinds of each backend, before there is any portable tensor of it."""
    _on_new_kinds.append(function)


def kinds_of(backend: Backend) -> dict[str, Kind]:
    """The kinds of a backend by the names of their dtypes."""
    found = _KINDS.get(backend.key)
    if found is None:
        found = {dtype.name: Kind(backend, dtype) for dtype in backend.dtypes}
        for kind in found.values():
            kind.boolean = found["bool"]
        for listener in _on_new_kinds:
            listener(found.values())
        _KINDS[backend.key] = found
    return found


def kind_of(backend: Backend, native: Any) -> Kind:
    """The kind of a native tensor of ``backend``."""
    return kinds_of(backend)[backend.dtype_of(native).name]
