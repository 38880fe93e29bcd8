"""References of the normalizations: their definitions in long double, errors against the sum of the absolute terms."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.reference import arrays, close, shapes
from tests.reference.spec import law, spec

Array = np.ndarray[Any, Any]


def _wide(x: Any) -> Any:
    return None if x is None else x.astype(np.longdouble)


def _spread(parameter: Array, x: Array, axes: tuple[int, ...]) -> Array:
    return parameter.astype(np.longdouble).reshape([n if i in axes else 1 for i, n in enumerate(x.shape)])


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    return tuple(sorted(a % ndim for a in (axis if isinstance(axis, tuple) else (axis,))))


def _moments(x: Array, axes: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """The mean, the variance, and the mean of the magnitudes."""
    with np.errstate(all="ignore"):
        count = np.prod([x.shape[a] for a in axes])
        mean = x.sum(axis=axes, keepdims=True) / count
        variance = ((x - mean) ** 2).sum(axis=axes, keepdims=True) / count
        return mean, variance, np.abs(x).sum(axis=axes, keepdims=True) / count


def layer_normalization(x: Array, gamma: Any, beta: Any, axis: Any, epsilon: float) -> Array:
    x, axes = _wide(x), _axes(axis, x.ndim)
    mean, variance, _ = _moments(x, axes)
    result = (x - mean) / np.sqrt(variance + epsilon)
    result = result if gamma is None else result * _spread(gamma, x, axes)
    return result if beta is None else result + _spread(beta, x, axes)


def _layer_scale(x: Array, gamma: Any, beta: Any, axis: Any, epsilon: float) -> Array:
    x, axes = _wide(x), _axes(axis, x.ndim)
    _, variance, size = _moments(x, axes)
    result = (np.abs(x) + size) / np.sqrt(variance + epsilon)
    result = result if gamma is None else result * np.abs(_spread(gamma, x, axes))
    return result if beta is None else result + np.abs(_spread(beta, x, axes))


def _numbers(draw: st.DrawFn, dtype: str, shape: Any) -> Array:
    """Numbers whose squares float32 can hold, often with an offset that is large beside their differences."""
    x = draw(arrays(dtype, shape, finite=True, low=-200.0, high=200.0))
    factor, offset = draw(st.sampled_from(((1, 0), (0.01, 50), (1, 1000), (0, 3), (100, 0))))
    if not dtype.startswith(("float", "bfloat")):
        return x
    return (x.astype(np.float64) * factor + offset).astype(x.dtype)


def _parameter(draw: st.DrawFn, dtype: str, shape: tuple[int, ...]) -> Array | None:
    return draw(st.none() | arrays(dtype, shape, finite=True, low=-4.0, high=4.0))


def _layer(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = _numbers(draw, dtype, shapes(min_dims=1))
    one = st.integers(-x.ndim, x.ndim - 1)
    several = st.lists(st.integers(0, x.ndim - 1), unique=True, min_size=1).map(tuple)
    axis = draw(st.one_of(st.just(-1), one, several))
    lengths = tuple(x.shape[a] for a in _axes(axis, x.ndim))
    gamma, beta = _parameter(draw, dtype, lengths), _parameter(draw, dtype, lengths)
    return {"x": x, "gamma": gamma, "beta": beta, "axis": axis, "epsilon": draw(st.sampled_from((1e-7, 1e-3)))}


spec("layer_normalization", _layer, layer_normalization, ulps=8, scale=_layer_scale)


def _rms(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    drawn = _layer(draw, dtype)
    return {"x": drawn["x"], "scale": drawn["gamma"], "axis": drawn["axis"], "epsilon": drawn["epsilon"]}


def rms_normalization(x: Array, scale: Any, axis: Any, epsilon: float) -> Array:
    x, axes = _wide(x), _axes(axis, x.ndim)
    with np.errstate(all="ignore"):
        mean = (x**2).sum(axis=axes, keepdims=True) / np.prod([x.shape[a] for a in axes])
        result = x / np.sqrt(mean + epsilon)
    return result if scale is None else result * _spread(scale, x, axes)


spec("rms_normalization", _rms, rms_normalization, ulps=4)


def _batch(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = _numbers(draw, dtype, shapes(min_dims=1))
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    lengths = (x.shape[axis],)
    return {
        "x": x,
        "mean": draw(arrays(dtype, lengths, finite=True, low=-200.0, high=200.0)),
        "variance": draw(arrays(dtype, lengths, finite=True, low=0.0, high=100.0)),
        "axis": axis,
        "offset": _parameter(draw, dtype, lengths),
        "scale": _parameter(draw, dtype, lengths),
        "epsilon": draw(st.sampled_from((1e-3, 1e-5))),
    }


def _batch_normalization(
    x: Array, mean: Array, variance: Array, axis: int, offset: Any, scale: Any, epsilon: float, sign: int = -1
) -> Array:
    x, axes = _wide(x), _axes(axis, x.ndim)
    result = (x + sign * _spread(mean, x, axes)) / np.sqrt(_spread(variance, x, axes) + epsilon)
    result = result if scale is None else result * _spread(scale, x, axes)
    return result if offset is None else result + _spread(offset, x, axes)


def _batch_scale(**arguments: Any) -> Array:
    plain = {key: np.abs(_wide(value)) if isinstance(value, np.ndarray) else value for key, value in arguments.items()}
    return _batch_normalization(**plain, sign=1)


spec("batch_normalization", _batch, _batch_normalization, ulps=4, scale=_batch_scale)


def _own(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = _numbers(draw, dtype, shapes(min_dims=1, min_side=1))
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    lengths = (x.shape[axis],)
    offset, scale = _parameter(draw, dtype, lengths), _parameter(draw, dtype, lengths)
    return {"x": x, "axis": axis, "offset": offset, "scale": scale, "epsilon": draw(st.sampled_from((1e-3, 1e-5)))}


def _own_moments(x: Array, axis: int) -> tuple[tuple[int, ...], Array, Array, Array]:
    axes = tuple(i for i in range(x.ndim) if i != axis % x.ndim)
    return axes, *_moments(x, axes)


def moments_normalization(x: Array, axis: int, offset: Any, scale: Any, epsilon: float) -> Any:
    x = _wide(x)
    axes, mean, variance, _ = _own_moments(x, axis)
    mean, variance = mean.squeeze(axes), variance.squeeze(axes)
    return _batch_normalization(x, mean, variance, axis, offset, scale, epsilon), mean, variance


def largest_difference(got: Array, wanted: Array) -> float:
    return float(np.abs(_wide(got) - wanted).max())


def moments_normalization_slopes(x: Array, g: Array, scale: Array, epsilon: float) -> tuple[Array, Array, Array]:
    """Return the vjp by x, offset and scale for channels that come last, in closed form.

    By x it is what is left of ``g`` without its mean and its part along the normalized numbers.
    """
    x = _wide(x)
    variance = x.var(axis=0) + epsilon
    normal = (x - x.mean(axis=0)) / np.sqrt(variance)
    rest = g - g.mean(axis=0) - normal * (g * normal).mean(axis=0)
    return scale / np.sqrt(variance) * rest, g.sum(axis=0), (g * normal).sum(axis=0)


def _own_scale(x: Array, axis: int, offset: Any, scale: Any, epsilon: float) -> Any:
    x = _wide(x)
    axes, _, variance, size = _own_moments(x, axis)
    size, variance = size.squeeze(axes), variance.squeeze(axes)
    offset, scale = (y if y is None else np.abs(y) for y in (offset, scale))
    result = _batch_normalization(np.abs(x), size, variance, axis, offset, scale, epsilon, sign=1)
    return result, size, variance + size**2


def _own_fault(results: list[Array], **arguments: Any) -> str | None:
    """Each result against its own terms."""
    wanted, scales = moments_normalization(**arguments), _own_scale(**arguments)
    faults = (close(got, want, 8, scale) for got, want, scale in zip(results, wanted, scales, strict=True))
    return next((fault for fault in faults if fault), None)


law("moments_normalization", _own, _own_fault)


def _grouped(x: Array, groups: int, axis: int) -> tuple[Array, tuple[int, ...], tuple[int, ...]]:
    """The tensor with an axis of groups, the axes that are normalized together, and the axis of the channels."""
    place = axis % x.ndim
    grouped = x.reshape((*x.shape[:place], groups, x.shape[place] // groups, *x.shape[place + 1 :]))
    return grouped, tuple(a for a in range(1, grouped.ndim) if a != place), (place,)


def group_normalization(x: Array, groups: int, gamma: Any, beta: Any, axis: int, epsilon: float) -> Array:
    grouped, axes, channels = _grouped(_wide(x), groups, axis)
    mean, variance, _ = _moments(grouped, axes)
    result = ((grouped - mean) / np.sqrt(variance + epsilon)).reshape(x.shape)
    result = result if gamma is None else result * _spread(gamma, x, channels)
    return result if beta is None else result + _spread(beta, x, channels)


def _group_scale(x: Array, groups: int, gamma: Any, beta: Any, axis: int, epsilon: float) -> Array:
    grouped, axes, channels = _grouped(_wide(x), groups, axis)
    _, variance, size = _moments(grouped, axes)
    result = ((np.abs(grouped) + size) / np.sqrt(variance + epsilon)).reshape(x.shape)
    result = result if gamma is None else result * np.abs(_spread(gamma, x, channels))
    return result if beta is None else result + np.abs(_spread(beta, x, channels))


def _group(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    groups, each = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    shape = list(draw(shapes(min_dims=2, max_dims=4)))
    axis = draw(st.integers(1, len(shape) - 1))
    shape[axis] = groups * each
    x = _numbers(draw, dtype, tuple(shape))
    gamma, beta = _parameter(draw, dtype, (groups * each,)), _parameter(draw, dtype, (groups * each,))
    axis = draw(st.sampled_from((axis, axis - x.ndim)))
    epsilon = draw(st.sampled_from((1e-5, 1e-3)))
    return {"x": x, "groups": groups, "gamma": gamma, "beta": beta, "axis": axis, "epsilon": epsilon}


spec("group_normalization", _group, group_normalization, ulps=8, scale=_group_scale)
