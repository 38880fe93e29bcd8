"""Attention on JAX: the formula as one program, or cuDNN's kernel on CUDA where it fits."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ember_ml.backend.common.attention import attend, by_groups, check_attention, scale_of
from ember_ml.backend.jax.gradients import pushes_forward
from ember_ml.backend.jax.half_precision import HALVES, narrow_as, widen
from ember_ml.backend.jax.host_transfer import device_of, devices
from ember_ml.backend.jax.jitting import static

Array = jax.Array
Given = jax.Array | None
_FEW = 16
"""Up to so many queries of half precision, XLA's own kernels are the fastest."""
_WIDEST_HEAD = 128  # JAX 0.10: cuDNN takes wider heads on some GPUs only


def dot_product_attention(
    query: Array, key: Array, value: Array, bias: Given, mask: Given, scale: float | None, is_causal: bool
) -> Array:
    check_attention(query.shape, key.shape, value.shape, bias, mask)
    compute: Any = _by_formula
    if _has_kernel(query, key, value, bias, mask, is_causal):
        compute = _by_cudnn
    elif query.dtype in HALVES and query.shape[1] <= _FEW and bias is None and device_of(query).startswith("cuda"):
        compute = _by_half_products
    return compute(query, key, value, bias, mask, scale_of(scale, query.shape), is_causal)


def _has_kernel(query: Array, key: Array, value: Array, bias: Given, mask: Given, is_causal: bool) -> bool:
    """Whether cuDNN's kernel computes this: half precision on CUDA, the last query at the last key, all keys seen."""
    if query.dtype not in HALVES or bias is not None or mask is not None:
        return False
    if not device_of(query).startswith("cuda") or not _has_cudnn() or pushes_forward():
        return False
    width = query.shape[-1]
    fits = width == value.shape[-1] and width % 8 == 0 and width <= _WIDEST_HEAD and query.size and key.size
    return bool(fits) and (not is_causal or query.shape[1] == key.shape[1])


@cache
def _has_cudnn() -> bool:
    """Whether the GPUs here are of a kind for which cuDNN has the kernel."""
    # JAX 0.10: cuDNN's attention needs compute capability 8; AMD's GPUs have other names for theirs
    capability = next(found.compute_capability for name, found in devices().items() if name.startswith("cuda"))
    return capability.replace(".", "").isdigit() and float(capability) >= 8


@static(5, 6)
def _by_cudnn(query: Array, key: Array, value: Array, bias: Given, mask: Given, scale: float, is_causal: bool) -> Array:
    return jax.nn.dot_product_attention(query, key, value, scale=scale, is_causal=is_causal, implementation="cudnn")


def _with_past(mask: Given, queries: int, keys: int) -> Array:
    past = jnp.tri(queries, keys, keys - queries, dtype=bool)
    return past if mask is None else mask & past


class _Functions:
    """The functions of the formula, with products of full precision."""

    matmul = staticmethod(partial(jnp.matmul, precision=lax.Precision.HIGHEST))
    stop_gradient = staticmethod(lax.stop_gradient)

    def __getattr__(self, name: str) -> Any:
        return getattr(jnp, name)


@static(5, 6)
def _by_half_products(
    query: Array, key: Array, value: Array, bias: Given, mask: Given, scale: float, is_causal: bool
) -> Array:
    """Attention of a few queries: products of half precision with sums in float32, as kernels of attention do it."""
    batch, queries, all_heads, dim = query.shape
    keys, heads, _ = value.shape[1:]
    query = query.reshape(batch, queries, heads, all_heads // heads, dim)
    scores = scale * jnp.einsum("bqhgd,bkhd->bhgqk", query, key, preferred_element_type=jnp.float32)
    mask = _with_past(mask, queries, keys) if is_causal else mask
    if mask is not None:
        scores = jnp.where(by_groups(jnp, mask, heads), scores, -jnp.inf)
    top = lax.stop_gradient(scores.max(-1, keepdims=True, initial=-jnp.inf))
    weights = jnp.exp(scores - jnp.where(top == -jnp.inf, 0.0, top))
    total = weights.sum(-1, keepdims=True)
    weights = (weights / jnp.where(total == 0, 1.0, total)).astype(value.dtype)
    found = jnp.einsum("bhgqk,bkhd->bqhgd", weights, value, preferred_element_type=jnp.float32)
    return found.reshape(batch, queries, all_heads, -1).astype(value.dtype)


@static(5, 6)
def _by_formula(
    query: Array, key: Array, value: Array, bias: Given, mask: Given, scale: float, is_causal: bool
) -> Array:
    mask = _with_past(mask, query.shape[1], key.shape[1]) if is_causal else mask
    return narrow_as(attend(_Functions(), widen(query), widen(key), widen(value), widen(bias), mask, scale), query)
