"""Normalizations: numbers moved to mean 0 and scaled to variance 1, over chosen dimensions.

Half precision is computed in float32 and rounded once. The variance is the mean square of the differences from the
mean, so that a large offset does not swallow it; the squares themselves overflow beyond 1e19 in float32.
"""

from __future__ import annotations

from ember_ml import ops
from ember_ml.backend.common.axes import axes_of, axis_of
from ember_ml.backend.common.normalization import channel_axis, spread_shape
from ember_ml.core.dtypes import as_dtype
from ember_ml.dispatch.declare import derived, gradient
from ember_ml.dispatch.dtype_rules import REAL_FLOATING
from ember_ml.dispatch.half_precision import in_float32, is_half
from ember_ml.typing import AxisLike, Tensor, TensorLike

__all__ = [
    "batch_normalization",
    "group_normalization",
    "layer_normalization",
    "moments_normalization",
    "rms_normalization",
]


@derived(REAL_FLOATING)
def layer_normalization(
    x: TensorLike,
    gamma: TensorLike | None = None,
    beta: TensorLike | None = None,
    axis: AxisLike = -1,
    epsilon: float = 1e-7,
) -> Tensor:
    """``(x - mean) / sqrt(variance + epsilon) * gamma + beta`` with the mean and variance over ``axis``.

    ``gamma`` and ``beta`` have the lengths of ``x`` along ``axis``, in the order of its dimensions.

    >>> from ember_ml import ops
    >>> x = [[1.0, 3.0], [10.0, 30.0]]
    >>> ops.to_numpy(ops.round(ops.layer_normalization(x), 3)).tolist()
    [[-1.0, 1.0], [-1.0, 1.0]]
    >>> ops.to_numpy(ops.round(ops.layer_normalization(x, gamma=[2.0, 3.0], beta=[0.0, 1.0]), 3)).tolist()
    [[-2.0, 4.0], [-2.0, 4.0]]
    """
    if is_half(x):
        return in_float32(layer_normalization, x, gamma, beta, axis, epsilon)
    axes = axes_of(axis, x.ndim)
    deviation = ops.subtract(x, ops.mean(x, axis=axes, keepdims=True))
    return _affine(_at_unit_size(deviation, axes, epsilon), gamma, beta, axes)


def _layer_by_x(g: Tensor, x: Tensor, gamma: Tensor | None, axis: AxisLike, epsilon: float) -> Tensor:
    if is_half(x):
        return in_float32(_layer_by_x, g, x, gamma, axis, epsilon)
    axes = axes_of(axis, x.ndim)
    deviation = ops.subtract(x, ops.mean(x, axis=axes, keepdims=True))
    found = _unit_size_vjp(g, deviation, gamma, axes, epsilon)
    return ops.subtract(found, ops.mean(found, axis=axes, keepdims=True))


def _layer_by_gamma(g: Tensor, x: Tensor, _gamma: Tensor, axis: AxisLike, epsilon: float) -> Tensor:
    axes = axes_of(axis, x.ndim)
    return _sum_onto(ops.multiply(g, layer_normalization(x, axis=axes, epsilon=epsilon)), _gamma, axes)


gradient(
    layer_normalization,
    x=_layer_by_x,
    gamma=_layer_by_gamma,
    beta=lambda g, _x, _beta, axis: _sum_onto(g, _beta, axes_of(axis, _x.ndim)),
)


@derived(REAL_FLOATING)
def rms_normalization(
    x: TensorLike, scale: TensorLike | None = None, axis: AxisLike = -1, epsilon: float = 1e-7
) -> Tensor:
    """``x / sqrt(mean(x**2) + epsilon) * scale`` with the mean over ``axis``.

    ``scale`` has the lengths of ``x`` along ``axis``, in the order of its dimensions.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.round(ops.rms_normalization([[1.0, -1.0], [30.0, -30.0]], [1.0, 5.0]), 3)).tolist()
    [[1.0, -5.0], [1.0, -5.0]]
    """
    if is_half(x):
        return in_float32(rms_normalization, x, scale, axis, epsilon)
    axes = axes_of(axis, x.ndim)
    result = _at_unit_size(x, axes, epsilon)
    return result if scale is None else ops.multiply(result, _spread(scale, "scale", x, axes))


