"""The parts of numbers: real and imaginary, modulus and angle, sign, neighbours and exponents of floats."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.dispatch.declare import derived, gradient, primitive
from ember_ml.dispatch.dtype_rules import FLOATING, NUMERIC, REAL, REAL_FLOATING, REAL_TRANSFORM
from ember_ml.ops.elementwise.trigonometry import arctan2
from ember_ml.typing import IndexLike, Tensor, TensorLike

__all__: list[str] = [
    "angle",
    "conj",
    "copysign",
    "imag",
    "ldexp",
    "nextafter",
    "polar",
    "real",
    "signbit",
]


@primitive(NUMERIC.giving("real"))
def real(x: TensorLike) -> Tensor:
    """The real parts; of real tensors the tensor itself.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.real([1 + 2j])).tolist()
    [1.0]
    """
    ...


gradient(real, holomorphic=False, x=lambda g, _x: ops.cast(g, _x.dtype))


@primitive(NUMERIC.giving("real"))
def imag(x: TensorLike) -> Tensor:
    """The imaginary parts; of real tensors zeros.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.imag([1 + 2j])).tolist()
    [2.0]
    """
    ...


gradient(
    imag,
    holomorphic=False,
    x=lambda g, _x: ops.multiply(ops.cast(g, _x.dtype), 1j) if _x.dtype.kind == "complex" else ops.zeros_like(g),
)


@primitive(NUMERIC)
def conj(x: TensorLike) -> Tensor:
    """The complex conjugates; of real tensors the tensor itself.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.conj([1 + 2j])).tolist()
    [(1-2j)]
    """
    ...


gradient(conj, holomorphic=False, x=lambda g: conj(g))


@derived(FLOATING.giving("real"))
def angle(x: TensorLike) -> Tensor:
    """The angles of numbers in the complex plane, in (-pi, pi]; of negative real numbers pi.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.angle([1.0, 2 + 0j])).tolist()
    [0.0, 0.0]
    """
    return arctan2(imag(x), real(x))


@primitive(REAL_TRANSFORM)
def polar(x: TensorLike, y: TensorLike) -> Tensor:
    """The complex numbers with modulus ``x`` and angle ``y``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.polar([2.0], [0.0])).tolist()
    [(2+0j)]
    """
    ...


gradient(
    polar,
    holomorphic=False,
    x=lambda g, y: ops.add(ops.multiply(real(g), ops.cos(y)), ops.multiply(imag(g), ops.sin(y))),
    y=lambda g, x, y: ops.multiply(
        x, ops.subtract(ops.multiply(imag(g), ops.cos(y)), ops.multiply(real(g), ops.sin(y)))
    ),
)


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
