"""Evaluate MLX arrays now; MLX itself computes when results are needed."""

from __future__ import annotations

import mlx.core as mx

from ember_ml.backend.mlx.host_transfer import check_fits

__all__ = ["evaluate", "start"]


def evaluate(*arrays: mx.array | list[mx.array]) -> None:
    for x in arrays:
        check_fits(*(x if isinstance(x, list) else (x,)))
    mx.eval(*arrays)


def start(*arrays: mx.array | list[mx.array]) -> None:
    for x in arrays:
        check_fits(*(x if isinstance(x, list) else (x,)))
    mx.async_eval(*arrays)
