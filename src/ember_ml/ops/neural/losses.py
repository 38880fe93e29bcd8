"""Losses: how far ``output`` is from ``target``, one number for each sample.

All take ``target`` first, as ``keras.ops`` does. They reduce ``axis``, by default the last: those that compare numbers
take the mean over it (of several axes, of all with None, of none with ``()``), those that compare distributions add up
its classes. Of what is left, the mean over the batch is for the caller to take. The two tensors have one shape; they do
not broadcast. Half precision is computed in float32 and rounded once.

In a logarithm, a probability below 1e-7 counts as 1e-7, so that a loss is finite and an impossible event that did not
happen costs nothing.
"""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.shapes import check_classes
from ember_ml.backend.common.special import LEAST_PROBABILITY
from ember_ml.core.dtypes import as_dtype
from ember_ml.dispatch.declare import derived, gradient
from ember_ml.dispatch.dtype_rules import REAL_FLOATING
from ember_ml.dispatch.half_precision import in_float32, is_half
from ember_ml.typing import AxisLike, IndexLike, Tensor, TensorLike

__all__ = [
    "binary_crossentropy",
    "categorical_crossentropy",
    "ctc_loss",
    "huber_loss",
    "kl_divergence",
    "log_cosh_loss",
    "mean_absolute_error",
    "mean_squared_error",
    "sparse_categorical_crossentropy",
]

_NEVER = -1e30  # the logarithm of the probability of what cannot be; infinity would make gradients NaN


@derived(REAL_FLOATING)
def mean_squared_error(target: TensorLike, output: TensorLike, axis: AxisLike | None = -1) -> Tensor:
    """The mean over ``axis`` of the squared differences.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.mean_squared_error([[0.0, 1.0]], [[2.0, 1.0]])).tolist()
    [2.0]
    """
    if is_half(output):
        return in_float32(mean_squared_error, target, output, axis)
    return ops.mean(ops.square(_difference(target, output)), axis=axis)


@derived(REAL_FLOATING)
def mean_absolute_error(target: TensorLike, output: TensorLike, axis: AxisLike | None = -1) -> Tensor:
    """The mean over ``axis`` of the magnitudes of the differences.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.mean_absolute_error([[0.0, 1.0]], [[-2.0, 1.0]])).tolist()
    [1.0]
    """
    if is_half(output):
        return in_float32(mean_absolute_error, target, output, axis)
    return ops.mean(ops.abs(_difference(target, output)), axis=axis)


@derived(REAL_FLOATING)
def huber_loss(target: TensorLike, output: TensorLike, delta: float = 1.0, axis: AxisLike | None = -1) -> Tensor:
    """The mean over ``axis`` of half the squared differences, which beyond ``delta`` go on as a straight line.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.huber_loss([[0.0], [0.0]], [[0.5], [10.0]])).tolist()
    [0.125, 9.5]
    """
    if is_half(output):
        return in_float32(huber_loss, target, output, delta, axis)
    size = ops.abs(_difference(target, output))
    near = ops.minimum(size, delta)
    return ops.mean(ops.multiply(near, ops.subtract(size, ops.multiply(near, 0.5))), axis=axis)


@derived(REAL_FLOATING)
def log_cosh_loss(target: TensorLike, output: TensorLike, axis: AxisLike | None = -1) -> Tensor:
    """The mean over ``axis`` of the logarithms of the hyperbolic cosine of the differences, without overflow.

    >>> from ember_ml import ops
    >>> [round(value, 3) for value in ops.to_numpy(ops.log_cosh_loss([[0.0], [0.0]], [[1.0], [1000.0]])).tolist()]
    [0.434, 999.307]
    """
    if is_half(output):
        return in_float32(log_cosh_loss, target, output, axis)
    difference = _difference(target, output)
    size = ops.abs(difference)
    is_near = ops.less(size, 1)
    # near 0 the terms of the form for large differences cancel; this one is exact there, and overflows elsewhere
    near = ops.log1p(ops.multiply(ops.square(ops.sinh(ops.multiply(ops.where(is_near, difference, 0), 0.5))), 2))
    far = ops.subtract(ops.add(size, ops.log1p(ops.exp(ops.multiply(size, -2)))), math.log(2))
    return ops.mean(ops.where(is_near, near, far), axis=axis)


