"""Activations: half precision is rounded once, extremes have their limits, and mistakes are named."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends

ELEMENTWISE = [
    *("relu", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "sigmoid", "log_sigmoid"),
    *("hard_sigmoid", "hard_silu", "hard_tanh", "tanh_shrink", "softplus", "softsign", "squareplus", "hard_shrink"),
    "soft_shrink",
]
ALONG_AXIS = ["softmax", "log_softmax", "sparsemax", "glu"]
PRODUCTS = ["silu", "mish", "gelu", "hard_silu"]


def _lists(result: Any) -> Any:
    return ops.to_numpy(ops.cast(result, "float64")).tolist()


def _numbers(count: int, dtype: str = "float32") -> Any:
    """Numbers of both signs and of every size that activations tell apart."""
    return ops.cast(ops.multiply(ops.sin(ops.arange(count, dtype="float64")), ops.linspace(0.0, 12.0, count)), dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", [*ELEMENTWISE, *ALONG_AXIS])
def test_half_precision_is_float32_rounded_once(name: str, dtype: str, backend: str) -> None:
    x = _numbers(400, dtype)
    activation = getattr(ops, name)
    found = activation(x)
    assert ops.dtype(found) == ember_ml.core.dtypes.as_dtype(dtype)
    assert _lists(found) == _lists(ops.cast(activation(ops.cast(x, "float32")), dtype))


@pytest.mark.parametrize("name", [*ELEMENTWISE, "softmax", "log_softmax", "sparsemax"])
def test_nan_stays_nan_and_nothing_stays_nothing(name: str, backend: str) -> None:
    activation = getattr(ops, name)
    assert math.isnan(_lists(activation([math.nan]))[0])
    assert ops.shape(activation(ops.zeros((0, 3)))) == (0, 3)
    assert ops.shape(activation(ops.zeros((3, 0)))) == (3, 0)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_single_number_is_enough(name: str, backend: str) -> None:
    activation = getattr(ops, name)
    assert ops.shape(activation(0.5)) == ()
    assert _lists(activation(ops.array(0.5))) == _lists(activation(ops.array([0.5])))[0]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_the_largest_numbers_have_their_limits(name: str, backend: str) -> None:
    activation = getattr(ops, name)
    largest, smallest = _lists(activation([3e38, -3e38]))
    assert not math.isnan(largest)
    assert not math.isnan(smallest)
    if name in (*PRODUCTS, "tanh_shrink", "softplus", "squareplus", "hard_shrink", "soft_shrink"):
        assert largest == pytest.approx(3e38, rel=1e-6)
    if name in (*PRODUCTS, "softplus", "squareplus"):
        assert abs(smallest) < 1e-37


@pytest.mark.parametrize("name", PRODUCTS)
def test_what_is_no_product_is_nan(name: str, backend: str) -> None:
    assert str(_lists(getattr(ops, name)([math.inf, -math.inf]))) == "[inf, nan]"


def test_exact_gelu_at_the_largest_numbers(backend: str) -> None:
    found = _lists(ops.gelu([math.inf, 3e38, 20.0, -20.0, -3e38], approximate=False))
    assert found[0] == math.inf
    assert found[1:3] == pytest.approx([3e38, 20.0])
    assert found[3:] == pytest.approx([0.0, 0.0], abs=1e-37)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled_exact_gelu_keeps_the_digits_of_its_tail_and_its_derivatives(dtype: str, backend: str) -> None:
    numbers = ops.to_numpy(ops.cast(ops.linspace(-9.0, 9.0, 385), "float64"))  # exact in float32
    x = ops.asarray(numbers, dtype)
    density = [math.exp(-v * v / 2) / math.sqrt(2 * math.pi) for v in numbers]
    below = [math.erfc(-v / math.sqrt(2)) / 2 for v in numbers]

    def activation(x: Any) -> Any:
        return ops.gelu(x, approximate=False)

    def total(x: Any) -> Any:
        return ops.sum(activation(x))

    slope = ember_ml.grad(total)
    compiled = {name: ember_ml.compile(f) for name, f in (("value", activation), ("slope", slope))}
    compiled["mapped"] = ember_ml.compile(ember_ml.vmap(ember_ml.grad(activation)))
    compiled["bend"] = ember_ml.compile(ember_ml.grad(lambda x: ops.sum(slope(x))))
    values = [v * b for v, b in zip(numbers, below, strict=True)]
    slopes = [b + v * d for v, b, d in zip(numbers, below, density, strict=True)]
    bends = [(2 - v * v) * d for v, d in zip(numbers, density, strict=True)]
    least = 1e-12 if dtype == "float64" else 2e-5  # exp(-x * x / 2) has the error of x * x
    on_gpu = 1e-7 if backend == "torch" and ops.get_device(x) != "cpu" else 0  # PyTorch's own kernel
    assert _lists(compiled["value"](x)) == pytest.approx(values, rel=least, abs=on_gpu)
    assert _lists(compiled["slope"](x)) == pytest.approx(slopes, rel=0, abs=1e-6)
    assert _lists(compiled["mapped"](x)) == pytest.approx(slopes, rel=0, abs=1e-6)
    assert _lists(compiled["bend"](x)) == pytest.approx(bends, rel=0, abs=1e-6)


def test_double_precision_is_kept(backend: str) -> None:
    x = ops.array([-0.3, 30.0], dtype="float64")
    assert _lists(ops.softplus(x)) == pytest.approx([0.5543552444685271, 30.000000000000092], rel=1e-15, abs=0)
    assert _lists(ops.gelu(x, approximate=False)) == pytest.approx([-0.1146265733433142, 30.0], rel=1e-15, abs=0)


@pytest.mark.parametrize("backend_name", installed_backends())
@given(values=st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=12))
def test_probabilities_sum_to_one(backend_name: str, values: list[float]) -> None:
    with ember_ml.use_backend(backend_name):
        for activation in (ops.softmax, ops.sparsemax):
            found = _lists(activation(values))
            assert sum(found) == pytest.approx(1.0, abs=2e-6)
            assert min(found) >= 0.0


@pytest.mark.parametrize("backend_name", installed_backends())
@given(x=st.floats(-80, 80, width=32))
def test_identities(backend_name: str, x: float) -> None:
    with ember_ml.use_backend(backend_name):
        (near,) = _lists(ops.sigmoid([x]))
        (far,) = _lists(ops.sigmoid([-x]))
        assert near + far == pytest.approx(1.0, abs=3e-7)
        (up,), (down,) = _lists(ops.softplus([x])), _lists(ops.softplus([-x]))
        assert up - down == pytest.approx(x, abs=1e-5)
        assert _lists(ops.log_sigmoid([x]))[0] == pytest.approx(-down, rel=3e-7)


def test_sparsemax_leaves_out_low_scores_and_does_not_mind_a_shift(backend: str) -> None:
    scores = [[1.0, 0.8, 0.1, -5.0], [2.0, 2.0, 2.0, 2.0]]
    found = _lists(ops.sparsemax(scores))
    assert found[0] == pytest.approx([0.6, 0.4, 0.0, 0.0], abs=1e-7)
    assert found[1] == [0.25] * 4
    assert _lists(ops.sparsemax(ops.add(scores, 1000.0)))[1] == [0.25] * 4
    assert _lists(ops.sparsemax(ops.transpose(ops.array(scores)), axis=0)) == _lists(ops.transpose(ops.array(found)))


def test_sparsemax_of_many_scores(backend: str) -> None:
    found = ops.sparsemax(ops.multiply(_numbers(20_000), 1e-4))
    assert sum(_lists(found)) == pytest.approx(1.0, abs=1e-5)


def test_softmax_ignores_what_is_masked(backend: str) -> None:
    assert _lists(ops.softmax([1000.0, 1000.0, -math.inf])) == [0.5, 0.5, 0.0]
    assert str(_lists(ops.sparsemax([-math.inf, -math.inf]))) == "[nan, nan]"


def test_integers_are_lifted_except_where_nothing_needs_a_fraction(backend: str) -> None:
    assert str(ops.dtype(ops.relu(ops.array([-1, 2])))) == "int64"
    assert str(ops.dtype(ops.relu6(ops.array([-1, 9], dtype="int8")))) == "int8"
    assert str(ops.dtype(ops.silu(ops.array([1, 2])))) == "float32"


def test_swish_is_silu() -> None:
    assert ops.swish is ops.silu


@pytest.mark.parametrize("name", ALONG_AXIS)
def test_wrong_axis(name: str, backend: str) -> None:
    with pytest.raises(IndexError, match=name):
        getattr(ops, name)(ops.ones((2, 2)), axis=2)
    with pytest.raises(IndexError):
        getattr(ops, name)(ops.array(1.0))


def test_glu_needs_two_halves(backend: str) -> None:
    with pytest.raises(ValueError, match="glu"):
        ops.glu(ops.ones((2, 3)))


@pytest.mark.parametrize("name", [*ELEMENTWISE, *ALONG_AXIS])
def test_complex_numbers_are_refused(name: str, backend: str) -> None:
    with pytest.raises(TypeError, match=name):
        getattr(ops, name)(ops.array([1j, 1.0]))


def test_settings_without_a_meaning(backend: str) -> None:
    x = ops.array([-1.0, 0.0, 2.0])
    with pytest.raises(ValueError, match="celu"):
        ops.celu(x, alpha=0.0)
    for threshold in (-1.0, math.nan):
        with pytest.raises(ValueError, match="soft_shrink"):
            ops.soft_shrink(x, threshold)
