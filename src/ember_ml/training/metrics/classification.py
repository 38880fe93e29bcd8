"""Metrics of predicted classes."""

from __future__ import annotations

import math
from typing import Any

from ember_ml import ops
from ember_ml.config.registry import register
from ember_ml.core.dtypes import as_dtype
from ember_ml.training.metrics.base import Metric, mean_of, number_of, tensor_of
from ember_ml.training.sample_weights import as_tensor_near, broadcast_weights
from ember_ml.typing import Tensor, TensorLike

__all__ = ["F1", "Accuracy", "BinaryAccuracy", "ConfusionMatrix", "Precision", "Recall", "TopKAccuracy"]


def _find_classes(target: TensorLike, prediction: TensorLike, threshold: float) -> tuple[Tensor, Tensor, int | None]:
    """Return the true classes, the predicted ones, and the number of classes where the scores say it."""
    prediction = tensor_of(prediction)
    target = as_tensor_near(target, prediction)
    count: int | None = None
    if as_dtype(prediction.dtype).kind == "float":
        rows = prediction.ndim - target.ndim
        width = prediction.shape[-1] if prediction.ndim else 1
        if rows in (0, 1) and prediction.ndim > 1 and width > 1:
            count, prediction = width, ops.argmax(prediction, -1)
            target = target if rows else ops.argmax(target, -1)
        else:
            if prediction.ndim == target.ndim + 1 and width == 1:
                prediction = ops.squeeze(prediction, -1)
            count, prediction = 2, ops.greater(prediction, threshold)
    if tuple(target.shape) != tuple(prediction.shape):
        raise ValueError(
            f"targets of shape {tuple(target.shape)} and predicted classes of shape {tuple(prediction.shape)} "
            "do not belong together"
        )
    return _cast_to_integers(target), _cast_to_integers(prediction), count


def _cast_to_integers(x: Tensor) -> Tensor:
    return x if as_dtype(x.dtype).kind in ("int", "uint") else ops.cast(x, "int64")


class _Share(Metric):
    """The share of samples for which something is true."""

    def conclude(self, *total: Any) -> float:
        return total[0] / total[1] if total[1] else math.nan


@register("metrics/accuracy")
class Accuracy(_Share):
    """The share of samples whose class is predicted.

    Args:
        threshold: One score per sample above it predicts class 1: 0 for logits, 0.5 for probabilities.

    >>> from ember_ml.training import metrics
    >>> accuracy = metrics.Accuracy()
    >>> accuracy.update([0, 1, 1, 0], [[2.0, 1.0], [0.0, 1.0], [3.0, 1.0], [0.5, 0.0]])
    >>> accuracy.result()
    0.75
    """

    name = "accuracy"

    def __init__(self, threshold: float = 0.0) -> None:
        super().__init__()
        self.threshold = threshold

    def measure(self, target: TensorLike, prediction: TensorLike, weight: TensorLike | None = None) -> tuple[Any, ...]:
        right, predicted, _ = _find_classes(target, prediction, self.threshold)
        return mean_of(ops.equal(right, predicted), weight)


@register("metrics/binary_accuracy")
class BinaryAccuracy(_Share):
    """The share of all single answers, of which a sample may have several, that are on the right side of the threshold.

    Args:
        threshold: Scores above it predict 1: 0 for logits, 0.5 for probabilities.

    >>> from ember_ml.training import metrics
    >>> accuracy = metrics.BinaryAccuracy()
    >>> accuracy.update([[1, 1], [0, 1]], [[0.5, -2.0], [-1.0, 3.0]])
    >>> accuracy.result()
    0.75
    """

    name = "binary_accuracy"

    def __init__(self, threshold: float = 0.0) -> None:
        super().__init__()
        self.threshold = threshold

    def measure(self, target: TensorLike, prediction: TensorLike, weight: TensorLike | None = None) -> tuple[Any, ...]:
        if ops.shape(target) != ops.shape(prediction):
            raise ValueError(f"targets of shape {ops.shape(target)}, scores of shape {ops.shape(prediction)}")
        return mean_of(ops.equal(ops.greater(target, 0.5), ops.greater(prediction, self.threshold)), weight)


