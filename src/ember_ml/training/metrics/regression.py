"""Metrics of predicted numbers, and of the probabilities that a model gives to what happened."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.config.registry import register
from ember_ml.training import losses
from ember_ml.training.metrics.base import Metric, mean_of, tensor_of, widen
from ember_ml.training.sample_weights import as_tensor_near, broadcast_weights
from ember_ml.typing import Tensor, TensorLike

__all__ = ["R2", "MeanAbsoluteError", "MeanSquaredError", "Perplexity"]


class _MeanLoss(Metric):
    """The mean of a loss over all samples of all batches."""

    _loss: losses.Loss

    def measure(self, target: TensorLike, prediction: TensorLike, weight: TensorLike | None = None) -> tuple[Any, ...]:
        return mean_of(self._loss.each(target, widen(prediction)), weight)

    def conclude(self, *total: Any) -> float:
        return total[0] / total[1] if total[1] else math.nan


@register("metrics/mean_squared_error")
class MeanSquaredError(_MeanLoss):
    """The mean of the squared differences.

    >>> from ember_ml.training import metrics
    >>> metric = metrics.MeanSquaredError()
    >>> metric.update([1.0, 2.0], [1.0, 4.0])
    >>> metric.result()
    2.0
    """

    name = "mean_squared_error"
    _loss = losses.mean_squared_error


@register("metrics/mean_absolute_error")
class MeanAbsoluteError(_MeanLoss):
    """The mean of the magnitudes of the differences.

    >>> from ember_ml.training import metrics
    >>> metric = metrics.MeanAbsoluteError()
    >>> metric.update([1.0, 2.0], [1.0, 4.0])
    >>> metric.result()
    1.0
    """

    name = "mean_absolute_error"
    _loss = losses.mean_absolute_error


@register("metrics/perplexity")
class Perplexity(_MeanLoss):
    """The exponential of the mean crossentropy of classes, given as integers, and logits along the last axis.

    >>> from ember_ml import ops
    >>> from ember_ml.training import metrics
    >>> metric = metrics.Perplexity()
    >>> metric.update([0, 3], ops.zeros((2, 4)))
    >>> round(metric.result(), 5)
    4.0
    """

    name = "perplexity"
    _loss = losses.sparse_categorical_crossentropy

    def conclude(self, *total: Any) -> float:
        try:
            return math.exp(super().conclude(*total))
        except OverflowError:
            return math.inf


@register("metrics/r2")
class R2(Metric):
    """The share of the targets' variance that the predictions explain; of several numbers per sample, the mean share.

    Where all targets are equal it is 1 if the predictions are too, else 0.

    >>> from ember_ml.training import metrics
    >>> metric = metrics.R2()
    >>> metric.update([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    >>> metric.result()
    0.5
    """

    name = "r2"

    def measure(self, target: TensorLike, prediction: TensorLike, weight: TensorLike | None = None) -> tuple[Any, ...]:
        prediction = widen(prediction)
        target = widen(as_tensor_near(target, prediction))
        if tuple(target.shape) != tuple(prediction.shape):
            raise ValueError(f"targets of shape {tuple(target.shape)}, predictions of {tuple(prediction.shape)}")
        columns = target.shape[-1] if target.ndim > 1 else 1
        each = target if target.ndim < 2 else target[..., 0]
        weight = ops.ones_like(ops.cast(each, "float32")) if weight is None else broadcast_weights(weight, widen(each))
        target, prediction = ops.reshape(target, (-1, columns)), ops.reshape(prediction, (-1, columns))
        weight = ops.reshape(weight, (-1, 1))
        count = ops.sum(weight)
        mean = ops.divide(ops.sum(ops.multiply(weight, target), 0), ops.where(ops.equal(count, 0), 1, count))
        return (
            count,
            mean,
            _squares(weight, ops.subtract(target, mean)),
            _squares(weight, ops.subtract(target, prediction)),
        )

    def joined(self, group: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Join means and sums of squares around them without subtracting large numbers (Chan and others)."""
        counts, means, squares, errors = (
            ops.stack([tensor_of(x) for x in column]) for column in zip(*group, strict=True)
        )
        shares = ops.expand_dims(counts, 1)
        count = ops.sum(counts)
        mean = ops.divide(ops.sum(ops.multiply(shares, means), 0), ops.where(ops.equal(count, 0), 1, count))
        between = _squares(shares, ops.subtract(means, mean))
        return count, mean, ops.add(ops.sum(squares, 0), between), ops.sum(errors, 0)

    def conclude(self, *total: Any) -> float:
        count, _, squares, errors = total
        if not count:
            return math.nan
        pairs = zip(squares, errors, strict=True)
        found = [1 - error / square if square else float(error == 0) for square, error in pairs]
        return math.fsum(found) / len(found)


def _squares(weight: Tensor, difference: Tensor) -> Tensor:
    return ops.sum(ops.multiply(weight, ops.square(difference)), 0)
