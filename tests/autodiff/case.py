"""What the gradient tests need to know of an op: arguments at which it is smooth, by which of them to differentiate."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CASES", "NOT_DIFFERENTIABLE", "Case", "Numbers", "binary", "case", "numbers", "reduction", "unary"]


@dataclass(frozen=True)
class Numbers:
    """A tensor argument: values in a row, its shape, and whether they are real, complex, integer or uint32."""

    values: tuple[Any, ...]
    shape: tuple[int, ...]
    kind: str = "float"

    def nested(self, shift: dict[int, Any] | None = None) -> Any:
        """The values as nested lists, some of them shifted."""
        row = [value + (shift or {}).get(place, 0) for place, value in enumerate(self.values)]
        return _nested(row, self.shape)


def _nested(row: list[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return row[0]
    step = len(row) // shape[0] if shape[0] else 0
    return [_nested(row[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


@dataclass(frozen=True)
class Case:
    """A call of an op: its arguments by name (``Numbers``, lists of them, or anything), differentiated by ``wrt``.

    ``second`` says whether the second derivative exists, ``missing`` which backends draw other numbers. ``call`` is a
    function that calls the op, where the op alone is no smooth function of all numbers in its arguments.
    """

    op: str
    arguments: dict[str, Any]
    wrt: tuple[str, ...]
    label: str = ""
    second: bool = True
    missing: tuple[str, ...] = field(default=())
    call: Callable[..., Any] | None = None


CASES: list[Case] = []
NOT_DIFFERENTIABLE: dict[str, str] = {}
"""Ops that have float arguments and no gradient, with the reason."""


def numbers(
    *shape: int, low: float = -2.0, high: float = 2.0, seed: int = 0, apart: bool = False, kind: str = "float"
) -> Numbers:
    """Random values between ``low`` and ``high``; with ``apart`` no two are close, so that their order is stable."""
    rng = random.Random(f"{shape} {seed} {low} {high}")
    size = math.prod(shape)
    if kind == "complex":
        values = tuple(complex(rng.uniform(low, high), rng.uniform(low, high)) for _ in range(size))
        return Numbers(values, shape, kind)
    if kind in ("int", "uint32"):
        return Numbers(tuple(rng.randint(int(low), int(high)) for _ in range(size)), shape, kind)
    if apart:
        places = list(range(size))
        rng.shuffle(places)
        return Numbers(tuple(low + (high - low) * (place + 0.5) / max(size, 1) for place in places), shape)
    return Numbers(tuple(rng.uniform(low, high) for _ in range(size)), shape)


def case(op: str, wrt: str | tuple[str, ...] = "x", label: str = "", **arguments: Any) -> None:
    """One call; ``second=False`` where there is no second derivative, ``missing=("mlx",)`` where MLX draws others."""
    second, missing, call = arguments.pop("second", True), arguments.pop("missing", ()), arguments.pop("call", None)
    CASES.append(Case(op, arguments, (wrt,) if isinstance(wrt, str) else wrt, label, second, missing, call))


def unary(op: str, low: float = -2.0, high: float = 2.0, complex_too: bool = False, **rest: Any) -> None:
    """An elementwise function of one tensor: a matrix, a number, an empty tensor."""
    case(op, x=numbers(3, 4, low=low, high=high), label="matrix", **rest)
    case(op, x=numbers(low=low, high=high, seed=1), label="0-d", **rest)
    case(op, x=numbers(0, 3), label="empty", **rest)
    if complex_too:
        case(op, x=numbers(5, low=0.3, high=1.2, kind="complex"), label="complex")


def binary(op: str, x: Any = None, y: Any = None, complex_too: bool = False, **rest: Any) -> None:
    """An elementwise function of two tensors that broadcast."""
    for label, one, other in (
        ("same", (3, 4), (3, 4)),
        ("row", (3, 4), (4,)),
        ("outer", (3, 1), (1, 4)),
        ("0-d", (), (2, 2)),
        ("empty", (0, 3), (3,)),
    ):
        arguments = {"x": numbers(*one, seed=2, **(x or {})), "y": numbers(*other, seed=3, **(y or {}))}
        case(op, ("x", "y"), label=label, **arguments, **rest)
    if complex_too:
        pair = {"x": numbers(2, 3, kind="complex"), "y": numbers(3, kind="complex", seed=4)}
        case(op, ("x", "y"), label="complex", **pair)


def reduction(op: str, several: bool = True, apart: bool = False, **rest: Any) -> None:
    """A reduction over one, several or all axes, with and without keeping them."""
    x = numbers(2, 3, 4, seed=5, apart=apart)
    case(op, x=x, label="all", **rest)
    case(op, x=x, axis=1, label="axis", **rest)
    case(op, x=x, axis=-1, keepdims=True, label="kept", **rest)
    if several:
        case(op, x=x, axis=(0, 2), label="axes", **rest)
    case(op, x=numbers(seed=6), label="0-d", **rest)
