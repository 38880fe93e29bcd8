"""The machinery of the behaviour tables: a row is a call and what the rule says must come of it.

A row's call receives `t`, the kind of tensors it is run on. `t(data, dtype)` makes an input, `t.<name>` is the op of
that name. The native kind speaks through `ember_ml.ops` alone; the portable kind makes `EmberTensor`s and uses Python
operators and indexing where there are such, because those have code of their own.
"""

import json
import math
import operator
import reprlib
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ember_ml import ops
from ember_ml.nn import tensor

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))

_CREATION = frozenset({"array", "arange", "eye", "full", "linspace", "ones", "zeros"})

_OPERATORS: dict[str, Callable[..., Any]] = {
    "abs": operator.abs,
    "add": operator.add,
    "bitwise_and": operator.and_,
    "bitwise_invert": operator.invert,
    "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift,
    "divide": operator.truediv,
    "equal": operator.eq,
    "floor_divide": operator.floordiv,
    "get_item": operator.getitem,
    "greater": operator.gt,
    "less": operator.lt,
    "matmul": operator.matmul,
    "mod": operator.mod,
    "multiply": operator.mul,
    "negative": operator.neg,
    "power": operator.pow,
    "subtract": operator.sub,
}


@dataclass(frozen=True)
class Kind:
    """One kind of tensors, native or portable, as a namespace of every op."""

    name: str

    def __call__(self, data: Any, dtype: str | None = None) -> Any:
        return self.array(data, dtype=dtype)

    def __getattr__(self, op: str) -> Callable[..., Any]:
        if self.name == "portable":
            if op in _OPERATORS:
                return _OPERATORS[op]
            if op in _CREATION:
                return getattr(tensor, op)
        return getattr(ops, op)


NATIVE = Kind("native")
PORTABLE = Kind("portable")

Call = Callable[[Kind], Any]
Check = Callable[[Call, Kind, str], None]


@dataclass(frozen=True)
class Row:
    """The case of that number in `cases.json`: a call, and the check of what it does."""

    number: int
    call: Call
    check: Check
    kinds: tuple[Kind, ...] = (NATIVE, PORTABLE)

    def run(self, kind: Kind, backend: str) -> None:
        """Run the call and check it; a failure of any sort names the case and its rule."""
        try:
            self.check(self.call, kind, backend)
        except BaseException as error:
            case = CASES[self.number]
            error.add_note(f"case {self.number}, {case['case']}; the rule: {case['rule']}")
            raise


def parameters(rows: Iterable[Row]) -> list[Any]:
    """Give the parameters of a table's test: each row on each kind of tensors that it speaks of."""
    return [pytest.param(row, kind, id=f"case-{row.number:03d}-{kind.name}") for row in rows for kind in row.kinds]


def gives(dtype: str, values: Any, *, rtol: float = 0.0, atol: float = 0.0) -> Check:
    """Check that the result is a tensor of the caller's kind with that dtype, that shape and those values.

    Without a tolerance the values are exact and a zero has the sign that is written. Nested lists show the shape.
    """
    wanted_shape = _shape_of(values)

    def check(call: Call, kind: Kind, backend: str) -> None:
        result = call(kind)
        wanted = type(kind([0.0]))
        assert type(result) is wanted, f"a {wanted.__name__} is wanted, got {type(result).__name__}: {result!r}"
        assert ops.dtype(result) == dtype, f"{dtype} is wanted, got {ops.dtype(result)}"
        got_shape = tuple(ops.shape(result))
        assert got_shape == wanted_shape, f"shape {wanted_shape} is wanted, got {got_shape}"
        got = ops.to_numpy(result).tolist()
        assert _agree(got, values, rtol, atol), f"{reprlib.repr(values)} is wanted, got {reprlib.repr(got)}"

    return check


def each(*checks: Check) -> Check:
    """Check that the result is a tuple and each of its items passes the check at its place."""

    def check(call: Call, kind: Kind, backend: str) -> None:
        result = call(kind)
        assert isinstance(result, tuple), f"a tuple is wanted, got {type(result).__name__}"
        assert len(result) == len(checks), f"{len(checks)} results are wanted, got {len(result)}"
        for item, item_check in zip(result, checks, strict=True):
            item_check(lambda _, item=item: item, kind, backend)

    return check


def returns(value: Any) -> Check:
    """Check that the result is that plain Python value, of the same type."""

    def check(call: Call, kind: Kind, backend: str) -> None:
        result = call(kind)
        assert type(result) is type(value), f"{value!r} is wanted, got {result!r}"
        assert result == value, f"{value!r} is wanted, got {result!r}"

    return check


def raises(error: type[Exception] | tuple[type[Exception], ...], *mentions: str, unlike: Call | None = None) -> Check:
    """Check that the call itself raises that error (not a later evaluation) and that the message has these words.

    `unlike` is a neighbouring call that must pass, so that the error cannot come from what both have in common.
    """

    def check(call: Call, kind: Kind, backend: str) -> None:
        if unlike is not None:
            unlike(kind)
        with pytest.raises(error) as caught:
            call(kind)
        message = str(caught.value).lower()
        missing = [word for word in mentions if word.lower() not in message]
        assert not missing, f"the message {message!r} does not mention {missing}"

    return check


def on(name: str, there: Check, *, elsewhere: Check) -> Check:
    """Check differently on the backend of that name: for what its library truly cannot hold."""

    def check(call: Call, kind: Kind, backend: str) -> None:
        (there if backend == name else elsewhere)(call, kind, backend)

    return check


def float32(value: float) -> float:
    """Give the float32 nearest to a Python float, as a Python float."""
    return struct.unpack("f", struct.pack("f", value))[0]


def ulps32(count: int, value: float) -> float:
    """Give the width of that many units in the last place of a float32 of that value."""
    return count * math.ldexp(1.0, math.frexp(value)[1] - 24)


def shapes(results: Iterable[Any]) -> tuple[tuple[int, ...], ...]:
    """Give the shapes of several tensors as plain tuples."""
    return tuple(tuple(ops.shape(result)) for result in results)


def _shape_of(values: Any) -> tuple[int, ...]:
    if not isinstance(values, list):
        return ()
    return (len(values), *(_shape_of(values[0]) if values else ()))


def _agree(got: Any, want: Any, rtol: float, atol: float) -> bool:
    if isinstance(want, list):
        return len(got) == len(want) and all(_agree(g, w, rtol, atol) for g, w in zip(got, want, strict=True))
    if isinstance(want, bool):
        return got is want
    if isinstance(got, complex):
        # The sign of a zero part depends on the order of the summands, which no rule fixes.
        return abs(got - want) <= rtol * abs(want) + atol
    if isinstance(want, float) and math.isnan(want):
        return math.isnan(got)
    if rtol or atol:
        return got == want or abs(got - want) <= rtol * abs(want) + atol
    return got == want and (want != 0 or math.copysign(1.0, got) == math.copysign(1.0, want))
