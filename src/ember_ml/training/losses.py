"""Losses: how far predictions are from their targets, as one number to make smaller.

Each is an object that is called ``loss(target, prediction)`` or ``loss(target, prediction, weight)``. The module has
one of each with its default settings, under the name of the op that computes it, as in
``losses.mean_squared_error(y, model(x))``; that name, as a string, is what a trainer takes. Losses that compare classes
take logits, numbers of which the softmax (of a single one, the sigmoid) are the probabilities; ``from_logits=False``
takes the probabilities themselves.

``reduction`` says what becomes of the numbers of the single samples: their "mean", their "sum", or "none", which keeps
them. Weights multiply the samples: one number for each, or for each of the first axes; the mean is then that of the
weighted samples, the sum of the products over the sum of the weights, and 0 where all weights are 0.
"""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.config import registry
from ember_ml.config.registry import register
from ember_ml.core.dtypes import as_dtype
from ember_ml.training.sample_weights import as_tensor_near, broadcast_weights
from ember_ml.typing import Tensor, TensorLike

__all__ = [
    "CTC",
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "Huber",
    "KLDivergence",
    "LogCosh",
    "Loss",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "SparseCategoricalCrossentropy",
    "binary_crossentropy",
    "categorical_crossentropy",
    "ctc_loss",
    "get",
    "huber_loss",
    "kl_divergence",
    "log_cosh_loss",
    "mean_absolute_error",
    "mean_squared_error",
    "sparse_categorical_crossentropy",
]

_REDUCTIONS = ("mean", "sum", "none")


class Loss:
    """What all losses share: a subclass gives ``each``, the losses of the single samples.

    Args:
        reduction: "mean", "sum" or "none", which keeps one loss per sample.

    >>> from ember_ml import ops
    >>> from ember_ml.training.losses import Loss
    >>> class Distance(Loss):
    ...     def each(self, target, prediction):
    ...         return ops.norm(ops.subtract(prediction, target), axis=-1)
    >>> ops.item(Distance("sum")([[0.0, 0.0], [0.0, 0.0]], [[3.0, 4.0], [0.0, 1.0]], weight=[1.0, 10.0]))
    15.0
    """

    def __init__(self, reduction: str = "mean") -> None:
        if reduction not in _REDUCTIONS:
            raise ValueError(f"a reduction is one of {', '.join(_REDUCTIONS)}, not {reduction!r}")
        self.reduction = reduction

    def each(self, target: TensorLike, prediction: TensorLike) -> Tensor:
        """Return one loss per sample: the shape of the tensors without the axis that holds one sample's elements."""
        raise NotImplementedError(f"{type(self).__name__} does not define each")

    def average(self, target: TensorLike, prediction: TensorLike) -> Tensor:
        """Return the mean loss of all samples; losses with a faster formula override it."""
        return ops.mean(self.each(target, prediction))

    def __call__(self, target: TensorLike, prediction: TensorLike, weight: TensorLike | None = None) -> Tensor:
        """Return the loss, reduced as the settings say."""
        if target is None:
            raise TypeError(f"{type(self).__name__} compares predictions with targets, and the batch has None")
        if weight is None and self.reduction == "mean":
            return self.average(target, prediction)
        losses = self.each(target, prediction)
        if weight is not None:
            weight = broadcast_weights(weight, losses)
            losses = ops.multiply(losses, weight)
        if self.reduction == "none":
            return losses
        total = ops.sum(losses)
        if self.reduction == "sum" or weight is None:
            return total
        weights = ops.sum(weight)
        return ops.divide(total, ops.where(ops.equal(weights, 0), 1, weights))

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if not name.startswith("_"))
        return f"{type(self).__name__}({settings})"


class _OfDifferences(Loss):
    """Losses of single elements; a sample has those along the last axis, or one where there is only one axis."""

    def _compute(self, target: TensorLike, prediction: TensorLike, axis: Any) -> Tensor:
        raise NotImplementedError

    def each(self, target: TensorLike, prediction: TensorLike) -> Tensor:
        return self._compute(target, prediction, -1 if len(ops.shape(prediction)) > 1 else ())

    def average(self, target: TensorLike, prediction: TensorLike) -> Tensor:
        return self._compute(target, prediction, None)


