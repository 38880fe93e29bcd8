"""Conversion between dtypes, on MLX."""

from __future__ import annotations

import mlx.core as mx

# an array that is changed in place gets new memory: sharing it is as good as a copy
copy = mx.array
stop_gradient = mx.stop_gradient


def view(x: mx.array, dtype: mx.Dtype) -> mx.array:
    # MLX 0.32: takes any byte for a bool and computes with its bits
    return mx.view(x, mx.uint8) != 0 if dtype == mx.bool_ else mx.view(x, dtype)
