"""Attention by PyTorch's own function, which is fused where the device has such a kernel."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from ember_ml.backend.common.attention import check_attention, scale_of
from ember_ml.backend.torch.gradients import may_be_differentiated_again
from ember_ml.backend.torch.half_precision import HALVES


def dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bias: torch.Tensor | None,
    mask: torch.Tensor | None,
    scale: float | None,
    is_causal: bool,
) -> torch.Tensor:
    of_query, of_key = query.shape, key.shape  # read once: a tensor makes a new one at each reading
    check_attention(of_query, of_key, value.shape, bias, mask)
    queries, keys, own = of_query[1], of_key[1], query.dtype
    if own in HALVES and _is_better_in_float32(query, keys):
        query, key, value = query.to(torch.float32), key.to(torch.float32), value.to(torch.float32)
        bias = None if bias is None else bias.to(torch.float32)
    if is_causal and (queries != keys or mask is not None or bias is not None):
        # torch 2.13: aligns the first query with the first key; the contract aligns the last ones
        past = torch.ones(queries, keys, dtype=torch.bool, device=query.device).tril(keys - queries)
        mask, is_causal = past if mask is None else mask & past, False
    if bias is not None:
        mask = bias if mask is None else torch.where(mask, bias, -math.inf)
    if mask is not None and mask.ndim < 4:
        mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
    # torch 2.13: a size traced as a symbol does not compare to a bool, hence the branch
    grouped = {"enable_gqa": True} if of_query[2] != of_key[2] else {}
    rows = (query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2))
    if torch.compiler.is_compiling():
        if _is_small(query, grouped, mask):
            return _attend_by_sums(*rows, mask, scale).transpose(1, 2)
        result = F.scaled_dot_product_attention(*rows, mask, 0.0, is_causal, scale=scale, **grouped)
    elif may_be_differentiated_again():
        with sdpa_kernel(SDPBackend.MATH):  # torch 2.13: no second derivatives of fused kernels (pytorch#116350)
            result = F.scaled_dot_product_attention(*rows, mask, 0.0, is_causal, scale=scale, **grouped)
    else:
        result = F.scaled_dot_product_attention(*rows, mask, 0.0, is_causal, scale=scale, **grouped)
    if mask is not None and query.device.type != "cpu":
        # torch 2.11 on CUDA: in half precision, a query that sees no key gets the mean of all values
        sees = mask if mask.dtype is torch.bool else mask > -math.inf
        result = torch.where(sees.any(-1, keepdim=True), result, 0.0)
    return result.transpose(1, 2).to(own)


_MANY_KEYS = 512


def _is_better_in_float32(query: torch.Tensor, keys: int) -> bool:
    """Whether attention of half precision is computed in float32 and rounded once, as on the other backends."""
    # torch 2.13 on the CPU: its kernels of half precision round the probabilities and the scores' gradients, which
    # moves the last bit of 4 results in 10; with their backward pass they take 2 to 12 times as long in float16, and
    # up to 5 times in bfloat16, which is faster only among many keys
    return query.device.type == "cpu" and (query.dtype is torch.float16 or keys <= _MANY_KEYS)


_FEW = 64


def _is_small(query: torch.Tensor, grouped: dict[str, bool], mask: torch.Tensor | None) -> bool:
    """Whether sums that torch.compile writes as kernels of its own are faster: one new token of a text or two."""
    # torch 2.11 on CUDA: cuDNN's attention takes 10 us where the three kernels of the sums take 7
    count = query.shape[0] * query.shape[1] * query.shape[2]
    is_masked = mask is not None and mask.dtype is torch.bool
    return query.device.type == "cuda" and count <= _FEW and query.shape[1] <= 16 and is_masked and not grouped


def _attend_by_sums(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, scale: float | None
) -> torch.Tensor:
    """Return the attention of a few queries, (batch, heads, length, dim), in float32 and rounded once."""
    assert mask is not None
    factor = scale_of(scale, query.shape)
    scores = (query.float()[:, :, :, None] * key.float()[:, :, None]).sum(-1) * factor
    scores = torch.where(mask, scores, -math.inf)
    top = scores.amax(-1, keepdim=True)
    weights = torch.exp(scores - torch.where(top == -math.inf, 0.0, top))
    total = weights.sum(-1, keepdim=True)
    weights = weights / torch.where(total == 0, 1.0, total)  # a query that sees no key gets zeros
    return (weights[..., None] * value.float()[:, :, None]).sum(-2).to(value.dtype)
