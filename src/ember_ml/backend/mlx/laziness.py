"""Evaluate MLX arrays now; MLX itself computes when results are needed."""

from __future__ import annotations

import mlx.core as mx

from ember_ml.backend.mlx.host_transfer import check_fits

__all__ = ["evaluate", "start"]


def evaluate(*arrays: mx.array) -> None:
    check_fits(*arrays)
    mx.eval(*arrays)


def start(*arrays: mx.array) -> None:
    check_fits(*arrays)
    mx.async_eval(*arrays)
