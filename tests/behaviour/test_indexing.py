"""Indexing, assignment, the object protocol of EmberTensor, and the shape functions."""

import operator
from typing import Any

import pytest

from tests.behaviour.rows import PORTABLE, Kind, Row, each, gives, parameters, raises, returns, shapes

_ONLY_PORTABLE = (PORTABLE,)


def _x(t: Kind) -> Any:
    return t([10.0, 11.0, 12.0, 13.0])


def _assign(t: Kind, key: Any, value: float) -> Any:
    x = _x(t)
    x[key] = value
    return x


def _assign_where_greater(t: Kind) -> Any:
    x = _x(t)
    x[x > 11] = 0
    return x


def _add_at_the_same_place(t: Kind, key: Any) -> Any:
    x = t.zeros((2,))
    x[key] += 1
    return x


def _change_a_slice(t: Kind) -> tuple[Any, ...]:
    """Change a slice in place in both ways, and what was sliced after it."""
    x = _x(t)
    y = x[:2]
    y[0] = 99.0
    y += 1.0
    x[1] = 7.0
    return x, y


def _change_an_alias(t: Kind) -> tuple[Any, ...]:
    x = _x(t)
    y = x
    y += 1
    return x, x is y


def _truth_of_single_values(t: Kind) -> None:
    assert bool(t(1.0)) is True
    assert bool(t(0.0)) is False


def _length_and_iteration(t: Kind) -> None:
    assert len(_x(t)) == 4
    assert len(list(_x(t))) == 4


def _transpose_of_a_matrix(t: Kind) -> None:
    assert shapes([t.zeros((2, 3)).T]) == ((3, 2),)


def _splits_that_work(t: Kind) -> None:
    assert shapes(t.array_split(t([1, 2, 3, 4, 5]), 2)) == ((3,), (2,))
    assert shapes(t.split(t([1, 2, 3, 4]), 2)) == ((2,), (2,))


