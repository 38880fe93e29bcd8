"""Pooling: what the contract's generic tests cannot see."""

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
from tests.reference import convolutions as reference
from tests.reference.matrices import random


def _row(values: list[float]) -> Any:
    return ops.reshape(ops.array(values), (1, len(values), 1))


def test_padding_is_no_candidate_for_the_largest_element(backend: str) -> None:
    got = ops.max_pool(_row([-3.0, -2.0, -5.0]), 3, 1, "same")
    assert ops.to_numpy(got).ravel().tolist() == [-2.0, -2.0, -2.0]
    for dtype in ("int8", "uint16", "uint64", "int64"):
        lowest = int(ops.iinfo(dtype).min)
        x = ops.full((1, 3, 1), lowest, dtype=dtype)
        assert ops.to_numpy(ops.max_pool(x, 2, 1, "same")).ravel().tolist() == [lowest] * 3


def test_padding_is_no_term_of_the_average(backend: str) -> None:
    got = ops.average_pool(_row([3.0, 3.0, 3.0, 3.0]), 3, 2, [(2, 1)])
    assert ops.to_numpy(got).ravel().tolist() == [3.0, 3.0, 3.0]
    image = ops.full((1, 5, 4, 1), 7.0)
    assert ops.to_numpy(ops.average_pool(image, (2, 3), 2, "same")).ravel().tolist() == [7.0] * 6


def test_infinities_and_nan(backend: str) -> None:
    x = _row([1.0, math.nan, -math.inf, -math.inf, math.inf, 2.0])
    largest = ops.to_numpy(ops.max_pool(x, 2)).ravel().tolist()
    assert math.isnan(largest[0])
    assert largest[1:] == [-math.inf, math.inf]
    average = ops.to_numpy(ops.average_pool(x, 2)).ravel().tolist()
    assert math.isnan(average[0])
    assert average[1:] == [-math.inf, math.inf]


@pytest.mark.parametrize("window", [(3000,), (60, 70)])
@pytest.mark.parametrize("strides", [None, 1])
@pytest.mark.parametrize("adaptive", [False, True])
def test_large_windows_keep_single_precision(
    backend: str, window: tuple[int, ...], strides: int | None, adaptive: bool
) -> None:
    x = abs(random((1, *(n + 1 for n in window), 2), "float32"))
    if adaptive:
        got, want = ops.adaptive_average_pool(ops.asarray(x), 1), reference.adaptive_average_pool(x=x, output_size=1)
    else:
        got = ops.average_pool(ops.asarray(x), window, strides)
        want = reference.average_pool(x=x, pool_size=window, strides=strides)
    assert largest_error(ops.to_numpy(got), want, want) < 1e-6


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("padding", ["valid", "same"])
def test_half_precision_averages_in_single(backend: str, dtype: str, padding: str) -> None:
    x = abs(random((2, 40, 41, 2), dtype)) + 1
    want = reference.average_pool(x=x, pool_size=(20, 20), strides=7, padding=padding)
    got = ops.to_numpy(ops.average_pool(ops.asarray(x), 20, 7, padding))
    assert largest_error(got, want, want) < EPS[dtype] * 0.5 + 1e-5
    want = reference.adaptive_average_pool(x=x, output_size=(2, 3))
    got = ops.to_numpy(ops.adaptive_average_pool(ops.asarray(x), (2, 3)))
    assert largest_error(got, want, want) < EPS[dtype] * 0.5 + 1e-5


def test_integers_average_in_float32_and_stay_integers_otherwise(backend: str) -> None:
    x = ops.reshape(ops.array([1, 2, 3, 5]), (1, 4, 1))
    assert ops.dtype(ops.average_pool(x, 2)) == "float32"
    assert ops.dtype(ops.max_pool(x, 2)) == ops.dtype(ops.adaptive_max_pool(x, 2)) == "int64"


def test_portable_tensors_give_portable_ones(backend: str) -> None:
    x = tensor.EmberTensor([[[1.0], [2.0]]])
    for name in ("max_pool", "average_pool", "adaptive_max_pool", "adaptive_average_pool"):
        assert type(getattr(ops, name)(x, 1)) is tensor.EmberTensor


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("max_pool", (3,), "does not fit"),
        ("max_pool", (2, 0), "at least 1"),
        ("max_pool", ((1, 1),), "one for each"),
        ("average_pool", (2, 2, 2), "not smaller than the window"),
        ("average_pool", (2, 2, "full"), "'same'"),
        ("average_pool", (2, 2, "valid", "first"), "data_format"),
        ("adaptive_max_pool", (0,), "at least 1"),
    ],
)
def test_windows_that_do_not_fit_are_value_errors(
    backend: str, name: str, arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(ops, name)(ops.ones((1, 2, 3)), *arguments)


def test_number_of_dimensions_is_checked(backend: str) -> None:
    for name in ("max_pool", "average_pool", "adaptive_max_pool", "adaptive_average_pool"):
        with pytest.raises(ValueError, match="3, 4 or 5"):
            getattr(ops, name)(ops.ones((2, 3)), 1)
        with pytest.raises((ValueError, TypeError)):
            getattr(ops, name)(ops.ones((2, 0, 3)), 1)


@pytest.mark.parametrize("backend_name", installed_backends())
@given(
    size=st.integers(1, 30),
    window=st.integers(1, 20),
    stride=st.integers(1, 20),
    seed=st.integers(0, 100),
    same=st.booleans(),
)
def test_long_rows_of_windows(backend_name: str, size: int, window: int, stride: int, seed: int, same: bool) -> None:
    """Any window and stride, overlapping or not."""
    ember_ml.set_backend(backend_name)
    x, padding = random((1, max(size, window), 1), "float32", seed), "same" if same else "valid"
    how: dict[str, Any] = {"pool_size": window, "strides": stride, "padding": padding}
    want = reference.max_pool(x=x, **how)
    assert ops.to_numpy(ops.max_pool(ops.asarray(x), **how)).tolist() == want.tolist()
    difference = close(
        ops.to_numpy(ops.average_pool(ops.asarray(x), **how)), reference.average_pool(x=x, **how), 2, 4.0
    )
    assert difference is None


@pytest.mark.parametrize("backend_name", installed_backends())
@given(size=st.integers(1, 12), count=st.integers(1, 12))
def test_adaptive_windows_cover_everything(backend_name: str, size: int, count: int) -> None:
    """More windows than elements are allowed: then neighbours share one."""
    ember_ml.set_backend(backend_name)
    x = ops.reshape(ops.arange(size), (1, size, 1))
    largest = ops.to_numpy(ops.adaptive_max_pool(x, count)).ravel().tolist()
    least = [-v for v in ops.to_numpy(ops.adaptive_max_pool(ops.negative(x), count)).ravel().tolist()]
    assert len(largest) == count
    assert least[0] == 0
    assert largest[-1] == size - 1
    assert all(after <= before + 1 for before, after in zip(largest, least[1:], strict=False))


def test_more_windows_than_can_be_computed(backend: str) -> None:
    with pytest.raises(ValueError, match="too many windows"):
        ops.adaptive_average_pool(ops.ones((1, 3, 1)), 2**70)
