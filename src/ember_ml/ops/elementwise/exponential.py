"""Exponentials, logarithms and roots."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml.dispatch.declare import gradient, primitive
from ember_ml.dispatch.dtype_rules import FLOATING, REAL_FLOATING
from ember_ml.typing import Tensor, TensorLike

__all__: list[str] = [
    "cbrt",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "rsqrt",
    "sqrt",
]


@primitive(FLOATING)
def exp(x: TensorLike) -> Tensor:
    """The exponentials of ``x``, base e.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.exp([0.0])).tolist()
    [1.0]
    """
    ...


gradient(exp, x=lambda g, r: ops.multiply(g, r))


@primitive(REAL_FLOATING)
def exp2(x: TensorLike) -> Tensor:
    """2 to the power of ``x``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.exp2([0.0, 3.0, -1.0])).tolist()
    [1.0, 8.0, 0.5]
    """
    ...


gradient(exp2, x=lambda g, r: ops.multiply(g, ops.multiply(r, math.log(2.0))))


@primitive(FLOATING)
def expm1(x: TensorLike) -> Tensor:
    """``exp(x) - 1``, accurate where ``x`` is near 0.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.expm1([0.0])).tolist()
    [0.0]
    """
    ...


gradient(expm1, x=lambda g, r: ops.multiply(g, ops.add(r, 1.0)))


@primitive(FLOATING)
def log(x: TensorLike) -> Tensor:
    """The natural logarithms; of 0 minus infinity, of negative numbers NaN.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.log([1.0, 0.0])).tolist()
    [0.0, -inf]
    """
    ...


gradient(log, x=lambda g, x: ops.divide(g, x))


@primitive(FLOATING)
def log1p(x: TensorLike) -> Tensor:
    """``log(1 + x)``, accurate where ``x`` is near 0.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.log1p([0.0, -1.0])).tolist()
    [0.0, -inf]
    """
    ...


gradient(log1p, x=lambda g, x: ops.divide(g, ops.add(x, 1.0)))


@primitive(FLOATING)
def log2(x: TensorLike) -> Tensor:
    """The logarithms to base 2.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.log2([1.0, 8.0])).tolist()
    [0.0, 3.0]
    """
    ...


gradient(log2, x=lambda g, x: ops.divide(g, ops.multiply(x, math.log(2.0))))


@primitive(FLOATING)
def log10(x: TensorLike) -> Tensor:
    """The logarithms to base 10.

    >>> from ember_ml import ops
    >>> [round(value, 5) for value in ops.to_numpy(ops.log10([1.0, 100.0])).tolist()]
    [0.0, 2.0]
    """
    ...


gradient(log10, x=lambda g, x: ops.divide(g, ops.multiply(x, math.log(10.0))))


@primitive(REAL_FLOATING)
def logaddexp(x: TensorLike, y: TensorLike) -> Tensor:
    """``log(exp(x) + exp(y))``, without overflow on the way.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.logaddexp([0.0, 500.0], [float("-inf"), 0.0])).tolist()
    [0.0, 500.0]
    """
    ...


gradient(
    logaddexp,
    x=lambda g, r, x: ops.multiply(g, exp(_distance(x, r))),
    y=lambda g, r, y: ops.multiply(g, exp(_distance(y, r))),
)


@primitive(REAL_FLOATING)
def logaddexp2(x: TensorLike, y: TensorLike) -> Tensor:
    """``log2(2**x + 2**y)``, without overflow on the way.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.logaddexp2([3.0, 500.0], [3.0, 500.0])).tolist()
    [4.0, 501.0]
    """
    ...


gradient(
    logaddexp2,
    x=lambda g, r, x: ops.multiply(g, exp2(_distance(x, r))),
    y=lambda g, r, y: ops.multiply(g, exp2(_distance(y, r))),
)


@primitive(FLOATING)
def sqrt(x: TensorLike) -> Tensor:
    """The square roots; of negative real numbers NaN.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.sqrt([1.0, 4.0])).tolist()
    [1.0, 2.0]
    """
    ...


gradient(sqrt, x=lambda g, r: ops.divide(g, ops.add(r, r)))


@primitive(FLOATING)
def rsqrt(x: TensorLike) -> Tensor:
    """``1 / sqrt(x)``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.rsqrt([4.0, 0.0])).tolist()
    [0.5, inf]
    """
    ...


gradient(rsqrt, x=lambda g, r: ops.multiply(g, ops.multiply(ops.multiply(r, ops.square(r)), -0.5)))


@primitive(REAL_FLOATING)
def cbrt(x: TensorLike) -> Tensor:
    """The cube roots, of negative numbers negative.

    >>> from ember_ml import ops
    >>> [round(value, 5) for value in ops.to_numpy(ops.cbrt([8.0, -27.0])).tolist()]
    [2.0, -3.0]
    """
    ...


gradient(cbrt, x=lambda g, r: ops.divide(g, ops.multiply(ops.square(r), 3.0)))


def _distance(x: Tensor, r: Tensor) -> Tensor:
    """Return ``x - r``, and 0 where both are the same infinity."""
    return ops.where(ops.equal(x, r), 0, ops.subtract(x, r))
