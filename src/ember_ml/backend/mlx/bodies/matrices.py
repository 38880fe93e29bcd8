"""Matrices made of tensors, on MLX."""

from __future__ import annotations

import mlx.core as mx

tril = mx.tril
triu = mx.triu
diag = mx.diag
