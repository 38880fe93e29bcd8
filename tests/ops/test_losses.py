"""Losses: probabilities of 0 and 1, large logits, half precision, gradients where they are easily lost, CTC."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends
from tests.reference import as_array, close
from tests.reference.losses import ctc_by_states, random_sequences

ELEMENTWISE = ["mean_squared_error", "mean_absolute_error", "huber_loss", "log_cosh_loss", "binary_crossentropy"]
DISTRIBUTIONS = ["kl_divergence", "categorical_crossentropy"]


def _lists(result: Any) -> Any:
    return ops.to_numpy(ops.cast(result, "float64")).tolist()


def _shares(*shape: int, dtype: str = "float32") -> Any:
    """Probabilities along the last axis."""
    x = ops.sin(ops.multiply(ops.arange(math.prod(shape), dtype="float64"), 1.7))
    return ops.cast(ops.softmax(ops.reshape(ops.multiply(x, 3.0), shape)), dtype)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_axis_says_what_is_averaged(name: str, backend: str) -> None:
    loss = getattr(ops, name)
    target, output = _shares(2, 3, 4), ops.flip(_shares(2, 3, 4), axis=-1)
    elements = loss(target, output, axis=())
    assert ops.shape(elements) == (2, 3, 4)
    assert _lists(loss(target, output)) == pytest.approx(as_array(_lists(ops.mean(elements, axis=-1))), rel=1e-6)
    assert _lists(loss(target, output, axis=(0, 2))) == pytest.approx(_lists(ops.mean(elements, axis=(0, 2))), rel=1e-6)
    assert _lists(loss(target, output, axis=None)) == pytest.approx(_lists(ops.mean(elements)), rel=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", [*ELEMENTWISE, *DISTRIBUTIONS])
def test_half_precision_is_float32_rounded_once(name: str, dtype: str, backend: str) -> None:
    loss = getattr(ops, name)
    target, output = _shares(6, 5, dtype=dtype), ops.flip(_shares(6, 5, dtype=dtype), axis=0)
    found = loss(target, output)
    assert str(ops.dtype(found)) == dtype
    wide = loss(ops.cast(target, "float32"), ops.cast(output, "float32"))
    assert _lists(found) == _lists(ops.cast(wide, dtype))


def test_half_precision_of_squares_that_it_cannot_hold(backend: str) -> None:
    target, output = ops.zeros((1, 4), dtype="float16"), ops.array([[400.0, 0.0, 0.0, 0.0]], dtype="float16")
    assert _lists(ops.mean_squared_error(target, output)) == [40000.0]


@pytest.mark.parametrize("backend_name", installed_backends())
@given(error=st.floats(-(2.0**100), 2.0**100, width=32), delta=st.sampled_from((0.1, 1.0, 7.0)))
def test_huber_and_log_cosh_of_any_size(backend_name: str, error: float, delta: float) -> None:
    with ember_ml.use_backend(backend_name):
        size = abs(error)
        wanted = size * size / 2 if size <= delta else delta * (size - delta / 2)
        assert _lists(ops.huber_loss([0.0], [error], delta)) == pytest.approx(wanted, rel=1e-6, abs=1e-37)
        wanted = math.log1p(2 * math.sinh(size / 2) ** 2) if size < 100 else size - math.log(2)
        assert _lists(ops.log_cosh_loss([0.0], [error])) == pytest.approx(wanted, rel=1e-6, abs=1e-37)


def test_probabilities_of_0_and_1(backend: str) -> None:
    least = -math.log(1e-7)
    target, output = [[1.0, 1.0, 0.0, 0.0]], [[1.0, 0.0, 1.0, 0.0]]
    assert _lists(ops.binary_crossentropy(target, output, axis=()))[0] == pytest.approx([0.0, least, least, 0.0])
    assert _lists(ops.categorical_crossentropy([[1.0, 0.0]], [[1.0, 0.0]])) == [0.0]
    assert _lists(ops.categorical_crossentropy([[0.0, 1.0]], [[1.0, 0.0]])) == pytest.approx([least])
    assert _lists(ops.sparse_categorical_crossentropy([0, 1], [[1.0, 0.0], [1.0, 0.0]])) == pytest.approx([0.0, least])
    assert _lists(ops.kl_divergence([[1.0, 0.0]], [[1.0, 0.0]])) == [0.0]
    assert _lists(ops.kl_divergence([[0.0, 1.0]], [[1.0, 0.0]])) == pytest.approx([least])


def test_small_probabilities_keep_their_digits(backend: str) -> None:
    found = _lists(ops.binary_crossentropy([[0.0, 0.0]], [[3e-6, 1e-9]], axis=()))[0]
    assert found == pytest.approx([3.0000045e-6, 1e-9], rel=1e-6, abs=0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_large_logits(dtype: str, backend: str) -> None:
    target = ops.array([[1.0, 0.0, 1.0, 0.0]], dtype=dtype)
    output = ops.array([[1e4, 1e4, -1e4, -1e4]], dtype=dtype)
    assert _lists(ops.binary_crossentropy(target, output, True, ())) == [[0.0, 1e4, 1e4, 0.0]]
    output = ops.array([[1e4, -1e4]] * 2, dtype=dtype)
    assert _lists(ops.sparse_categorical_crossentropy([0, 1], output, True)) == [0.0, 2e4]
    target = ops.array([[1.0, 0.0], [0.0, 1.0]], dtype=dtype)
    assert _lists(ops.categorical_crossentropy(target, output, True)) == [0.0, 2e4]


def test_logits_and_probabilities_agree(backend: str) -> None:
    logits = ops.multiply(ops.log(_shares(4, 5, dtype="float64")), 2.0)
    target = _shares(4, 5, dtype="float64")
    for loss in (ops.categorical_crossentropy, ops.kl_divergence):
        assert ops.shape(loss(target, target)) == (4,)
    by_logits = ops.categorical_crossentropy(target, logits, from_logits=True)
    by_shares = ops.categorical_crossentropy(target, ops.multiply(ops.softmax(logits), 7.0))  # any common factor
    assert _lists(by_logits) == pytest.approx(_lists(by_shares), rel=1e-12)
    by_logits = ops.binary_crossentropy(target, logits, from_logits=True)
    assert _lists(by_logits) == pytest.approx(_lists(ops.binary_crossentropy(target, ops.sigmoid(logits))), rel=1e-12)


def test_divergence_is_the_excess_of_crossentropy(backend: str) -> None:
    target, output = _shares(4, 5, dtype="float64"), ops.flip(_shares(4, 5, dtype="float64"), axis=0)
    excess = ops.subtract(ops.categorical_crossentropy(target, output), ops.categorical_crossentropy(target, target))
    assert _lists(ops.kl_divergence(target, output)) == pytest.approx(_lists(excess), rel=1e-9, abs=1e-12)


def test_classes_along_any_axis(backend: str) -> None:
    output = _shares(2, 3, 4)
    classes = ops.array([[0, 3, 1], [2, 2, 0]], dtype="int32")
    last = ops.sparse_categorical_crossentropy(classes, output)
    middle = ops.sparse_categorical_crossentropy(classes, ops.moveaxis(output, -1, 1), axis=1)
    assert _lists(last) == _lists(middle)
    assert _lists(last) == as_array(_lists(ops.categorical_crossentropy(ops.one_hot(classes, 4), output))).tolist()


def test_a_masked_class_costs_nothing_and_has_no_gradient(backend: str) -> None:
    output = ops.array([[0.0, 0.0, -math.inf]])
    target = ops.array([[0.5, 0.5, 0.0]])
    assert _lists(ops.categorical_crossentropy(target, output, True)) == pytest.approx([math.log(2)])

    def loss(output: Any) -> Any:
        return ops.sum(ops.categorical_crossentropy(target, output, True))

    assert _lists(ops.grad(loss)(output))[0] == pytest.approx([0.0, 0.0, 0.0])
    by_class = ops.grad(lambda output: ops.sum(ops.sparse_categorical_crossentropy([0], output, True)))
    assert _lists(by_class(output))[0] == pytest.approx([-0.5, 0.5, 0.0])


@pytest.mark.parametrize("name", [*ELEMENTWISE, *DISTRIBUTIONS])
def test_gradients_are_finite_at_0_and_1(name: str, backend: str) -> None:
    target, output = ops.array([[1.0, 0.0, 0.0, 1.0]]), ops.array([[1.0, 0.0, 1.0, 0.0]])
    by_target, by_output = ops.grad(lambda t, o: ops.sum(getattr(ops, name)(t, o)), (0, 1))(target, output)
    assert all(map(math.isfinite, _lists(by_target)[0] + _lists(by_output)[0]))


def test_gradient_at_equal_chances(backend: str) -> None:
    gradient = ops.grad(lambda output: ops.sum(ops.binary_crossentropy([0.0, 1.0], output, axis=())))
    assert _lists(gradient(ops.array([0.5, 0.5]))) == pytest.approx([2.0, -2.0])


@pytest.mark.parametrize("dtype", ["uint8", "int64"])
def test_gradient_by_logits_whose_columns_lie_in_memory_one_by_one(dtype: str, backend: str) -> None:
    classes = [2, 0, 1, 2]
    target, columns = ops.array(classes, dtype=dtype), ops.array([[0.5, -1.0, 2.0, 0.0]] * 2 + [[1.0, 3.0, 0.0, 0.0]])

    def loss(x: Any) -> Any:
        return ops.sum(ops.sparse_categorical_crossentropy(target, ops.transpose(x), from_logits=True))

    powers = [[math.exp(x) for x in row] for row in zip(*_lists(columns), strict=True)]
    want = [[p / sum(row) - (k == c) for k, p in enumerate(row)] for row, c in zip(powers, classes, strict=True)]
    assert as_array(_lists(ops.transpose(ember_ml.grad(loss)(columns)))) == pytest.approx(as_array(want), abs=1e-6)


def test_mistakes(backend: str) -> None:
    for name in (*ELEMENTWISE, *DISTRIBUTIONS):
        with pytest.raises(ValueError, match=rf"{name}.*\(3,\).*\(3, 1\)"):
            getattr(ops, name)(ops.ones(3), ops.ones((3, 1)))
    output = ops.ones((2, 3))
    for bad in ([0, 3], [-1, 0]):
        with pytest.raises(IndexError, match=r"index (3|-1) is out of bounds"):
            ops.sparse_categorical_crossentropy(bad, output)
    with pytest.raises(ValueError, match=r"\(2, 1\)"):
        ops.sparse_categorical_crossentropy([[0], [1]], output)
    with pytest.raises(IndexError, match="integers"):
        ops.sparse_categorical_crossentropy([0.0, 1.0], output)
    with pytest.raises(IndexError):
        ops.categorical_crossentropy(output, output, axis=2)
    with pytest.raises(TypeError):
        ops.mean_squared_error(ops.array([1j]), ops.array([1j]))


def test_no_samples(backend: str) -> None:
    nothing = ops.zeros((0, 3))
    for name in (*ELEMENTWISE, *DISTRIBUTIONS):
        assert ops.shape(getattr(ops, name)(nothing, nothing)) == (0,)
    classes = ops.zeros((0,), dtype="int64")
    assert ops.shape(ops.sparse_categorical_crossentropy(classes, nothing, True)) == (0,)
    sequences = ops.zeros((0, 2), dtype="int64")
    assert ops.shape(ops.ctc_loss(sequences, ops.zeros((0, 5, 3)), classes, classes)) == (0,)


def test_ctc_of_long_sequences(backend: str) -> None:
    sequences = random_sequences(batch=3, frames=300, labels=60, classes=12)
    wanted = ctc_by_states(*sequences)
    found = ops.ctc_loss(*(ops.asarray(part) for part in sequences))
    assert close(ops.to_numpy(found), wanted, 8) is None


def test_ctc_ignores_what_lies_beyond_the_lengths(backend: str) -> None:
    output = ops.array([[[0.5, 0.1, -0.3], [0.2, 0.9, 0.4], [1.0, -1.0, 0.3]]])
    alone = ops.ctc_loss([[1]], output[:, :2], [1], [2])
    padded = ops.ctc_loss([[1, -5, 99]], output, [1], [2])
    assert _lists(padded) == _lists(alone)


def test_ctc_with_another_blank(backend: str) -> None:
    output = ops.array([[[0.5, 0.1, -0.3], [0.2, 0.9, 0.4], [1.0, -1.0, 0.3]]])
    turned = ops.roll(output, -1, axis=2)  # class 0 becomes 2, 1 becomes 0
    assert _lists(ops.ctc_loss([[1]], output, [1], [3])) == pytest.approx(
        _lists(ops.ctc_loss([[0]], turned, [1], [3], mask_index=2)), rel=1e-6
    )


def test_ctc_of_what_cannot_be_spelled(backend: str) -> None:
    output = ops.zeros((2, 2, 3))
    arguments = [[1, 1], [1, 2]], [2, 2], [2, 2]  # a repetition needs a blank between: three frames
    found = _lists(ops.ctc_loss(arguments[0], output, *arguments[1:]))
    assert found[0] == math.inf
    assert found[1] == pytest.approx(2 * math.log(3))

    def loss(output: Any) -> Any:
        return ops.sum(ops.minimum(ops.ctc_loss(arguments[0], output, *arguments[1:]), 100.0))

    gradient = _lists(ops.grad(loss)(output))
    assert gradient[0] == [[0.0] * 3] * 2
    assert gradient[1][0] == pytest.approx([1 / 3, -2 / 3, 1 / 3])


def test_ctc_with_a_masked_class(backend: str) -> None:
    output = ops.array([[[0.0, 0.0, -math.inf]] * 2])
    assert _lists(ops.ctc_loss([[1], [2]], ops.concatenate([output] * 2), [1, 1], [2, 2])) == [
        pytest.approx(-math.log(0.75)),
        math.inf,
    ]
    gradient = ops.grad(lambda output: ops.sum(ops.ctc_loss([[1]], output, [1], [2])))(output)
    assert all(math.isfinite(value) for frame in _lists(gradient)[0] for value in frame)


def test_ctc_mistakes(backend: str) -> None:
    output = ops.zeros((2, 4, 3))
    with pytest.raises(ValueError, match="3 dimensions"):
        ops.ctc_loss([[1]], output[0], [1], [2])
    with pytest.raises(ValueError, match="batches"):
        ops.ctc_loss([[1]], output, [1], [2])
    with pytest.raises(ValueError, match="mask_index"):
        ops.ctc_loss([[1], [1]], output, [1, 1], [2, 2], mask_index=3)
    for labels, lengths, frames in (
        ([[3], [1]], [1, 1], [4, 4]),
        ([[-1], [1]], [1, 1], [4, 4]),
        ([[1], [1]], [2, 1], [4, 4]),
        ([[1], [1]], [1, 1], [4, 5]),
    ):
        with pytest.raises(IndexError):
            ops.ctc_loss(labels, output, lengths, frames)
