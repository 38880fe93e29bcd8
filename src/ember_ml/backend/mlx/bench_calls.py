"""MLX's own call for each op that the benchmark compares."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

calls = {
    "add": mx.add,
    "multiply": mx.multiply,
    "sin": mx.sin,
    "matmul": mx.matmul,
    "mean": mx.mean,
    "reshape": mx.reshape,
    "concatenate": mx.concatenate,
    "abs": mx.abs,
    "log": mx.log,
}


def evaluate(x: Any) -> Any:
    mx.eval(x)
    return x
