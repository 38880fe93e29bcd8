"""The parts of complex numbers: real and imaginary, modulus and angle."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.core.dtypes import as_dtype, float64
from ember_ml.dispatch.declare import derived, gradient, primitive, view, views
from ember_ml.dispatch.dtype_rules import FLOATING, NUMERIC, REAL_TRANSFORM
from ember_ml.ops.elementwise.trigonometry import arctan2
from ember_ml.tensor.in_place import RULES, link_view
from ember_ml.typing import Tensor, TensorLike

__all__: list[str] = [
    "angle",
    "conj",
    "conjugate",
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
view(real, lambda v, x: _join_parts(v, imag(x)) if _is_complex(x) else v, keeps_elements=False)


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
view(imag, lambda v, x: _join_parts(real(x), v), keeps_elements=False)


def _link_imag(args: tuple[Any, ...], result: Any) -> None:
    if type(args[0]) is type(result) and _is_complex(args[0]):  # of real tensors it is zero, and no part of them
        link_view(args[0], RULES["imag"], (), result)


views(imag, _link_imag)


def _is_complex(x: Any) -> bool:
    return as_dtype(x.dtype).kind == "complex"


def _join_parts(x: Tensor, y: Tensor) -> Tensor:
    """Return the complex numbers with these real and imaginary parts."""
    kind = "complex128" if as_dtype(x.dtype) is float64 else "complex64"
    is_finite = ops.logical_and(ops.isfinite(x), ops.isfinite(y))
    real_part, imaginary_part = (ops.cast(ops.where(is_finite, part, 0.0), kind) for part in (x, y))
    # sums and products of infinite complex numbers are NaN: their bytes are put together, without a gradient
    pairs = ops.stack([ops.stop_gradient(x), ops.stop_gradient(y)], axis=-1)
    exact = ops.get_item(ops.view(pairs, kind), (..., 0))
    return ops.where(is_finite, ops.add(real_part, ops.multiply(imaginary_part, 1j)), exact)


@primitive(NUMERIC, "conjugate")
def conj(x: TensorLike) -> Tensor:
    """The complex conjugates; of real tensors the tensor itself.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.conj([1 + 2j])).tolist()
    [(1-2j)]
    """
    ...


gradient(conj, holomorphic=False, x=lambda g: conj(g))

conjugate = conj


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
