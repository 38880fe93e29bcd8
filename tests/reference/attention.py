"""Attention and rotation by position, from their definitions, in wide precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.reference import arrays
from tests.reference.spec import spec

__all__ = ["attention", "attention_scale", "rotated", "rotation_scale"]

LIMITS: dict[str, Any] = {"finite": True, "low": -3.0, "high": 3.0}


def _wide(x: Any) -> np.ndarray:
    return np.asarray(x).astype(np.longdouble)


def _weighted(
    query: Any, key: Any, value: Any, bias: Any, mask: Any, scale: Any, is_causal: bool, with_sizes: bool
) -> np.ndarray:
    """The result; or, with sizes, what its rounding errors are measured against.

    An error of a score, whose terms are the products of elements, changes the weights by that part of them.
    """
    query, key, value = _wide(query), _wide(key), _wide(value)
    (queries, heads, dim), (keys, groups) = query.shape[1:], key.shape[1:3]
    key, value = (np.repeat(x, heads // groups, axis=2) for x in (key, value))
    scale = np.longdouble(dim) ** -0.5 if scale is None else np.longdouble(scale)
    bias = _wide(0.0 if bias is None else bias)
    scores = np.einsum("bihd,bjhd->bhij", query, key) * scale + bias
    seen = np.broadcast_to(True if mask is None else np.asarray(mask), scores.shape)
    if is_causal:
        seen = seen & (np.arange(keys) <= np.arange(queries)[:, np.newaxis] + keys - queries)
    scores = np.where(seen, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.inf))
        weights = np.where(np.isfinite(scores), weights, 0)
        total = weights.sum(axis=-1, keepdims=True)
    weights = weights / np.where(total == 0, 1, total)
    if with_sizes:
        sizes = np.einsum("bihd,bjhd->bhij", np.abs(query), np.abs(key)) * np.abs(scale)
        sizes = sizes + np.where(np.isfinite(bias), np.abs(bias), 0)
        weights, value = weights * (1 + sizes.max(axis=-1, keepdims=True, initial=0)), np.abs(value)
    return np.einsum("bhij,bjhd->bihd", weights, value)


def attention(
    query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, scale: Any = None, is_causal: bool = False
) -> np.ndarray:
    return _weighted(query, key, value, bias, mask, scale, is_causal, False)


def attention_scale(
    query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, scale: Any = None, is_causal: bool = False
) -> np.ndarray:
    return _weighted(query, key, value, bias, mask, scale, is_causal, True)


def rotated(
    x: Any,
    positions: Any = None,
    axis: int = 1,
    base: float = 10000.0,
    scale: float = 1.0,
    offset: int = 0,
    interleaved: bool = False,
    frequencies: Any = None,
) -> np.ndarray:
    x = _wide(x)
    axis, size = axis % x.ndim, x.shape[-1]
    places = np.arange(x.shape[axis]) if positions is None else np.asarray(positions)
    rates = np.longdouble(base) ** (-2 * np.arange(size // 2, dtype=np.longdouble) / size)
    rates = rates if frequencies is None else _wide(frequencies)
    angles = np.multiply.outer(_wide(places) + offset, rates * np.longdouble(scale))
    angles = angles.reshape(*places.shape, *(1,) * (x.ndim - axis - 2), size // 2)
    turns = np.exp(1j * angles.astype(np.clongdouble))
    pairs = np.stack((x[..., ::2], x[..., 1::2]) if interleaved else np.split(x, 2, axis=-1), axis=-1)
    turned = (pairs[..., 0] + 1j * pairs[..., 1]) * turns
    both = np.stack((turned.real, turned.imag), axis=-1 if interleaved else -2)
    return both.reshape(x.shape)


def rotation_scale(x: Any, interleaved: bool = False, **_: Any) -> np.ndarray:
    """The sum of the absolute values of each pair."""
    sizes, half = np.abs(_wide(x)), x.shape[-1] // 2
    if interleaved:
        return np.repeat(sizes[..., ::2] + sizes[..., 1::2], 2, axis=-1)
    return np.concatenate([sizes[..., :half] + sizes[..., half:]] * 2, axis=-1)


def _attention(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    batch, queries, keys = draw(st.integers(0, 2)), draw(st.integers(0, 4)), draw(st.integers(0, 4))
    groups, dim, width = draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    heads = groups * draw(st.integers(1, 2))
    scores = (batch, heads, queries, keys)

    def part() -> tuple[int, ...]:
        shape = [draw(st.sampled_from((1, n))) for n in scores]
        return tuple(shape[draw(st.integers(0, 4)) :])

    return {
        "query": draw(arrays(dtype, (batch, queries, heads, dim), **LIMITS)),
        "key": draw(arrays(dtype, (batch, keys, groups, dim), **LIMITS)),
        "value": draw(arrays(dtype, (batch, keys, groups, width), **LIMITS)),
        "bias": draw(arrays(dtype, part(), **LIMITS)) if draw(st.booleans()) else None,
        "mask": draw(arrays("bool", part())) if draw(st.booleans()) else None,
        "scale": draw(st.sampled_from((None, 0.5))),
        "is_causal": draw(st.booleans()),
    }


def _rotation(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    shape = (
        draw(st.integers(0, 2)),
        draw(st.integers(0, 4)),
        *[2] * draw(st.integers(0, 1)),
        2 * draw(st.integers(1, 3)),
    )
    places = draw(st.sampled_from((None, shape[1:2], shape[:2])))
    return {
        "x": draw(arrays(dtype, shape, finite=True, low=-50.0, high=50.0)),
        "positions": None if places is None else draw(arrays("int32", places, low=-2, high=4)),
        "base": draw(st.sampled_from((10000.0, 100.0))),
        "scale": draw(st.sampled_from((1.0, 0.25))),
        "offset": draw(st.integers(0, 3)),
        "interleaved": draw(st.booleans()),
    }


spec("dot_product_attention", _attention, attention, ulps=4, scale=attention_scale)
spec("rotary_embedding", _rotation, rotated, ulps=4, scale=rotation_scale)
