"""Update parameters on MLX, with as few operations as possible."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import mlx.core as mx

from ember_ml.backend.common import update_rules

__all__ = ["is_in_place", "kernels", "takes_halves"]

Arrays = Sequence[mx.array]
is_in_place = False
takes_halves = True


def _adam(parameters: Arrays, gradients: Arrays, first: Arrays, second: Arrays, **settings: Any) -> list[Arrays]:
    new: list[Any] = [[], [], []]
    given = SimpleNamespace(**settings)
    for p, g, m, v in zip(parameters, gradients, first, second, strict=True):
        kind = p.dtype
        if kind.size < 4:
            p, g, m, v = (x.astype(mx.float32) for x in (p, g, m, v))
        for column, x in zip(new, update_rules.adam(mx, given, g, p, m, v), strict=True):
            column.append(x.astype(kind) if kind.size < 4 else x)
    return new


kernels = {"adam": _adam}
