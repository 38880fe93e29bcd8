"""Recurrent layers on MLX: a loop over the positions, with few kernels for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

from ember_ml.backend.common.recurrent import cells_of, run_layers
from ember_ml.backend.mlx.bodies.activations import relu
from ember_ml.backend.mlx.bodies.joining import unstack
from ember_ml.backend.mlx.bodies.products import matmul

__all__ = ["pullback", "run"]

pullback = None


def run(
    kind: str,
    x: mx.array,
    state: Sequence[mx.array],
    weights: Sequence[mx.array],
    has_bias: bool,
    layers: int,
    bidirectional: bool,
) -> tuple[mx.array, Sequence[mx.array]] | None:
    """Return the results and the last state, or None where the loop in Python must compute them."""
    if x.dtype not in (mx.float32, mx.float64) or not x.size or any(t.dtype != x.dtype for t in (*state, *weights)):
        return None
    directions = 2 if bidirectional else 1
    return run_layers(mx, matmul.native, _loop, _CELLS, kind, x, state, weights, has_bias, directions)


def _loop(step: Callable[..., Any], carry: Any, parts: mx.array, is_reversed: bool) -> Any:
    found, slices = [], unstack(parts, 0)
    for part in reversed(slices) if is_reversed else slices:
        carry, y = step(carry, part)
        found.append(y)
    return carry, mx.stack(found[::-1] if is_reversed else found)


def _sigmoid(x: mx.array) -> mx.array:
    """Return the sigmoid within 1e-7, which is all that a gate needs: half the kernels of the accurate one."""
    return 0.5 * mx.tanh(0.5 * x) + 0.5


_CELLS = cells_of(mx, _sigmoid, relu)
