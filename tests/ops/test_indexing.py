"""Keys of every sort by NumPy's rules, and the errors of what does not fit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ember_ml
from ember_ml import ops
from ember_ml.nn import tensor
from tests.reference import arrays, close, shapes
from tests.reference.gathering import mixed_keys, numpy_item, numpy_update, values_for

_SAME_BACKEND = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def _lists(result: Any) -> Any:
    return ops.to_numpy(result).tolist()


@given(data=st.data())
@_SAME_BACKEND
def test_get_item_selects_what_numpy_selects(backend: str, data: st.DataObject) -> None:
    x = data.draw(arrays("float32", shapes(max_dims=4), finite=True))
    key = data.draw(mixed_keys(x.shape))
    want = numpy_item(x, key)
    if isinstance(want, type):
        with pytest.raises(want):
            ops.get_item(ops.asarray(x), key)
    else:
        assert close(ops.to_numpy(ops.get_item(ops.asarray(x), key)), want, 0) is None


@given(data=st.data())
@_SAME_BACKEND
def test_index_update_replaces_what_numpy_replaces(backend: str, data: st.DataObject) -> None:
    x = data.draw(arrays("float32", shapes(max_dims=4), finite=True))
    key = data.draw(mixed_keys(x.shape))
    selected = numpy_item(x, key)
    if isinstance(selected, type):
        with pytest.raises(selected):
            ops.index_update(ops.asarray(x), key, 1.0)
        return
    values = data.draw(values_for(selected.shape, "float32"))
    before = ops.asarray(x)
    result = ops.index_update(before, key, values)
    assert close(ops.to_numpy(result), numpy_update(x, key, values), 0) is None
    assert close(ops.to_numpy(before), x, 0) is None


def test_keys_hold_tensors_of_any_sort(backend: str) -> None:
    x = ops.array([[1.0, 2.0], [3.0, 4.0]])
    index, mask = ops.array([1, 0]), ops.array([True, False])
    assert _lists(ops.get_item(x, index)) == [[3.0, 4.0], [1.0, 2.0]]
    assert _lists(ops.get_item(x, (index, mask))) == [3.0, 1.0]
    assert _lists(ops.get_item(x, ([1, 0], [True, False]))) == [3.0, 1.0]
    assert _lists(ops.get_item(x, [])) == []
    assert _lists(ops.get_item(x, True)) == [[[1.0, 2.0], [3.0, 4.0]]]
    portable = ops.get_item(x, tensor.array([1]))
    assert type(portable) is ember_ml.nn.tensor.EmberTensor
    assert _lists(portable) == [[3.0, 4.0]]


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (3, IndexError),
        (-4, IndexError),
        (2**70, IndexError),
        ([0, 3], IndexError),
        ([-4], IndexError),
        (1.0, IndexError),
        ([0.0], IndexError),
        ("0", IndexError),
        ((0, 0), IndexError),
        ((..., ...), IndexError),
        ([True, False], IndexError),
        ([[0], [1, 2]], IndexError),
        (slice(None, None, 0), ValueError),
        (slice(0.5), TypeError),
    ],
)
def test_keys_that_do_not_fit_raise(backend: str, key: Any, error: type[Exception]) -> None:
    x = ops.array([1.0, 2.0, 3.0])
    with pytest.raises(error):
        ops.get_item(x, key)
    with pytest.raises(error):
        ops.index_update(x, key, 0.0)


def test_values_take_the_dtype_of_the_tensor_or_raise(backend: str) -> None:
    whole = ops.array([1, 2, 3], dtype="int8")
    assert _lists(ops.index_update(whole, slice(0, 2), [7, 8])) == [7, 8, 3]
    assert ops.dtype(ops.index_update(whole, 0, 7)) == "int8"
    half = ops.array([1.0, 2.0], dtype="float16")
    assert ops.dtype(ops.index_update(half, 0, [2.5])) == "float16"
    for values in (1.5, [1.5], ops.array([1.5]), 1j):
        with pytest.raises(TypeError):
            ops.index_update(whole, 0, values)
    with pytest.raises(TypeError):
        ops.index_update(half, 0, ops.array([1.0], dtype="float64"))
    with pytest.raises(OverflowError):
        ops.index_update(whole, 0, 300)
    with pytest.raises(ValueError, match=r"broadcast|assign"):
        ops.index_update(whole, slice(0, 2), [1, 2, 3])


def test_without_checks_indices_are_clamped(backend: str) -> None:
    x = ops.array([1.0, 2.0, 3.0])
    with ember_ml.value_checks(False):
        assert _lists(ops.take(x, ops.array([5, -9]))) == [3.0, 1.0]
        assert _lists(ops.get_item(x, ops.array([5, -9, -1]))) == [3.0, 1.0, 3.0]
        assert _lists(ops.index_update(x, ops.array([7]), 0.0)) == [1.0, 2.0, 0.0]
        assert _lists(ops.take_along_axis(x, ops.array([7]), axis=0)) == [3.0]
        assert _lists(ops.segment_sum(x, ops.array([0, 9, -9]), 2)) == [4.0, 2.0]
        narrow = ops.array([5, -9, 127], dtype="int8")  # which does not hold the size itself
        assert _lists(ops.take(ops.arange(1000), narrow)) == [5, 991, 127]
        assert _lists(ops.get_item(ops.arange(1000), narrow)) == [5, 991, 127]
        assert _lists(ops.get_item(ops.segment_sum(x, narrow, 1000), [0, 5, 127])) == [2.0, 1.0, 3.0]
    with pytest.raises(IndexError):
        ops.take(x, ops.array([5]))


def test_take_flattens_without_an_axis_and_takes_any_shape(backend: str) -> None:
    x = ops.array([[1.0, 2.0], [3.0, 4.0]])
    assert _lists(ops.take(x, [[3, 0]])) == [[4.0, 1.0]]
    assert _lists(ops.take(x, 1, axis=1)) == [2.0, 4.0]
    assert _lists(ops.take([1.0, 2.0], 1)) == 2.0
    assert _lists(ops.take(x, [], axis=0)) == []
    for indices, axis in (([2], 0), ([-3], 0), ([4], None), ([0], 2)):
        with pytest.raises(IndexError):
            ops.take(x, indices, axis=axis)
    with pytest.raises(IndexError):
        ops.take(x, [0.0])
    with pytest.raises(IndexError):
        ops.take(ops.zeros((0, 2)), [0], axis=0)


def test_along_an_axis_the_other_dimensions_broadcast(backend: str) -> None:
    x = ops.array([[1.0, 2.0], [3.0, 4.0]])
    assert _lists(ops.take_along_axis(x, [[1]], axis=1)) == [[2.0], [4.0]]
    assert _lists(ops.put_along_axis(x, [[1]], [[7.0], [8.0]], axis=1)) == [[1.0, 7.0], [3.0, 8.0]]
    assert _lists(x) == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(IndexError):
        ops.take_along_axis(x, [[2]], axis=1)
    with pytest.raises(IndexError):
        ops.put_along_axis(x, [[-3]], 0.0, axis=1)
    with pytest.raises(ValueError, match="dimensions"):
        ops.take_along_axis(x, [1], axis=1)
    with pytest.raises(ValueError, match="broadcast"):
        ops.take_along_axis(x, [[0], [0], [0]], axis=1)
    with pytest.raises(TypeError):
        ops.put_along_axis(ops.array([1, 2]), [0], 0.5, axis=0)


def test_boxes_lie_within_the_tensor(backend: str) -> None:
    x = ops.array([1.0, 2.0, 3.0])
    assert _lists(ops.slice(x, ops.array([1]), (2,))) == [2.0, 3.0]
    for start, shape in (((2,), (2,)), ((-1,), (1,))):
        with pytest.raises(IndexError):
            ops.slice(x, start, shape)
    with pytest.raises(IndexError):
        ops.slice_update(x, (2,), [1.0, 2.0])
    with pytest.raises(ValueError, match="starts"):
        ops.slice(x, (0, 0), (1, 1))


def test_gather_reads_the_leading_part(backend: str) -> None:
    x = ops.array([[1.0, 2.0], [3.0, 4.0]])
    assert _lists(ops.gather(x, 0, [[1]])) == [[3.0]]
    with pytest.raises(ValueError, match="fit"):
        ops.gather(x, 0, [[0, 0, 0]])
    with pytest.raises(ValueError, match="fit"):
        ops.gather(x, 0, [0])
    with pytest.raises(IndexError):
        ops.gather(x, 2, [[0]])


def test_flat_positions_and_coordinates_are_checked(backend: str) -> None:
    for call in (
        lambda: ops.unravel_index([6], (2, 3)),
        lambda: ops.unravel_index([-1], (2, 3)),
        lambda: ops.ravel_multi_index(([2], [0]), (2, 3)),
        lambda: ops.ravel_multi_index(([0], [-1]), (2, 3)),
        lambda: ops.ravel_multi_index(([0.0], [1]), (2, 3)),
    ):
        with pytest.raises(IndexError):
            call()


def test_nonzero_needs_a_dimension(backend: str) -> None:
    with pytest.raises(ValueError, match="dimension"):
        ops.nonzero(1.0)
    found = ops.nonzero([[0.0, float("nan")], [-0.0, 2.0]])
    assert [_lists(part) for part in found] == [[0, 1], [1, 1]]
    assert all(ops.dtype(part) == "int64" for part in found)


@pytest.mark.parametrize(("mask", "shape"), [((0,), (0, 2)), ((3, 0), (0,)), ((0, 2), (0,)), ((0, 0), (0,))], ids=str)
def test_a_mask_with_a_length_of_zero_selects_nothing(
    backend: str, mask: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    x = tensor.ones((3, 2))
    key = tensor.zeros(mask, dtype="bool")
    assert x[key].shape == shape
    x[key] = 5.0  # emberlint: ignore[EMB403] a portable tensor is written to
    assert x.tolist() == [[1.0, 1.0]] * 3
    for misfit in ((1,), (3, 1), (2, 2), (3, 2, 1)):
        with pytest.raises(IndexError):
            _ = x[tensor.zeros(misfit, dtype="bool")]


def test_take_along_an_axis_that_a_number_has_not(backend: str) -> None:
    with pytest.raises(IndexError):
        ops.take(3.0, 0, axis=0)
    assert _lists(ops.take(3.0, 0)) == 3.0


def test_a_number_has_no_axis(backend: str) -> None:
    x = ops.array(5.0)
    for axis in (0, -1):
        with pytest.raises(IndexError, match="take"):
            ops.take(x, ops.array([0]), axis=axis)
        with pytest.raises(IndexError, match="swapaxes"):
            ops.swapaxes(x, 0, axis)
    assert ops.to_numpy(ops.take(x, ops.array([0, 0]))).tolist() == [5.0, 5.0]


@pytest.mark.parametrize(
    ("shape", "indices", "axis", "wanted"),
    [
        ((0, 3), (0, 3), 0, (0, 3, 3)),
        ((0, 3), (2, 0), 0, (2, 0, 3)),
        ((2, 3), (0, 4), -1, (2, 0, 4)),
        ((0,), (0,), None, (0,)),
    ],
)
def test_take_of_nothing_has_the_shape_of_the_indices(
    shape: Any, indices: Any, axis: Any, wanted: Any, backend: str
) -> None:
    found = ops.take(ops.zeros(shape), ops.zeros(indices, dtype="int64"), axis=axis)
    assert ops.shape(found) == wanted
