"""Random numbers: one seed, the same numbers on every backend; and the numbers that the distributions promise."""

from __future__ import annotations

import copy
import ctypes
import itertools
import json
import math
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ember_ml
from ember_ml import dtypes, ops
from ember_ml.backend import installed_backends
from ember_ml.backend.random.generator import streaming
from ember_ml.dispatch.declare import OPS
from ember_ml.nn import tensor
from ember_ml.tensor import EmberTensor
from tests.reference.randomness import (
    choice_of,
    fit,
    fraction_of,
    integers_of,
    key_of,
    normal_of,
    order_of,
    relative_error,
    same_bits,
    words_of,
)
from tests.subnormals import keeps_subnormals

SEEDS = st.integers(0, 2**64 - 1)
FLOATS = ("float16", "bfloat16", "float32", "float64")
BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def values(x: Any) -> Any:
    """The elements as Python numbers."""
    return ops.to_numpy(x).tolist()


# What the numbers are, worked out by hand.


@given(seed=SEEDS, count=st.integers(0, 33))
def test_uniform_numbers_are_the_upper_bits_of_the_words(seed: int, count: int) -> None:
    for name, dtype in itertools.product(installed_backends(), FLOATS):
        with ember_ml.use_backend(name):
            x = ops.random_uniform(count, dtype=dtype, seed=seed)
            assert [float(v) for v in ops.to_numpy(x)] == fraction_of(seed, count, BITS[dtype])


@given(seed=SEEDS, p=st.floats(0.0, 1.0))
def test_bernoulli_numbers_compare_the_words(seed: int, p: float) -> None:
    want = [word < math.floor(p * 2**32) for word in words_of(seed, 21)]
    for name in installed_backends():
        with ember_ml.use_backend(name):
            assert values(ops.random_bernoulli(21, p, seed=seed)) == want
            assert values(ops.random_bernoulli(21, ops.full((21,), p, dtype="float64"), seed=seed)) == want


@given(seed=SEEDS, bounds=st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1)))
def test_integers_are_the_upper_half_of_word_times_span(seed: int, bounds: tuple[int, int]) -> None:
    low, high = min(bounds), max(bounds) + 1
    near = low + 1 + seed % 2**17
    for name in installed_backends():
        with ember_ml.use_backend(name):
            for end in (high, near) if near <= 2**63 else (high,):
                assert values(ops.random_integers(9, low, end, seed=seed)) == integers_of(seed, 9, low, end)
            unsigned = (low + 2**63, high + 2**63)
            assert values(ops.random_integers(9, *unsigned, "uint64", seed=seed)) == integers_of(seed, 9, *unsigned)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_numbers_are_the_quantiles_that_the_words_name(backend: str, dtype: str) -> None:
    for seed in range(5):
        got = ops.to_numpy(ops.random_normal(100, dtype=dtype, seed=seed))
        assert relative_error(got, normal_of(seed, 100, dtype)) <= (4e-7 if dtype == "float32" else 1e-15)


@given(seed=SEEDS, count=st.integers(1, 40))
def test_permutation_is_the_order_of_the_words(seed: int, count: int) -> None:
    for name in installed_backends():
        with ember_ml.use_backend(name):
            assert values(ops.random_permutation(count, seed=seed)) == order_of(seed, count)
            few = values(ops.random_choice(count, min(count, 3), replace=False, seed=seed))
            assert few == order_of(seed, count)[:3]


@given(seed=SEEDS, weights=st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any))
def test_choice_falls_where_the_words_fall_among_the_probabilities(seed: int, weights: list[int]) -> None:
    p = [weight / sum(weights) for weight in weights]
    for name in installed_backends():
        with ember_ml.use_backend(name):
            chosen = values(ops.random_choice(len(p), 15, p=p, seed=seed))
            assert chosen == choice_of(seed, 15, p)
            assert all(weights[place] for place in chosen)


# The same bits everywhere.