def _rms_by_x(g: Tensor, x: Tensor, scale: Tensor | None, axis: AxisLike, epsilon: float) -> Tensor:
    if is_half(x):
        return in_float32(_rms_by_x, g, x, scale, axis, epsilon)
    return _unit_size_vjp(g, x, scale, axes_of(axis, x.ndim), epsilon)


def _rms_by_scale(g: Tensor, x: Tensor, _scale: Tensor, axis: AxisLike, epsilon: float) -> Tensor:
    axes = axes_of(axis, x.ndim)
    return _sum_onto(ops.multiply(g, rms_normalization(x, axis=axes, epsilon=epsilon)), _scale, axes)


gradient(rms_normalization, x=_rms_by_x, scale=_rms_by_scale)


@derived(REAL_FLOATING)
def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    axis: int,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    epsilon: float = 1e-3,
) -> Tensor:
    """``(x - mean) / sqrt(variance + epsilon) * scale + offset``, one mean and variance for each place along ``axis``.

    >>> from ember_ml import ops
    >>> x = [[1.0, 20.0], [3.0, 60.0]]
    >>> found = ops.batch_normalization(x, [2.0, 40.0], [1.0, 400.0], axis=-1, offset=[0.0, 1.0], epsilon=0.0)
    >>> ops.to_numpy(found).tolist()
    [[-1.0, 0.0], [1.0, 2.0]]
    """
    if is_half(x):
        return in_float32(batch_normalization, x, mean, variance, axis, offset, scale, epsilon)
    axes = (axis_of(axis, x.ndim),)
    factor = ops.rsqrt(ops.add(_spread(variance, "variance", x, axes), epsilon))
    if scale is not None:
        factor = ops.multiply(factor, _spread(scale, "scale", x, axes))
    result = ops.multiply(ops.subtract(x, _spread(mean, "mean", x, axes)), factor)
    return result if offset is None else ops.add(result, _spread(offset, "offset", x, axes))


@derived(REAL_FLOATING)
def moments_normalization(
    x: TensorLike,
    axis: int = -1,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    epsilon: float = 1e-3,
) -> tuple[Tensor, Tensor, Tensor]:
    """A :func:`batch_normalization` by the mean and variance of ``x`` itself, and these two.

    There is one mean and variance for each place along ``axis``, over all other axes. The result has its whole
    gradient; the mean and variance that are given with it are constants to every gradient, as running averages want.

    >>> from ember_ml import ops
    >>> found, mean, variance = ops.moments_normalization([[1.0, 20.0], [3.0, 60.0]], offset=[0.0, 1.0], epsilon=0.0)
    >>> ops.to_numpy(found).tolist()
    [[-1.0, 0.0], [1.0, 2.0]]
    >>> ops.to_numpy(mean).tolist(), ops.to_numpy(variance).tolist()
    ([2.0, 40.0], [1.0, 400.0])
    """
    if is_half(x):
        wide_offset, wide_scale = (y if y is None else ops.cast(y, "float32") for y in (offset, scale))
        found = moments_normalization(ops.cast(x, "float32"), axis, wide_offset, wide_scale, epsilon)
        result, mean, variance = (ops.cast(part, as_dtype(x.dtype)) for part in found)
        return result, mean, variance
    place = axis_of(axis, x.ndim)
    axes = _all_but(place, x)
    mean = ops.mean(x, axis=axes, keepdims=True)
    deviation = ops.subtract(x, mean)
    variance = ops.mean(ops.square(deviation), axis=axes, keepdims=True)
    factor = ops.rsqrt(ops.add(variance, epsilon))
    if scale is not None:
        factor = ops.multiply(factor, _spread(scale, "scale", x, (place,)))
    result = ops.multiply(deviation, factor)
    result = result if offset is None else ops.add(result, _spread(offset, "offset", x, (place,)))
    mean, variance = (ops.stop_gradient(ops.reshape(part, (x.shape[place],))) for part in (mean, variance))
    return result, mean, variance