@register("metrics/top_k_accuracy")
class TopKAccuracy(_Share):
    """The share of samples whose class is among the ``k`` with the highest scores; of equal ones the first comes first.

    Args:
        k: How many of the highest scores count.

    >>> from ember_ml.training import metrics
    >>> accuracy = metrics.TopKAccuracy(k=2)
    >>> accuracy.update([0, 2], [[2.0, 1.0, 3.0], [5.0, 4.0, 3.0]])
    >>> accuracy.result()
    0.5
    """

    name = "top_k_accuracy"

    def __init__(self, k: int = 5) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"k is at least 1, and not {k}")
        self.k = k

    def measure(self, target: TensorLike, prediction: TensorLike, weight: TensorLike | None = None) -> tuple[Any, ...]:
        scores = tensor_of(prediction)
        target = as_tensor_near(target, scores)
        if target.ndim == scores.ndim:
            target = ops.argmax(target, -1)
        if tuple(target.shape) != tuple(scores.shape)[:-1]:
            raise ValueError(f"classes of shape {tuple(target.shape)} do not fit scores of shape {tuple(scores.shape)}")
        places = ops.arange(scores.shape[-1], device=ops.get_device(scores))
        target = ops.expand_dims(target, -1)
        is_target = ops.equal(places, target)
        own = ops.sum(ops.where(is_target, scores, 0), -1, keepdims=True)
        is_before = ops.logical_and(ops.equal(scores, own), ops.less(places, target))
        ahead = ops.sum(ops.logical_or(ops.greater(scores, own), is_before), -1)
        is_found = ops.logical_and(ops.less(ahead, self.k), ops.any(is_target, -1))
        return mean_of(is_found, weight)


class _ByClass(Metric):
    """Metrics of how often each class is right, predicted, and both."""

    def __init__(self, average: str | None = None, num_classes: int | None = None, threshold: float = 0.0) -> None:
        super().__init__()
        if average not in (None, "binary", "macro", "micro", "weighted"):
            raise ValueError(f"average is binary, macro, micro, weighted or None, and not {average!r}")
        self.average = average
        self.num_classes = num_classes
        self.threshold = threshold

    def measure(self, target: TensorLike, prediction: TensorLike, weight: TensorLike | None = None) -> tuple[Any, ...]:
        right, predicted, count = _find_classes(target, prediction, self.threshold)
        is_right, is_predicted = _one_hot(right, predicted, _choose_count(self.num_classes, count))
        is_both = ops.logical_and(is_right, is_predicted)
        if weight is None:
            return *(ops.sum(x, 0) for x in (is_both, is_predicted, is_right)), number_of(right)
        weight = ops.reshape(broadcast_weights(weight, ops.cast(right, "float32")), (-1, 1))
        sums = (ops.sum(ops.where(x, weight, 0.0), 0) for x in (is_both, is_predicted, is_right))
        return *sums, ops.sum(weight)

    def _of_class(self, both: float, predicted: float, right: float) -> float:
        raise NotImplementedError

    def conclude(self, *total: Any) -> float:
        both, predicted, right, count = total
        _check_count(right, count)
        if self.average == "micro":
            return self._of_class(sum(both), sum(predicted), sum(right))
        if self.average == "binary" or (self.average is None and len(both) == 2):
            if len(both) != 2:
                raise ValueError(f"the average 'binary' is for two classes, and there are {len(both)}")
            return self._of_class(both[1], predicted[1], right[1])
        seen = [triple for triple in zip(both, predicted, right, strict=True) if triple[1] or triple[2]]
        weights = [triple[2] if self.average == "weighted" else 1 for triple in seen]
        total_weight = math.fsum(weights)
        if not total_weight:
            return math.nan
        return math.fsum(w * self._of_class(*x) for w, x in zip(weights, seen, strict=True)) / total_weight


