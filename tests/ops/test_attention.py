"""Attention and rotation by position: what the contract's generic tests cannot see."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.nn import tensor
from tests.reference import EPS, close, largest_error
from tests.reference import attention as reference
from tests.reference.matrices import numpy, random


def _tensors(*shapes: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> list[Any]:
    return [random(shape, dtype, seed + i) for i, shape in enumerate(shapes)]


def _attention(*arrays: Any, **how: Any) -> Any:
    brought = {key: ops.asarray(value) if hasattr(value, "shape") else value for key, value in how.items()}
    return ops.to_numpy(ops.dot_product_attention(*map(ops.asarray, arrays), **brought))


# ---------------------------------------------------------------------------------------------------- attention


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("length", [64, 700])
def test_single_precision_is_within_a_millionth_of_the_sum_of_absolute_terms(
    backend: str, length: int, is_causal: bool
) -> None:
    tensors = _tensors((1, length, 2, 64), (1, length, 2, 64), (1, length, 2, 32))
    size = reference.attention(tensors[0], tensors[1], abs(tensors[2]), is_causal=is_causal)
    want = reference.attention(*tensors, is_causal=is_causal)
    assert largest_error(_attention(*tensors, is_causal=is_causal), want, size) < 1e-6


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_has_its_own_accuracy(backend: str, dtype: str) -> None:
    tensors = _tensors((2, 33, 2, 16), (2, 47, 2, 16), (2, 47, 2, 16), dtype=dtype)
    size = reference.attention(tensors[0], tensors[1], abs(tensors[2]))
    # the weights of fused kernels are rounded to half precision before they meet the values
    assert largest_error(_attention(*tensors), reference.attention(*tensors), size) < EPS[dtype]


def test_large_scores_do_not_overflow(backend: str) -> None:
    query, key, value = _tensors((1, 3, 1, 4), (1, 5, 1, 4), (1, 5, 1, 2))
    how: dict[str, Any] = {"scale": 1e4}
    want = reference.attention(query, key, value, **how)
    assert (
        close(_attention(query, key, value, **how), want, 4, reference.attention_scale(query, key, value, **how))
        is None
    )
    far, ones = (numpy.full((1, 3, 1, 4), value).astype("float16") for value in (60000.0, 1.0))
    assert _attention(far, far, ones).tolist() == ones.tolist()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_query_that_sees_no_key_gets_zeros_and_no_gradient(backend: str, dtype: str) -> None:
    tensors = [ops.asarray(x) for x in _tensors((1, 3, 2, 4), (1, 2, 2, 4), (1, 2, 2, 4), dtype=dtype)]
    mask = ops.array([[True, True], [False, False], [False, True]])
    bias = ops.cast(ops.where(mask, 0.5, -math.inf), dtype)
    for how in ({"mask": mask}, {"bias": bias}, {"mask": mask, "bias": bias}, {"mask": mask, "is_causal": True}):
        result = ops.to_numpy(ops.cast(ops.dot_product_attention(*tensors, **how), "float32"))
        assert (result[:, 1] == 0).all()
        assert (result[:, 2] != 0).all()
        if dtype not in ("float32", "float64"):
            continue
        total = lambda q, k, v, how=how: ops.sum(ops.dot_product_attention(q, k, v, **how))  # noqa: E731
        gradients = [ops.to_numpy(g) for g in ops.grad(total, (0, 1, 2))(*tensors)]
        assert (gradients[0][:, 1] == 0).all()
        assert all(numpy.isfinite(g).all() for g in gradients)


def test_first_of_more_queries_than_keys_see_none(backend: str) -> None:
    tensors = _tensors((1, 5, 1, 4), (1, 3, 1, 4), (1, 3, 1, 4))
    result = _attention(*tensors, is_causal=True)
    assert (result[:, :2] == 0).all()
    assert close(result, reference.attention(*tensors, is_causal=True), 16, 4.0) is None


def test_no_keys_at_all(backend: str) -> None:
    got = ops.dot_product_attention(ops.ones((2, 3, 1, 4)), ops.ones((2, 0, 1, 4)), ops.ones((2, 0, 1, 5)))
    assert ops.to_numpy(got).tolist() == numpy.zeros((2, 3, 1, 5)).tolist()


@pytest.mark.parametrize("new", [1, 3])
def test_new_queries_see_the_whole_cache(backend: str, new: int) -> None:
    """The last queries, alone with all keys, get what they get among all queries."""
    query, key, value = _tensors((2, 9, 4, 8), (2, 9, 2, 8), (2, 9, 2, 8))
    whole = _attention(query, key, value, is_causal=True)
    last = _attention(query[:, -new:], key, value, is_causal=True)
    assert close(last, whole[:, -new:], 16, 4.0) is None


def test_heads_of_keys_serve_neighbouring_heads_of_queries(backend: str) -> None:
    query, key, value = _tensors((1, 4, 6, 8), (1, 5, 2, 8), (1, 5, 2, 3))
    mask = numpy.arange(6 * 4 * 5).reshape(1, 6, 4, 5) % 3 != 0
    grouped = _attention(query, key, value, mask=mask)
    repeated = _attention(query, *(numpy.repeat(x, 3, axis=2) for x in (key, value)), mask=mask)
    assert close(grouped, repeated, 16, 4.0) is None


def test_long_sequences_are_computed_in_blocks_of_queries(backend: str) -> None:
    query, key, value = _tensors((1, 300, 1, 4), (1, 4000, 1, 4), (1, 4000, 1, 2))
    mask = numpy.arange(4000) % 5 != 0
    bias = random((300, 1), "float32", 9)
    for is_causal in (False, True):
        how: dict[str, Any] = {"mask": mask, "bias": bias, "is_causal": is_causal}
        want, scale = reference.attention(query, key, value, **how), reference.attention_scale(query, key, value, **how)
        assert close(_attention(query, key, value, **how), want, 8, scale) is None


@pytest.mark.parametrize("backend_name", installed_backends())
@given(seed=st.integers(0, 1000), keys=st.integers(1, 6))
def test_masked_keys_are_as_good_as_absent_and_order_does_not_matter(backend_name: str, seed: int, keys: int) -> None:
    ember_ml.set_backend(backend_name)
    query, key, value = _tensors((1, 2, 2, 4), (1, 6, 2, 4), (1, 6, 2, 3), seed=seed)
    order = numpy.random.default_rng(seed).permutation(6)
    mask = order < keys
    masked = _attention(query, key[:, order], value[:, order], mask=mask)
    assert close(masked, _attention(query, key[:, :keys], value[:, :keys]), 16, 4.0) is None


@pytest.mark.parametrize("backend_name", installed_backends())
@given(seed=st.integers(0, 1000))
def test_results_are_averages(backend_name: str, seed: int) -> None:
    """The weights add up to one and are not negative."""
    ember_ml.set_backend(backend_name)
    query, key, value = _tensors((1, 3, 1, 4), (1, 5, 1, 4), (1, 5, 1, 2), seed=seed)
    result = _attention(query, key, value)
    assert (result <= value.max(axis=1, keepdims=True) + 1e-5).all()
    assert (result >= value.min(axis=1, keepdims=True) - 1e-5).all()
    assert close(_attention(query, key, numpy.ones_like(value)), numpy.ones((1, 3, 1, 2)), 8) is None


def test_dtypes_mix_as_in_other_contractions(backend: str) -> None:
    half, single, double = (ops.ones((1, 2, 1, 2), dtype=d) for d in ("float16", "float32", "float64"))
    with pytest.raises(TypeError, match="half precision"):
        ops.dot_product_attention(half, single, single)
    with pytest.raises(TypeError, match="bool"):
        ops.dot_product_attention(single, single, single, mask=ops.ones((2, 2)))
    assert ops.dtype(ops.dot_product_attention(single, double, single)) == "float64"
    assert type(ops.dot_product_attention(tensor.EmberTensor(single), single, single)) is tensor.EmberTensor


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((2, 3, 4), (2, 3, 1, 4), (2, 3, 1, 4)), "query has 3 dimensions"),
        (((2, 3, 1, 4), (2, 3, 1, 4), (2, 4, 1, 4)), "differ in batch, length or heads"),
        (((2, 3, 1, 4), (2, 3, 1, 5), (2, 3, 1, 5)), "differ in batch or dim"),
        (((2, 3, 3, 4), (2, 3, 2, 4), (2, 3, 2, 4)), "do not divide"),
    ],
)
def test_shapes_that_do_not_fit_are_value_errors(backend: str, shapes: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ops.dot_product_attention(*map(ops.ones, shapes))


@pytest.mark.parametrize("shape", [(3, 4), (1, 2, 3, 5, 1), (2, 1, 3, 2)])
def test_bias_and_mask_must_broadcast(backend: str, shape: tuple[int, ...]) -> None:
    x = ops.ones((1, 3, 1, 4))
    with pytest.raises(ValueError, match="does not broadcast"):
        ops.dot_product_attention(x, x, x, mask=ops.ones(shape, dtype="bool"))
    with pytest.raises(ValueError, match="does not broadcast"):
        ops.dot_product_attention(x, x, x, bias=ops.ones(shape))


# ---------------------------------------------------------------------------------------------------- rotation


@pytest.mark.parametrize("offset", [0, 1000, 131072, 10**7])
@pytest.mark.parametrize("interleaved", [False, True])
def test_angles_are_accurate_at_any_position(backend: str, offset: int, interleaved: bool) -> None:
    x = random((1, 5, 2, 64), "float32")
    how: dict[str, Any] = {"offset": offset, "interleaved": interleaved}
    got = ops.to_numpy(ops.rotary_embedding(ops.asarray(x), **how))
    assert largest_error(got, reference.rotated(x, **how), reference.rotation_scale(x, interleaved)) < 1e-6


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_turned_in_single(backend: str, dtype: str) -> None:
    x = random((2, 50, 32), dtype)
    got = ops.to_numpy(ops.rotary_embedding(ops.asarray(x), offset=4000))
    assert largest_error(got, reference.rotated(x, offset=4000), reference.rotation_scale(x)) < EPS[dtype] * 0.5 + 1e-6


@pytest.mark.parametrize("backend_name", installed_backends())
@given(first=st.integers(0, 10**6), apart=st.integers(0, 100), interleaved=st.booleans())
def test_products_depend_on_the_distance_alone(backend_name: str, first: int, apart: int, interleaved: bool) -> None:
    ember_ml.set_backend(backend_name)
    query, key = random((1, 1, 1, 32), "float32"), random((1, 1, 1, 32), "float32", 1)

    def product(offset: int) -> float:
        turned = [
            ops.to_numpy(ops.rotary_embedding(ops.asarray(x), offset=place, interleaved=interleaved))
            for x, place in ((query, offset), (key, offset + apart))
        ]
        return float((turned[0] * turned[1]).sum())

    assert product(first) == pytest.approx(product(0), abs=2e-5)


def test_positions_offsets_and_axes_say_the_same(backend: str) -> None:
    x = random((2, 6, 3, 8), "float32")
    plain = ops.to_numpy(ops.rotary_embedding(ops.asarray(x), offset=7))
    explicit = ops.rotary_embedding(ops.asarray(x), ops.arange(7, 13))
    each = ops.rotary_embedding(ops.asarray(x), ops.broadcast_to(ops.arange(5, 11), (2, 6)), offset=2)
    moved = ops.rotary_embedding(ops.asarray(x.swapaxes(1, 2)), axis=-2, offset=7)
    for other in (explicit, each, ops.swapaxes(moved, 1, 2)):
        assert ops.to_numpy(other).tolist() == plain.tolist()


def test_frequencies_take_the_place_of_the_base(backend: str) -> None:
    x = random((1, 6, 8), "float32")
    rates = [100.0 ** (-i / 4) for i in range(4)]
    by_base = ops.rotary_embedding(ops.asarray(x), base=100.0, scale=0.5)
    assert (
        ops.to_numpy(ops.rotary_embedding(ops.asarray(x), scale=0.5, frequencies=rates)).tolist()
        == ops.to_numpy(by_base).tolist()
    )


def test_wrong_arguments_of_a_rotation(backend: str) -> None:
    with pytest.raises(ValueError, match="even last dimension"):
        ops.rotary_embedding(ops.ones((1, 2, 3)))
    with pytest.raises(ValueError, match="even last dimension"):
        ops.rotary_embedding(ops.ones((2, 4)))
    with pytest.raises(IndexError):
        ops.rotary_embedding(ops.ones((2, 4)), axis=2)
    with pytest.raises(ValueError, match="3 frequencies for the 2 pairs"):
        ops.rotary_embedding(ops.ones((1, 2, 4)), frequencies=[1.0, 2.0, 3.0])
    with pytest.raises(IndexError, match="integers"):
        ops.rotary_embedding(ops.ones((1, 2, 4)), ops.array([0.5, 1.5]))
    with pytest.raises(ValueError, match="positions"):
        ops.rotary_embedding(ops.ones((1, 2, 4)), ops.arange(3))
