"""Activations: the nonlinear functions of neural networks.

Each is also in ``nn.modules.activations``, with a class that holds its settings. NaN stays NaN. Half precision is
computed in float32 and rounded once. Where a function is ``x`` times something that vanishes (:func:`silu`,
:func:`mish`, :func:`gelu`, :func:`hard_silu`), minus infinity gives NaN, as that product does.
"""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml.backend.common.activations import check_threshold
from ember_ml.backend.common.axes import axis_of
from ember_ml.core.dtypes import as_dtype
from ember_ml.dispatch.declare import derived, gradient
from ember_ml.dispatch.dtype_rules import REAL, REAL_FLOATING
from ember_ml.dispatch.half_precision import in_float32, is_half
from ember_ml.typing import AxisLike, Tensor, TensorLike

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_shrink",
    "softmax",
    "softplus",
    "softsign",
    "sparsemax",
    "squareplus",
    "swish",
    "tanh_shrink",
    "threshold",
]

_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772


@derived(REAL)
def relu(x: TensorLike) -> Tensor:
    """``x`` where it is positive, 0 elsewhere.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.relu([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return ops.where(ops.less_equal(x, 0), 0, x)


gradient(relu, x=lambda g, r: ops.multiply(g, ops.greater(r, 0)))


@derived(REAL)
def relu6(x: TensorLike) -> Tensor:
    """``x`` limited to the range from 0 to 6.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.relu6([-1.0, 2.0, 9.0])).tolist()
    [0.0, 2.0, 6.0]
    """
    return _clip(x, 0, 6)


@derived(REAL_FLOATING)
def leaky_relu(x: TensorLike, negative_slope: float = 0.2) -> Tensor:
    """``x`` where it is positive, ``negative_slope * x`` elsewhere.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.leaky_relu([-4.0, 2.0], negative_slope=0.25)).tolist()
    [-1.0, 2.0]
    """
    if is_half(x):
        return in_float32(leaky_relu, x, negative_slope)
    return ops.where(ops.greater(x, 0), x, ops.multiply(x, negative_slope))


@derived(REAL_FLOATING)
def prelu(x: TensorLike, weight: TensorLike) -> Tensor:
    """``x`` where it is positive, ``weight * x`` elsewhere.

    ``weight`` broadcasts with ``x``: one number for all, or a vector with one for each channel of the last axis.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.prelu([[-4.0, -4.0], [2.0, 2.0]], [0.25, 0.5])).tolist()
    [[-1.0, -2.0], [2.0, 2.0]]
    """
    is_positive = ops.greater(x, 0)
    return ops.where(is_positive, x, ops.multiply(weight, ops.where(is_positive, 0, x)))


@derived(REAL_FLOATING)
def elu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """``x`` where it is positive, ``alpha * (exp(x) - 1)`` elsewhere.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.elu([2.0, float("-inf")])).tolist()
    [2.0, -1.0]
    """
    if is_half(x):
        return in_float32(elu, x, alpha)
    is_positive = ops.greater(x, 0)
    return ops.where(is_positive, x, ops.multiply(ops.expm1(ops.where(is_positive, 0, x)), alpha))


@derived(REAL_FLOATING)
def selu(x: TensorLike) -> Tensor:
    """``scale * elu(x, alpha)`` with the constants that keep the mean at 0 and the variance at 1 through layers.

    >>> from ember_ml import ops
    >>> [round(value, 4) for value in ops.to_numpy(ops.selu([1.0, float("-inf")])).tolist()]
    [1.0507, -1.7581]
    """
    if is_half(x):
        return in_float32(selu, x)
    return ops.multiply(elu(x, _SELU_ALPHA), _SELU_SCALE)


@derived(REAL_FLOATING)
def celu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """``x`` where it is positive, ``alpha * (exp(x / alpha) - 1)`` elsewhere: its slope has no step at 0.

    ``alpha`` of 0 is a ``ValueError``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.celu([2.0, float("-inf")], alpha=0.5)).tolist()
    [2.0, -0.5]
    """
    if not alpha:
        raise ValueError("celu divides by alpha, which is 0; relu is what it comes to there")
    if is_half(x):
        return in_float32(celu, x, alpha)
    is_positive = ops.greater(x, 0)
    return ops.where(is_positive, x, ops.multiply(ops.expm1(ops.divide(ops.where(is_positive, 0, x), alpha)), alpha))


@derived(REAL_FLOATING)
def sigmoid(x: TensorLike) -> Tensor:
    """``1 / (1 + exp(-x))``, without overflow on the way.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.sigmoid([0.0, float("-inf")])).tolist()
    [0.5, 0.0]
    """
    if is_half(x):
        return in_float32(sigmoid, x)
    is_negative = ops.less(x, 0)  # not the absolute value, whose slope at 0 is 0
    small = ops.exp(ops.where(is_negative, x, ops.negative(x)))
    return ops.divide(ops.where(is_negative, small, 1), ops.add(small, 1))


def _sigmoid_vjp(g: Tensor, r: Tensor) -> Tensor:
    if is_half(g):
        return in_float32(_sigmoid_vjp, g, r)
    return ops.multiply(g, ops.multiply(r, ops.subtract(1.0, r)))


gradient(sigmoid, x=_sigmoid_vjp)


@derived(REAL_FLOATING)
def log_sigmoid(x: TensorLike) -> Tensor:
    """The logarithm of ``sigmoid(x)``, accurate where that is near 0 or 1.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.log_sigmoid([-1000.0, float("-inf")])).tolist()
    [-1000.0, -inf]
    """
    return ops.negative(softplus(ops.negative(x)))


@derived(REAL_FLOATING)
def hard_sigmoid(x: TensorLike) -> Tensor:
    """The straight line ``x / 6 + 1 / 2``, limited to the range from 0 to 1.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.hard_sigmoid([-4.0, 0.0, 1.5, 4.0])).tolist()
    [0.0, 0.5, 0.75, 1.0]
    """
    if is_half(x):
        return in_float32(hard_sigmoid, x)
    return ops.divide(_clip(ops.add(x, 3), 0, 6), 6)


@derived(REAL_FLOATING, "swish")
def silu(x: TensorLike) -> Tensor:
    """``x * sigmoid(x)``, also known as swish.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.silu([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """
    if is_half(x):
        return in_float32(silu, x)
    return ops.multiply(x, sigmoid(x))


def _silu_vjp(g: Tensor, r: Tensor, x: Tensor) -> Tensor:
    """Multiply by ``s + x * s * (1 - s)``, where ``s`` is the sigmoid and ``x * s`` the result."""
    if is_half(g):  # the result was rounded
        return in_float32(lambda g, x: _silu_vjp(g, silu(x), x), g, x)
    chance = sigmoid(x)
    return ops.multiply(g, ops.add(chance, ops.multiply(r, ops.subtract(1.0, chance))))


gradient(silu, x=_silu_vjp)


@derived(REAL_FLOATING)
def hard_silu(x: TensorLike) -> Tensor:
    """``x * hard_sigmoid(x)``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.hard_silu([0.0, 1.5, 4.0])).tolist()
    [0.0, 1.125, 4.0]
    """
    if is_half(x):
        return in_float32(hard_silu, x)
    return ops.multiply(x, hard_sigmoid(x))


@derived(REAL_FLOATING)
def gelu(x: TensorLike, approximate: bool = True) -> Tensor:
    """``x`` times the chance that a standard normal number is below it.

    By default the approximation ``x * sigmoid(1.5957691 * (x + 0.044715 * x**3))`` (the form with tanh, rearranged), as
    in ``keras.ops``; ``approximate=False`` gives the function itself. Far below 0, where the result vanishes, its error
    may be a rounding error of ``x``.

    >>> from ember_ml import ops
    >>> [round(value, 4) for value in ops.to_numpy(ops.gelu([-1.0, 2.0])).tolist()]
    [-0.1588, 1.9546]
    >>> [round(value, 4) for value in ops.to_numpy(ops.gelu([-1.0, 2.0], approximate=False)).tolist()]
    [-0.1587, 1.9545]
    """
    if is_half(x):
        return in_float32(gelu, x, approximate)
    if approximate:
        near = ops.clip(x, -30, 30)  # beyond, the sigmoid is 0 or 1; and the cube would overflow
        cubic = ops.add(near, ops.multiply(ops.multiply(ops.square(near), near), 0.044715))
        return ops.multiply(x, sigmoid(ops.multiply(cubic, 2 * math.sqrt(2 / math.pi))))
    return ops.multiply(x, ops.multiply(ops.erfc(ops.multiply(x, -math.sqrt(0.5))), 0.5))


def _gelu_vjp(g: Tensor, x: Tensor, approximate: bool) -> Tensor:
    if is_half(g):
        return in_float32(_gelu_vjp, g, x, approximate)
    return ops.multiply(g, _gelu_slope(x, approximate))


def _gelu_slope(x: Tensor, approximate: bool) -> Tensor:
    if not approximate:
        chance = ops.multiply(ops.erfc(ops.multiply(x, -math.sqrt(0.5))), 0.5)
        density = ops.multiply(ops.exp(ops.multiply(ops.square(x), -0.5)), 1 / math.sqrt(2 * math.pi))
        return ops.add(chance, ops.multiply(x, density))
    near = ops.clip(x, -30, 30)
    squares = ops.multiply(ops.square(near), 0.044715)
    root = 2 * math.sqrt(2 / math.pi)
    gate = sigmoid(ops.multiply(ops.multiply(near, ops.add(squares, 1.0)), root))
    steepness = ops.multiply(ops.add(ops.multiply(squares, 3.0), 1.0), root)
    bend = ops.multiply(ops.multiply(gate, ops.subtract(1.0, gate)), steepness)
    return ops.add(gate, ops.multiply(near, bend))


gradient(gelu, x=_gelu_vjp)


@derived(REAL_FLOATING)
def mish(x: TensorLike) -> Tensor:
    """``x * tanh(softplus(x))``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.mish([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """
    if is_half(x):
        return in_float32(mish, x)
    return ops.multiply(x, ops.tanh(softplus(x)))


@derived(REAL_FLOATING)
def hard_tanh(x: TensorLike) -> Tensor:
    """``x`` limited to the range from -1 to 1.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.hard_tanh([-3.0, 0.5, 2.0])).tolist()
    [-1.0, 0.5, 1.0]
    """
    return _clip(x, -1, 1)


@derived(REAL_FLOATING)
def tanh_shrink(x: TensorLike) -> Tensor:
    """``x - tanh(x)``; near 0, where it is about ``x**3 / 3``, the error is that of the difference.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.tanh_shrink([0.0, 100.0])).tolist()
    [0.0, 99.0]
    """
    if is_half(x):
        return in_float32(tanh_shrink, x)
    return ops.subtract(x, ops.tanh(x))


@derived(REAL_FLOATING)
def hard_shrink(x: TensorLike, threshold: float = 0.5) -> Tensor:
    """``x`` where its absolute value exceeds ``threshold``, 0 elsewhere.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.hard_shrink([-2.0, 0.5, 0.75])).tolist()
    [-2.0, 0.0, 0.75]
    """
    return ops.where(ops.less_equal(ops.abs(x), threshold), 0, x)


@derived(REAL_FLOATING)
def soft_shrink(x: TensorLike, threshold: float = 0.5) -> Tensor:
    """``x`` moved by ``threshold`` towards 0, and 0 where that would cross it.

    A negative ``threshold`` is a ``ValueError``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.soft_shrink([-2.0, 0.5, 0.75])).tolist()
    [-1.5, 0.0, 0.25]
    """
    check_threshold(threshold)
    if is_half(x):
        return in_float32(soft_shrink, x, threshold)
    return ops.where(ops.less_equal(ops.abs(x), threshold), 0, ops.subtract(x, ops.multiply(ops.sign(x), threshold)))


@derived(REAL_FLOATING)
def threshold(x: TensorLike, threshold: float, default_value: float) -> Tensor:
    """``x`` where it exceeds ``threshold``, ``default_value`` elsewhere.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.threshold([-2.0, 0.5, 2.0], 0.5, 7.0)).tolist()
    [7.0, 7.0, 2.0]
    """
    return ops.where(ops.less_equal(x, threshold), default_value, x)


@derived(REAL_FLOATING)
def softplus(x: TensorLike) -> Tensor:
    """``log(1 + exp(x))``, without overflow on the way: a smooth ``relu``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.softplus([100.0, float("-inf")])).tolist()
    [100.0, 0.0]
    """
    if is_half(x):
        return in_float32(softplus, x)
    return ops.logaddexp(x, 0.0)


@derived(REAL_FLOATING)
def squareplus(x: TensorLike, b: float = 4.0) -> Tensor:
    """``(x + sqrt(x**2 + b)) / 2``, without overflow or cancellation on the way; ``b`` is positive.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.squareplus([0.0, 1.5, -1.5])).tolist()
    [1.0, 2.0, 0.5]
    """
    if is_half(x):
        return in_float32(squareplus, x, b)
    is_negative = ops.less(x, 0)
    half = ops.multiply(ops.where(is_negative, ops.negative(x), x), 0.5)
    larger = ops.add(half, ops.hypot(half, math.sqrt(b) / 2))
    return ops.where(is_negative, ops.divide(b / 4, larger), larger)  # the two roots multiply to b / 4


@derived(REAL_FLOATING)
def softsign(x: TensorLike) -> Tensor:
    """``x / (1 + abs(x))``; NaN at the infinities, where that quotient has no value.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.softsign([-1.0, 0.0, 3.0])).tolist()
    [-0.5, 0.0, 0.75]
    """
    if is_half(x):
        return in_float32(softsign, x)
    return ops.divide(x, ops.add(ops.abs(x), 1))


@derived(REAL_FLOATING)
def glu(x: TensorLike, axis: int = -1) -> Tensor:
    """The first half of ``x`` along ``axis``, times the ``sigmoid`` of the second.

    An axis of odd length is a ``ValueError``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.glu([4.0, 6.0, 0.0, 0.0])).tolist()
    [2.0, 3.0]
    """
    if is_half(x):
        return in_float32(glu, x, axis)
    size = x.shape[axis_of(axis, x.ndim)]
    if size % 2:
        raise ValueError(f"glu halves its axis {axis}, whose length {size} is odd")
    values, gates = ops.split(x, 2, axis)
    return ops.multiply(values, sigmoid(gates))


@derived(REAL_FLOATING)
def softmax(x: TensorLike, axis: AxisLike | None = -1) -> Tensor:
    """``exp(x)`` divided by its sum along ``axis``, along several of them together, or along all with ``axis=None``.

    Where all of a slice is minus infinity, or any of it plus infinity or NaN, it is NaN.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.softmax([0.0, 0.0])).tolist()
    [0.5, 0.5]
    >>> ops.to_numpy(ops.softmax([[0.0, 0.0], [0.0, 0.0]], axis=(0, 1))).tolist()
    [[0.25, 0.25], [0.25, 0.25]]
    """
    if is_half(x):
        return in_float32(softmax, x, axis)
    powers = ops.exp(_below_largest(x, axis))
    return ops.divide(powers, ops.sum(powers, axis=axis, keepdims=True))


def _softmax_vjp(g: Tensor, r: Tensor, axis: AxisLike | None) -> Tensor:
    if is_half(g):
        return in_float32(_softmax_vjp, g, r, axis)
    return ops.multiply(r, ops.subtract(g, ops.sum(ops.multiply(g, r), axis, keepdims=True)))


gradient(softmax, x=_softmax_vjp)


@derived(REAL_FLOATING)
def log_softmax(x: TensorLike, axis: AxisLike | None = -1) -> Tensor:
    """The logarithms of ``softmax(x)`` along the same axes, accurate where it is small.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.log_softmax([0.0])).tolist()
    [0.0]
    """
    if is_half(x):
        return in_float32(log_softmax, x, axis)
    below = _below_largest(x, axis)
    return ops.subtract(below, ops.log(ops.sum(ops.exp(below), axis=axis, keepdims=True)))


def _log_softmax_vjp(g: Tensor, r: Tensor, axis: AxisLike | None) -> Tensor:
    if is_half(g):
        return in_float32(_log_softmax_vjp, g, r, axis)
    return ops.subtract(g, ops.multiply(ops.exp(r), ops.sum(g, axis, keepdims=True)))


gradient(log_softmax, x=_log_softmax_vjp)


@derived(REAL_FLOATING)
def sparsemax(x: TensorLike, axis: int = -1) -> Tensor:
    """The probabilities along ``axis`` that are nearest to ``x``: those of low scores are exactly 0.

    Where all of a slice is minus infinity, or any of it plus infinity or NaN, it is NaN.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.sparsemax([0.5, 0.0, -2.0])).tolist()
    [0.75, 0.25, 0.0]
    """
    if is_half(x):
        return in_float32(sparsemax, x, axis)
    below = _below_largest(x, axis)
    axis = axis_of(axis, x.ndim)
    if not below.shape[axis]:
        return below
    ordered = ops.sort(below, axis=axis, descending=True)
    own = as_dtype(below.dtype)
    ranks = ops.cast(ops.arange(1, below.shape[axis] + 1, device=ops.get_device(below)), own)
    ranks = ops.reshape(ranks, (-1, *(1,) * (below.ndim - axis - 1)))
    is_in = ops.greater(ops.add(ops.multiply(ordered, ranks), 1), ops.cumsum(ordered, axis=axis))
    least = ops.min(ops.where(is_in, ordered, 0), axis=axis, keepdims=True)
    # the level is found anew from the scores themselves, so that no gradient goes through the sorting
    is_in = ops.greater_equal(below, least)
    count = ops.sum(ops.cast(is_in, own), axis=axis, keepdims=True)
    excess = ops.subtract(ops.sum(ops.where(is_in, below, 0), axis=axis, keepdims=True), 1)
    return ops.maximum(ops.subtract(below, ops.divide(excess, count)), 0)


def _clip(x: Tensor, low: float, high: float) -> Tensor:
    """Return ``x`` within limits; at a limit its slope is 0, whichever side the library would choose for ``clip``."""
    return ops.where(ops.less_equal(x, low), low, ops.where(ops.greater_equal(x, high), high, x))


def _below_largest(x: Tensor, axis: AxisLike | None) -> Tensor:
    """Return how far each element is below the largest of its slice."""
    return ops.subtract(x, ops.max(x, axis=axis, keepdims=True)) if math.prod(x.shape) else x


swish = silu