def _one_hot(right: Tensor, predicted: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return two masks by sample and class: whether it is the true class, and whether it is predicted."""
    places = ops.arange(count, device=ops.get_device(right))
    right, predicted = (ops.equal(ops.reshape(x, (-1, 1)), places) for x in (right, predicted))
    return right, predicted


def _choose_count(asked: int | None, found: int | None) -> int:
    if asked is None and found is None:
        raise ValueError("predictions that are classes do not tell how many there are: set num_classes")
    if asked is not None and found is not None and found > asked:
        raise ValueError(f"there are scores for {found} classes, more than num_classes, which is {asked}")
    return asked or found or 0


def _check_count(right: list[float], count: float) -> None:
    if abs(math.fsum(right) - count) > 1e-4 * abs(count):
        raise ValueError(f"some targets are no classes from 0 to {len(right) - 1}")


@register("metrics/precision")
class Precision(_ByClass):
    """The share of those predicted to be of a class that are; 0 where none was.

    ``average`` is "binary" (of class 1), "macro" (the mean over the classes that occur), "weighted" (by how often they
    do) or "micro" (all classes together); by default binary for two classes and macro for more.

    Args:
        average: How the classes are averaged.
        num_classes: The number of classes; None: that of the scores.
        threshold: One score per sample above it predicts class 1: 0 for logits, 0.5 for probabilities.

    >>> from ember_ml.training import metrics
    >>> precision = metrics.Precision()
    >>> precision.update([1, 0, 1, 0], [2.0, 1.0, -1.0, -3.0])
    >>> precision.result()
    0.5
    """

    name = "precision"

    def _of_class(self, both: float, predicted: float, right: float) -> float:
        return both / predicted if predicted else 0.0


@register("metrics/recall")
class Recall(_ByClass):
    """The share of those of a class that are predicted to be; 0 where there is none. Averages as for ``Precision``.

    >>> from ember_ml.training import metrics
    >>> recall = metrics.Recall()
    >>> recall.update([1, 0, 1, 0], [2.0, 1.0, 1.0, -3.0])
    >>> recall.result()
    1.0
    """

    name = "recall"

    def _of_class(self, both: float, predicted: float, right: float) -> float:
        return both / right if right else 0.0


@register("metrics/f1")
class F1(_ByClass):
    """The harmonic mean of precision and recall; 0 where both are. Averages as for ``Precision``.

    >>> from ember_ml.training import metrics
    >>> f1 = metrics.F1()
    >>> f1.update([1, 0, 1, 0], [2.0, 1.0, -1.0, -3.0])
    >>> f1.result()
    0.5
    """

    name = "f1"

    def _of_class(self, both: float, predicted: float, right: float) -> float:
        return 2 * both / (predicted + right) if predicted + right else 0.0


@register("metrics/confusion_matrix")
class ConfusionMatrix(Metric):
    """How many samples of each class, a row, are predicted to be of each class, a column: a tensor.

    Args:
        num_classes: The number of classes; None: that of the scores.
        threshold: One score per sample above it predicts class 1: 0 for logits, 0.5 for probabilities.

    >>> from ember_ml import ops
    >>> from ember_ml.training import metrics
    >>> matrix = metrics.ConfusionMatrix()
    >>> matrix.update([1, 0, 1, 0], [2.0, 1.0, -1.0, -3.0])
    >>> ops.to_numpy(matrix.result()).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """

    name = "confusion_matrix"

    def __init__(self, num_classes: int | None = None, threshold: float = 0.0) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.threshold = threshold

    def measure(self, target: TensorLike, prediction: TensorLike, weight: TensorLike | None = None) -> tuple[Any, ...]:
        right, predicted, count = _find_classes(target, prediction, self.threshold)
        one_hot = _one_hot(right, predicted, _choose_count(self.num_classes, count))
        is_right, is_predicted = (ops.cast(x, "float32") for x in one_hot)
        total: Any = number_of(right)
        if weight is not None:
            weight = ops.reshape(broadcast_weights(weight, ops.cast(right, "float32")), (-1, 1))
            is_right, total = ops.multiply(is_right, weight), ops.sum(weight)
        return ops.matmul(ops.transpose(is_right), is_predicted), total

    def conclude(self, *total: Any) -> Tensor:
        rows, count = total
        _check_count([math.fsum(row) for row in rows], count)
        return ops.array(rows, dtype="float32")
