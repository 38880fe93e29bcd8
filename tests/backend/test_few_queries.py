"""Attention of a few queries, as CUDA computes it for new tokens: the formulas, here on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

RNG = np.random.default_rng(0)
QUERY, KEY, VALUE = (RNG.normal(size=(2, length, 3, 16)).astype(np.float32) for length in (4, 40, 40))
MASK = (np.arange(40) < np.array([[30], [0]]))[:, None, None]
"""The queries of the second text see no key."""


def _attend(query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray) -> np.ndarray:
    scores = np.einsum("bqhd,bkhd->bhqk", query.astype(np.float64), key) / 4.0
    weights = np.where(mask, np.exp(scores), 0.0)
    total = weights.sum(-1, keepdims=True)
    return np.einsum("bhqk,bkhd->bqhd", weights / np.where(total == 0, 1.0, total), value)


def test_sums_on_torch() -> None:
    torch = pytest.importorskip("torch")
    from ember_ml.backend.torch.bodies.attention import _attend_by_sums

    query, key, value = (torch.tensor(x).transpose(1, 2) for x in (QUERY, KEY, VALUE))
    found = _attend_by_sums(query, key, value, torch.tensor(MASK), None).transpose(1, 2).numpy()
    np.testing.assert_allclose(found, _attend(QUERY, KEY, VALUE, MASK), atol=1e-6)


@pytest.mark.parametrize("is_causal", [False, True])
def test_products_of_half_precision_on_jax(is_causal: bool) -> None:
    jax = pytest.importorskip("jax")
    from ember_ml.backend.jax.bodies.attention import _by_half_products

    halves = [jax.numpy.array(x, "bfloat16") for x in (QUERY, KEY, VALUE)]
    query, key, value = (np.asarray(x.astype("float32")) for x in halves)
    found = _by_half_products(*halves, None, jax.numpy.array(MASK), 0.25, is_causal)
    past = np.tri(4, 40, 36, dtype=bool) if is_causal else True
    np.testing.assert_allclose(found.astype("float32"), _attend(query, key, value, MASK & past), atol=1e-2)