ROWS = [
    Row(218, lambda t: t.get_item(_x(t), -1), gives("float32", 13)),
    Row(219, lambda t: t.get_item(_x(t), 10), raises(IndexError)),
    Row(220, lambda t: t.get_item(_x(t), -10), raises(IndexError)),
    Row(221, lambda t: t.get_item(_x(t), t([0, 10])), raises(IndexError)),
    Row(222, lambda t: t.take(_x(t), t([0, -1])), gives("float32", [10, 13])),
    Row(223, lambda t: t.take(_x(t), t([10])), raises(IndexError)),
    Row(224, lambda t: t.take(_x(t), t([10]), axis=0), raises(IndexError)),
    Row(225, lambda t: t.take(_x(t), t([-1]), axis=0), gives("float32", [13])),
    Row(226, lambda t: t.take_along_axis(_x(t), t([-1]), axis=0), gives("float32", [13])),
    Row(
        227,
        lambda t: (t.get_item(_x(t), slice(2, 100)), t.get_item(_x(t), slice(100, None))),
        each(gives("float32", [12, 13]), gives("float32", [])),
    ),
    Row(228, lambda t: t.get_item(_x(t), slice(None, None, -1)), gives("float32", [13, 12, 11, 10])),
    Row(229, lambda t: t.get_item(_x(t), t.greater(_x(t), 11)), gives("float32", [12, 13])),
    Row(230, _assign_where_greater, gives("float32", [10, 11, 0, 0]), kinds=_ONLY_PORTABLE),
    Row(231, lambda t: t.nonzero(t([0, 1, 2])), each(gives("int64", [1, 2]))),
    Row(
        232,
        lambda t: t.where(t([True, False, True])),
        raises(TypeError, "where", unlike=lambda t: t.where(t([True, False, True]), 1, 0)),
    ),
    Row(
        233,
        lambda t: (_add_at_the_same_place(t, t([0, 0])), t.scatter(t.ones((2,)), t([0, 0]), dim_size=2)),
        each(gives("float32", [1, 0]), gives("float32", [2, 0])),
        kinds=_ONLY_PORTABLE,
    ),
    Row(234, lambda t: _add_at_the_same_place(t, [0, 0]), gives("float32", [1, 0]), kinds=_ONLY_PORTABLE),
    Row(235, lambda t: _assign(t, 10, 1.0), raises(IndexError), kinds=_ONLY_PORTABLE),
    Row(236, lambda t: _assign(t, t([1, 10]), 1.0), raises(IndexError), kinds=_ONLY_PORTABLE),
    Row(
        237,
        _change_a_slice,
        each(gives("float32", [100, 7, 12, 13]), gives("float32", [100, 7])),
        kinds=_ONLY_PORTABLE,
    ),
    Row(
        238,
        _change_an_alias,
        each(gives("float32", [11, 12, 13, 14]), returns(True)),
        kinds=_ONLY_PORTABLE,
    ),
    Row(
        239,
        lambda t: (t.get_item(_x(t), (None, ..., 0)), t.get_item(_x(t), (..., 0))),
        each(gives("float32", [10]), gives("float32", 10)),
    ),
    Row(240, lambda t: len(t(1.0)), raises(TypeError, unlike=_length_and_iteration), kinds=_ONLY_PORTABLE),
    Row(241, lambda t: iter(t(1.0)), raises(TypeError, unlike=_length_and_iteration), kinds=_ONLY_PORTABLE),
    Row(242, lambda t: bool(t([1, 2])), raises(TypeError, unlike=_truth_of_single_values), kinds=_ONLY_PORTABLE),
    Row(243, lambda t: bool(t([])), raises(TypeError, unlike=_truth_of_single_values), kinds=_ONLY_PORTABLE),
    Row(244, lambda t: operator.eq(_x(t), None), returns(False), kinds=_ONLY_PORTABLE),
    Row(245, lambda t: hash(_x(t)), raises(TypeError, "unhashable"), kinds=_ONLY_PORTABLE),
    Row(246, lambda t: t.add(t.ones((2,)), t.ones((3,))), raises(ValueError, "(2,)", "(3,)")),
    Row(
        247,
        lambda t: t.reshape(t.ones((6,)), (4, 2)),
        raises(ValueError, "reshape", unlike=lambda t: t.reshape(t.ones((6,)), (3, 2))),
    ),
    Row(
        248,
        lambda t: t.reshape(t.ones((0, 3)), (0, -1)),
        raises(ValueError, "reshape", unlike=lambda t: t.reshape(t.ones((0, 3)), (-1, 3))),
    ),
    Row(
        249,
        lambda t: t.squeeze(t.ones((2, 3)), axis=0),
        raises(ValueError, "squeeze", unlike=lambda t: t.squeeze(t.ones((1, 3)), axis=0)),
    ),
    Row(
        250,
        lambda t: t.zeros((2, 3, 4)).T,
        raises(ValueError, "permute_dims", unlike=_transpose_of_a_matrix),
        kinds=_ONLY_PORTABLE,
    ),
    Row(251, lambda t: t.split(t([1, 2, 3, 4, 5]), 2), raises(ValueError, "split", unlike=_splits_that_work)),
    Row(252, lambda t: t.repeat(t([1, 2]), 2), gives("int64", [1, 1, 2, 2])),
    Row(
        253,
        lambda t: (hasattr(t([1, 2]), "repeat"), t.repeat(t([1, 2]), 2), t.tile(t([1, 2]), 2)),
        each(returns(False), gives("int64", [1, 1, 2, 2]), gives("int64", [1, 2, 1, 2])),
        kinds=_ONLY_PORTABLE,
    ),
    Row(254, lambda t: t.flip(t([[1, 2], [3, 4]])), gives("int64", [[4, 3], [2, 1]])),
    Row(255, lambda t: t.get_item(_x(t), t([0.0, 1.0])), raises(IndexError)),
]


@pytest.mark.parametrize(("row", "kind"), parameters(ROWS))
def test_case(row: Row, kind: Kind, backend: str) -> None:
    row.run(kind, backend)
