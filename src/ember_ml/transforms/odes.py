"""Ordinary differential equations: Runge-Kutta methods with fixed and with adaptive steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.dispatch.declare import plain
from ember_ml.errors import ConvergenceError, UnsupportedOp
from ember_ml.tensor.var import read_if_known
from ember_ml.transforms.flat_vector import Packed
from ember_ml.transforms.loop_state import Tree, constant
from ember_ml.typing import TensorLike

__all__ = ["odeint"]


class _Method(NamedTuple):
    """The coefficients of an explicit Runge-Kutta method.

    ``times`` are the places of the stages in the step, ``stages`` the weights of the earlier slopes in each stage,
    ``weights`` those of all slopes in the step. An adaptive method also has the weights of the error, and those of the
    powers of the place in the step, from the first on, in the values between its ends.
    """

    times: Sequence[float]
    stages: Sequence[Sequence[float]]
    weights: Sequence[float]
    error: Sequence[float] = ()
    between: Sequence[Sequence[float]] = ()


# Dormand and Prince 1980; the last stage is the slope at the end of the step. The polynomial between the ends is that
# of Shampine 1986, of order 4 with a continuous derivative.
_DOPRI5 = _Method(
    times=(0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1),
    stages=(
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ),
    weights=(35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0),
    error=(71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40),
    between=(
        (1, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432),
        (0, 0, 0, 0),
        (0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799),
        (0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072),
        (0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632),
        (0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844),
        (0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423),
    ),
)
_METHODS = {
    "euler": _Method((0,), ((),), (1,)),
    "midpoint": _Method((0, 1 / 2), ((), (1 / 2,)), (0, 1)),
    "rk4": _Method((0, 1 / 2, 1 / 2, 1), ((), (1 / 2,), (0, 1 / 2), (0, 0, 1)), (1 / 6, 1 / 3, 1 / 3, 1 / 6)),
    "dopri5": _DOPRI5,
}
# The controller of step sizes: proportional to the error of this step, integral over that of the last one.
_SAFETY, _PROPORTIONAL, _INTEGRAL, _SMALLEST, _LARGEST = 0.9, 0.17, 0.04, 0.2, 10.0


@plain
def odeint(
    f: Callable[[Any, Tree], Tree],
    y0: Tree,
    t: TensorLike,
    method: str = "dopri5",
    rtol: float = 1e-6,
    atol: float = 1e-8,
    step_size: float | None = None,
) -> Any:
    """The values at the times ``t`` of the solution of ``dy/dt = f(t, y)`` that is ``y0`` at the first of them.

    ``t`` rises or falls. ``y0`` may be a tensor or nested containers of tensors, to which the result adds a first
    dimension for the times. ``f`` gets the time as a 0-d tensor. Half precision is computed in float32.

    ``"dopri5"`` chooses its steps, so that each is wrong by about ``atol + rtol * abs(y)`` at most, and gives values
    between them by interpolation; where no step is short enough, ``ConvergenceError``. ``"euler"``, ``"midpoint"`` and
    ``"rk4"`` (orders 1, 2 and 4) step from each time to the next, in equal parts not longer than ``step_size`` where
    that is given.

    Differentiable by ``y0`` and by what ``f`` depends on, through the steps as they were taken; not by ``t``. In a
    compiled function, use a method with fixed steps and give ``t`` as Python numbers.

    >>> from ember_ml import ops
    >>> y = ops.odeint(lambda t, y: -y, ops.array(1.0), [0.0, 1.0, 2.0])
    >>> [round(value, 4) for value in ops.to_numpy(y).tolist()]
    [1.0, 0.3679, 0.1353]
    """
    if method not in _METHODS:
        raise ValueError(f"ops.odeint has no method {method!r}; it has {', '.join(sorted(_METHODS))}")
    form = Packed("odeint", y0)
    times = _read_times(t, form)
    equation = _Equation(f, form, _METHODS[method])
    y = form.vector(y0, "y0")
    if method == "dopri5":
        if step_size is not None:
            raise ValueError("ops.odeint: dopri5 chooses its steps; step_size is for the other methods")
        values = _solve_adaptive(equation, y, times, rtol, atol)
    else:
        values = _solve_fixed(equation, y, times, step_size)
    return form.result(ops.stack(values))


def _read_times(t: Any, form: Packed) -> list[float]:
    if not isinstance(t, list | tuple):
        native = constant(form.tensor(t))
        if form.backend.is_traced(native):
            raise UnsupportedOp("ops.odeint must know the times: in a compiled function, give them as Python numbers")
        t = form.backend.to_host(native).tolist()
    times = [float(time) for time in t] if isinstance(t, list | tuple) else []  # emberlint: ignore[EMB301] host numbers
    steps = [second - first for first, second in pairwise(times)]
    if not times:
        raise ValueError("ops.odeint needs times as a vector of one element at least")
    if not (all(step >= 0 for step in steps) or all(step <= 0 for step in steps)):
        raise ValueError("ops.odeint: the times must rise or fall throughout")
    return times


class _Equation:
    """A differential equation on vectors, and the method that steps along it."""

    def __init__(self, f: Callable[[Any, Tree], Tree], form: Packed, method: _Method) -> None:
        self._f, self._form, self.method = f, form, method
        self._stages = [self._row(stage) for stage in method.stages]
        self._weights, self._error = self._row(method.weights), self._row(method.error)

    def _row(self, weights: Sequence[float]) -> Any:
        return ops.array(list(weights), dtype=self._form.dtype, device=self._form.device) if weights else None

    def slope(self, t: float, y: Any) -> Any:
        return self._form.vector(self._f(self._form.number(t), self._form.tree(y)), "what f gives")

    def step(self, t: float, h: float, y: Any, slope: Any) -> tuple[Any, Any]:
        """Return the value at the end of a step from ``y``, where the slope is ``slope``, and all stages' slopes."""
        slopes = [slope]
        for place, weights in zip(self.method.times[1:], self._stages[1:], strict=True):
            slopes.append(self.slope(t + place * h, self._advance(y, h, weights, ops.stack(slopes))))
        all_slopes = ops.stack(slopes)
        return self._advance(y, h, self._weights, all_slopes), all_slopes

    def _advance(self, y: Any, h: float, weights: Any, slopes: Any) -> Any:
        return ops.add(y, ops.multiply(ops.matmul(weights, slopes), h))

    def error(self, h: float, slopes: Any) -> Any:
        return ops.multiply(ops.matmul(self._error, constant(slopes)), h)

    def size(self, x: Any, like: Sequence[Any], rtol: float, atol: float) -> float:
        """Return the root mean square of ``x``, in units of the error that is allowed for values like these."""
        largest = ops.abs(constant(like[0]))
        for other in like[1:]:
            largest = ops.maximum(largest, ops.abs(constant(other)))
        parts = ops.divide(ops.abs(constant(x)), ops.add(ops.multiply(largest, rtol), atol))
        found = read_if_known(ops.sqrt(ops.mean(ops.square(parts))), self._form.backend)
        if found is None:
            raise UnsupportedOp(
                "ops.odeint cannot choose its steps while a function is compiled or vectorized; use method='rk4'"
            )
        return found

    def between(self, y: Any, h: float, slopes: Any, place: float) -> Any:
        """Return the value at the fraction ``place`` of the step from ``y``."""
        weights = [sum(c * place ** (power + 1) for power, c in enumerate(row)) for row in self.method.between]
        return self._advance(y, h, self._row(weights), slopes)