@register("losses/mean_squared_error")
class MeanSquaredError(_OfDifferences):
    """The mean of the squared differences.

    >>> from ember_ml import ops
    >>> from ember_ml.training import losses
    >>> ops.item(losses.MeanSquaredError()([[0.0], [1.0]], [[2.0], [1.0]]))
    2.0
    >>> ops.to_numpy(losses.MeanSquaredError(reduction="none")([[0.0], [1.0]], [[2.0], [1.0]])).tolist()
    [4.0, 0.0]
    """

    def _compute(self, target: TensorLike, prediction: TensorLike, axis: Any) -> Tensor:
        return ops.mean_squared_error(target, prediction, axis)


@register("losses/mean_absolute_error")
class MeanAbsoluteError(_OfDifferences):
    """The mean of the magnitudes of the differences.

    >>> from ember_ml import ops
    >>> from ember_ml.training import losses
    >>> ops.item(losses.MeanAbsoluteError()([[0.0], [1.0]], [[-3.0], [1.0]]))
    1.5
    """

    def _compute(self, target: TensorLike, prediction: TensorLike, axis: Any) -> Tensor:
        return ops.mean_absolute_error(target, prediction, axis)


@register("losses/huber_loss")
class Huber(_OfDifferences):
    """The mean of half the squared differences, which beyond ``delta`` go on as straight lines.

    Args:
        delta: The difference beyond which the loss is linear.
        reduction: "mean", "sum" or "none", which keeps one loss per sample.

    >>> from ember_ml import ops
    >>> from ember_ml.training import losses
    >>> ops.item(losses.Huber(delta=1.0)([0.0], [10.0]))
    9.5
    """

    def __init__(self, delta: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.delta = delta

    def _compute(self, target: TensorLike, prediction: TensorLike, axis: Any) -> Tensor:
        return ops.huber_loss(target, prediction, self.delta, axis)


@register("losses/log_cosh_loss")
class LogCosh(_OfDifferences):
    """The mean of the logarithms of the hyperbolic cosines of the differences.

    >>> from ember_ml import ops
    >>> from ember_ml.training import losses
    >>> round(ops.item(losses.LogCosh()([0.0], [1.0])), 4)
    0.4338
    """

    def _compute(self, target: TensorLike, prediction: TensorLike, axis: Any) -> Tensor:
        return ops.log_cosh_loss(target, prediction, axis)


def _check_smoothing(label_smoothing: float) -> float:
    if not 0 <= label_smoothing < 1:
        raise ValueError(f"label_smoothing is a share from 0 up to but without 1, not {label_smoothing}")
    return label_smoothing


@register("losses/binary_crossentropy")
class BinaryCrossentropy(_OfDifferences):
    """The mean crossentropy of events that happened (1) or not (0), given logits of their probabilities.

    ``label_smoothing`` moves the targets that far towards one half.

    Args:
        from_logits: Whether predictions are logits, rather than probabilities.
        label_smoothing: How far targets move towards one half, from 0 to 1.
        reduction: "mean", "sum" or "none", which keeps one loss per sample.

    >>> from ember_ml import ops
    >>> from ember_ml.training import losses
    >>> round(ops.item(losses.BinaryCrossentropy()([[1.0], [0.0]], [[0.0], [0.0]])), 4)
    0.6931
    """

    def __init__(self, from_logits: bool = True, label_smoothing: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.from_logits = from_logits
        self.label_smoothing: float = _check_smoothing(label_smoothing)

    def _compute(self, target: TensorLike, prediction: TensorLike, axis: Any) -> Tensor:
        if self.label_smoothing:
            share = self.label_smoothing
            target = ops.add(ops.multiply(_cast_target(target, prediction), 1 - share), share / 2)
        return ops.binary_crossentropy(target, prediction, self.from_logits, axis)


@register("losses/categorical_crossentropy")
class CategoricalCrossentropy(Loss):
    """The mean crossentropy of the probabilities of classes, given logits: both along the last axis.

    ``label_smoothing`` gives that share of each target to all classes alike.

    Args:
        from_logits: Whether predictions are logits, rather than probabilities.
        label_smoothing: The share of each target that all classes get in equal parts.
        reduction: "mean", "sum" or "none", which keeps one loss per sample.

    >>> from ember_ml import ops
    >>> from ember_ml.training import losses
    >>> round(ops.item(losses.CategoricalCrossentropy()([[1.0, 0.0]], [[0.0, 0.0]])), 4)
    0.6931
    """

    def __init__(self, from_logits: bool = True, label_smoothing: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.from_logits = from_logits
        self.label_smoothing: float = _check_smoothing(label_smoothing)

    def each(self, target: TensorLike, prediction: TensorLike) -> Tensor:
        if self.label_smoothing:
            share = self.label_smoothing
            classes = ops.shape(prediction)[-1]
            target = ops.add(ops.multiply(_cast_target(target, prediction), 1 - share), share / classes)
        return ops.categorical_crossentropy(target, prediction, self.from_logits)


@register("losses/sparse_categorical_crossentropy")
class SparseCategoricalCrossentropy(Loss):
    """The mean crossentropy of classes, given as integers, and logits of their probabilities along the last axis.

    ``label_smoothing`` gives that share of each target to all classes alike.

    The arguments are those of :class:`CategoricalCrossentropy`.

    >>> from ember_ml import ops
    >>> from ember_ml.training import losses
    >>> round(ops.item(losses.SparseCategoricalCrossentropy()([0, 1], [[0.0, 0.0], [0.0, 0.0]])), 4)
    0.6931
    """

    def __init__(self, from_logits: bool = True, label_smoothing: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.from_logits = from_logits
        self.label_smoothing: float = _check_smoothing(label_smoothing)

    def each(self, target: TensorLike, prediction: TensorLike) -> Tensor:
        if not self.label_smoothing:
            return ops.sparse_categorical_crossentropy(target, prediction, self.from_logits)
        share, classes = self.label_smoothing, ops.shape(prediction)[-1]
        hit = ops.one_hot(as_tensor_near(target, prediction), classes, dtype=as_dtype(ops.dtype(prediction)))
        smooth = ops.add(ops.multiply(hit, 1 - share), share / classes)
        return ops.categorical_crossentropy(smooth, prediction, self.from_logits)


@register("losses/kl_divergence")
class KLDivergence(Loss):
    """The mean divergence of two distributions, both given as probabilities along the last axis.

    >>> from ember_ml import ops
    >>> from ember_ml.training import losses
    >>> round(ops.item(losses.KLDivergence()([[1.0, 0.0]], [[0.5, 0.5]])), 4)
    0.6931
    """

    def each(self, target: TensorLike, prediction: TensorLike) -> Tensor:
        return ops.kl_divergence(target, prediction)


@register("losses/ctc_loss")
class CTC(Loss):
    """The mean of minus the logarithms of the probabilities that frames spell their labels.

    The target has three parts: labels (batch, labels), how many of them each sample has, and how many frames each
    sample has. The prediction holds logits: (batch, frames, classes). See ``ops.ctc_loss``.

    Args:
        mask_index: The class that stands for no label.
        reduction: "mean", "sum" or "none", which keeps one loss per sample.

    >>> from ember_ml import ops
    >>> from ember_ml.training import losses
    >>> round(ops.item(losses.CTC()(([[1]], [1], [2]), ops.zeros((1, 2, 3)))), 4)
    1.0986
    """

    def __init__(self, mask_index: int = 0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.mask_index = mask_index

    def each(self, target: TensorLike, prediction: TensorLike) -> Tensor:
        if not isinstance(target, tuple | list) or len(target) != 3:
            raise ValueError("the target of CTC has three parts: labels, their number, and the number of frames")
        labels, label_count, frame_count = target
        return ops.ctc_loss(labels, prediction, label_count, frame_count, self.mask_index)


def _cast_target(target: TensorLike, prediction: TensorLike) -> Tensor:
    """Return the target in the dtype of the prediction where it is of integers or bools."""
    target = as_tensor_near(target, prediction)
    kind = as_dtype(ops.dtype(target)).kind
    return target if kind in ("float", "complex") else ops.cast(target, as_dtype(ops.dtype(prediction)))


def get(loss: Any) -> Any:
    """Return the loss of that name with its default settings; what is callable already is given back.

    Names are those of this module's functions, and what is registered as ``losses/<name>``.

    >>> from ember_ml.training import losses
    >>> losses.get("huber_loss")
    Huber(reduction='mean', delta=1.0)
    """
    if isinstance(loss, str):
        return registry.get("losses", loss)
    if callable(loss):
        return loss
    raise TypeError(f"a loss is a name or a function of target and prediction, not {loss!r}")


mean_squared_error: MeanSquaredError = MeanSquaredError()
mean_absolute_error: MeanAbsoluteError = MeanAbsoluteError()
huber_loss: Huber = Huber()
log_cosh_loss: LogCosh = LogCosh()
binary_crossentropy: BinaryCrossentropy = BinaryCrossentropy()
categorical_crossentropy: CategoricalCrossentropy = CategoricalCrossentropy()
sparse_categorical_crossentropy: SparseCategoricalCrossentropy = SparseCategoricalCrossentropy()
kl_divergence: KLDivergence = KLDivergence()
ctc_loss: CTC = CTC()
