"""Circular and hyperbolic functions, their inverses, and angles."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml.dispatch.declare import gradient, primitive
from ember_ml.dispatch.dtype_rules import FLOATING, REAL_FLOATING
from ember_ml.typing import Tensor, TensorLike

__all__: list[str] = [
    "acos",
    "acosh",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "deg2rad",
    "hypot",
    "rad2deg",
    "sin",
    "sinc",
    "sinh",
    "tan",
    "tanh",
]


@primitive(FLOATING)
def sin(x: TensorLike) -> Tensor:
    """The sines of ``x``, in radians.

    MLX may give +0 for -0 in float32 and half precision.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.sin([0.0])).tolist()
    [0.0]
    """
    ...


gradient(sin, x=lambda g, x: ops.multiply(g, cos(x)))


@primitive(FLOATING)
def cos(x: TensorLike) -> Tensor:
    """The cosines of ``x``, in radians.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.cos([0.0])).tolist()
    [1.0]
    """
    ...


gradient(cos, x=lambda g, x: ops.negative(ops.multiply(g, sin(x))))


@primitive(FLOATING)
def tan(x: TensorLike) -> Tensor:
    """The tangents of ``x``, in radians.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.tan([0.0])).tolist()
    [0.0]
    """
    ...


gradient(tan, x=lambda g, r: ops.multiply(g, ops.add(ops.square(r), 1.0)))


@primitive(FLOATING, "asin")
def arcsin(x: TensorLike) -> Tensor:
    """The angles in [-pi/2, pi/2] whose sine is ``x``; NaN outside [-1, 1].

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.arcsin([0.0])).tolist()
    [0.0]
    """
    ...


gradient(arcsin, x=lambda g, x: ops.divide(g, ops.sqrt(ops.subtract(1.0, ops.square(x)))))


asin = arcsin


@primitive(FLOATING, "acos")
def arccos(x: TensorLike) -> Tensor:
    """The angles in [0, pi] whose cosine is ``x``; NaN outside [-1, 1].

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.arccos([1.0])).tolist()
    [0.0]
    """
    ...


gradient(arccos, x=lambda g, x: ops.negative(ops.divide(g, ops.sqrt(ops.subtract(1.0, ops.square(x))))))


acos = arccos


@primitive(FLOATING, "atan")
def arctan(x: TensorLike) -> Tensor:
    """The angles in [-pi/2, pi/2] whose tangent is ``x``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.arctan([0.0])).tolist()
    [0.0]
    """
    ...


gradient(arctan, x=lambda g, x: ops.divide(g, ops.add(ops.square(x), 1.0)))


atan = arctan


@primitive(REAL_FLOATING, "atan2")
def arctan2(x: TensorLike, y: TensorLike) -> Tensor:
    """The angles in [-pi, pi] of the points with ordinate ``x`` and abscissa ``y``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.arctan2([0.0], [1.0])).tolist()
    [0.0]
    """
    ...


gradient(
    arctan2,
    x=lambda g, x, y: ops.multiply(g, ops.divide_no_nan(y, _squares(x, y))),
    y=lambda g, x, y: ops.negative(ops.multiply(g, ops.divide_no_nan(x, _squares(x, y)))),
)


atan2 = arctan2


@primitive(FLOATING)
def sinh(x: TensorLike) -> Tensor:
    """The hyperbolic sines.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.sinh([0.0])).tolist()
    [0.0]
    """
    ...


gradient(sinh, x=lambda g, x: ops.multiply(g, cosh(x)))


@primitive(FLOATING)
def cosh(x: TensorLike) -> Tensor:
    """The hyperbolic cosines.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.cosh([0.0])).tolist()
    [1.0]
    """
    ...


gradient(cosh, x=lambda g, x: ops.multiply(g, sinh(x)))


@primitive(FLOATING)
def tanh(x: TensorLike) -> Tensor:
    """The hyperbolic tangents.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.tanh([0.0, float("inf")])).tolist()
    [0.0, 1.0]
    """
    ...


gradient(tanh, x=lambda g, r: ops.multiply(g, ops.subtract(1.0, ops.square(r))))


@primitive(FLOATING, "asinh")
def arcsinh(x: TensorLike) -> Tensor:
    """The numbers whose hyperbolic sine is ``x``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.arcsinh([0.0])).tolist()
    [0.0]
    """
    ...


gradient(arcsinh, x=lambda g, x: ops.divide(g, ops.sqrt(ops.add(ops.square(x), 1.0))))


asinh = arcsinh


@primitive(FLOATING, "acosh")
def arccosh(x: TensorLike) -> Tensor:
    """The numbers, not negative, whose hyperbolic cosine is ``x``; NaN below 1.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.arccosh([1.0])).tolist()
    [0.0]
    """
    ...


gradient(arccosh, x=lambda g, x: ops.divide(g, ops.multiply(ops.sqrt(ops.subtract(x, 1.0)), ops.sqrt(ops.add(x, 1.0)))))


acosh = arccosh


@primitive(FLOATING, "atanh")
def arctanh(x: TensorLike) -> Tensor:
    """The numbers whose hyperbolic tangent is ``x``; NaN outside [-1, 1].

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.arctanh([0.0, 1.0])).tolist()
    [0.0, inf]
    """
    ...


gradient(arctanh, x=lambda g, x: ops.divide(g, ops.subtract(1.0, ops.square(x))))


atanh = arctanh


@primitive(REAL_FLOATING)
def hypot(x: TensorLike, y: TensorLike) -> Tensor:
    """``sqrt(x*x + y*y)``, without overflow on the way; infinite where either is.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.hypot([3.0], [4.0])).tolist()
    [5.0]
    """
    ...


gradient(
    hypot,
    x=lambda g, r, x: ops.multiply(g, ops.divide_no_nan(x, r)),
    y=lambda g, r, y: ops.multiply(g, ops.divide_no_nan(y, r)),
)


@primitive(REAL_FLOATING)
def deg2rad(x: TensorLike) -> Tensor:
    """Degrees as radians.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.deg2rad([0.0])).tolist()
    [0.0]
    """
    ...


gradient(deg2rad, x=lambda g: deg2rad(g))


@primitive(REAL_FLOATING)
def rad2deg(x: TensorLike) -> Tensor:
    """Radians as degrees.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.rad2deg([0.0])).tolist()
    [0.0]
    """
    ...


gradient(rad2deg, x=lambda g: rad2deg(g))


@primitive(REAL_FLOATING)
def sinc(x: TensorLike) -> Tensor:
    """``sin(pi*x) / (pi*x)``, and 1 for 0.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.sinc([0.0])).tolist()
    [1.0]
    """
    ...


gradient(sinc, x=lambda g, r, x: ops.multiply(g, ops.divide_no_nan(ops.subtract(cos(ops.multiply(x, math.pi)), r), x)))


def _squares(x: Tensor, y: Tensor) -> Tensor:
    return ops.add(ops.square(x), ops.square(y))