@derived(REAL_FLOATING)
def kl_divergence(target: TensorLike, output: TensorLike, axis: int = -1) -> Tensor:
    """The sum over ``axis`` of ``target * log(target / output)`` of two distributions.

    >>> from ember_ml import ops
    >>> [round(value, 4) for value in ops.to_numpy(ops.kl_divergence([[1.0, 0.0]], [[0.5, 0.5]])).tolist()]
    [0.6931]
    """
    if is_half(output):
        return in_float32(kl_divergence, target, output, axis)
    _check_shapes(target, output)
    ratio = ops.divide(ops.maximum(target, LEAST_PROBABILITY), ops.maximum(output, LEAST_PROBABILITY))
    return ops.sum(ops.multiply(target, ops.log(ratio)), axis=axis)


@derived(REAL_FLOATING)
def binary_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: AxisLike | None = -1
) -> Tensor:
    """The mean over ``axis`` of ``-target * log(output) - (1 - target) * log(1 - output)``.

    With ``from_logits`` the probabilities are ``sigmoid(output)``. ``axis=()`` leaves a number for each element, which
    is what ``keras.ops.binary_crossentropy`` gives.

    >>> from ember_ml import ops
    >>> [round(value, 4) for value in ops.to_numpy(ops.binary_crossentropy([[1.0, 0.0]], [[0.5, 0.0]])).tolist()]
    [0.3466]
    >>> ops.to_numpy(ops.binary_crossentropy([[1.0, 0.0]], [[1e4, 1e4]], from_logits=True, axis=())).tolist()
    [[0.0, 10000.0]]
    """
    if is_half(output):
        return in_float32(binary_crossentropy, target, output, from_logits, axis)
    _check_shapes(target, output)
    other = ops.subtract(1, target)
    if from_logits:
        is_negative = ops.less(output, 0)
        below = ops.where(is_negative, output, ops.negative(output))  # not the absolute value, whose slope at 0 is 0
        wrong = ops.where(is_negative, target, other)  # of terms that are never negative, so that none cancel
        loss = ops.subtract(ops.softplus(below), ops.multiply(wrong, below))
    else:
        hit, missed = ops.log(ops.maximum(output, LEAST_PROBABILITY)), _log_complement(output)
        loss = ops.negative(ops.add(ops.multiply(target, hit), ops.multiply(other, missed)))
    return ops.mean(loss, axis=axis)


@derived(REAL_FLOATING)
def categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """The sum over the classes, along ``axis``, of ``-target * log(output)``.

    The probabilities in ``output`` are first divided by their sum; with ``from_logits`` they are ``softmax(output)``. A
    class whose target is 0 may have minus infinity as its logit.

    >>> from ember_ml import ops
    >>> found = ops.categorical_crossentropy([[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.75, 0.25]])
    >>> [round(value, 4) for value in ops.to_numpy(found).tolist()]
    [0.6931, 1.3863]
    """
    if is_half(output):
        return in_float32(categorical_crossentropy, target, output, from_logits, axis)
    _check_shapes(target, output)
    if from_logits:
        logs = ops.log_softmax(output, axis)
        is_excluded = ops.logical_and(ops.equal(target, 0), ops.isneginf(logs))
        logs = ops.where(is_excluded, 0, logs)
    else:
        shares = ops.divide(output, ops.sum(output, axis=axis, keepdims=True))
        logs = ops.log(ops.maximum(shares, LEAST_PROBABILITY))
    return ops.negative(ops.sum(ops.multiply(target, logs), axis=axis))


