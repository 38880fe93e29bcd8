"""What the contract test needs to know of an op: how to draw its arguments, and what the result must be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.reference import COMPLEX, FLOATS, arrays, broadcastable, shapes

__all__ = ["SPECS", "Spec", "binary", "law", "reduction", "spec", "unary"]

Draw = Callable[[st.DrawFn, str], dict[str, Any]]


@dataclass(frozen=True)
class Spec:
    """``draw(draw, dtype)`` gives the op's arguments by name, arrays among them; ``reference`` gets the same, widened.

    ``ulps`` is the tolerance in units of the result's precision. ``scale``, of the same arguments, gives the magnitude
    against which sums are measured. Where a result is not unique, ``fault`` takes the place of the reference: it gets
    the results as a list and the arguments, and says what is wrong, or None. Arguments named ``*`` are a list that is
    passed by position. Without ``widens`` the reference gets the arguments as they are.
    """

    draw: Draw
    reference: Callable[..., Any] | None
    ulps: float = 4.0
    scale: Callable[..., Any] | None = None
    fault: Callable[..., str | None] | None = None
    widens: bool = True


SPECS: dict[str, Spec] = {}


def spec(name: str, draw: Draw, reference: Callable[..., Any], ulps: float = 4.0, scale: Any = None) -> None:
    SPECS[name] = Spec(draw, reference, ulps, scale)


def law(name: str, draw: Draw, fault: Callable[..., str | None]) -> None:
    """An op whose result is known by what holds of it."""
    SPECS[name] = Spec(draw, None, fault=fault, widens=False)


def unary(
    name: str,
    reference: Callable[..., Any],
    ulps: float = 4.0,
    low: float | None = None,
    high: float | None = None,
    finite: bool = False,
    scale: Any = None,
) -> None:
    """An elementwise function of one tensor."""

    def draw(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
        # the libraries disagree about infinities and NaN in parts of complex numbers; the special cases have tests of
        # their own
        plain = finite or dtype in COMPLEX
        bounds = (-30.0, 30.0) if dtype in COMPLEX and low is None and high is None else (low, high)
        return {"x": draw(arrays(dtype, finite=plain, low=bounds[0], high=bounds[1]))}

    spec(name, draw, reference, ulps, scale)


def binary(
    name: str,
    reference: Callable[..., Any],
    ulps: float = 4.0,
    low: float | None = None,
    high: float | None = None,
    finite: bool = False,
    scale: Any = None,
) -> None:
    """An elementwise function of two tensors that broadcast."""

    def draw(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
        plain = finite or dtype in COMPLEX
        bounds = (-30.0, 30.0) if dtype in COMPLEX and low is None and high is None else (low, high)
        first, second = draw(broadcastable(2))
        limits: dict[str, Any] = {"finite": plain, "low": bounds[0], "high": bounds[1]}
        return {"x": draw(arrays(dtype, first, **limits)), "y": draw(arrays(dtype, second, **limits))}

    spec(name, draw, reference, ulps, scale)


def reduction(
    name: str,
    reference: Callable[..., Any],
    ulps: float = 4.0,
    min_side: int = 0,
    finite: bool = False,
    low: float | None = None,
    high: float | None = None,
    tuples: bool = True,
    scale: Any = None,
    min_dims: int = 0,
    initial: bool = False,
) -> None:
    """A reduction with ``axis`` and ``keepdims``, and on request ``initial``, the first value."""

    def draw(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
        plain = finite or dtype in COMPLEX
        x = draw(arrays(dtype, shapes(min_dims=min_dims, min_side=min_side), finite=plain, low=low, high=high))
        choices: list[st.SearchStrategy[Any]] = [st.none()]
        if x.ndim:
            one = st.integers(-x.ndim, x.ndim - 1)
            choices.append(one)
            if tuples:
                several = st.lists(st.integers(0, x.ndim - 1), unique=True, min_size=1).map(tuple)
                choices.append(several)
        drawn = {"x": x, "axis": draw(st.one_of(*choices)), "keepdims": draw(st.booleans())}
        if initial and draw(st.booleans()):
            drawn["initial"] = draw(arrays(dtype, st.just(()), finite=plain, low=low, high=high))
        return drawn

    spec(name, draw, reference, ulps, scale)


def wide_integer(x: np.ndarray) -> np.ndarray:
    """Integers and bools in the 64-bit dtype in which the contract adds them up."""
    if x.dtype.kind == "u":
        return x.astype(np.uint64)
    return x.astype(np.int64) if x.dtype.kind in "bi" else x


def is_float(dtype: str) -> bool:
    return dtype in FLOATS
