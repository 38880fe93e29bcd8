"""Bitwise ops on MLX."""

from __future__ import annotations

import mlx.core as mx

from ember_ml.backend.mlx.vmap_rules import bitwise_and, bitwise_or, bitwise_xor, left_shift, right_shift  # noqa: F401

bitwise_invert = mx.bitwise_invert


def _clear_beyond(y: mx.array) -> tuple[mx.array, mx.array]:
    """Return where shifts ``y`` are outside the width, and the shifts with 0 there."""
    # MLX 0.32: shifts modulo the width
    is_beyond = mx.logical_or(y < 0, y >= y.dtype.size * 8)
    return is_beyond, mx.where(is_beyond, mx.zeros_like(y), y)


def bitwise_left_shift(x: mx.array, y: mx.array) -> mx.array:
    is_beyond, count = _clear_beyond(y)
    return mx.where(is_beyond, mx.zeros_like(y), left_shift(x, count))


def bitwise_right_shift(x: mx.array, y: mx.array) -> mx.array:
    is_beyond, count = _clear_beyond(y)
    sign = mx.where(x < 0, mx.zeros_like(x) - 1, mx.zeros_like(x))
    return mx.where(is_beyond, sign, right_shift(x, count))
