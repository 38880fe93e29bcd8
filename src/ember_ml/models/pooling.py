"""Make one vector of a text from the vectors of its tokens."""

from __future__ import annotations

from collections.abc import Callable

from ember_ml import ops
from ember_ml.typing import MaskLike, Tensor

__all__ = ["POOLINGS", "pool_tokens"]


def _first(x: Tensor, weights: Tensor) -> Tensor:
    """Return the vector of the first real token, which is not the first one where padding stands before it."""
    return _pick(x, ops.argmax(weights, 1))


def _last(x: Tensor, weights: Tensor) -> Tensor:
    count = weights.shape[1]
    return _pick(x, ops.subtract(count - 1, ops.argmax(ops.flip(weights, 1), 1)))


def _pick(x: Tensor, places: Tensor) -> Tensor:
    index = ops.broadcast_to(ops.reshape(places, (-1, 1, 1)), (x.shape[0], 1, x.shape[2]))
    return ops.squeeze(ops.take_along_axis(x, index, 1), 1)


def _sum(x: Tensor, weights: Tensor) -> Tensor:
    return ops.sum(ops.multiply(x, ops.expand_dims(weights, -1)), 1)


def _count(weights: Tensor) -> Tensor:
    return ops.maximum(ops.sum(weights, 1, keepdims=True), 1e-6)


def _mean(x: Tensor, weights: Tensor) -> Tensor:
    return ops.divide(_sum(x, weights), _count(weights))


def _mean_by_root(x: Tensor, weights: Tensor) -> Tensor:
    return ops.divide(_sum(x, weights), ops.sqrt(_count(weights)))


def _rising_mean(x: Tensor, weights: Tensor) -> Tensor:
    places = ops.arange(1, x.shape[1] + 1, dtype=x.dtype, device=ops.get_device(x))
    return _mean(x, ops.multiply(weights, places))


def _max(x: Tensor, weights: Tensor) -> Tensor:
    return ops.max(ops.where(ops.expand_dims(ops.greater(weights, 0), -1), x, float("-inf")), 1)


POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mean": _mean,
    "first": _first,
    "last": _last,
    "max": _max,
    "mean_by_root": _mean_by_root,
    "rising_mean": _rising_mean,
}
"""From (batch, length, width) vectors and (batch, length) weights, 0 at padding, to (batch, width)."""


def pool_tokens(x: Tensor, mask: MaskLike | None = None, pooling: str = "mean") -> Tensor:
    """Return one vector for each text, from the vectors of its tokens; padding, where ``mask`` is false, is left out.

    ``pooling`` is "mean", "first", "last", "max", "mean_by_root" (the sum, divided by the root of the number of tokens)
    or "rising_mean" (weighted by 1 for the first token, 2 for the second and so on).

    >>> from ember_ml import ops
    >>> from ember_ml.models.pooling import pool_tokens
    >>> x = ops.array([[[1.0], [3.0], [50.0]]])
    >>> [ops.item(pool_tokens(x, [[1, 1, 0]], how)) for how in ("mean", "first", "last", "max")]
    [2.0, 1.0, 3.0, 3.0]
    """
    if pooling not in POOLINGS:
        raise ValueError(f"the pooling is one of {', '.join(POOLINGS)}, not {pooling!r}")
    wide = ops.cast(x, "float32") if ops.dtype(x).name in ("float16", "bfloat16") else x  # counts are exact there
    if mask is None:
        weights = ops.ones(x.shape[:2], dtype=wide.dtype, device=ops.get_device(x))
    else:
        weights = ops.asarray(mask, dtype=wide.dtype, device=ops.get_device(x))
    return ops.cast(POOLINGS[pooling](wide, weights), x.dtype)