def _moments_by_x(g: Tensor, x: Tensor, scale: Tensor | None, axis: int, epsilon: float) -> Tensor:
    if is_half(x):
        return in_float32(_moments_by_x, g, x, scale, axis, epsilon)
    place = axis_of(axis, x.ndim)
    axes = _all_but(place, x)
    if scale is not None:
        g = ops.multiply(g, _spread(scale, "scale", x, (place,)))
    deviation = ops.subtract(x, ops.mean(x, axis=axes, keepdims=True))
    found = _unit_size_vjp(g, deviation, None, axes, epsilon)
    return ops.subtract(found, ops.mean(found, axis=axes, keepdims=True))


def _moments_by_scale(g: Tensor, x: Tensor, _scale: Tensor, axis: int, epsilon: float) -> Tensor:
    unit = moments_normalization(x, axis, epsilon=epsilon)[0]
    return _sum_onto(ops.multiply(g, unit), _scale, (axis_of(axis, x.ndim),))


gradient(
    moments_normalization,
    constants=True,
    x=_moments_by_x,
    offset=lambda g, _x, _offset, axis: _sum_onto(g, _offset, (axis_of(axis, _x.ndim),)),
    scale=_moments_by_scale,
)


@derived(REAL_FLOATING)
def group_normalization(
    x: TensorLike,
    groups: int,
    gamma: TensorLike | None = None,
    beta: TensorLike | None = None,
    axis: int = -1,
    epsilon: float = 1e-5,
) -> Tensor:
    """``(x - mean) / sqrt(variance + epsilon) * gamma + beta`` with the mean and variance over groups of channels.

    ``axis`` is that of the channels, which are split into ``groups`` of equal size; the first axis is that of the
    samples, each of which is normalized by itself. ``gamma`` and ``beta`` have one number for each channel.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.round(ops.group_normalization([[1.0, 3.0, 10.0, 30.0]], 2), 3)).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """
    if is_half(x):
        return in_float32(group_normalization, x, groups, gamma, beta, axis, epsilon)
    place = channel_axis(x.shape, groups, axis)
    size = x.shape[place]
    grouped = ops.reshape(x, (*x.shape[:place], groups, size // groups, *x.shape[place + 1 :]))
    axes = tuple(i for i in range(1, grouped.ndim) if i != place)
    deviation = ops.subtract(grouped, ops.mean(grouped, axis=axes, keepdims=True))
    return _affine(ops.reshape(_at_unit_size(deviation, axes, epsilon), tuple(x.shape)), gamma, beta, (place,))


def _all_but(place: int, x: Tensor) -> tuple[int, ...]:
    return tuple(i for i in range(x.ndim) if i != place)


def _at_unit_size(x: Tensor, axes: tuple[int, ...], epsilon: float) -> Tensor:
    """Return ``x`` divided by the root of its mean square over ``axes``."""
    return ops.multiply(x, ops.rsqrt(ops.add(ops.mean(ops.square(x), axis=axes, keepdims=True), epsilon)))


def _unit_size_vjp(g: Tensor, x: Tensor, factor: Tensor | None, axes: tuple[int, ...], epsilon: float) -> Tensor:
    """Return the gradient with respect to ``x`` of what :func:`_at_unit_size` makes of it, times ``factor``."""
    if factor is not None:
        g = ops.multiply(g, _spread(factor, "factor", x, axes))
    inverse = ops.rsqrt(ops.add(ops.mean(ops.square(x), axis=axes, keepdims=True), epsilon))
    unit = ops.multiply(x, inverse)
    along = ops.mean(ops.multiply(g, unit), axis=axes, keepdims=True)
    return ops.multiply(ops.subtract(g, ops.multiply(unit, along)), inverse)


def _sum_onto(g: Tensor, parameter: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return the sum of ``g`` over all places that share a number of ``parameter``."""
    others = tuple(axis for axis in range(g.ndim) if axis not in axes)
    return ops.reshape(ops.sum(g, axis=others) if others else g, tuple(parameter.shape))


def _affine(x: Tensor, gamma: Tensor | None, beta: Tensor | None, axes: tuple[int, ...]) -> Tensor:
    if gamma is not None:
        x = ops.multiply(x, _spread(gamma, "gamma", x, axes))
    return x if beta is None else ops.add(x, _spread(beta, "beta", x, axes))


def _spread(parameter: Tensor, name: str, x: Tensor, axes: tuple[int, ...]) -> Tensor:
    return ops.reshape(parameter, spread_shape(parameter, name, x.shape, axes))
