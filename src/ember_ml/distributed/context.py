"""Attention over sequences of which each rank has a part."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.backend.processes.group import Group
from ember_ml.distributed import collectives
from ember_ml.distributed.groups import group as all_ranks
from ember_ml.typing import Tensor, TensorLike

__all__ = ["context_attention"]


def context_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    scale: float | None = None,
    is_causal: bool = False,
    group: Group | None = None,
) -> Tensor:
    """This rank's part of the attention of a sequence that is split over the ranks, equally and in their order.

    The arguments are as in ``ops.dot_product_attention``, and (batch, length of the part, heads, dim); positions that
    are encoded in them are those in the whole sequence. Keys and values are gathered from all ranks, forward and
    backward, and the products are never whole: each rank has those of its own queries. With ``is_causal`` the last rank
    has the most to compute. ``group`` is one of ``collectives.make_group``; None: all ranks.

    >>> from ember_ml import distributed, ops
    >>> query, key = ops.ones((1, 2, 1, 4)), ops.ones((1, 2, 1, 4))
    >>> value = ops.reshape(ops.array([1.0, 3.0]), (1, 2, 1, 1))
    >>> ops.to_numpy(distributed.context_attention(query, key, value, is_causal=True)).ravel().tolist()
    [1.0, 2.0]
    """
    keys, values = _gather_length(key, group), _gather_length(value, group)
    mask = None
    if is_causal:
        queries, length = ops.shape(query)[1], ops.shape(keys)[1]
        begin = queries * (group or all_ranks()).rank
        mask = ops.tri(queries, length, begin, dtype="bool", device=ops.get_device(query))
    return ops.dot_product_attention(query, keys, values, mask=mask, scale=scale)


def _gather_length(x: TensorLike, group: Group | None) -> Tensor:
    return ops.swapaxes(collectives.all_gather(ops.swapaxes(x, 0, 1), group), 0, 1)
