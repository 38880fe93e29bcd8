"""The parts of complex numbers: real and imaginary, modulus and angle."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.dispatch.declare import derived, gradient, primitive
from ember_ml.dispatch.dtype_rules import FLOATING, NUMERIC, REAL_TRANSFORM
from ember_ml.ops.elementwise.trigonometry import arctan2
from ember_ml.typing import Tensor, TensorLike

__all__: list[str] = [
    "angle",
    "conj",
    "imag",
    "polar",
    "real",
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
