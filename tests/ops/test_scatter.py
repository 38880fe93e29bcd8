"""Scatter and segment ops: what meets in a cell, what stays empty, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from ember_ml import ops

_AGGREGATIONS = ("add", "mean", "max", "min", "mul")


def _lists(result: Any) -> Any:
    return ops.to_numpy(result).tolist()


@pytest.mark.parametrize(
    ("aggr", "want"),
    [
        ("add", [1.0, 0.0, -2.0]),
        ("mean", [0.5, 0.0, -2.0]),
        ("max", [4.0, 0.0, -2.0]),
        ("min", [-3.0, 0.0, -2.0]),
        ("mul", [-12.0, 0.0, -2.0]),
    ],
)
def test_values_of_one_cell_are_combined_and_empty_cells_are_zero(backend: str, aggr: str, want: list[float]) -> None:
    assert _lists(ops.scatter([4.0, -2.0, -3.0], [0, 2, 0], 3, aggr)) == want
    rows = ops.scatter([[4.0, 4.0], [-2.0, -2.0], [-3.0, -3.0]], [0, 2, 0], 3, aggr)
    assert _lists(rows) == [[value, value] for value in want]
    columns = ops.scatter([[4.0, -2.0, -3.0]], [0, 2, 0], 3, aggr, axis=1)
    assert _lists(columns) == [want]


def test_softmax_shares_one_among_the_values_of_a_cell(backend: str) -> None:
    shares = ops.scatter([1.0, 1.0, 1000.0, 1.0], [0, 2, 1, 0], aggr="softmax")
    assert _lists(shares) == [0.5, 1.0, 1.0, 0.5]
    assert _lists(ops.scatter([3.0, 3.0, 9.0], [1, 1], aggr="softmax")) == [0.5, 0.5, 0.0]
    assert ops.dtype(ops.scatter([1, 2], [0, 0], aggr="softmax")) == "float32"
    half = ops.scatter(ops.array([1.0, 1.0], dtype="float16"), [0, 0], aggr="softmax")
    assert ops.dtype(half) == "float16"


@pytest.mark.parametrize("aggr", [*_AGGREGATIONS, "softmax"])
def test_fewer_indices_use_the_leading_values_and_more_are_refused(backend: str, aggr: str) -> None:
    want = _lists(ops.scatter([1.0, 2.0], [0, 1], aggr=aggr))
    assert _lists(ops.scatter([1.0, 2.0, 9.0], [0, 1], aggr=aggr))[:2] == want
    with pytest.raises(ValueError, match="3 indices"):
        ops.scatter([1.0, 2.0], [0, 1, 0], aggr=aggr)


@pytest.mark.parametrize("aggr", _AGGREGATIONS)
def test_nothing_gives_nothing_or_zeros(backend: str, aggr: str) -> None:
    assert tuple(ops.scatter([], [], aggr=aggr).shape) == (0,)
    assert _lists(ops.scatter([], [], 2, aggr)) == [0.0, 0.0]
    assert _lists(ops.scatter([5.0], [], 2, aggr)) == [0.0, 0.0]
    assert tuple(ops.scatter(ops.zeros((0, 3)), [], 2, aggr).shape) == (2, 3)
    assert tuple(ops.scatter(ops.zeros((2, 0)), [0, 1], 2, aggr).shape) == (2, 0)


@pytest.mark.parametrize("aggr", [*_AGGREGATIONS, "softmax"])
def test_an_index_that_is_no_cell_raises(backend: str, aggr: str) -> None:
    for indices, size in (([0, 3], 3), ([-1, 0], 3), ([-1, 0], None), ([0, 0], 0)):
        with pytest.raises(IndexError):
            ops.scatter([1.0, 2.0], indices, size, aggr)


def test_arguments_that_mean_nothing_are_refused(backend: str) -> None:
    with pytest.raises(ValueError, match="median"):
        ops.scatter([1.0], [0], aggr="median")
    with pytest.raises(ValueError, match="one dimension"):
        ops.scatter([[1.0]], [[0]])
    for values, axis in ((1.0, 0), ([1.0], 1)):
        with pytest.raises(IndexError, match=f"axis {axis} is out of range"):
            ops.scatter(values, [0], axis=axis)
    with pytest.raises(IndexError):
        ops.scatter([1.0], [0.0])
    with pytest.raises(ValueError, match="row"):
        ops.segment_sum([1.0, 2.0], [0])
    with pytest.raises(ValueError, match="negative"):
        ops.segment_sum([1.0], [0], -1)
    with pytest.raises(TypeError):
        ops.segment_max(ops.array([1j]), [0])


def test_integers_keep_their_dtype_but_for_means(backend: str) -> None:
    x = ops.array([100, 100], dtype="int8")
    assert ops.dtype(ops.scatter(x, [0, 0])) == "int8"
    assert ops.dtype(ops.scatter(x, [0, 0], aggr="mean")) == "float32"
    assert _lists(ops.scatter_mean(x, [0, 0])) == [100.0]


def test_nan_reaches_its_cell_only(backend: str) -> None:
    nan = float("nan")
    for order in ([nan, 1.0, 2.0], [1.0, nan, 2.0]):
        for op in (ops.segment_max, ops.segment_min, ops.segment_sum):
            first, second = _lists(op(order, [0, 0, 1]))
            assert first != first
            assert second == 2.0


def test_a_cell_of_minus_infinity_is_not_empty(backend: str) -> None:
    assert _lists(ops.segment_max([float("-inf")], [1], 2)) == [0.0, float("-inf")]


@pytest.mark.parametrize("cells", [1, 7])
def test_long_sums_of_floats_are_accurate(backend: str, cells: int) -> None:
    count = 700_000
    values = ops.full((count,), 0.1, dtype="float32")
    ids = ops.mod(ops.arange(count), cells)
    exact = float(ops.item(ops.get_item(values, 0))) * count / cells
    for result in (ops.segment_sum(values, ids, cells), ops.segment_sum(ops.reshape(values, (-1, 1)), ids, cells)):
        for total in ops.to_numpy(result).ravel().tolist():
            assert abs(total - exact) <= 2e-5 * exact


def test_half_precision_is_summed_in_float32(backend: str) -> None:
    for dtype in ("float16", "bfloat16"):
        ones = ops.ones((4096,), dtype=dtype)
        ids = ops.zeros((4096,), dtype="int64")
        assert _lists(ops.segment_sum(ones, ids)) == [4096.0]
        assert _lists(ops.segment_mean(ones, ids)) == [1.0]


def test_rows_of_very_unequal_cells_are_all_gathered(backend: str) -> None:
    # one cell with most of the rows, many with one, some with none
    ids = ops.concatenate([ops.zeros((900,), dtype="int64"), ops.arange(100)])
    rows = ops.ones((1000, 2))
    for op, first in ((ops.segment_sum, 901.0), (ops.segment_max, 1.0), (ops.segment_prod, 1.0)):
        result = _lists(op(rows, ids, 120))
        assert result[0] == [first, first]
        assert result[1:100] == [[1.0, 1.0]] * 99
        assert result[100:] == [[0.0, 0.0]] * 20


def test_scatter_update_replaces_elements_or_whole_parts(backend: str) -> None:
    x = ops.zeros((2, 2))
    assert _lists(ops.scatter_update(x, [[1]], [[1.0, 2.0]])) == [[0.0, 0.0], [1.0, 2.0]]
    with pytest.raises(IndexError):
        ops.scatter_update(x, [[2, 0]], [1.0])
    with pytest.raises(ValueError, match="coordinates"):
        ops.scatter_update(x, [[0, 0, 0]], [1.0])


def test_classes_outside_give_zeros(backend: str) -> None:
    assert _lists(ops.one_hot([-1, 3, 1], 3)) == [[0.0] * 3, [0.0] * 3, [0.0, 1.0, 0.0]]
    assert ops.dtype(ops.one_hot([0], 2)) == "float32"
    assert ops.dtype(ops.one_hot([0], 2, dtype="int8")) == "int8"
    assert tuple(ops.one_hot(ops.zeros((2, 3), dtype="int64"), 5, axis=1).shape) == (2, 5, 3)
    assert _lists(ops.multi_hot([0, 2, 2], 3)) == [1.0, 0.0, 1.0]
    with pytest.raises(IndexError):
        ops.one_hot([0.0], 2)
    with pytest.raises(ValueError, match="rows"):
        ops.multi_hot(1, 3)


def test_in_top_k_shares_places_among_equals(backend: str) -> None:
    predictions = [[0.5, 0.5, 0.1], [float("nan"), 1.0, 0.0]]
    assert _lists(ops.in_top_k([1, 0], predictions, 1)) == [True, False]
    with pytest.raises(IndexError):
        ops.in_top_k([3, 0], predictions, 1)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("length", [17, 100, 1003, 40_001])
def test_every_row_of_a_long_sum_counts(backend: str, length: int, dtype: str) -> None:
    """Long sums are split into partial ones, of which the last may be shorter."""
    values, ids = ops.arange(length, dtype=dtype), ops.mod(ops.arange(length), 2)
    got = ops.to_numpy(ops.segment_sum(ops.divide(values, length) if dtype == "float32" else values, ids, 2)).tolist()
    halves = [sum(range(0, length, 2)), sum(range(1, length, 2))]
    assert got == (pytest.approx([half / length for half in halves]) if dtype == "float32" else halves)
