"""Arithmetic, element by element: sums to quotients, signs, extremes, rounding."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.core.dtypes import as_dtype
from ember_ml.dispatch.declare import derived, gradient, primitive
from ember_ml.dispatch.dtype_rules import DIVISION, FLOATING, INTEGER, NUMERIC, REAL, REAL_FLOATING, SAME
from ember_ml.ops.elementwise.comparison import equal, greater, isnan, less_equal, where
from ember_ml.typing import Tensor, TensorLike

__all__: list[str] = [
    "abs",
    "absolute",
    "add",
    "ceil",
    "clip",
    "divide",
    "divide_no_nan",
    "fabs",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "gcd",
    "heaviside",
    "lcm",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "nan_to_num",
    "negative",
    "positive",
    "pow",
    "power",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "square",
    "subtract",
    "true_divide",
    "trunc",
]


@primitive(NUMERIC)
def add(x: TensorLike, y: TensorLike) -> Tensor:
    """The sums ``x + y``; integers wrap around.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.add([1.0, 2.0], 0.5)).tolist()
    [1.5, 2.5]
    """
    ...


gradient(add, x=lambda g: g, y=lambda g: g)


@primitive(NUMERIC)
def subtract(x: TensorLike, y: TensorLike) -> Tensor:
    """The differences ``x - y``; integers wrap around.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.subtract([1, 2], [3, 1])).tolist()
    [-2, 1]
    """
    ...


gradient(subtract, x=lambda g: g, y=lambda g: negative(g))


@primitive(NUMERIC)
def multiply(x: TensorLike, y: TensorLike) -> Tensor:
    """The products ``x * y``; integers wrap around.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.multiply([1.5, -2.0], 2.0)).tolist()
    [3.0, -4.0]
    """
    ...


gradient(multiply, x=lambda g, y: multiply(g, y), y=lambda g, x: multiply(g, x))


@primitive(DIVISION, "true_divide")
def divide(x: TensorLike, y: TensorLike) -> Tensor:
    """The quotients ``x / y``; integers are divided as default floats.

    A number divided by zero is infinite, zero by zero NaN. Two bool tensors are a ``TypeError``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.divide([1, 3], [2, 0])).tolist()
    [0.5, inf]
    """
    ...


gradient(divide, x=lambda g, y: divide(g, y), y=lambda g, r, y: negative(divide(multiply(g, r), y)))


true_divide = divide


@derived(DIVISION)
def divide_no_nan(x: TensorLike, y: TensorLike) -> Tensor:
    """The quotients ``x / y``, and 0 where ``y`` is 0.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.divide_no_nan([1.0, 0.0, 3.0], [0.0, 0.0, 2.0])).tolist()
    [0.0, 0.0, 1.5]
    """
    is_zero = equal(y, 0)
    return where(is_zero, 0, divide(x, where(is_zero, 1, y)))


@primitive(REAL)
def floor_divide(x: TensorLike, y: TensorLike) -> Tensor:
    """The largest integers that are not above the exact quotients of ``x`` and ``y``.

    Integers divided by zero give 0, and the smallest integer divided by -1 wraps around to itself. Floats follow the
    Array API standard: infinity divided by a finite number is infinite, a finite number divided by infinity is a zero
    with the sign of the quotient; a quotient with more digits than the dtype has (2**24 in float32) is rounded.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.floor_divide([7, -7, 7], [2, 2, 0])).tolist()
    [3, -4, 0]
    >>> ops.to_numpy(ops.floor_divide([7.5, -7.5], 2.0)).tolist()
    [3.0, -4.0]
    """
    ...


gradient(floor_divide, x=lambda g: ops.zeros_like(g), y=lambda g: ops.zeros_like(g))


@primitive(REAL, "remainder")
def mod(x: TensorLike, y: TensorLike) -> Tensor:
    """What ``floor_divide`` leaves of ``x``: the remainder with the sign of ``y``.

    Integers leave 0 when divided by zero, floats NaN.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.mod([7, -7, 7], [3, 3, 0])).tolist()
    [1, 2, 0]
    """
    ...


gradient(mod, x=lambda g: g, y=lambda g, x, y: negative(multiply(g, floor_divide(x, y))))


remainder = mod


@primitive(REAL)
def fmod(x: TensorLike, y: TensorLike) -> Tensor:
    """What division towards zero leaves of ``x``: the remainder with the sign of ``x``.

    Integers leave 0 when divided by zero, floats NaN.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.fmod([7, -7, 7], [3, 3, 0])).tolist()
    [1, -1, 0]
    """
    ...


gradient(fmod, x=lambda g: g, y=lambda g, x, y: negative(multiply(g, trunc(divide(x, y)))))


@primitive(NUMERIC, "pow")
def power(x: TensorLike, y: TensorLike) -> Tensor:
    """The powers ``x ** y``; ``0 ** 0`` is 1, integers wrap around.

    Integers with a negative exponent are a ``ValueError`` (a check that reads values; without it they give 0). A
    negative number with a fractional exponent is NaN. Minus infinity to the power 0.5 is infinite, except on NumPy,
    which takes the square root for that exponent.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.power([2, 3], [3, 2])).tolist()
    [8, 9]
    """
    ...


gradient(
    power,
    x=lambda g, x, y: multiply(g, _power_slope(x, y)),
    y=lambda g, r, x: multiply(g, multiply(r, where(equal(x, 0), 0, ops.log(where(equal(x, 0), 1, x))))),
)


pow = power


@primitive(NUMERIC)
def square(x: TensorLike) -> Tensor:
    """The squares ``x * x``; integers wrap around.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.square([1.5, -2.0])).tolist()
    [2.25, 4.0]
    """
    ...


gradient(square, x=lambda g, x: multiply(g, add(x, x)))


@primitive(FLOATING)
def reciprocal(x: TensorLike) -> Tensor:
    """The reciprocals ``1 / x``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.reciprocal([2.0, -4.0, 0.0])).tolist()
    [0.5, -0.25, inf]
    """
    ...


gradient(reciprocal, x=lambda g, r: negative(multiply(g, square(r))))


@primitive(NUMERIC)
def negative(x: TensorLike) -> Tensor:
    """``-x``; unsigned integers wrap around.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.negative([1.0, -2.0])).tolist()
    [-1.0, 2.0]
    """
    ...


gradient(negative, x=lambda g: negative(g))


@primitive(NUMERIC)
def positive(x: TensorLike) -> Tensor:
    """``x`` itself, as a tensor.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.positive([1.0, -2.0])).tolist()
    [1.0, -2.0]
    """
    ...


gradient(positive, x=lambda g: g)


@primitive(NUMERIC.giving("real"), "absolute")
def abs(x: TensorLike) -> Tensor:
    """The absolute values, of complex numbers as real ones; the smallest integer stays as it is.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.abs([-1.5, 2.0])).tolist()
    [1.5, 2.0]
    """
    ...


gradient(abs, holomorphic=False, x=lambda g, x: multiply(g, sign(x)))


absolute = abs


@derived(REAL_FLOATING)
def fabs(x: TensorLike) -> Tensor:
    """The absolute values as floats: integers are computed in float32.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.fabs([-1, 2])).tolist()
    [1.0, 2.0]
    """
    return abs(x)


@primitive(NUMERIC)
def sign(x: TensorLike) -> Tensor:
    """-1, 0 or 1 by the sign of ``x``; NaN gives NaN. Complex numbers give ``x / |x|``, and 0 for 0; for infinite
    ones that is undefined, and NaN on most backends.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.sign([-2.0, 0.0, 3.0])).tolist()
    [-1.0, 0.0, 1.0]
    """
    ...


gradient(sign, holomorphic=False, x=lambda g, r, x: _sign_vjp(g, r, x))


@primitive(REAL)
def maximum(x: TensorLike, y: TensorLike) -> Tensor:
    """The larger of ``x`` and ``y``; NaN where either is NaN.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.maximum([1.0, 5.0], [3.0, 2.0])).tolist()
    [3.0, 5.0]
    """
    ...


gradient(
    maximum,
    x=lambda g, x, y: _share_ties(g, greater(x, y), equal(x, y)),
    y=lambda g, x, y: _share_ties(g, greater(y, x), equal(x, y)),
)


@primitive(REAL)
def minimum(x: TensorLike, y: TensorLike) -> Tensor:
    """The smaller of ``x`` and ``y``; NaN where either is NaN.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.minimum([1.0, 5.0], [3.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    ...


gradient(
    minimum,
    x=lambda g, x, y: _share_ties(g, greater(y, x), equal(x, y)),
    y=lambda g, x, y: _share_ties(g, greater(x, y), equal(x, y)),
)


@primitive(REAL)
def fmax(x: TensorLike, y: TensorLike) -> Tensor:
    """The larger of ``x`` and ``y``; a NaN counts as missing.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.fmax([1.0, float("nan")], [3.0, 2.0])).tolist()
    [3.0, 2.0]
    """
    ...


gradient(
    fmax,
    x=lambda g, r, x, y: _share_ties(g, equal(x, r), equal(x, y)),
    y=lambda g, r, x, y: _share_ties(g, equal(y, r), equal(x, y)),
)


@primitive(REAL)
def fmin(x: TensorLike, y: TensorLike) -> Tensor:
    """The smaller of ``x`` and ``y``; a NaN counts as missing.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.fmin([1.0, float("nan")], [3.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    ...


gradient(
    fmin,
    x=lambda g, r, x, y: _share_ties(g, equal(x, r), equal(x, y)),
    y=lambda g, r, x, y: _share_ties(g, equal(y, r), equal(x, y)),
)


@primitive(REAL)
def clip(x: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """``x`` limited to ``min`` from below and to ``max`` from above; None is no limit.

    NaN stays NaN. Where ``min`` is above ``max``, the result is ``max``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.clip([-1.0, 0.5, 2.0], 0.0, 1.0)).tolist()
    [0.0, 0.5, 1.0]
    """
    ...


gradient(
    clip,
    x=lambda g, x, min, max: multiply(g, _is_between(x, min, max)),
    min=lambda g, x, min, max: multiply(g, _is_lifted(x, min, max)),
    max=lambda g, x, min, max: multiply(g, greater(x if min is None else maximum(x, min), max)),
)


def _is_between(x: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor:
    """Return where ``x`` is within its bounds, or on them; nowhere where the bounds cross."""
    if low is None or high is None:
        return ops.equal(x, x) if low is high else less_equal(x, high) if low is None else less_equal(low, x)
    return ops.logical_and(less_equal(low, x), less_equal(x, high))


def _is_lifted(x: Tensor, low: Tensor, high: Tensor | None) -> Tensor:
    """Return where the lower bound stands for ``x``: not where the upper one does, which wins where they cross."""
    is_below = greater(low, x)
    return is_below if high is None else ops.logical_and(is_below, less_equal(low, high))


@primitive(REAL)
def ceil(x: TensorLike) -> Tensor:
    """The smallest integers that are not below ``x``, in its dtype.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.ceil([1.2, -1.2])).tolist()
    [2.0, -1.0]
    """
    ...


gradient(ceil, x=lambda g: ops.zeros_like(g))


@primitive(REAL)
def floor(x: TensorLike) -> Tensor:
    """The largest integers that are not above ``x``, in its dtype.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.floor([1.2, -1.2])).tolist()
    [1.0, -2.0]
    """
    ...


gradient(floor, x=lambda g: ops.zeros_like(g))


@primitive(REAL)
def trunc(x: TensorLike) -> Tensor:
    """``x`` without its fraction, in its dtype.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.trunc([1.7, -1.7])).tolist()
    [1.0, -1.0]
    """
    ...


gradient(trunc, x=lambda g: ops.zeros_like(g))


@primitive(NUMERIC)
def round(x: TensorLike, decimals: int = 0) -> Tensor:
    """``x`` rounded to ``decimals`` places, halves to the even neighbour.

    Negative ``decimals`` round to tens, hundreds and so on, integers too. The parts of complex numbers are rounded each
    on its own.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.round([0.5, 1.5, 2.25])).tolist()
    [0.0, 2.0, 2.0]
    >>> ops.to_numpy(ops.round([15, 25], -1)).tolist()
    [20, 20]
    """
    ...


gradient(round, x=lambda g: ops.zeros_like(g))


@derived(REAL_FLOATING)
def heaviside(x: TensorLike, y: TensorLike) -> Tensor:
    """0 where ``x`` is negative, ``y`` where it is 0, 1 where it is positive; NaN gives NaN.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.heaviside([-2.0, 0.0, 3.0], 0.5)).tolist()
    [0.0, 0.5, 1.0]
    """
    return where(equal(x, 0), y, where(isnan(x), x, where(greater(x, 0), 1, 0)))


@primitive(SAME)
def nan_to_num(x: TensorLike, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """``x`` with other values for NaN and the infinities; by default 0 and the extremes of the dtype.

    Complex numbers are changed in each part; integers and bools stay as they are.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.nan_to_num([float("nan"), 1.0], nan=-1.0)).tolist()
    [-1.0, 1.0]
    """
    ...


gradient(nan_to_num, x=lambda g, x: multiply(g, ops.isfinite(x)))


@primitive(INTEGER)
def gcd(x: TensorLike, y: TensorLike) -> Tensor:
    """The greatest common divisors, never negative; of 0 and ``y`` the magnitude of ``y``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.gcd([12, 0, -9], [18, 5, 6])).tolist()
    [6, 5, 3]
    """
    ...


@primitive(INTEGER)
def lcm(x: TensorLike, y: TensorLike) -> Tensor:
    """The least common multiples, never negative; 0 where ``x`` or ``y`` is 0.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.lcm([4, 0, -9], [6, 5, 6])).tolist()
    [12, 0, 18]
    """
    ...


def _power_slope(x: Tensor, y: Tensor) -> Tensor:
    """Return ``y * x ** (y - 1)``; 0 for ``0 ** 0``, whose slope has a derivative by ``y`` elsewhere."""
    is_flat = ops.logical_and(equal(x, 0), equal(y, 0))
    return multiply(y, power(x, where(is_flat, 1, subtract(y, 1))))


def _share_ties(g: Tensor, is_chosen: Tensor, is_tie: Tensor) -> Tensor:
    """Return the gradient where an operand is the result; two equal operands share it."""
    return where(is_tie, multiply(g, 0.5), multiply(g, is_chosen))


def _sign_vjp(g: Tensor, r: Tensor, x: Tensor) -> Tensor:
    """Return the gradient of ``x / |x|``: what is at right angles to it; nothing is where ``x`` is real."""
    if as_dtype(x.dtype).kind != "complex":
        return ops.zeros_like(g)
    along = ops.multiply(r, ops.real(ops.multiply(ops.conj(r), g)))
    return divide_no_nan(ops.subtract(g, along), abs(x))