DRAWS: dict[str, Callable[[Any, Any], Any]] = {
    "uniform": lambda shape, seed: ops.random_uniform(shape, seed=seed),
    "uniform between bounds": lambda shape, seed: ops.random_uniform(shape, -0.3, 2.7, seed=seed),
    "uniform float64": lambda shape, seed: ops.random_uniform(shape, dtype="float64", seed=seed),
    "uniform bfloat16": lambda shape, seed: ops.random_uniform(shape, 1.0, 2.0, "bfloat16", seed=seed),
    "bernoulli": lambda shape, seed: ops.random_bernoulli(shape, 0.3, seed=seed),
    "integers": lambda shape, seed: ops.random_integers(shape, -7, 1000, seed=seed),
    "many integers": lambda shape, seed: ops.random_integers(shape, 0, 10**12, seed=seed),
    "choice": lambda shape, seed: ops.random_choice(10, shape, seed=seed),
    "choice by probability": lambda shape, seed: ops.random_choice(3, shape, p=[0.2, 0.3, 0.5], seed=seed),
    "normal": lambda shape, seed: ops.random_normal(shape, seed=seed),
    "normal float64": lambda shape, seed: ops.random_normal(shape, 1.0, 3.0, "float64", seed=seed),
    "truncated normal": lambda shape, seed: ops.random_truncated_normal(shape, 0.1, 0.7, seed=seed),
    "exponential": lambda shape, seed: ops.random_exponential(shape, 3.3, seed=seed),
    "laplace": lambda shape, seed: ops.random_laplace(shape, seed=seed),
    "gumbel": lambda shape, seed: ops.random_gumbel(shape, seed=seed),
    "gumbel float64": lambda shape, seed: ops.random_gumbel(shape, dtype="float64", seed=seed),
}
FEWER: dict[str, Callable[[Any, Any], Any]] = {
    "permutation": lambda shape, seed: ops.random_permutation(math.prod(shape), seed=seed),
    "choice without repetition": lambda shape, seed: ops.random_choice(math.prod(shape), 9, replace=False, seed=seed),
    "weighted choice": lambda shape, seed: ops.random_choice(4, 3, replace=False, p=[0.1, 0.2, 0.3, 0.4], seed=seed),
    "categorical": lambda shape, seed: ops.random_categorical(ops.arange(3), math.prod(shape) // 3, seed=seed),
    "gamma": lambda shape, seed: ops.random_gamma(shape, 0.7, 2.0, seed=seed),
    "beta": lambda shape, seed: ops.random_beta(shape, 2.0, 0.5, seed=seed),
    "poisson": lambda shape, seed: ops.random_poisson(shape, 30.0, seed=seed),
    "binomial": lambda shape, seed: ops.random_binomial(shape, 90, 0.4, seed=seed),
    "dropout": lambda shape, seed: ops.dropout(ops.ones(shape), 0.3, seed=seed),
}


def assert_same_on_every_backend(draw: Callable[[Any, Any], Any], shape: tuple[int, ...], seed: int) -> None:
    with ember_ml.use_backend("numpy"):
        want = ops.to_numpy(draw(shape, seed))
    for name in installed_backends():
        with ember_ml.use_backend(name):
            assert same_bits(ops.to_numpy(draw(shape, seed)), want), name


@pytest.mark.parametrize("name", [*DRAWS, *FEWER])
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (7, 5), (3, 11_111)])
def test_bits_are_the_same_on_every_backend(name: str, shape: tuple[int, ...]) -> None:
    if name == "choice without repetition" and math.prod(shape) < 9:
        return
    for seed in (0, 2**64 - 1):
        assert_same_on_every_backend((DRAWS | FEWER)[name], shape, seed)


@pytest.mark.parametrize("name", [*DRAWS, "permutation"])
def test_a_million_are_the_same_on_every_backend(name: str) -> None:
    assert_same_on_every_backend((DRAWS | FEWER)[name], (1000, 1001), 12345)


@pytest.mark.long
@pytest.mark.parametrize("name", [*DRAWS, "permutation"])
def test_ten_million_are_the_same_on_every_backend(name: str) -> None:
    assert_same_on_every_backend((DRAWS | FEWER)[name], (10, 1000, 1000), 1)


# The distributions, against SciPy's.

