"""Updates of parameters on MLX, with as few operations as they need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx

__all__ = ["adam"]

Arrays = Sequence[mx.array]
IS_IN_PLACE = False
TAKES_HALVES = True


def adam(
    parameters: Arrays,
    gradients: Arrays,
    first: Arrays,
    second: Arrays,
    rate: Any,
    factor: Any,
    epsilon: Any,
    step: int,
    beta1: float,
    beta2: float,
    unscaled_epsilon: float,
    decay: float,
    is_decoupled: bool,
) -> list[Arrays]:
    rest1, rest2 = 1.0 - beta1, 1.0 - beta2
    new: list[Any] = [[], [], []]
    for p, g, m, v in zip(parameters, gradients, first, second, strict=True):
        kind = p.dtype
        if kind.size < 4:
            p, g, m, v = (x.astype(mx.float32) for x in (p, g, m, v))
        if decay and is_decoupled:
            p = p * (1.0 - rate * decay)
        elif decay:
            g = g + decay * p
        m = beta1 * m + rest1 * g
        v = beta2 * v + rest2 * mx.square(g)
        p = p - factor * m / (mx.sqrt(v) + epsilon)
        for column, x in zip(new, (p, m, v), strict=True):
            column.append(x.astype(kind) if kind.size < 4 else x)
    return new


def settle(arrays: Sequence[mx.array]) -> None:
    """Compute arrays of a step: left to the next one, the graphs of all steps would pile up."""
    mx.eval(arrays)


def vector(numbers: list[float]) -> mx.array:
    """Numbers that change from step to step, for a compiled update."""
    return mx.array(numbers, dtype=mx.float32)
