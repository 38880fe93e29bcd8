"""Update parameters on MLX, with as few operations as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx

__all__ = ["is_in_place", "kernels", "takes_halves"]

Arrays = Sequence[mx.array]
is_in_place = False
takes_halves = True


def _adam(
    parameters: Arrays,
    gradients: Arrays,
    first: Arrays,
    second: Arrays,
    *,
    rate: Any,
    factor: Any,
    scaled_epsilon: Any,
    step: int,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
    is_decoupled: bool,
) -> list[Arrays]:
    rest1, rest2 = 1.0 - beta1, 1.0 - beta2
    new: list[Any] = [[], [], []]
    for p, g, m, v in zip(parameters, gradients, first, second, strict=True):
        kind = p.dtype
        if kind.size < 4:
            p, g, m, v = (x.astype(mx.float32) for x in (p, g, m, v))
        if weight_decay and is_decoupled:
            p = p * (1.0 - rate * weight_decay)
        elif weight_decay:
            g = g + weight_decay * p
        m = beta1 * m + rest1 * g
        v = beta2 * v + rest2 * mx.square(g)
        p = p - factor * m / (mx.sqrt(v) + scaled_epsilon)
        for column, x in zip(new, (p, m, v), strict=True):
            column.append(x.astype(kind) if kind.size < 4 else x)
    return new


kernels = {"adam": _adam}
