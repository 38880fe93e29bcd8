"""Attention, and the rotation of vectors by their positions.

Queries, keys and values are (batch, length, heads, dim). Half precision is computed in float32 and rounded once; it
does not mix with wider floats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.attention import attend, by_groups, check_attention, scale_of
from ember_ml.backend.common.axes import axis_of
from ember_ml.core.dtypes import as_dtype
from ember_ml.dispatch.declare import derived, gradient
from ember_ml.dispatch.dtype_rules import REAL_CONTRACTION, REAL_FLOATING
from ember_ml.dispatch.half_precision import in_float32, is_half
from ember_ml.typing import IndexLike, MaskLike, Tensor, TensorLike

__all__ = ["dot_product_attention", "rotary_embedding"]


@derived(REAL_CONTRACTION)
def dot_product_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    bias: TensorLike | None = None,
    mask: MaskLike | None = None,
    scale: float | None = None,
    is_causal: bool = False,
) -> Tensor:
    """The averages of the values, weighted for each query by the softmax of its products with the keys.

    All are (batch, length, heads, dim); value may have a dim of its own, and so has the result. Key and value may have
    fewer heads than query: each of theirs then serves as many neighbouring heads of query. The products are multiplied
    by ``scale``, 1 / sqrt(dim) by default, and ``bias`` is added to them. A query sees the keys for which ``mask`` is
    true; bias and mask broadcast to (batch, heads, queries, keys). With ``is_causal`` it also sees no key that comes
    after it, where the last query stands at the last key: so a few new queries see all of a cache. A query that sees no
    key gets zeros.

    >>> from ember_ml import ops
    >>> query, key = ops.ones((1, 2, 1, 4)), ops.ones((1, 2, 1, 4))
    >>> value = ops.reshape(ops.array([1.0, 3.0]), (1, 2, 1, 1))
    >>> ops.to_numpy(ops.dot_product_attention(query, key, value)).ravel().tolist()
    [2.0, 2.0]
    >>> ops.to_numpy(ops.dot_product_attention(query, key, value, is_causal=True)).ravel().tolist()
    [1.0, 2.0]
    """
    check_attention(query.shape, key.shape, value.shape, bias, mask)
    if is_half(query):
        return in_float32(dot_product_attention, query, key, value, bias, mask, scale, is_causal)
    mask = _with_past(mask, query, key) if is_causal else mask
    return attend(ops, query, key, value, bias, mask, scale_of(scale, query.shape))


def _with_past(mask: Tensor | None, query: Tensor, key: Tensor) -> Tensor:
    """Return the mask, less the keys that come after a query."""
    queries, keys = query.shape[1], key.shape[1]
    past = ops.tri(queries, keys, keys - queries, dtype="bool", device=ops.get_device(query))
    return past if mask is None else ops.logical_and(mask, past)


class _Backwards:
    """The gradients of an attention, by heads of key: (batch, heads of key, heads of query for each, length, dim)."""

    def __init__(
        self,
        g: Tensor,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        mask: Tensor | None,
        scale: float | None,
        is_causal: bool,
    ) -> None:
        self.heads, self.scale = key.shape[2], scale_of(scale, query.shape)
        self.query, self.key, self.value = self._split_heads(query), self._split_heads(key), self._split_heads(value)
        self.g = self._split_heads(g)
        scores = ops.matmul(ops.multiply(self.query, self.scale), ops.swapaxes(self.key, -1, -2))
        if bias is not None:
            scores = ops.add(scores, by_groups(ops, bias, self.heads))
        mask = _with_past(mask, query, key) if is_causal else mask
        if mask is not None:
            scores = ops.where(by_groups(ops, mask, self.heads), scores, -math.inf)
        is_seen = ops.greater(scores, -math.inf)
        scores = ops.where(ops.any(is_seen, axis=-1, keepdims=True), scores, 0.0)
        self.weights = ops.where(is_seen, ops.softmax(scores), 0.0)
        slopes = ops.matmul(self.g, ops.swapaxes(self.value, -1, -2))
        total = ops.sum(ops.multiply(slopes, self.weights), axis=-1, keepdims=True)
        self.scores = ops.multiply(self.weights, ops.subtract(slopes, total))

    def _split_heads(self, x: Tensor) -> Tensor:
        batch, length, heads, dim = x.shape
        parted = ops.reshape(x, (batch, length, self.heads, heads // self.heads, dim))
        return ops.transpose(parted, (0, 2, 3, 1, 4))

    def _join_heads(self, x: Tensor) -> Tensor:
        batch, heads, shared, length, dim = x.shape
        return ops.reshape(ops.transpose(x, (0, 3, 1, 2, 4)), (batch, length, heads * shared, dim))

    def by_query(self) -> Tensor:
        return self._join_heads(ops.multiply(ops.matmul(self.scores, self.key), self.scale))

    def by_key(self) -> Tensor:
        found = ops.matmul(ops.swapaxes(self.scores, -1, -2), ops.multiply(self.query, self.scale))
        return self._join_heads(ops.sum(found, axis=2, keepdims=True))

    def by_value(self) -> Tensor:
        found = ops.matmul(ops.swapaxes(self.weights, -1, -2), self.g)
        return self._join_heads(ops.sum(found, axis=2, keepdims=True))

    def by_bias(self) -> Tensor:
        batch, heads, shared, queries, keys = self.scores.shape
        return ops.reshape(self.scores, (batch, heads * shared, queries, keys))


def _by(parameter: str) -> Any:
    """Return the gradient rule of one parameter."""

    def rule(
        g: Tensor,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        mask: Tensor | None,
        scale: float | None,
        is_causal: bool,
    ) -> Tensor:
        tensors = (g, query, key, value, bias)
        if is_half(query):
            wide = [None if x is None else ops.cast(x, "float32") for x in tensors]
            found = getattr(_Backwards(*wide, mask, scale, is_causal), parameter)()  # type: ignore[arg-type]
            return ops.cast(found, as_dtype(query.dtype))
        return getattr(_Backwards(*tensors, mask, scale, is_causal), parameter)()

    return rule


gradient(dot_product_attention, query=_by("by_query"), key=_by("by_key"), value=_by("by_value"), bias=_by("by_bias"))


@derived(REAL_FLOATING)
def rotary_embedding(
    x: TensorLike,
    positions: IndexLike | None = None,
    axis: int = 1,
    base: float = 10000.0,
    scale: float = 1.0,
    offset: int = 0,
    interleaved: bool = False,
    frequencies: Sequence[float] | None = None,
) -> Tensor:
    """``x`` with the vectors along its last dimension rotated by angles that grow with their position along ``axis``.

    A vector of n elements is n / 2 pairs; pair i is turned by ``position * scale * base ** (-2 * i / n)``, or by
    ``position * scale * frequencies[i]`` if those are given. Element i forms a pair with element i + n / 2, or with its
    neighbour if ``interleaved``. Positions count from ``offset`` on, which is the length of a cache; ``positions`` are
    integers for each element along ``axis``, or for each of every batch, to which ``offset`` is added. Angles are as
    accurate at large positions as at small ones.

    >>> from ember_ml import ops
    >>> x = ops.reshape(ops.array([1.0, 0.0, 1.0, 0.0]), (1, 2, 2))
    >>> [[f"{v:.3f}" for v in vector] for vector in ops.to_numpy(ops.rotary_embedding(x))[0].tolist()]
    [['1.000', '0.000'], ['0.540', '0.841']]
    """
    along, half = axis_of(axis, x.ndim), x.shape[-1] // 2
    if along == x.ndim - 1 or x.shape[-1] % 2:
        raise ValueError(f"x of shape {tuple(x.shape)} needs an even last dimension that is not that of the positions")
    if is_half(x):
        return in_float32(rotary_embedding, x, positions, axis, base, scale, offset, interleaved, frequencies)
    rates = [base ** (-i / half) for i in range(half)] if frequencies is None else list(frequencies)
    if len(rates) != half:
        raise ValueError(f"{len(rates)} frequencies for the {half} pairs of the last dimension")
    device = ops.get_device(x)
    if positions is None:
        places = ops.arange(offset, offset + x.shape[along], device=device)
    else:
        _check_positions(tuple(positions.shape), tuple(x.shape[: along + 1]))
        places = ops.add(ops.cast(positions, "int64"), offset)
    angles = ops.cast(_phases(places, rates, scale, device), as_dtype(x.dtype))
    angles = ops.multiply(angles, math.tau / 2**64)
    angles = ops.reshape(angles, (*places.shape, *(1,) * (x.ndim - along - 2), half))
    cos, sin = ops.cos(angles), ops.sin(angles)
    first, second = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    turned = (
        ops.subtract(ops.multiply(first, cos), ops.multiply(second, sin)),
        ops.add(ops.multiply(first, sin), ops.multiply(second, cos)),
    )
    return ops.reshape(ops.stack(turned, axis=-1), x.shape) if interleaved else ops.concatenate(turned, axis=-1)


def _check_positions(shape: tuple[int, ...], batches: tuple[int, ...]) -> None:
    pairs = zip(reversed(shape), reversed(batches), strict=False)
    if len(shape) > len(batches) or any(n != 1 and n != m for n, m in pairs):
        raise ValueError(f"positions of shape {shape} do not broadcast to {batches}, the elements that have one")


def _phases(places: Tensor, rates: list[float], scale: float, device: str) -> Tensor:
    """Return the angle of each pair at each position, in turns times 2**64: integers wrap as angles do, exactly."""
    turns = [round(math.fmod(rate * scale / math.tau, 1.0) * 2**64) for rate in rates]
    signed = [(turn + 2**63) % 2**64 - 2**63 for turn in turns]
    return ops.multiply(ops.expand_dims(places, -1), ops.array(signed, dtype="int64", device=device))
