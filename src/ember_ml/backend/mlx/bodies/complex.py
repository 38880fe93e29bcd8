"""Real and imaginary parts on MLX."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from ember_ml.backend.contract import ByDType
from ember_ml.core import dtypes as dt
from ember_ml.errors import UnsupportedDType


def of_parts(real: mx.array, imag: mx.array) -> mx.array:
    """Join real and imaginary parts; ``real + 1j*imag`` would turn infinities into NaN."""
    result: Any = _view_as_complex(*mx.broadcast_arrays(real, imag))
    return result


@mx.custom_function
def _view_as_complex(real: mx.array, imag: mx.array) -> mx.array:
    return mx.squeeze(mx.contiguous(mx.stack([real, imag], axis=-1)).view(mx.complex64), -1)


@_view_as_complex.vjp
def _(parts: tuple[mx.array, mx.array], cotangent: mx.array, result: mx.array) -> tuple[mx.array, mx.array]:
    return mx.real(cotangent), mx.imag(cotangent)  # MLX 0.32: no gradient of a view


def _identity(x: mx.array) -> mx.array:
    return x


real = ByDType(_identity, {dt.complex64: mx.real})
imag = ByDType(mx.zeros_like, {dt.complex64: mx.imag})
conj = ByDType(_identity, {dt.complex64: mx.conj})


def polar(x: mx.array, y: mx.array) -> mx.array:
    if x.dtype == mx.float64:
        raise UnsupportedDType("MLX has no complex128, which polar of float64 needs; cast to float32")
    return of_parts(x * mx.cos(y), x * mx.sin(y))
