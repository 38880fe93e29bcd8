"""What the trainers of tests/training/test_own_steps.py shall do, by hand in double precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["distil", "find_norms", "oppose"]

Array = np.ndarray[Any, Any]


def _wide(*arrays: Any) -> list[Array]:
    return [np.asarray(x, np.float64) for x in arrays]


def distil(
    x: Any, y: Any, model: Sequence[Any], teacher: Sequence[Any], rate: float, size: int, accumulate: int
) -> tuple[list[float], Array]:
    """Return the losses of two epochs by gradient descent, and the weights of the linear model at the end.

    The loss is the mean of the mean squared errors beside the targets and beside what the linear teacher says.
    """
    x, y, w, b, teacher_w, teacher_b = _wide(x, y, *model, *teacher)
    taught = x @ teacher_w.T + teacher_b
    losses: list[float] = []
    sums: list[tuple[Array, Array]] = []
    for start in [*range(0, len(x), size)] * 2:
        rows = slice(start, start + size)
        found = x[rows] @ w.T + b
        errors = [found - y[rows], found - taught[rows]]
        losses.append(float(sum((e**2).mean() for e in errors) / 2))
        slope = (errors[0] + errors[1]) / size
        sums.append((slope.T @ x[rows], slope.sum(0)))
        if len(sums) == accumulate:
            w = w - rate * sum(part for part, _ in sums) / accumulate
            b = b - rate * sum(part for _, part in sums) / accumulate
            sums = []
    return losses, w


def oppose(x: Any, left: Any, right: Any, rates: tuple[float, float], updates: int) -> tuple[list[float], Array]:
    """Return the mean product of two linear functions before each update, which one makes smaller and the other larger.

    The second result are the weights of the other at the end.
    """
    x, left, right = _wide(x, left, right)
    left, right = left.ravel(), right.ravel()
    moment = x.T @ x / len(x)
    values = []
    for _ in range(updates):
        values.append(float(left @ moment @ right))
        left, right = left - rates[0] * moment @ right, right + rates[1] * moment @ left
    return values, right


def find_norms(x: Any, y: Any, w: Any, b: Any) -> tuple[float, float]:
    """Return the norms of the gradients of a linear model's mean squared error, of its weights and of its bias."""
    x, y, w, b = _wide(x, y, w, b)
    slope = 2 * (x @ w.T + b - y) / len(x)
    return float(np.linalg.norm(slope.T @ x)), float(np.linalg.norm(slope.sum(0)))