def _solve_fixed(equation: _Equation, y: Any, times: list[float], step_size: float | None) -> list[Any]:
    if step_size is not None and not step_size > 0:
        raise ValueError(f"ops.odeint: step_size must be positive, not {step_size}")
    values = [y]
    for start, end in pairwise(times):
        count = 1 if step_size is None else max(1, math.ceil(abs(end - start) / step_size * (1 - 1e-12)))
        h = (end - start) / count
        for k in range(count):
            t = start + k * h
            y, _ = equation.step(t, h, y, equation.slope(t, y))
        values.append(y)
    return values


def _solve_adaptive(equation: _Equation, y: Any, times: list[float], rtol: float, atol: float) -> list[Any]:
    values, t, end = [y], times[0], times[-1]
    if end == t:
        return values * len(times)

    def size(x: Any, *like: Any) -> float:
        return equation.size(x, like, rtol, atol)

    slope = equation.slope(t, y)
    h = math.copysign(_choose_first_step(equation, y, slope, t, end, size), end - t)
    before, was_refused = 1e-4, False
    while len(values) < len(times):
        if abs(h) < 16 * math.ulp(t):
            raise ConvergenceError(
                f"ops.odeint: at t = {t:.6g} no step is short enough for rtol={rtol:g} and atol={atol:g}; "
                "the solution ends there, or is too stiff, or less must be asked for"
            )
        if abs(end - t) <= abs(h) * (1 + 1e-10):
            h = end - t
        after, slopes = equation.step(t, h, y, slope)
        error = size(equation.error(h, slopes), y, after)
        if not error <= 1:  # too large, or not a number
            h *= max(_SMALLEST, _SAFETY * error**-_PROPORTIONAL) if math.isfinite(error) else _SMALLEST
            was_refused = True
            continue
        reached = end if h == end - t else t + h
        while len(values) < len(times) and (times[len(values)] - reached) * h <= 0:
            asked = times[len(values)]
            values.append(after if asked == reached else equation.between(y, h, slopes, (asked - t) / h))
        factor = _SAFETY * max(error, 1e-10) ** -_PROPORTIONAL * before**_INTEGRAL
        h *= min(1.0 if was_refused else _LARGEST, max(_SMALLEST, factor))
        t, y, slope = reached, after, ops.get_item(slopes, -1)
        before, was_refused = max(error, 1e-4), False
    return values


def _choose_first_step(
    equation: _Equation, y: Any, slope: Any, t: float, end: float, size: Callable[..., float]
) -> float:
    """Return a first step after which solution and slope have changed little (Hairer, Norsett and Wanner, II.4)."""
    span = abs(end - t)
    value, change = size(y, y), size(slope, y)
    guess = 0.01 * value / change if value > 1e-5 and change > 1e-5 else 1e-6 * span
    guess = min(guess, span)
    signed = math.copysign(guess, end - t)
    later = equation.slope(t + signed, ops.add(y, ops.multiply(slope, signed)))
    curvature = max(change, size(ops.subtract(later, slope), y) / guess)
    step = (0.01 / curvature) ** 0.2 if curvature > 1e-15 else max(1e-6 * span, guess * 1e-3)
    return min(100 * guess, step, span) if math.isfinite(curvature) else 1e-6 * span