@derived(REAL_FLOATING)
def sparse_categorical_crossentropy(
    target: IndexLike, output: TensorLike, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """The negative logarithms of the probabilities that ``output`` gives, along ``axis``, to the classes in ``target``.

    ``target`` holds integers and has the shape of ``output`` without ``axis``; a number that is no class raises
    ``IndexError``. The probabilities in ``output`` are first divided by their sum; with ``from_logits`` they are
    ``softmax(output)``.

    >>> from ember_ml import ops
    >>> found = ops.sparse_categorical_crossentropy([0, 1], [[0.5, 0.5], [0.75, 0.25]])
    >>> [round(value, 4) for value in ops.to_numpy(found).tolist()]
    [0.6931, 1.3863]
    """
    if is_half(output):
        return in_float32(sparse_categorical_crossentropy, target, output, from_logits, axis)
    axis = axis_of(axis, output.ndim)
    check_classes(target.shape, output.shape, axis)
    classes = ops.expand_dims(_in_range(target, output.shape[axis]), axis)
    if from_logits:
        logs = ops.take_along_axis(ops.log_softmax(output, axis), classes, axis)
    else:
        total = ops.sum(output, axis=axis, keepdims=True)
        logs = ops.log(ops.maximum(ops.divide(ops.take_along_axis(output, classes, axis), total), LEAST_PROBABILITY))
    return ops.negative(ops.squeeze(logs, axis))


def _crossentropy_vjp(g: Tensor, target: Tensor, output: Tensor, from_logits: bool, axis: int) -> Tensor:
    """Return the gradient of the crossentropy with classes: the probabilities, less 1 at the class."""
    g = ops.expand_dims(g, axis)
    if from_logits and axis in (-1, output.ndim - 1):  # the common case, and the quick one
        is_hit = ops.equal(ops.expand_dims(target, axis), ops.arange(output.shape[axis]))
        return ops.multiply(ops.subtract(ops.softmax(output, axis), is_hit), g)
    hit = ops.one_hot(target, output.shape[axis], axis, as_dtype(output.dtype))
    if from_logits:
        return ops.multiply(ops.subtract(ops.softmax(output, axis), hit), g)
    total = ops.sum(output, axis, keepdims=True)
    picked = ops.sum(ops.multiply(output, hit), axis, keepdims=True)
    is_counted = ops.greater(ops.divide(picked, total), LEAST_PROBABILITY)
    slope = ops.subtract(ops.reciprocal(total), ops.divide(hit, ops.where(is_counted, picked, 1)))
    return ops.where(is_counted, ops.multiply(slope, g), 0)


gradient(
    sparse_categorical_crossentropy,
    output=lambda g, target, output, from_logits, axis: _crossentropy_vjp(g, target, output, from_logits, axis),
)


@derived(REAL_FLOATING)
def ctc_loss(
    target: IndexLike,
    output: TensorLike,
    target_length: IndexLike,
    output_length: IndexLike,
    mask_index: int = 0,
) -> Tensor:
    """The negative logarithms of the probabilities that a sequence of frames spells its labels.

    ``output`` holds logits: (batch, frames, classes); ``target`` holds labels: (batch, labels). The frames spell what
    is left when repetitions are taken together and then the class ``mask_index``, the blank, is taken out. Only the
    first ``output_length`` frames and ``target_length`` labels of each sample count. Labels that so few frames cannot
    spell cost infinity, with gradient 0.

    >>> from ember_ml import ops
    >>> output = ops.zeros((1, 2, 3))  # of the 9 pairs of frames, three spell the label 1: 1 1, 1 0 and 0 1
    >>> [round(value, 4) for value in ops.to_numpy(ops.ctc_loss([[1]], output, [1], [2])).tolist()]
    [1.0986]
    """
    if is_half(output):
        return in_float32(ctc_loss, target, output, target_length, output_length, mask_index)
    _check_sequences(target, output, target_length, output_length, mask_index)
    labels, (_, frames, classes) = target.shape[1], output.shape
    target_length, output_length = _in_range(target_length, labels + 1), _in_range(output_length, frames + 1)
    is_label = ops.less(ops.arange(labels, device=ops.get_device(output)), ops.expand_dims(target_length, 1))
    states = _with_blanks(_in_range(ops.where(is_label, target, mask_index), classes), mask_index)
    emitted = ops.take_along_axis(ops.log_softmax(output), ops.expand_dims(states, 1), axis=2)
    reached, level = _run_through(states, ops.maximum(emitted, _NEVER), output_length, mask_index)
    last = ops.expand_dims(ops.multiply(target_length, 2), 1)
    before = ops.take_along_axis(reached, ops.maximum(ops.subtract(last, 1), 0), axis=1)
    before = ops.where(ops.greater(last, 0), before, _NEVER)
    ends = ops.squeeze(ops.logaddexp(ops.take_along_axis(reached, last, axis=1), before), 1)
    loss = ops.negative(ops.add(ends, level))
    return ops.where(ops.greater(loss, -_NEVER / 10), math.inf, loss)


def _with_blanks(labels: Tensor, blank: int) -> Tensor:
    """Return the states that frames pass through: every label, with a blank before, between and after."""
    batch, count = labels.shape
    blanks = ops.zeros((batch, count + 1), dtype=as_dtype(labels.dtype), device=ops.get_device(labels))
    blanks = ops.add(blanks, blank)
    pairs = ops.stack([blanks[:, :-1], labels], axis=2)
    return ops.concatenate([ops.reshape(pairs, (batch, 2 * count)), blanks[:, -1:]], axis=1)


def _run_through(states: Tensor, emitted: Tensor, length: Tensor, blank: int) -> tuple[Tensor, Tensor]:
    """Return the logarithms of the probability of each state after the last frame, above a level, and that level.

    The level rises with the most probable state of each frame, so that the rest stays near 0 and keeps its digits.
    """
    count, device = states.shape[1], ops.get_device(emitted)
    is_new = ops.logical_and(ops.not_equal(states[:, 2:], states[:, :-2]), ops.not_equal(states[:, 2:], blank))
    never_new = ops.not_equal(states[:, :2], states[:, :2])
    certain = ops.zeros((states.shape[0], count), dtype=as_dtype(emitted.dtype), device=device)
    impossible = ops.add(certain, _NEVER)
    penalty = ops.where(ops.concatenate([never_new, is_new], axis=1), certain, impossible)
    before_first = ops.concatenate([impossible[:, :1], impossible[:, :1]], axis=1)
    reached, rises = [ops.concatenate([certain[:, :1], impossible[:, 1:]], axis=1)], [certain[:, :1]]
    for frame in range(emitted.shape[1]):  # emberlint: ignore[EMB801] each frame needs the one before
        before = ops.concatenate([before_first, reached[-1]], axis=1)
        ways = [reached[-1], before[:, 1 : count + 1], ops.add(before[:, :count], penalty)]
        moved = ops.add(ops.logsumexp(ops.stack(ways, axis=0), axis=0), emitted[:, frame])
        rises.append(ops.stop_gradient(ops.max(moved, axis=1, keepdims=True)))
        reached.append(ops.subtract(moved, rises[-1]))
    length = ops.expand_dims(length, 1)
    last = ops.take_along_axis(ops.stack(reached, axis=1), ops.expand_dims(length, 2), axis=1)
    is_on = ops.less_equal(ops.arange(len(rises), device=device), length)
    return ops.squeeze(last, 1), ops.sum(ops.where(is_on, ops.concatenate(rises, axis=1), 0), axis=1)


def _check_sequences(target: Tensor, output: Tensor, target_length: Tensor, output_length: Tensor, blank: int) -> None:
    if output.ndim != 3 or target.ndim != 2:
        raise ValueError(f"output has 3 dimensions and target 2, not {output.ndim} and {target.ndim}")
    batches = [tuple(x.shape[:1]) for x in (output, target)] + [tuple(x.shape) for x in (target_length, output_length)]
    if len(set(batches)) > 1:
        raise ValueError(f"output, target, target_length and output_length are of batches {batches}; they must agree")
    if not 0 <= blank < output.shape[2]:
        raise ValueError(f"mask_index {blank} is none of the {output.shape[2]} classes")


def _in_range(x: Tensor, size: int) -> Tensor:
    """Integers from 0 to ``size - 1``: ``IndexError`` for others in eager code, clamped in traced code."""
    (found,) = ops.unravel_index(x, (size,))
    return found


def _log_complement(x: Tensor) -> Tensor:
    """Return ``log(1 - x)``, accurate for small ``x``; ``1 - x`` is at least the least probability."""
    is_large = ops.greater(x, 0.5)
    large = ops.log(ops.maximum(ops.subtract(1, x), LEAST_PROBABILITY))
    return ops.where(is_large, large, ops.log1p(ops.negative(ops.where(is_large, 0, x))))


def _difference(target: Tensor, output: Tensor) -> Tensor:
    _check_shapes(target, output)
    return ops.subtract(output, target)


def _check_shapes(target: Tensor, output: Tensor) -> None:
    if tuple(target.shape) != tuple(output.shape):
        raise ValueError(
            f"target has the shape {tuple(target.shape)} and output {tuple(output.shape)}; they must agree"
        )
