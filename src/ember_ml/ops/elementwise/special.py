"""Special functions: the error function, the gamma function and related ones."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml.backend.common.special import bessel_i0, bessel_i1
from ember_ml.core.dtypes import as_dtype
from ember_ml.dispatch.declare import derived, gradient, primitive
from ember_ml.dispatch.dtype_rules import REAL_FLOATING
from ember_ml.dispatch.half_precision import in_float32, is_half
from ember_ml.ops.arrays.gradient_rules import helpers
from ember_ml.ops.elementwise.arithmetic import multiply
from ember_ml.ops.elementwise.comparison import equal, isinf, less_equal, logical_and, logical_or, where
from ember_ml.ops.elementwise.exponential import log
from ember_ml.typing import Tensor, TensorLike

__all__: list[str] = [
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "i0",
    "lgamma",
    "xlogy",
]


@primitive(REAL_FLOATING)
def erf(x: TensorLike) -> Tensor:
    """The error function.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.erf([0.0, float("inf")])).tolist()
    [0.0, 1.0]
    """
    ...


gradient(
    erf,
    x=lambda g, x: ops.multiply(g, ops.multiply(ops.exp(ops.negative(ops.square(x))), 2.0 / math.sqrt(math.pi))),
)


@primitive(REAL_FLOATING)
def erfc(x: TensorLike) -> Tensor:
    """``1 - erf(x)``, accurate where it is small.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.erfc([0.0, float("inf")])).tolist()
    [1.0, 0.0]
    """
    ...


gradient(
    erfc,
    x=lambda g, x: ops.multiply(g, ops.multiply(ops.exp(ops.negative(ops.square(x))), -2.0 / math.sqrt(math.pi))),
)


@primitive(REAL_FLOATING)
def erfinv(x: TensorLike) -> Tensor:
    """The numbers whose error function is ``x``; infinite at -1 and 1, NaN beyond.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.erfinv([0.0, 1.0])).tolist()
    [0.0, inf]
    """
    ...


gradient(erfinv, x=lambda g, r: ops.multiply(g, ops.multiply(ops.exp(ops.square(r)), math.sqrt(math.pi) / 2.0)))


@primitive(REAL_FLOATING)
def lgamma(x: TensorLike) -> Tensor:
    """The logarithms of the magnitude of the gamma function; infinite at 0 and the negative integers.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.lgamma([1.0, 2.0, 0.0])).tolist()
    [0.0, 0.0, inf]
    """
    ...


gradient(lgamma, x=lambda g, x: ops.multiply(g, digamma(x)))


@primitive(REAL_FLOATING)
def digamma(x: TensorLike) -> Tensor:
    """The derivative of the logarithm of the gamma function.

    Its limit from the right at 0, NaN at the negative integers.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.digamma([0.0])).tolist()
    [-inf]
    """
    ...


gradient(digamma, x=lambda g, x: ops.multiply(g, helpers.trigamma(x)))


@derived(REAL_FLOATING)
def i0(x: TensorLike) -> Tensor:
    """The modified Bessel function of the first kind, order 0.

    >>> from ember_ml import ops
    >>> [round(value, 5) for value in ops.to_numpy(ops.i0([0.0])).tolist()]
    [1.0]
    """
    if is_half(x):
        return in_float32(i0, x)
    return bessel_i0(ops, ops.exp, x, as_dtype(x.dtype) == "float32")


gradient(i0, x=lambda g, x: ops.multiply(g, _i1(x)))


def _i1(x: Tensor) -> Tensor:
    """Return the modified Bessel function of the first kind, order 1."""
    return in_float32(_i1, x) if is_half(x) else bessel_i1(ops, ops.exp, x, as_dtype(x.dtype) == "float32")


@derived(REAL_FLOATING)
def xlogy(x: TensorLike, y: TensorLike) -> Tensor:
    """``x * log(y)``, and 0 where ``x`` is 0, unless ``y`` is NaN.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.xlogy([0.0, 2.0], [0.0, 1.0])).tolist()
    [0.0, 0.0]
    """
    is_odd = logical_and(equal(x, 0), logical_or(less_equal(y, 0), isinf(y)))  # elsewhere the product is right
    return where(is_odd, 0, multiply(x, log(where(is_odd, 1, y))))
