"""The parts that floats are made of: sign, neighbours, exponents."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.dispatch.declare import gradient, primitive
from ember_ml.dispatch.dtype_rules import REAL, REAL_FLOATING
from ember_ml.typing import IndexLike, Tensor, TensorLike

__all__: list[str] = ["copysign", "ldexp", "nextafter", "signbit"]


@primitive(REAL.giving("bool"))
def signbit(x: TensorLike) -> Tensor:
    """Whether the sign is negative; true for -0.0 and for a NaN with a sign.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.signbit([-0.0, 0.0, -1.5])).tolist()
    [True, False, True]
    """
    ...


@primitive(REAL_FLOATING)
def copysign(x: TensorLike, y: TensorLike) -> Tensor:
    """The magnitudes of ``x`` with the signs of ``y``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.copysign([1.0, -2.0], [-0.0, 3.0])).tolist()
    [-1.0, 2.0]
    """
    ...


gradient(
    copysign,
    x=lambda g, x, y: ops.multiply(g, copysign(ops.sign(x), ops.multiply(ops.sign(x), copysign(ops.ones_like(y), y)))),
    y=None,
)


@primitive(REAL_FLOATING)
def nextafter(x: TensorLike, y: TensorLike) -> Tensor:
    """The floats next to ``x`` on the way to ``y``; ``y`` itself where they are equal.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.nextafter([1.0], [2.0]) == 1.0).tolist()
    [False]
    """
    ...


@primitive(REAL_FLOATING)
def ldexp(x: TensorLike, y: IndexLike) -> Tensor:
    """``x * 2**y`` for integers ``y``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.ldexp([0.75, 1.0], [2, -1])).tolist()
    [3.0, 0.5]
    """
    ...


gradient(ldexp, x=lambda g, y: ldexp(g, y))
