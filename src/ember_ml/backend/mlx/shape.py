"""Shapes, on MLX."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from ember_ml.backend.shapes import as_shape, new_shape


def reshape(x: mx.array, shape: Any) -> mx.array:
    return mx.reshape(x, new_shape(shape))  # MLX accepts two negative lengths, and what it gives then is broken


def broadcast_to(x: mx.array, shape: Any) -> mx.array:
    return mx.broadcast_to(x, as_shape(shape))
