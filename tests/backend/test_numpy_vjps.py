"""NumPy's own ways back: they are taken, and agree with the rules and bodies that serve every other case."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import ops
from ember_ml.backend.numpy import sliding_windows
from ember_ml.backend.numpy.tape_kernels import vjps


@pytest.fixture(autouse=True)
def on_numpy() -> Iterator[None]:
    before = ember_ml.get_backend()
    ember_ml.set_backend("numpy")
    yield
    ember_ml.set_backend(before)


def _numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


_X, _ROWS, _STACK = _numbers(3, 4), _numbers(5, 4, seed=1), _numbers(2, 3, 4, seed=2)
_VECTOR, _WEIGHT = _numbers(4, seed=3), _numbers(6, 4, seed=4)
_QUERY, _KEY, _VALUE = _numbers(2, 3, 2, 4, seed=5), _numbers(2, 5, 2, 4, seed=6), _numbers(2, 5, 2, 3, seed=7)
_SEEN = np.array([[True, False, True, True, False], [False] * 5, [True] * 5])
_CLASSES = np.array([0, 3, 1])
_IMAGES, _KERNEL = _numbers(2, 5, 6, 3, seed=8), _numbers(2, 3, 3, 4, seed=9)

CASES: dict[str, list[tuple[Callable[..., Any], list[np.ndarray]]]] = {
    "add": [(ops.add, [_X, _X]), (ops.add, [_STACK, _VECTOR]), (ops.add, [_numbers(3, 1), _X])],
    "subtract": [(ops.subtract, [_X, _VECTOR]), (ops.subtract, [_numbers(1, 4), _X])],
    "multiply": [(ops.multiply, [_STACK, _VECTOR]), (lambda x: ops.multiply(x, 2.0), [_X])],
    "matmul": [
        (ops.matmul, [_X, _WEIGHT.T]),
        (ops.matmul, [_STACK, _WEIGHT.T]),
        (ops.matmul, [_STACK, _numbers(2, 4, 5)]),
        (ops.matmul, [_STACK, _numbers(4, 5)[None]]),
        (ops.matmul, [_VECTOR, _WEIGHT.T]),
    ],
    "linear": [
        (ops.linear, [_X, _WEIGHT, _numbers(6)]),
        (ops.linear, [_STACK, _WEIGHT]),
        (ops.linear, [_VECTOR, _WEIGHT, _numbers(6)]),
        (lambda weight: ops.linear(ops.cast(_X, weight.dtype), weight), [_WEIGHT]),
    ],
    "relu": [(ops.relu, [_X])],
    "sigmoid": [(ops.sigmoid, [_X])],
    "tanh": [(ops.tanh, [_X])],
    "silu": [(ops.silu, [_X * 10])],
    "gelu": [(ops.gelu, [_X * 10]), (lambda x: ops.gelu(x, approximate=False), [_X * 3])],
    "softmax": [(ops.softmax, [_STACK]), (lambda x: ops.softmax(x, 0), [_X])],
    "mean": [(ops.mean, [_STACK]), (lambda x: ops.mean(x, 1), [_STACK])],
    "sum": [(ops.sum, [_STACK]), (lambda x: ops.sum(x, (0, 2)), [_STACK])],
    "sparse_categorical_crossentropy": [
        (lambda z: ops.sparse_categorical_crossentropy(_CLASSES, z, from_logits=True), [_X]),
        (lambda z: ops.sparse_categorical_crossentropy(_CLASSES[:2, None] * [1, 1, 1], z, from_logits=True), [_STACK]),
        (lambda z: ops.sparse_categorical_crossentropy(_CLASSES, ops.exp(z)), [_X]),
    ],
    "layer_normalization": [
        (ops.layer_normalization, [_STACK, _VECTOR, _VECTOR + 1]),
        (ops.layer_normalization, [_X]),
        (lambda x, beta: ops.layer_normalization(x, None, beta, axis=0), [_X, _numbers(3)]),
    ],
    "rms_normalization": [(ops.rms_normalization, [_STACK, _VECTOR]), (ops.rms_normalization, [_X])],
    "moments_normalization": [
        (lambda *x: ops.moments_normalization(x[0], -1, *x[1:])[0], [_STACK, _VECTOR, _VECTOR + 1]),
        (lambda x: ops.moments_normalization(x, 1)[0], [_STACK]),
        (lambda x, scale: ops.moments_normalization(x, 0, None, scale)[0], [_X, _numbers(3)]),
        (lambda x: ops.moments_normalization(x, epsilon=0.1)[0], [_numbers(3100, 2)]),
    ],
    "conv": [
        (lambda *x: ops.conv(*x, padding="same"), [_IMAGES, _KERNEL]),
        (lambda *x: ops.conv(*x, (1, 2), ((2, 0), 1), dilation_rate=(2, 1)), [_IMAGES, _KERNEL]),
        (lambda *x: ops.conv(*x, 2, 1, "channels_first"), [_numbers(2, 3, 5, 6), _KERNEL]),
        (lambda *x: ops.conv(*x, 2), [_IMAGES, _numbers(1, 1, 3, 2)]),
        (lambda *x: ops.conv(*x), [_IMAGES, _numbers(1, 1, 3, 2)]),
        (lambda *x: ops.conv(*x, padding="causal"), [_numbers(2, 5, 3), _numbers(2, 3, 4)]),
        (lambda *x: ops.conv(*x, padding=1), [_numbers(1, 3, 4, 2, 2), _numbers(2, 3, 2, 2, 3)]),
        (lambda *x: ops.conv(*x), [_numbers(2, 5, 4), _numbers(2, 2, 4)]),  # two groups, by the rules
        (lambda kernel: ops.conv(ops.cast(_IMAGES, kernel.dtype), kernel), [_KERNEL]),
        (lambda *x: ops.conv(*x), [_numbers(3, 300, 1), _numbers(2, 1, 1)]),
    ],
    "max_pool": [
        (lambda x: ops.max_pool(x, 2), [_IMAGES]),
        (lambda x: ops.max_pool(x, 3, 2, 1), [_IMAGES]),
        (lambda x: ops.max_pool(x, (2, 3), 1, "same", "channels_first"), [_IMAGES]),
        (lambda x: ops.max_pool(x, 3, 1, "same"), [_numbers(2, 6, 2)]),
    ],
    "dot_product_attention": [
        (ops.dot_product_attention, [_QUERY, _KEY, _VALUE]),
        (lambda *x: ops.dot_product_attention(*x, is_causal=True, scale=0.3), [_QUERY, _KEY, _VALUE]),
        (lambda *x: ops.dot_product_attention(*x, is_causal=True), [_KEY, _QUERY, _QUERY]),
        (lambda *x: ops.dot_product_attention(*x, mask=_SEEN), [_QUERY, _KEY, _VALUE]),
        (lambda *x: ops.dot_product_attention(*x), [_QUERY, _KEY, _VALUE, _numbers(3, 5)]),
        (lambda *x: ops.dot_product_attention(*x), [_QUERY, _KEY[:, :, :1], _VALUE[:, :, :1]]),
    ],
}
PAIRS = [pytest.param(f, x, id=f"{name}-{place}") for name in CASES for place, (f, x) in enumerate(CASES[name])]


def test_every_adjoint_has_a_case() -> None:
    assert CASES.keys() == vjps.keys()


def _weighted(f: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of what ``f`` gives, times numbers that differ, so that gradients do."""

    def total(*x: Any) -> Any:
        y = f(*x)
        weights = np.cos(np.arange(ops.size(y))).reshape(y.shape).astype(str(y.dtype))
        return ops.sum(ops.multiply(y, weights))

    return total


