"""Metrics of the order in which scores put the samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.config.registry import register
from ember_ml.errors import UnsupportedDType
from ember_ml.training.metrics.base import Metric, tensor_of, widen
from ember_ml.training.sample_weights import as_tensor_near, broadcast_weights
from ember_ml.typing import Tensor, TensorLike

__all__ = ["AUC"]


@register("metrics/auc")
class AUC(Metric):
    """The area under the receiver operating characteristic: how often a sample of class 1 has a higher score than one
    of class 0, where equal scores count half.

    It is exact, for which it keeps a score, a class and a weight of every sample. Predictions are one score for each
    sample, or two, for class 0 and class 1. NaN where one of the classes does not occur.

    >>> from ember_ml.training import metrics
    >>> auc = metrics.AUC()
    >>> auc.update([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    >>> auc.result()
    0.875
    """

    name = "auc"

    def measure(self, target: TensorLike, prediction: TensorLike, weight: TensorLike | None = None) -> tuple[Any, ...]:
        scores = widen(prediction)
        target = as_tensor_near(target, scores)
        if scores.ndim > 1 and scores.shape[-1] == 2:
            scores = ops.subtract(scores[..., 1], scores[..., 0])
            if target.ndim > scores.ndim:
                target = ops.argmax(target, -1)
        target, scores = ops.reshape(target, (-1,)), ops.reshape(scores, (-1,))
        if tuple(target.shape) != tuple(scores.shape):
            raise ValueError(f"{target.shape[0]} targets and {scores.shape[0]} scores do not belong together")
        target = ops.cast(target, "float32")
        weight = (
            ops.ones_like(target)
            if weight is None
            else broadcast_weights(ops.reshape(as_tensor_near(weight, target), (-1,)), target)
        )
        return scores, target, weight

    def joined(self, group: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Concatenate the samples of all batches."""
        return tuple(
            [x for part in column for x in part]
            if isinstance(column[0], list)
            else ops.concatenate([tensor_of(x) for x in column], 0)
            for column in zip(*group, strict=True)
        )

    def conclude(self, *total: Any) -> float:
        scores, target, weight = map(_column, total)
        order = ops.argsort(scores)
        scores, target, weight = (ops.take(x, order, 0) for x in (scores, target, weight))
        above, below = ops.multiply(weight, target), ops.multiply(weight, ops.subtract(1, target))
        behind = ops.concatenate([ops.zeros_like(below)[:1], ops.cumulative_sum(below)], 0)
        lower, higher = (ops.take(behind, ops.searchsorted(scores, scores, side), 0) for side in ("left", "right"))
        won = ops.item(ops.sum(ops.multiply(above, ops.add(lower, higher)))) / 2
        pairs = ops.item(ops.sum(above)) * ops.item(ops.sum(below))
        return won / pairs if pairs else math.nan


def _column(values: list[float]) -> Tensor:
    """Return the numbers in double precision, where the device has it."""
    try:
        return ops.array(values, dtype="float64")
    except UnsupportedDType:
        return ops.array(values, dtype="float32")