DISTRIBUTIONS: dict[str, tuple[Callable[[int, Any], Any], str, tuple[float, ...]]] = {
    "uniform": (lambda n, g: ops.random_uniform(n, seed=g), "uniform", ()),
    "uniform, bounds": (lambda n, g: ops.random_uniform(n, -2.0, 3.0, "float64", seed=g), "uniform", (-2.0, 5.0)),
    "normal": (lambda n, g: ops.random_normal(n, 1.0, 2.0, seed=g), "norm", (1.0, 2.0)),
    "normal, float64": (lambda n, g: ops.random_normal(n, dtype="float64", seed=g), "norm", ()),
    "truncated normal": (lambda n, g: ops.random_truncated_normal(n, seed=g), "truncnorm", (-2.0, 2.0)),
    "exponential": (lambda n, g: ops.random_exponential(n, 2.0, seed=g), "expon", (0.0, 2.0)),
    "laplace": (lambda n, g: ops.random_laplace(n, 1.0, 2.0, seed=g), "laplace", (1.0, 2.0)),
    "gumbel": (lambda n, g: ops.random_gumbel(n, 1.0, 2.0, seed=g), "gumbel_r", (1.0, 2.0)),
    "gamma below 1": (lambda n, g: ops.random_gamma(n, 0.3, 2.0, seed=g), "gamma", (0.3, 0.0, 2.0)),
    "gamma": (lambda n, g: ops.random_gamma(n, 7.5, seed=g), "gamma", (7.5,)),
    "beta": (lambda n, g: ops.random_beta(n, 0.5, 2.5, dtype="float64", seed=g), "beta", (0.5, 2.5)),
    "poisson, few": (lambda n, g: ops.random_poisson(n, 3.5, seed=g), "poisson", (3.5,)),
    "poisson, many": (lambda n, g: ops.random_poisson(n, 77.7, seed=g), "poisson", (77.7,)),
    "binomial, few": (lambda n, g: ops.random_binomial(n, 12, 0.3, seed=g), "binom", (12, 0.3)),
    "binomial, many": (lambda n, g: ops.random_binomial(n, 500, 0.7, seed=g), "binom", (500, 0.7)),
    "bernoulli": (lambda n, g: ops.random_bernoulli(n, 0.3, "int8", seed=g), "bernoulli", (0.3,)),
    "integers": (lambda n, g: ops.random_integers(n, -3, 30, seed=g), "randint", (-3, 30)),
    "many integers": (lambda n, g: ops.random_integers(n, 0, 10**15, seed=g), "randint", (0, 10**15)),
    "choice": (lambda n, g: ops.random_choice(13, n, seed=g), "randint", (0, 13)),
    "choice, p": (lambda n, g: ops.random_choice(2, n, p=[0.7, 0.3], seed=g), "bernoulli", (0.3,)),
    "categorical": (
        lambda n, g: ops.random_categorical([math.log(0.7), math.log(0.3)], n, seed=g),
        "bernoulli",
        (0.3,),
    ),
    "permutation": (lambda n, g: ops.random_permutation(n, seed=g)[: n // 2], "randint", (0, 20_000)),
    "dropout": (lambda n, g: ops.dropout(ops.ones(n), 0.5, seed=g), "bernoulli", (0.5, 0.0)),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_numbers_are_distributed_as_promised(backend: str, name: str) -> None:
    """Five streams in a row, none chosen: the smallest p-value of five must not be below 0.1% for one in a thousand."""
    draw, distribution, parameters = DISTRIBUTIONS[name]
    scale = 2.0 if name == "dropout" else 1.0
    generators = ops.Generator(2024).split(5)
    fits = [fit(ops.to_numpy(draw(20_000, g)) / scale, distribution, parameters) for g in generators]
    assert min(fits) * len(fits) > 1e-3, fits


@pytest.mark.parametrize(
    "name", ["uniform", "normal", "normal, float64", "exponential", "bernoulli", "gamma", "integers"]
)
def test_numbers_of_the_native_generators_are_distributed_as_promised(backend: str, name: str) -> None:
    draw, distribution, parameters = DISTRIBUTIONS[name]
    generators = ops.Generator(7, native=True).split(5)
    fits = [fit(ops.to_numpy(draw(20_000, g)), distribution, parameters) for g in generators]
    assert min(fits) * len(fits) > 1e-3, fits


def test_parameters_may_be_tensors(backend: str) -> None:
    means = ops.array([0.0, 100.0])
    x = ops.to_numpy(ops.random_normal((4000, 2), means, ops.array([1.0, 5.0]), seed=3))
    assert fit(x[:, 0], "norm") > 1e-3
    assert fit(x[:, 1], "norm", (100.0, 5.0)) > 1e-3
    x = ops.to_numpy(ops.random_poisson((4000, 3), [0.0, 2.0, 50.0], seed=3))
    assert x[:, 0].max() == 0
    assert fit(x[:, 1], "poisson", (2.0,)) > 1e-3
    assert fit(x[:, 2], "poisson", (50.0,)) > 1e-3
    x = ops.to_numpy(ops.random_uniform((4000, 2), [0.0, -1.0], [1.0, 5.0], seed=3))
    assert fit(x[:, 1], "uniform", (-1.0, 6.0)) > 1e-3
    x = ops.to_numpy(ops.random_bernoulli((4000, 3), ops.array([0.0, 0.25, 1.0]), "int8", seed=3))
    assert x[:, 0].max() == 0
    assert x[:, 2].min() == 1
    assert fit(x[:, 1], "bernoulli", (0.25,)) > 1e-3
    x = ops.to_numpy(ops.random_binomial((4000, 2), ops.array([3, 300]), 0.5, seed=3))
    assert fit(x[:, 1], "binom", (300, 0.5)) > 1e-3


def test_words_beyond_one_half_are_as_likely_as_below(backend: str) -> None:
    """Integers whose number is no power of two: here three quarters of all words, where a plain product is lopsided."""
    x = ops.to_numpy(ops.random_integers(30_000, 0, 3 * 2**30, seed=0))
    assert fit(x % 3, "randint", (0, 3)) > 1e-3


# Bounds, shapes, dtypes.


@given(
    seed=SEEDS,
    bounds=st.tuples(st.floats(-(2.0**99), 2.0**99, width=32), st.floats(-(2.0**99), 2.0**99, width=32)).map(sorted),
    dtype=st.sampled_from(FLOATS),
)
def test_uniform_numbers_lie_between_their_bounds(seed: int, bounds: list[float], dtype: str) -> None:
    low, high = bounds
    if dtype == "float16":
        low, high = (max(min(end, 6e4), -6e4) for end in bounds)
    for name in installed_backends():
        with ember_ml.use_backend(name):
            ends = [float(ops.to_numpy(ops.array(end, dtype=dtype))) for end in (low, high)]
            for given_ends in ((low, high), (ops.array(low), ops.array(high))):
                x = ops.random_uniform(50, *given_ends, dtype, seed=seed)
                found = [float(v) for v in ops.to_numpy(x)]
                assert all(ends[0] <= v < ends[1] or ends[0] == ends[1] == v for v in found)


def test_upper_bound_is_never_reached(backend: str) -> None:
    for dtype in FLOATS:
        x = ops.random_uniform(200_000, 1.0, 2.0, dtype, seed=0)
        assert float(ops.to_numpy(ops.max(x))) < 2.0
        assert float(ops.to_numpy(ops.max(ops.random_uniform(200_000, dtype=dtype, seed=0)))) < 1.0


@pytest.mark.parametrize(("low", "high"), [(-0.3, 0.2), (1.0, 2.0), (0.0, 1e-40), (5.0, 5.0), (-1e30, 1e30)])
def test_bounds_stretch_the_numbers_from_0_to_1(backend: str, low: float, high: float) -> None:
    """By a product, a sum and a bound, each rounded to float32, however many of them the host computes at once."""
    if high == 1e-40 and not keeps_subnormals(backend):
        pytest.skip("it takes subnormal numbers for 0")
    single = ctypes.c_float
    span, start = single(high - low).value, single(low).value
    plain = ops.to_numpy(ops.random_uniform(1001, seed=3)).tolist()
    sums = [single(single(x * span).value + start).value for x in plain]
    found = ops.to_numpy(ops.random_uniform(1001, low, high, seed=3)).tolist()
    assert found == [x if x < high or low == high else found[i] for i, x in enumerate(sums)]
    assert low == high or max(found) < high


def test_truncated_normal_numbers_stay_within_two_deviations(backend: str) -> None:
    x = ops.random_truncated_normal(200_000, 10.0, 3.0, "float64", seed=0)
    assert 4.0 <= float(ops.to_numpy(ops.min(x))) < 4.01
    assert 15.99 < float(ops.to_numpy(ops.max(x))) <= 16.0


FLOATING = ["uniform", "normal", "truncated_normal", "exponential", "laplace", "gumbel", "gamma"]


@pytest.mark.parametrize("name", FLOATING)
def test_floats_have_the_dtype_that_was_asked_for(backend: str, name: str) -> None:
    draw = getattr(ops.random, name)
    assert ops.dtype(draw((2, 3))) == "float32"
    for dtype in FLOATS:
        x = draw((2, 3), dtype=dtype)
        assert ops.dtype(x) == dtype
        assert ops.shape(x) == (2, 3)
    for dtype in ("int32", "bool", "complex64"):
        with pytest.raises(TypeError, match="floating dtype"):
            draw(2, dtype=dtype)


def test_dtype_follows_the_tensors_among_the_parameters(backend: str) -> None:
    assert ops.dtype(ops.random_normal(2, ops.zeros(2, dtype="float64"))) == "float64"
    assert ops.dtype(ops.random_normal(2, ops.zeros(2, dtype="float16"), 2.0)) == "float16"
    assert ops.dtype(ops.random_normal(2, ops.zeros(2, dtype="int32"))) == "float32"
    assert ops.dtype(ops.random_uniform(2, 0.0, ops.ones(2, dtype="float64"))) == "float64"
    assert ops.dtype(ops.random_gamma(2, ops.ones(2, dtype="float64"))) == "float64"
    assert ops.dtype(ops.random_normal(2, ops.zeros(2, dtype="float64"), dtype="float32")) == "float32"


def test_whole_numbers_have_the_dtype_that_was_asked_for(backend: str) -> None:
    for draw in (
        lambda dtype: ops.random_poisson(3, 2.0, dtype),
        lambda dtype: ops.random_binomial(3, 5, 0.5, dtype),
        lambda dtype: ops.random_integers(3, 0, 5, dtype),
        lambda dtype: ops.random_categorical([0.0, 1.0], 3, dtype),
    ):
        assert ops.dtype(draw(None)) == "int64"
        for dtype in ("int8", "uint8", "int32", "uint64"):
            assert ops.dtype(draw(dtype)) == dtype
    assert ops.dtype(ops.random_bernoulli(3)) == "bool"
    assert ops.dtype(ops.random_poisson(3, 2.0, "float32")) == "float32"
    assert ops.dtype(ops.random_permutation(3)) == ops.dtype(ops.random_choice(3, 2)) == "int64"


def test_shapes(backend: str) -> None:
    assert ops.shape(ops.random_normal(4)) == (4,)
    assert ops.shape(ops.random_normal(())) == ()
    assert ops.shape(ops.random_categorical(ops.zeros((2, 3, 5)), 7)) == (2, 3, 7)
    assert ops.shape(ops.random_choice(ops.zeros((4, 5, 6)), (2, 3), axis=1)) == (4, 2, 3, 6)
    assert ops.shape(ops.random_choice(5)) == ()
    assert ops.shape(ops.random_permutation(ops.zeros((4, 5)), axis=1)) == (4, 5)
    assert ops.shape(ops.shuffle(ops.zeros((0, 5)))) == (0, 5)
    assert ops.shape(ops.random_permutation(0)) == (0,)


def test_rows_stay_together_when_shuffled(backend: str) -> None:
    x = ops.reshape(ops.arange(60), (20, 3))
    shuffled = values(ops.shuffle(x, seed=4))
    assert shuffled != values(x)
    assert sorted(shuffled) == values(x)
    assert shuffled == values(ops.random_permutation(x, seed=4)) == values(ops.take(x, order_of(4, 20), 0))


def test_dropout_scales_what_it_keeps(backend: str) -> None:
    x = ops.add(ops.random_uniform((200, 50), seed=1), 1.0)
    y = ops.dropout(x, 0.2, seed=2)
    kept = ops.not_equal(y, 0.0)
    assert ops.item(ops.mean(ops.cast(kept, "float32"))) == pytest.approx(0.8, abs=0.02)
    want = ops.where(kept, ops.divide(x, 0.8), 0.0)
    assert ops.item(ops.max(ops.abs(ops.subtract(y, want)))) < 1e-6


def test_dropout_leaves_nothing_of_what_it_drops(backend: str) -> None:
    x = ops.full((1000,), math.nan)
    assert 300 < ops.item(ops.count_nonzero(ops.isnan(ops.dropout(x, 0.5, seed=0)))) < 700


@pytest.mark.parametrize("name", ["normal", "truncated_normal", "laplace", "gumbel"])
def test_gradients_reach_place_and_scale(backend: str, name: str) -> None:
    draw = getattr(ops.random, name)
    standard = ops.item(ops.sum(draw(50, seed=5)))
    by_place, by_scale = ops.grad(lambda place, scale: ops.sum(draw(50, place, scale, seed=5)), argnums=(0, 1))(
        ops.array(1.0), ops.array(2.0)
    )
    assert ops.item(by_place) == 50.0
    assert ops.item(by_scale) == pytest.approx(standard, rel=1e-4)


def test_gradients_reach_bounds_and_means(backend: str) -> None:
    ends = ops.array(1.0), ops.array(3.0)
    by_low, by_high = ops.grad(lambda low, high: ops.sum(ops.random_uniform(50, low, high, seed=5)), argnums=(0, 1))(
        *ends
    )
    total = ops.item(ops.sum(ops.random_uniform(50, seed=5)))
    assert ops.item(by_high) == pytest.approx(total, rel=1e-4)
    assert ops.item(by_low) == pytest.approx(50.0 - total, rel=1e-4)
    for draw in (ops.random_exponential, lambda n, scale, seed: ops.random_gamma(n, 2.0, scale, seed=seed)):
        by_scale = ops.grad(lambda scale, draw=draw: ops.sum(draw(50, scale, seed=5)))(ops.array(2.0))
        assert ops.item(by_scale) == pytest.approx(ops.item(ops.sum(draw(50, 1.0, seed=5))), rel=1e-4)


def test_gradients_reach_what_is_dropped_or_shuffled(backend: str) -> None:
    x = ops.ones((40,))
    gradient = ops.grad(lambda x: ops.sum(ops.dropout(x, 0.5, seed=6)))(x)
    assert values(gradient) == values(ops.dropout(x, 0.5, seed=6))
    shuffled = ops.grad(lambda x: ops.sum(ops.multiply(ops.shuffle(x, seed=1), ops.arange(40.0))))(x)
    assert sorted(values(shuffled)) == list(range(40))


# Streams.


def test_seed_of_the_process(backend: str) -> None:
    ops.seed(11)
    first, second = values(ops.random_uniform(4)), values(ops.random_uniform(4))
    assert first != second
    ops.random.seed(11)
    assert [values(ops.random_uniform(4)), values(ops.random_uniform(4))] == [first, second]
    assert first == values(ops.random_uniform(4, seed=11)) == values(ops.random_uniform(4, seed=ops.Generator(11)))


def test_stream_goes_on_over_a_switch_of_the_backend() -> None:
    found = []
    for order in itertools.permutations(installed_backends()):
        ops.seed(3)
        numbers = []
        for name in order:
            with ember_ml.use_backend(name):
                numbers.append(values(ops.random_normal(5)))
        found.append(numbers)
    assert all(numbers == found[0] for numbers in found)


def test_generator_goes_on_from_draw_to_draw(backend: str) -> None:
    generator = ops.Generator(9)
    keys = [ops.Generator(9).next_key() for _ in range(2)]
    assert keys[0] == keys[1] == key_of(9)
    x, y = (values(ops.random_integers(3, 0, 2**20, seed=generator)) for _ in range(2))
    assert x == values(ops.random_integers(3, 0, 2**20, seed=9)) != y
    assert generator.next_key() == key_of(9, 2)
    generator.skip(2**32)
    assert generator.next_key() == key_of(9, 2**32 + 3)


def test_generators_without_a_seed_differ() -> None:
    assert ops.Generator().next_key() != ops.Generator().next_key()


def test_generator_is_saved_and_restored() -> None:
    generator = ops.Generator(2**64 - 1, native=True)
    generator.skip(2**40)
    saved = json.loads(json.dumps(generator.state()))
    copies = [ops.Generator.from_state(saved), copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))]
    assert [other.state() for other in copies] == [saved] * 3
    want = [generator.next_key() for _ in range(3)]
    assert all([other.next_key() for _ in range(3)] == want for other in copies)
    assert all(other.native for other in copies)


def test_process_stream_is_saved_and_restored(backend: str) -> None:
    ops.seed(5)
    ops.random_uniform(3)
    saved = ops.random.default_generator().state()
    x = values(ops.random_uniform(3))
    ops.seed(ops.Generator.from_state(saved))
    assert values(ops.random_uniform(3)) == x


def test_split_streams_have_nothing_in_common() -> None:
    parent = ops.Generator(1)
    children = [*parent.split(50), *parent.split(50), parent]
    keys = [child.next_key() for child in children for _ in range(20)]
    assert len(set(keys)) == len(keys)
    again = ops.Generator(1).split(50)
    assert [child.next_key() for child in again] == keys[: 50 * 20 : 20]


def test_generators_of_their_own_do_not_disturb_one_another(backend: str) -> None:
    def draw(generator: Any) -> list[Any]:
        return [values(ops.random_uniform(10, seed=generator)) for _ in range(5)]

    want = [draw(generator) for generator in ops.Generator(8).split(4)]
    got: dict[int, Any] = {}
    generators = ops.Generator(8).split(4)
    threads = [threading.Thread(target=lambda i=i, g=g: got.__setitem__(i, draw(g))) for i, g in enumerate(generators)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [got[number] for number in range(4)] == want


def test_process_stream_gives_no_key_twice_to_threads() -> None:
    ops.seed(1)
    keys: list[Any] = []

    def draw() -> None:
        keys.extend([ops.random.default_generator().next_key() for _ in range(500)])

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    want = ops.Generator(1)
    assert sorted(keys) == sorted(want.next_key() for _ in range(2000))


def test_streaming_lends_a_thread_another_stream(backend: str) -> None:
    ops.seed(1)
    seen: list[Any] = []
    with streaming(ops.Generator(77)):
        inside = values(ops.random_uniform(3))
        thread = threading.Thread(target=lambda: seen.append(values(ops.random_uniform(3))))
        thread.start()
        thread.join()
    assert inside == values(ops.random_uniform(3, seed=77))
    assert seen == [values(ops.random_uniform(3, seed=1))]


def test_native_generator_is_reproducible_and_of_its_own(backend: str) -> None:
    for draw in (
        lambda g: ops.random_uniform(50, seed=g),
        lambda g: ops.random_normal(50, 1.0, 2.0, seed=g),
        lambda g: ops.random_uniform(50, dtype="float64", seed=g),
        lambda g: ops.random_uniform(50, dtype="float16", seed=g),
        lambda g: ops.random_bernoulli(50, 0.5, seed=g),
        lambda g: ops.dropout(ops.ones(50), 0.5, seed=g),
    ):
        generator = ops.Generator(4, native=True)
        x, y = values(draw(generator)), values(draw(generator))
        assert x != y
        again = ops.Generator.from_state(ops.Generator(4, native=True).state())
        assert [values(draw(again)), values(draw(again))] == [x, y]
    assert values(ops.random_uniform(50, seed=ops.Generator(4, native=True))) != values(ops.random_uniform(50, seed=4))


def test_portable_tensors_come_out_where_they_went_in(backend: str) -> None:
    x = tensor.ones((4,))
    assert type(ops.dropout(x, 0.5)) is type(ops.shuffle(x)) is type(ops.random_normal(4, x)) is EmberTensor
    assert type(ops.random_choice(x, 2)) is type(ops.random_permutation(x)) is EmberTensor
    assert type(ops.random_categorical(x)) is EmberTensor
    assert type(ops.random_normal(4)) is not EmberTensor
    assert type(tensor.random_normal((4,), seed=1)) is EmberTensor
    assert values(tensor.random_normal((4,), seed=1)) == values(ops.random_normal((4,), seed=1))


def test_short_names_are_the_same_functions() -> None:
    for name, op in OPS.items():
        if op.family in ("sampling", "choosing"):
            assert getattr(ops.random, name.removeprefix("random_")) is op.function


WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ops.random_uniform(2, 1.0, 0.0), ValueError, "maxval - minval"),
    (lambda: ops.random_uniform(2, -3e38, 3e38), ValueError, "maxval - minval"),
    (lambda: ops.random_uniform(2, math.nan, 1.0), ValueError, "maxval - minval"),
    (lambda: ops.random_normal((2, -1)), ValueError, "negative length"),
    (lambda: ops.random_normal(2, stddev=-1.0), ValueError, "stddev"),
    (lambda: ops.random_normal((2, 3), ops.zeros(2)), ValueError, "mean"),
    (lambda: ops.random_normal(2, seed=-1), ValueError, "seed"),
    (lambda: ops.random_normal(2, seed=2**64), ValueError, "seed"),
    (lambda: ops.random_normal(2, seed=1.5), TypeError, "seed"),
    (lambda: ops.random_bernoulli(2, 1.5), ValueError, "from 0 to 1"),
    (lambda: ops.random_bernoulli(2, math.nan), ValueError, "from 0 to 1"),
    (lambda: ops.random_integers(2, 5, 5), ValueError, "no integer"),
    (lambda: ops.random_integers(2, 0, 2.5), TypeError, "maxval"),
    (lambda: ops.random_integers(2, 0, 5, "float32"), TypeError, "integer dtype"),
    (lambda: ops.random_integers(2, 0, 257, "uint8"), OverflowError, "uint8"),
    (lambda: ops.random_integers(2, -1, 7, "uint8"), OverflowError, "uint8"),
    (lambda: ops.random_choice(0, 2), ValueError, "nothing to choose"),
    (lambda: ops.random_choice(3, 4, replace=False), ValueError, "4 different things"),
    (lambda: ops.random_choice(3, 3, replace=False, p=[0.5, 0.5, 0.0]), ValueError, "3 different things"),
    (lambda: ops.random_choice(3, 4, p=[0.5, 0.5]), ValueError, "3 things"),
    (lambda: ops.random_choice(2, 4, p=[0.5, 0.6]), ValueError, "add up to 1"),
    (lambda: ops.random_choice(2, 4, p=[-0.5, 1.5]), ValueError, "negative"),
    (lambda: ops.random_choice(-2, 4), ValueError, "negative"),
    (lambda: ops.random_choice(ops.zeros((2, 3)), 4, axis=2), IndexError, "axis 2"),
    (lambda: ops.random_permutation(ops.zeros((2, 3)), axis=-3), IndexError, "axis -3"),
    (lambda: ops.shuffle(1.0), IndexError, "axis 0 is out of range"),
    (lambda: ops.random_categorical(ops.zeros((2, 0))), ValueError, "no class"),
    (lambda: ops.random_categorical(ops.zeros((2, 2)), -1), ValueError, "negative length"),
    (lambda: ops.random_gamma(2, 0.0), ValueError, "alpha"),
    (lambda: ops.random_gamma(2, 1.0, -1.0), ValueError, "scale"),
    (lambda: ops.random_gamma(2, math.inf), ValueError, "alpha"),
    (lambda: ops.random_beta(2, 1.0, [0.5, 0.0]), ValueError, "beta"),
    (lambda: ops.random_poisson(2, -1.0), ValueError, "lam"),
    (lambda: ops.random_poisson(2, 1e17), ValueError, "lam"),
    (lambda: ops.random_poisson(2, [1.0, 2.0, 3.0]), ValueError, "broadcast"),
    (lambda: ops.random_binomial(2, -1, 0.5), ValueError, "n must"),
    (lambda: ops.random_binomial(2, 1, 1.5), ValueError, "p must"),
    (lambda: ops.dropout([1.0], 1.5), ValueError, "rate"),
    (lambda: ops.dropout([1.0], -0.1), ValueError, "rate"),
    (lambda: ops.seed("abc"), TypeError, "seed"),
    (lambda: ops.Generator.from_state({"key": [1], "counter": 0, "native": False}), ValueError, "state"),
    (lambda: ops.Generator.from_state({"key": [1, 2**32], "counter": 0, "native": False}), ValueError, "32 bits"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_errors_name_what_was_wrong(backend: str, number: int) -> None:
    call, kind, text = WRONG[number]
    with pytest.raises(kind, match=text):
        call()


def test_every_float_dtype_is_offered() -> None:
    assert {dtype.name for dtype in dtypes.FLOATS} == set(FLOATS)
