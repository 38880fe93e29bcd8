"""The dtype rules: in which dtype an op computes, and which dtypes it refuses.

Every op names one. Dispatch promotes by it, the contract's tests are made from it, the reference pages print it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType
from ember_ml.core.promotion import promote
from ember_ml.errors import UnsupportedDType

__all__ = [
    "BITWISE",
    "CONTRACTION",
    "CREATION",
    "DIVISION",
    "EQUALITY",
    "FACTORIZATION",
    "FLOATING",
    "INTEGER",
    "KEEP",
    "KEEP_REAL",
    "LOGICAL",
    "NUMERIC",
    "ORDER",
    "ORDERED",
    "REAL",
    "REAL_CONTRACTION",
    "REAL_FLOATING",
    "REAL_FLOATS",
    "REAL_TRANSFORM",
    "SAME",
    "TRANSFORM",
    "Rule",
]


_HALVES = frozenset({"bfloat16", "float16"})


@dataclass(frozen=True)
class Rule:
    """How the dtypes of an op's tensors settle the dtype in which it computes.

    ``domain``: the dtypes in which it can compute. ``lift``: integers and bools are computed in the default float,
    bools only with ``lift_bool``. ``result``: the dtype of the result: ``same`` as computed, a dtype's name, ``real``
    (of complex, its parts'), ``complex`` (of real, the complex dtype of such parts), ``wide`` (integers in 64 bits), or
    ``own``, where the op's documentation says it. ``promotes``: the tensors are brought to one dtype; without it each
    keeps its own. ``contraction``: half precision does not meet wider floats. ``by_value``: Python integers out of the
    dtype's range, and uint64 with signed integers, are compared, not refused.
    """

    name: str
    domain: frozenset[EmberDType]
    lift: bool = False
    lift_bool: bool = True
    result: str = "same"
    promotes: bool = True
    contraction: bool = False
    by_value: bool = False
    names: frozenset[str] = field(init=False, repr=False)
    """Those of the domain: torch 2.12 refuses to compile what hashes objects of ours."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", frozenset(dtype.name for dtype in self.domain))

    def giving(self, result: str) -> Rule:
        """The same rule with another result dtype."""
        return replace(self, result=result)

    def settle(self, op: str, tensor_dtypes: Iterable[EmberDType], scalars: Iterable[type]) -> EmberDType:
        """The dtype in which ``op`` computes these arguments; ``TypeError`` where it cannot."""
        tensor_dtypes = list(tensor_dtypes)
        if self.contraction:
            self._refuse_mixed_precision(op, tensor_dtypes)
        dtype = promote(tensor_dtypes, scalars)
        if dtype.name in self.names:
            return dtype
        if self.lift and (dtype.kind in ("int", "uint") or (dtype.kind == "bool" and self.lift_bool)):
            return dt.DEFAULT_FLOAT
        accepted = ", ".join(sorted(self.names))
        message = f"ops.{op} does not compute {dtype}; it takes {accepted}"
        if any(dtype.kind == other.kind for other in self.domain):
            raise UnsupportedDType(message)
        raise TypeError(message)

    @staticmethod
    def _refuse_mixed_precision(op: str, dtypes: list[EmberDType]) -> None:
        floats = {dtype.name for dtype in dtypes if dtype.kind in ("float", "complex")}
        if len(floats) > 1 and not floats.isdisjoint(_HALVES):
            raise TypeError(
                f"ops.{op} does not mix half precision with other floats: {', '.join(map(str, dtypes))}; "
                "cast one side so that the precision is your choice"
            )


_NUMBERS = dt.INTEGERS | dt.FLOATS | dt.COMPLEX
_FULL = frozenset({dt.float32, dt.float64, dt.complex64, dt.complex128})

SAME = Rule("same", dt.ALL)
KEEP = Rule("keep", dt.ALL, promotes=False)
KEEP_REAL = Rule("keep real", dt.INTEGERS | dt.FLOATS, promotes=False)
NUMERIC = Rule("numeric", _NUMBERS)
REAL = Rule("real", dt.INTEGERS | dt.FLOATS)
FLOATING = Rule("floating", dt.FLOATS | dt.COMPLEX, lift=True)
DIVISION = Rule("division", dt.FLOATS | dt.COMPLEX, lift=True, lift_bool=False)
REAL_FLOATING = Rule("real floating", dt.FLOATS, lift=True)
REAL_FLOATS = Rule("real floats", dt.FLOATS)
INTEGER = Rule("integer", dt.INTEGERS)
BITWISE = Rule("bitwise", dt.INTEGERS | dt.BOOL)
LOGICAL = Rule("logical", dt.ALL, promotes=False, result="bool")
EQUALITY = Rule("equality", dt.ALL, result="bool", by_value=True)
ORDER = Rule("order", dt.ALL - dt.COMPLEX, result="bool", by_value=True)
ORDERED = Rule("ordered", dt.ALL - dt.COMPLEX)
CONTRACTION = Rule("contraction", _NUMBERS, contraction=True)
REAL_CONTRACTION = Rule("real contraction", dt.FLOATS, lift=True, contraction=True)
FACTORIZATION = Rule("factorization", _FULL, lift=True, contraction=True)
TRANSFORM = Rule("transform", _FULL, lift=True, result="complex")
REAL_TRANSFORM = Rule("real transform", frozenset({dt.float32, dt.float64}), lift=True, result="complex")
CREATION = Rule("creation", dt.ALL, result="own")
