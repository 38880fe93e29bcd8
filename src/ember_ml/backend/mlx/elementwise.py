"""Elementwise ops on MLX."""

from __future__ import annotations

import operator

import mlx.core as mx

# MLX's operators compute what its functions compute, and are called sooner
add = operator.add
subtract = operator.sub
multiply = operator.mul
divide = operator.truediv
sin = mx.sin
cos = mx.cos
exp = mx.exp
