"""Distinct values, places in sorted data, counts and histograms."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ember_ml import ops
from ember_ml.nn.tensor import EmberTensor


def _lists(result: Any) -> Any:
    return ops.to_numpy(result).tolist()


def test_each_nan_is_distinct_and_zeros_are_equal(backend: str) -> None:
    x = ops.array([math.nan, -0.0, 1.0, math.nan, 0.0])
    values, indices, inverse, counts = ops.unique_all(x)
    assert _lists(values)[:2] == [0.0, 1.0]
    assert [math.isnan(value) for value in _lists(values)] == [False, False, True, True]
    assert _lists(indices) == [1, 2, 0, 3]
    assert _lists(inverse) == [2, 0, 1, 3, 0]
    assert _lists(counts) == [2, 1, 1, 1]
    assert tuple(ops.unique(x).shape) == (4,)


def test_inverse_indices_have_the_shape_of_the_tensor_with_nan_too(backend: str) -> None:
    inverse = ops.unique_inverse(ops.array([[math.nan, 2.0], [1.0, math.nan]])).inverse_indices
    assert _lists(inverse) == [[2, 1], [0, 3]]
    assert tuple(ops.unique_inverse(ops.array(5.0)).inverse_indices.shape) == ()
    assert tuple(ops.unique_inverse(ops.zeros((0, 3))).inverse_indices.shape) == (0, 3)


def test_results_have_the_names_and_dtypes_of_the_standard(backend: str) -> None:
    x = ops.array([[3, 1], [3, 3]])
    every = ops.unique_all(x)
    assert every._fields == ("values", "indices", "inverse_indices", "counts")
    assert ops.unique_counts(x)._fields == ("values", "counts")
    assert ops.unique_inverse(x)._fields == ("values", "inverse_indices")
    assert tuple(every.inverse_indices.shape) == (2, 2)
    assert all(ops.dtype(part) == "int64" for part in every[1:])
    assert _lists(ops.take(every.values, every.inverse_indices)) == [[3, 1], [3, 3]]


def test_unique_gives_what_is_asked_for(backend: str) -> None:
    for x in (ops.array([[3, 1], [3, 2]]), [[3, 1], [3, 2]]):
        values, index, inverse, counts = ops.unique(x, return_index=True, return_inverse=True, return_counts=True)
        assert (_lists(values), _lists(index), _lists(counts)) == ([1, 2, 3], [1, 3, 0], [1, 1, 2])
        assert _lists(inverse) == [[2, 0], [2, 1]]
        values, counts = ops.unique(x, return_counts=True)
        assert (_lists(values), _lists(counts)) == ([1, 2, 3], [1, 1, 2])
        values, inverse = ops.unique(x, return_inverse=True)
        assert (_lists(values), _lists(inverse)) == ([1, 2, 3], [[2, 0], [2, 1]])
    values, counts = ops.unique(EmberTensor([2.0, 2.0]), return_counts=True)
    assert isinstance(values, EmberTensor)
    assert isinstance(counts, EmberTensor)


@pytest.mark.parametrize("dtype", ["bool", "uint16", "uint64", "bfloat16", "float16", "complex64"])
def test_every_dtype_has_distinct_values(backend: str, dtype: str) -> None:
    x = ops.array([1, 0, 1], dtype=dtype)
    result = ops.unique_counts(x)
    assert ops.dtype(result.values) == dtype
    assert _lists(result.counts) == [1, 2]
    assert tuple(ops.unique_values(ops.zeros((0,), dtype=dtype)).shape) == (0,)


def test_searchsorted_counts_nan_as_the_largest(backend: str) -> None:
    x = ops.array([1.0, 2.0, math.nan])
    assert _lists(ops.searchsorted(x, [0.0, 2.0, math.nan, math.inf])) == [0, 1, 2, 2]
    assert _lists(ops.searchsorted(x, [0.0, 2.0, math.nan, math.inf], side="right")) == [0, 2, 3, 2]


def test_searchsorted_takes_a_sorter_and_any_shape(backend: str) -> None:
    assert _lists(ops.searchsorted([3.0, 1.0, 2.0], [[2.0], [9.0]], sorter=[1, 2, 0])) == [[1], [3]]
    assert _lists(ops.searchsorted([1, 2], 1.5)) == 1
    assert ops.dtype(ops.searchsorted([1, 2], [1])) == "int64"
    with pytest.raises(IndexError):
        ops.searchsorted([1.0, 2.0], [1.0], sorter=[0, 2])
    with pytest.raises(ValueError, match="side"):
        ops.searchsorted([1.0], [1.0], side="middle")
    with pytest.raises(ValueError, match=r"dimension|too deep"):
        ops.searchsorted([[1.0]], [1.0])


def test_bins_that_neither_ascend_nor_descend_are_refused(backend: str) -> None:
    with pytest.raises(ValueError, match="ascend"):
        ops.digitize([1.0], [0.0, 2.0, 1.0])
    assert _lists(ops.digitize([0.5, 1.0], [2.0, 1.0, 0.0])) == [2, 1]


def test_bincount_counts_and_refuses_negative_integers(backend: str) -> None:
    assert _lists(ops.bincount([])) == []
    assert _lists(ops.bincount([], minlength=2)) == [0, 0]
    assert _lists(ops.bincount(ops.array([1, 1], dtype="uint8"))) == [0, 2]
    assert ops.dtype(ops.bincount([1], weights=[0.5])) == "float32"
    for x in ([-1, 0], [[0]]):
        with pytest.raises(ValueError, match="bincount"):
            ops.bincount(x)
    with pytest.raises(ValueError, match="negative"):
        ops.bincount([-1], weights=[1.0])
    with pytest.raises(ValueError, match="row"):
        ops.bincount([0, 1], weights=[1.0])
    with pytest.raises(IndexError):
        ops.bincount([0.5])


def test_histogram_counts_as_numpy_does(backend: str) -> None:
    counts, edges = ops.histogram([0.0, 1.0, 1.0, math.nan, 5.0, -3.0], bins=2, range=(0.0, 2.0))
    assert (_lists(counts), _lists(edges)) == ([1, 2], [0.0, 1.0, 2.0])
    assert ops.dtype(counts) == "int64"
    assert _lists(ops.histogram([1.0, 2.0, 3.0], bins=[1.0, 2.0, 3.0])[0]) == [1, 2]
    assert _lists(ops.histogram([1.0, 3.0], bins=[1.0, 2.0, 3.0], weights=[0.5, 2.0])[0]) == [0.5, 2.0]
    assert _lists(ops.histogram([1.0, 1.5, 3.0, 3.0], bins=[1.0, 2.0, 4.0], density=True)[0]) == [0.5, 0.25]
    assert [_lists(part) for part in ops.histogram([2.0, 2.0], bins=2)] == [[0, 2], [1.5, 2.0, 2.5]]
    assert _lists(ops.histogram([], bins=2)[1]) == [0.0, 0.5, 1.0]


def test_histograms_without_a_range_are_refused(backend: str) -> None:
    for x, arguments in (
        ([1.0, math.inf], {}),
        ([1.0], {"range": (2.0, 1.0)}),
        ([1.0], {"bins": 0}),
        ([1.0], {"bins": [1.0, 0.0]}),
        ([1.0], {"bins": [1.0]}),
    ):
        with pytest.raises(ValueError, match="histogram"):
            ops.histogram(x, **arguments)
