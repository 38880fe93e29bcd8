"""Bitwise ops on MLX, which shifts by the places modulo the width."""

from __future__ import annotations

import mlx.core as mx

bitwise_and = mx.bitwise_and
bitwise_or = mx.bitwise_or
bitwise_xor = mx.bitwise_xor
bitwise_invert = mx.bitwise_invert


def _places(y: mx.array) -> tuple[mx.array, mx.array]:
    """Where ``y`` is outside the width, and the places without those."""
    is_beyond = (y < 0) | (y >= y.dtype.size * 8)
    return is_beyond, mx.where(is_beyond, mx.zeros_like(y), y)


def bitwise_left_shift(x: mx.array, y: mx.array) -> mx.array:
    is_beyond, places = _places(y)
    return mx.where(is_beyond, mx.zeros_like(y), mx.left_shift(x, places))


def bitwise_right_shift(x: mx.array, y: mx.array) -> mx.array:
    is_beyond, places = _places(y)
    sign = mx.where(x < 0, mx.zeros_like(x) - 1, mx.zeros_like(x))
    return mx.where(is_beyond, sign, mx.right_shift(x, places))
