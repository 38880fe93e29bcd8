"""MLX computes when results are needed; these ask for them now."""

from __future__ import annotations

import mlx.core as mx

__all__ = ["evaluate", "start"]

evaluate = mx.eval
start = mx.async_eval