@pytest.mark.parametrize(("f", "x"), PAIRS)
def test_adjoint_agrees_with_the_rules(f: Callable[..., Any], x: list[np.ndarray]) -> None:
    """The derivative along a tangent is found by differentiating a pullback, which goes through the rules."""
    total = _weighted(f)
    value, gradients = ops.value_and_grad(total, tuple(range(len(x))))(*x)
    np.testing.assert_allclose(value, total(*x), rtol=1e-12)
    for seed in range(2):
        tangents = [_numbers(*part.shape, seed=seed + 10) for part in x]
        _, slope = ops.jvp(total, x, tangents)
        along = sum(float(np.sum(g * t)) for g, t in zip(gradients, tangents, strict=True))
        np.testing.assert_allclose(along, float(slope), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("block", [1, 40, 100, 600])
@pytest.mark.parametrize("kernel", [_KERNEL, _numbers(1, 1, 3, 2)])
def test_convolutions_are_the_same_block_by_block(
    kernel: np.ndarray, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def results() -> list[np.ndarray]:
        y = ops.conv(_IMAGES, kernel, (1, 2), 1)
        return [y, *ops.grad(_weighted(lambda *x: ops.conv(*x, (1, 2), 1)), (0, 1))(_IMAGES, kernel)]

    before = results()
    monkeypatch.setattr(sliding_windows, "_BLOCK", block)
    for found, want in zip(results(), before, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rows", [65_000, 300_001])
def test_gradients_of_offsets_keep_the_digits_of_many_rows(rows: int) -> None:
    factors = np.abs(_numbers(rows, 2)).astype("float32")
    for f in (
        lambda x, b: ops.linear(x, np.eye(2, dtype="float32"), b),
        lambda x, b: ops.moments_normalization(x, -1, b)[0],
    ):
        found = ops.grad(lambda b, f=f: ops.sum(ops.multiply(f(factors, b), factors)))(np.zeros(2, "float32"))
        np.testing.assert_allclose(found, factors.astype("float64").sum(axis=0), rtol=2e-6)


def test_the_first_of_equal_elements_gets_the_gradient_of_a_window() -> None:
    def pool(x: Any) -> Any:
        return ops.max_pool(x, 3, 2, 1)

    x, places = np.zeros((1, 5, 2)), np.arange(10.0).reshape(1, 5, 2)
    x[0, 3, 1] = np.nan
    found = ops.grad(lambda x: ops.sum(pool(x)))(x)
    np.testing.assert_array_equal(found[0], [[1, 1], [1, 1], [0, 0], [1, 1], [0, 0]])
    # by the rules: each gradient is multiplied by the number at the place where it went
    pull = ops.vjp(pool, x)[1]
    by_rules = ops.grad(lambda g: ops.sum(ops.multiply(pull(g)[0], places)))(np.ones((1, 3, 2)))
    np.testing.assert_array_equal(by_rules[0], [[0, 1], [2, 3], [6, 7]])


@pytest.mark.parametrize("value", [-np.inf, np.nan])
def test_padding_takes_no_gradient_from_elements_that_are_not_larger(value: float) -> None:
    x, places = np.full((1, 4, 1), value), np.arange(4.0).reshape(1, 4, 1)
    pull = ops.vjp(lambda x: ops.max_pool(x, 3, 2, 1), x)[1]
    np.testing.assert_array_equal(pull(np.ones((1, 2, 1)))[0].ravel(), [1, 1, 0, 0])
    by_rules = ops.grad(lambda g: ops.sum(ops.multiply(pull(g)[0], places)))(np.ones((1, 2, 1)))
    np.testing.assert_array_equal(by_rules.ravel(), [0, 1])


@pytest.mark.parametrize("name", sorted(CASES))
def test_adjoint_is_taken(name: str) -> None:
    f, x = CASES[name][0]
    results = []

    def total(*parts: Any) -> Any:
        results.append(f(*parts))
        return ops.sum(results[0])

    ops.grad(total)(*x)
    (found,) = results
    assert found.node.plan.vjp is vjps[name][1]


@pytest.mark.parametrize(("f", "x"), PAIRS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_gradients_have_the_dtype_and_shape_of_their_arguments(
    dtype: str, f: Callable[..., Any], x: list[np.ndarray]
) -> None:
    parts = [ops.cast(part, dtype) for part in x]
    gradients = ops.grad(_weighted(f), tuple(range(len(x))))(*parts)
    assert [(ops.dtype(g), g.shape) for g in gradients] == [(dtype, part.shape) for part in parts]
    wide = ops.grad(_weighted(f), tuple(range(len(x))))(*(ops.cast(part, "float64") for part in parts))
    error = {"float16": 0.05, "bfloat16": 0.4, "float32": 1e-5, "float64": 0.0}[dtype]
    for got, want in zip(gradients, wide, strict=True):
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=error, atol=error * np.abs(want).max())


@pytest.mark.parametrize("number", [0.0, 1e4, -1e4, 1e30, -1e30, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["gelu", "silu", "sigmoid", "tanh", "relu"])
def test_extremes_pass_without_a_warning(name: str, number: float) -> None:
    x = np.full((2, 3), number, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, gradient = ops.value_and_grad(lambda x: ops.sum(getattr(ops, name)(x)))(x)
    if np.isfinite(number):
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()
    np.testing.assert_array_equal(value, np.sum(getattr(ops, name)(x)))


def test_gradients_that_share_memory_stay_apart() -> None:
    """Three uses of one tensor: their gradients are added up in place, and no other gradient changes."""
    x, y = _numbers(3, 4).astype(np.float32), _numbers(3, 4, seed=1).astype(np.float32)

    def f(x: Any, y: Any) -> Any:
        z = ops.add(x, y)
        return ops.sum(ops.add(ops.add(ops.add(z, x), x), ops.multiply(x, y)))

    by_x, by_y = ops.grad(f, (0, 1))(x, y)
    np.testing.assert_allclose(by_x, 3 + y, rtol=1e-6)
    np.testing.assert_allclose(by_y, 1 + x, rtol=1e-6)
