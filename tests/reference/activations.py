"""References of the activations: their definitions in long double.

Errors are measured against the sum of the absolute terms of the definition, where that is more than the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import special

from tests.reference import arrays, broadcastable, shapes
from tests.reference.spec import spec, unary

Array = np.ndarray[Any, Any]


def _wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """Integers and bools enter as floats, as the contract lifts them."""

    def reference(x: Array, **settings: Any) -> Array:
        with np.errstate(all="ignore"):
            return function(x.astype(np.longdouble), **settings)

    return reference


def _size(x: Array, **settings: Any) -> Array:
    return np.abs(x.astype(np.longdouble))


def _negative(x: Array) -> Array:
    """The negative part, so that the exponential of the rest does not overflow."""
    return np.where(x > 0, 0, x)


def sigmoid(x: Array) -> Array:
    return np.where(x < 0, np.exp(_negative(x)) / (1 + np.exp(_negative(x))), 1 / (1 + np.exp(-x)))


def _silu(x: Array) -> Array:
    """Where the sigmoid is smaller than any normal number, at -88, libraries have 0: the scale allows for it."""
    return x * sigmoid(x)


def softplus(x: Array) -> Array:
    return np.where(x > 0, x, 0) + np.log1p(np.exp(-np.abs(x)))


def elu(x: Array, alpha: Any) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(_negative(x)))


def _gelu(x: Array, approximate: bool) -> Array:
    if approximate:
        root = np.sqrt(8 / np.longdouble("3.14159265358979323846264338327950288"))
        return x * sigmoid(root * (x + np.longdouble("0.044715") * x**3))
    return x * special.ndtr(x.astype(np.float64))


def _selu(x: Array) -> Array:
    scale, alpha = (
        np.longdouble(digits) for digits in ("1.0507009873554804934193349852946", "1.6732632423543772848170429916717")
    )
    return scale * elu(x, alpha)


def _with(name: str, settings: dict[str, st.SearchStrategy[Any]], reference: Callable[..., Any], **how: Any) -> None:
    """An activation of one tensor and of settings."""

    def draw(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
        return {"x": draw(arrays(dtype)), **{key: draw(strategy) for key, strategy in settings.items()}}

    spec(name, draw, _wide(reference), **how)


_EXACT = st.sampled_from((0.25, 0.5, 1.0, 2.0))  # numbers that every dtype holds
_POSITIVE = st.sampled_from((0.3, 1.0, 2.5))

unary(
    "relu",
    lambda x: np.where(x > 0, x, 0 * np.where(np.isinf(x), 0, x)) if x.dtype.kind == "f" else np.maximum(x, 0),
    ulps=0,
)
unary("relu6", lambda x: np.clip(x, 0, 6), ulps=0)
_with(
    "leaky_relu",
    {"negative_slope": _POSITIVE},
    lambda x, negative_slope: np.where(x > 0, x, x * negative_slope),
    ulps=1,
)
# JAX 0.10: its expm1 is up to 2.4 units off
_with("elu", {"alpha": _POSITIVE}, elu, ulps=3)
unary("selu", _wide(_selu), ulps=3)
_with("celu", {"alpha": _POSITIVE}, lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(_negative(x) / alpha)), ulps=3)
unary("sigmoid", _wide(sigmoid), ulps=3)
unary("log_sigmoid", _wide(lambda x: -softplus(-x)), ulps=3)
unary("hard_sigmoid", _wide(lambda x: np.clip(x + 3, 0, 6) / 6), ulps=2, scale=lambda x: 1 + 0 * _size(x))
unary("silu", _wide(_silu), ulps=4, scale=lambda x: np.abs(_wide(_silu)(x)) + 1e-31 * _size(x))
unary("hard_silu", _wide(lambda x: x * np.clip(x + 3, 0, 6) / 6), ulps=2, scale=_size)
_with("gelu", {"approximate": st.booleans()}, _gelu, ulps=4, scale=_size)
unary("mish", _wide(lambda x: x * np.tanh(softplus(x))), ulps=4)
unary("hard_tanh", _wide(lambda x: np.clip(x, -1, 1)), ulps=0)
unary("tanh_shrink", _wide(lambda x: x - np.tanh(x)), ulps=2, scale=_size)
_with("hard_shrink", {"threshold": _EXACT}, lambda x, threshold: np.where(np.abs(x) <= threshold, 0, x), ulps=0)
_with(
    "soft_shrink",
    {"threshold": _EXACT},
    lambda x, threshold: np.where(np.abs(x) <= threshold, 0, x - np.sign(x) * threshold),
    ulps=1,
)
_with(
    "threshold",
    {"threshold": _EXACT, "default_value": _EXACT},
    lambda x, threshold, default_value: np.where(x <= threshold, default_value, x),
    ulps=0,
)
unary("softplus", _wide(softplus), ulps=3)
_with(
    "squareplus",
    {"b": _POSITIVE},
    lambda x, b: np.where(
        x > 0, x / 2 + np.hypot(x, np.sqrt(np.longdouble(b))) / 2, b / 2 / (np.hypot(x, np.sqrt(np.longdouble(b))) - x)
    ),
    ulps=4,
)
unary("softsign", _wide(lambda x: x / (1 + np.abs(x))), ulps=2)


def _weights(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    first, second = draw(broadcastable(2))
    return {"x": draw(arrays(dtype, first)), "weight": draw(arrays(dtype, second, finite=True, low=-4.0, high=4.0))}


def _prelu(x: Array, weight: Array) -> Array:
    x, weight = x.astype(np.longdouble), weight.astype(np.longdouble)
    with np.errstate(invalid="ignore"):
        return np.where(x > 0, x, weight * np.where(x > 0, 0, x))


spec("prelu", _weights, _prelu, ulps=1)


def _along_axis(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=1)))
    return {"x": x, "axis": draw(st.integers(-x.ndim, x.ndim - 1))}


def _of_even_length(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=1), finite=True))  # infinity times a vanishing gate has no value
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    return {"x": np.concatenate((x, x[::-1]), axis), "axis": axis}


def _glu(x: Array, axis: int) -> Array:
    values, gates = np.split(x, 2, axis)
    return values * sigmoid(gates)


def _glu_scale(x: Array, axis: int) -> Array:
    return np.abs(_wide(_glu)(x, axis=axis)) + 1e-31 * _size(np.split(x, 2, axis)[0])


spec("glu", _of_even_length, _wide(_glu), ulps=4, scale=_glu_scale)


def softmax(x: Array, axis: Any) -> Array:
    if not x.size:
        return x
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def _log_softmax(x: Array, axis: Any) -> Array:
    if not x.size:
        return x
    below = x - x.max(axis=axis, keepdims=True)
    return below - np.log(np.exp(below).sum(axis=axis, keepdims=True))


def _sparsemax_of_row(row: Array) -> Array:
    """The level at which the parts above it sum to 1, found by trying every number of scores above it."""
    if np.isnan(row).any() or np.isposinf(row).any() or np.isneginf(row).all():
        return np.full(row.shape, np.nan)
    ordered = np.sort(row - row.max())[::-1]
    for count in range(1, len(row) + 1):
        level = (ordered[:count].sum() - 1) / count
        if count == len(row) or ordered[count] <= level:
            break
    return np.maximum(row - row.max() - level, 0)


def _sparsemax(x: Array, axis: int) -> Array:
    return np.apply_along_axis(_sparsemax_of_row, axis, x) if x.size else x


def _magnified(x: Array, axis: Any) -> Array:
    """The rounding of ``x - max(x)`` is magnified by its exponential."""
    wide = np.where(np.isfinite(x), x, 0).astype(np.longdouble)
    return _wide(softmax)(x, axis=axis) * (1 + wide.max(axis=axis, keepdims=True, initial=0) - wide)


def _largest(x: Array, axis: Any) -> Any:
    return np.where(np.isfinite(x), np.abs(x), 0).max(initial=1.0)


def _along_axes(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    drawn = _along_axis(draw, dtype)
    several = st.lists(st.integers(0, drawn["x"].ndim - 1), unique=True).map(tuple)
    return drawn | {"axis": draw(st.one_of(st.just(drawn["axis"]), st.none(), several))}


spec("softmax", _along_axes, _wide(softmax), ulps=8, scale=_magnified)
spec("log_softmax", _along_axes, _wide(_log_softmax), ulps=8, scale=_largest)
spec("sparsemax", _along_axis, _wide(_sparsemax), ulps=4, scale=lambda x, axis: 1.0)
