"""Shapes, joining, splitting, repeating and padding: what the contract's generic tests cannot see."""

from typing import Any

import pytest

from ember_ml import dtypes as dt
from ember_ml import ops
from ember_ml.nn import tensor
from ember_ml.nn.tensor import EmberTensor

ALL = sorted(dt.ALL, key=lambda dtype: dtype.name)


def values(x: Any) -> Any:
    return ops.to_numpy(x).tolist()


def parts(result: Any, kind: type = list) -> list[Any]:
    assert type(result) is kind
    return [values(part) for part in result]


@pytest.fixture
def six(backend: str) -> Any:
    """Give [[0, 1, 2], [3, 4, 5]]."""
    return ops.reshape(ops.arange(6), (2, 3))


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_elements_of_every_dtype_move_unchanged(dtype: dt.EmberDType, backend: str) -> None:
    if backend == "mlx" and dtype is dt.complex128:
        pytest.skip("mlx has no complex128")
    low, high = (1, 0) if dtype.kind == "bool" else (3, 120)
    x = ops.array([[low, high, 0], [0, low, high]], dtype)
    rows = values(x)
    assert values(ops.flip(x)) == [row[::-1] for row in rows[::-1]]
    assert values(ops.flip(x, axis=-1)) == [row[::-1] for row in rows]
    assert values(ops.roll(x, 1, axis=1)) == [row[-1:] + row[:-1] for row in rows]
    assert values(ops.rot90(x)) == [[row[i] for row in rows] for i in (2, 1, 0)]
    assert values(ops.tril(x)) == [[rows[0][0], 0, 0], [*rows[1][:2], 0]]
    assert values(ops.triu(x)) == [rows[0], [0, *rows[1][1:]]]
    assert values(ops.diag(x)) == [rows[0][0], rows[1][1]]
    assert values(ops.diag(ops.ravel(x)))[1] == [0, rows[0][1], 0, 0, 0, 0]
    assert values(ops.concatenate([x, x], axis=1)) == [row + row for row in rows]
    assert values(ops.stack([x, x])) == [rows, rows]
    assert values(ops.tile(x, (1, 2))) == [row + row for row in rows]
    assert values(ops.repeat(x, 2, axis=0)) == [rows[0], rows[0], rows[1], rows[1]]
    assert values(ops.repeat(x, [0, 2], axis=0)) == [rows[1], rows[1]]
    assert values(ops.pad(x, ((1, 0), (0, 1)))) == [[0] * 4, [*rows[0], 0], [*rows[1], 0]]
    assert values(ops.pad(x, ((0, 0), (1, 1)), mode="edge")) == [[row[0], *row, row[-1]] for row in rows]
    assert values(ops.transpose(x)) == [list(column) for column in zip(*rows, strict=True)]
    assert parts(ops.unstack(x), tuple) == rows
    for result in (ops.flip(x), ops.tril(x), ops.pad(x, 1), ops.repeat(x, 2), ops.roll(x, 1), ops.split(x, 2)[0]):
        assert ops.dtype(result) is dtype


def test_reshaping(six: Any) -> None:
    for shape in ((3, 2), [3, 2], (3, -1), (-1, 2)):
        assert values(ops.reshape(six, shape)) == [[0, 1], [2, 3], [4, 5]]
    assert values(ops.reshape(six, 6)) == values(ops.reshape(six, -1)) == values(ops.ravel(six)) == [0, 1, 2, 3, 4, 5]
    assert values(ops.reshape(ops.transpose(six), -1)) == [0, 3, 1, 4, 2, 5]
    assert ops.shape(ops.reshape(ops.ones(1), ())) == ()
    assert ops.shape(ops.ravel(ops.ones((0, 3)))) == (0,)
    assert values(ops.flatten(ops.transpose(six))) == [0, 3, 1, 4, 2, 5]
    for shape in ((-2, -3), (-1, -1), (4, 2), (7,), (-6,)):
        with pytest.raises(ValueError, match="reshape"):
            ops.reshape(six, shape)
    for shape in ((2.0, 3.0), "23", None):
        with pytest.raises(TypeError):
            ops.reshape(six, shape)


def test_orders_of_axes(six: Any) -> None:
    cube = ops.zeros((2, 3, 4))
    assert ops.shape(ops.transpose(cube, (2, 0, 1))) == (4, 2, 3)
    assert ops.shape(ops.permute_dims(cube, (-1, 0, 1))) == (4, 2, 3)
    assert ops.shape(ops.moveaxis(cube, (0, 1), (-1, 0))) == (3, 4, 2)
    assert ops.shape(ops.moveaxis(cube, 2, 0)) == (4, 2, 3)
    assert ops.shape(ops.swapaxes(cube, 0, -1)) == (4, 3, 2)
    assert ops.shape(ops.matrix_transpose(cube)) == (2, 4, 3)
    assert ops.shape(ops.transpose(ops.array(1.0))) == ()
    for call, error in (
        (lambda: ops.transpose(cube, (0, 0, 1)), ValueError),
        (lambda: ops.transpose(cube, (0, 1)), ValueError),
        (lambda: ops.transpose(cube, (0, 1, 5)), IndexError),
        (lambda: ops.swapaxes(cube, 0, 3), IndexError),
        (lambda: ops.moveaxis(cube, 0, 3), IndexError),
        (lambda: ops.moveaxis(cube, (0, 1), (0,)), ValueError),
        (lambda: ops.moveaxis(cube, (0, 0), (0, 1)), ValueError),
        (lambda: ops.matrix_transpose(ops.ones(3)), ValueError),
    ):
        with pytest.raises(error):
            call()


def test_axes_of_length_one(backend: str) -> None:
    x = ops.zeros((1, 2, 1))
    assert ops.shape(ops.squeeze(x)) == (2,)
    assert ops.shape(ops.squeeze(x, (0, -1))) == (2,)
    assert ops.shape(ops.squeeze(x, ())) == (1, 2, 1)
    assert ops.shape(ops.expand_dims(x, (0, -1))) == (1, 1, 2, 1, 1)
    assert ops.shape(ops.expand_dims(ops.array(1.0), 0)) == (1,)
    assert ops.shape(ops.expand_dims(x, 3)) == (1, 2, 1, 1)
    for call, error in (
        (lambda: ops.squeeze(x, 1), ValueError),
        (lambda: ops.squeeze(x, (0, 0)), ValueError),
        (lambda: ops.squeeze(x, 3), IndexError),
        (lambda: ops.expand_dims(x, 5), IndexError),
        (lambda: ops.expand_dims(x, (0, 0)), ValueError),
    ):
        with pytest.raises(error):
            call()


def test_broadcasting(backend: str) -> None:
    assert values(ops.broadcast_to(ops.array([[1], [2]]), (2, 2))) == [[1, 1], [2, 2]]
    assert values(ops.broadcast_to(7, 2)) == [7, 7]
    assert ops.shape(ops.broadcast_to(ops.ones((1, 3)), (0, 3))) == (0, 3)
    assert parts(ops.broadcast_arrays(ops.array([1, 2]), ops.array([[3.0]])), tuple) == [[[1, 2]], [[3.0, 3.0]]]
    assert ops.broadcast_arrays() == ()
    assert ops.broadcast_shapes((2, 1), (1, 3), 3) == (2, 3)
    assert ops.broadcast_shapes((0, 1), (3,)) == (0, 3)
    assert ops.broadcast_shapes() == ()
    for call in (
        lambda: ops.broadcast_to(ops.ones((2, 3)), (3, 3)),
        lambda: ops.broadcast_to(ops.ones((2, 3)), (3,)),
        lambda: ops.broadcast_to(ops.ones((1, 3)), (-1, 3)),
        lambda: ops.broadcast_arrays(ops.ones(2), ops.ones(3)),
        lambda: ops.broadcast_shapes((2,), (3,)),
    ):
        with pytest.raises(ValueError, match=r"broadcast|negative"):
            call()


def test_joining_promotes_and_checks(backend: str) -> None:
    ints, floats = ops.array([1], "int32"), ops.array([0.5])
    assert ops.dtype(ops.concatenate([ints, floats])) == "float32"
    assert values(ops.concatenate([ints, floats])) == [1.0, 0.5]
    assert values(ops.concatenate([[1, 2], [3]])) == [1, 2, 3]
    assert values(ops.concatenate([[[1, 2]], [[3, 4]]], axis=None)) == [1, 2, 3, 4]
    assert ops.concat is ops.concatenate
    assert ops.shape(ops.concatenate([ops.ones((0, 2)), ops.ones((3, 2))])) == (3, 2)
    assert values(ops.stack([[1, 2], [3, 4]], axis=-1)) == [[1, 3], [2, 4]]
    assert values(ops.stack([1, 2.5])) == [1.0, 2.5]
    assert values(ops.vstack([1, 2])) == [[1], [2]]
    assert values(ops.hstack([1, 2])) == [1, 2]
    assert ops.shape(ops.dstack([1, 2])) == (1, 1, 2)
    assert ops.shape(ops.dstack([ops.ones((2, 3)), ops.ones((2, 3))])) == (2, 3, 2)
    assert ops.shape(ops.dstack([ops.ones((2, 3, 4, 5))] * 2)) == (2, 3, 8, 5)
    assert values(ops.column_stack([[1, 2], [[3, 4], [5, 6]]])) == [[1, 3, 4], [2, 5, 6]]
    for call, error in (
        (lambda: ops.concatenate([]), ValueError),
        (lambda: ops.stack([]), ValueError),
        (lambda: ops.concatenate([ops.ones((2, 2)), ops.ones((3, 3))]), ValueError),
        (lambda: ops.concatenate([ops.ones((2, 2)), ops.ones(0)]), ValueError),  # torch alone would let it pass
        (lambda: ops.concatenate([ops.ones(0), ops.ones((2, 2))]), ValueError),
        (lambda: ops.concatenate([ops.ones(2), ops.ones(2)], axis=1), IndexError),
        (lambda: ops.concatenate([1.0, 2.0]), (ValueError, IndexError)),
        (lambda: ops.stack([ops.ones(2), ops.ones(3)]), ValueError),
        (lambda: ops.stack([ops.ones(2), ops.ones(2)], axis=2), IndexError),
        (lambda: ops.concatenate(3), TypeError),
    ):
        with pytest.raises(error):
            call()


@pytest.mark.parametrize("name", ["split", "array_split", "vsplit", "hsplit"])
def test_split_gives_a_list(backend: str, name: str) -> None:
    op = getattr(ops, name)
    x = ops.ones((4, 4))
    for source in (x, EmberTensor(x), [[1.0, 2.0], [3.0, 4.0]]):
        assert type(op(source, 2)) is list
    assert type(ops.compile(lambda x: op(x, 2))(x)) is list
    doubled = ops.vmap(lambda row: op(ops.reshape(row, (2, 2)), 2))(x)
    assert (type(doubled), len(doubled)) == (list, 2)

    def loss(x: Any) -> Any:
        parts = op(x, 2)
        assert type(parts) is list
        return ops.sum(ops.square(parts[1]))

    assert ops.sum(ops.grad(loss)(x)).item() == 16.0


def test_splitting(six: Any) -> None:
    x = ops.arange(5)
    assert parts(ops.split(x, [1, 3])) == [[0], [1, 2], [3, 4]]
    assert parts(ops.split(x, [3, 9])) == [[0, 1, 2], [3, 4], []]
    assert parts(ops.split(x, [-1])) == [[0, 1, 2, 3], [4]]
    assert parts(ops.split(x, [3, 1])) == [[0, 1, 2], [], [1, 2, 3, 4]]
    assert parts(ops.split(x, ops.array([2]))) == [[0, 1], [2, 3, 4]]
    assert parts(ops.array_split(x, 3)) == [[0, 1], [2, 3], [4]]
    assert parts(ops.array_split(x, 7)) == [[0], [1], [2], [3], [4], [], []]
    assert parts(ops.split(six, 3, axis=-1)) == [[[0], [3]], [[1], [4]], [[2], [5]]]
    assert parts(ops.hsplit(x, 5)) == [[0], [1], [2], [3], [4]]
    assert parts(ops.vsplit(six, 2)) == [[[0, 1, 2]], [[3, 4, 5]]]
    assert parts(ops.unstack(six, axis=1), tuple) == [[0, 3], [1, 4], [2, 5]]
    assert ops.unstack(ops.ones((0, 2))) == ()
    for call, error in (
        (lambda: ops.split(x, 2), ValueError),
        (lambda: ops.split(x, 0), ValueError),
        (lambda: ops.array_split(x, -1), ValueError),
        (lambda: ops.split(x, 1.5), TypeError),
        (lambda: ops.split(x, 5, axis=1), IndexError),
        (lambda: ops.vsplit(x, 5), ValueError),
        (lambda: ops.dsplit(six, 1), ValueError),
        (lambda: ops.hsplit(ops.array(1.0), 1), ValueError),
        (lambda: ops.unstack(ops.array(1.0)), IndexError),
        (lambda: ops.unstack(six, axis=2), IndexError),
    ):
        with pytest.raises(error):
            call()


def test_repeating(six: Any) -> None:
    assert values(ops.repeat(six, 2)) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert values(ops.repeat(six, ops.array([1, 0, 2]), axis=1)) == [[0, 2, 2], [3, 5, 5]]
    assert values(ops.repeat(six, ops.array([0, 2], dtype="uint64"), axis=0)) == [[3, 4, 5], [3, 4, 5]]
    assert values(ops.repeat(six, [2], axis=0)) == values(ops.repeat(six, 2, axis=0))
    assert values(ops.repeat(7, 3)) == [7, 7, 7]
    assert values(ops.repeat(ops.array([1, 2]), 0)) == []
    assert values(ops.repeat(ops.array([]), [])) == []
    assert values(ops.tile(ops.array([1, 2]), (2, 1, 2))) == [[[1, 2, 1, 2]], [[1, 2, 1, 2]]]
    assert values(ops.tile(six, 1)) == values(six)
    assert ops.shape(ops.tile(six, (0, 2))) == (0, 6)
    assert values(ops.tile(5, 2)) == [5, 5]
    for call, error in (
        (lambda: ops.repeat(six, -1), ValueError),
        (lambda: ops.repeat(six, [1, -1], axis=0), ValueError),
        (lambda: ops.repeat(six, [1, 2], axis=1), ValueError),
        (lambda: ops.repeat(six, 1.5), TypeError),
        (lambda: ops.repeat(six, ops.array([2**63], dtype="uint64")), MemoryError),
        (lambda: ops.repeat(six, 2, axis=2), IndexError),
        (lambda: ops.tile(six, -1), ValueError),
        (lambda: ops.tile(six, 1.5), TypeError),
    ):
        with pytest.raises(error):
            call()


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        ("edge", [1, 1, 1, 1, 2, 3, 3, 3, 3, 3]),
        ("reflect", [2, 3, 2, 1, 2, 3, 2, 1, 2, 3]),
        ("symmetric", [3, 2, 1, 1, 2, 3, 3, 2, 1, 1]),
        ("wrap", [1, 2, 3, 1, 2, 3, 1, 2, 3, 1]),
        ("constant", [0, 0, 0, 1, 2, 3, 0, 0, 0, 0]),
    ],
)
def test_padding_by_mode(mode: str, wanted: list[int], backend: str) -> None:
    assert values(ops.pad(ops.array([1, 2, 3]), (3, 4), mode)) == wanted


def test_padding(six: Any) -> None:
    assert values(ops.pad(six, ((0, 0), (1, 0)), constant_values=7)) == [[7, 0, 1, 2], [7, 3, 4, 5]]
    assert values(ops.pad(six, ((1, 0), (0, 0)), mode="reflect")) == [[3, 4, 5], [0, 1, 2], [3, 4, 5]]
    assert values(ops.pad(six, [(0, 1), (0, 0)])) == [[0, 1, 2], [3, 4, 5], [0, 0, 0]]
    assert ops.shape(ops.pad(six, 1)) == (4, 5)
    assert ops.shape(ops.pad(six, (1, 2))) == (5, 6)
    assert ops.shape(ops.pad(six, ((1, 2),))) == (5, 6)
    assert values(ops.pad(ops.array([True]), 1)) == [False, True, False]
    assert values(ops.pad(ops.array([2**62 + 1]), (0, 1), constant_values=2**62 + 3)) == [2**62 + 1, 2**62 + 3]
    assert values(ops.pad(ops.array(5.0), ())) == 5.0
    assert values(ops.pad(ops.zeros(0), 1)) == [0.0, 0.0]
    for call, error in (
        (lambda: ops.pad(six, -1), ValueError),
        (lambda: ops.pad(six, ((1, 1), (1, 1), (1, 1))), ValueError),
        (lambda: ops.pad(six, (1, 2, 3)), ValueError),
        (lambda: ops.pad(six, 1.5), TypeError),
        (lambda: ops.pad(six, 1, mode="round"), ValueError),
        (lambda: ops.pad(ops.zeros(0), 1, mode="edge"), ValueError),
        (lambda: ops.pad(six, 1, constant_values=1.5), TypeError),
        (lambda: ops.pad(ops.ones(2, "uint8"), 1, constant_values=300), OverflowError),
    ):
        with pytest.raises(error):
            call()


def test_turning_and_rolling(six: Any) -> None:
    assert values(ops.rot90(six, 2)) == [[5, 4, 3], [2, 1, 0]]
    assert values(ops.rot90(six, -1)) == [[3, 0], [4, 1], [5, 2]]
    assert values(ops.rot90(six, 1, (1, 0))) == values(ops.rot90(six, 3))
    assert values(ops.rot90(six, 4)) == values(six)
    assert values(ops.roll(six, 2)) == [[4, 5, 0], [1, 2, 3]]
    assert values(ops.roll(six, (1, 1), axis=(0, 1))) == [[5, 3, 4], [2, 0, 1]]
    assert values(ops.roll(six, 1, axis=(0, 1))) == [[5, 3, 4], [2, 0, 1]]
    assert values(ops.roll(six, (1, 2), axis=1)) == values(six)
    assert values(ops.roll(six, -(2**40) - 1, axis=1)) == values(ops.roll(six, (-(2**40) - 1) % 3, axis=1))
    assert ops.shape(ops.roll(ops.ones((0, 3)), 1, axis=0)) == (0, 3)
    assert values(ops.flip(six, axis=(0, 1))) == values(ops.flip(six)) == [[5, 4, 3], [2, 1, 0]]
    assert values(ops.flip(six, axis=())) == values(six)
    for call, error in (
        (lambda: ops.flip(six, axis=2), IndexError),
        (lambda: ops.flip(six, axis=(0, 0)), ValueError),
        (lambda: ops.roll(six, 1, axis=2), IndexError),
        (lambda: ops.roll(six, (1, 2), axis=(0, 1, 1)), ValueError),
        (lambda: ops.roll(six, 1.5), TypeError),
        (lambda: ops.rot90(six, 1, (0, 0)), ValueError),
        (lambda: ops.rot90(six, 1, (0, 2)), IndexError),
        (lambda: ops.fliplr(ops.ones(2)), ValueError),
        (lambda: ops.flipud(ops.array(1.0)), ValueError),
    ):
        with pytest.raises(error):
            call()


def test_powers_of_a_vector(backend: str) -> None:
    assert values(ops.vander(ops.array([2.0, 3.0]), 3)) == [[4.0, 2.0, 1.0], [9.0, 3.0, 1.0]]
    assert values(ops.vander(ops.array([0, 2]), 3, increasing=True)) == [[1, 0, 0], [1, 2, 4]]
    assert ops.shape(ops.vander(ops.array([1.0, 2.0]), 0)) == (2, 0)
    assert values(ops.diagflat(ops.array([[1, 2]]), 1)) == [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    assert values(ops.diag(ops.array([[1, 2], [3, 4]]), 5)) == []


def test_portable_in_portable_out(backend: str) -> None:
    x = tensor.ones((2, 2))
    results = [ops.reshape(x, -1), ops.concatenate([x, ops.ones((2, 2))]), ops.stack([x]), ops.flip(x), ops.pad(x, 1)]
    results += [*ops.split(x, 2), *ops.unstack(x), *ops.broadcast_arrays(x, 1.0), ops.vstack([x, x]), ops.repeat(x, 2)]
    assert all(type(result) is tensor.EmberTensor for result in results)


@pytest.mark.parametrize("name", ["stack", "concatenate"])
@pytest.mark.parametrize(
    ("first", "second", "together"),
    [("uint64", "bool", "uint64"), ("int8", "uint16", "int32"), ("uint8", "uint32", "uint32")],
)
def test_joined_dtypes_are_promoted(backend: str, name: str, first: str, second: str, together: str) -> None:
    joined = getattr(ops, name)([ops.ones((2,), dtype=first), ops.zeros((2,), dtype=second)])
    assert ops.dtype(joined) == together
    assert ops.to_numpy(ops.ravel(joined)).tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("name", ["split", "array_split"])
def test_more_parts_than_memory_holds(backend: str, name: str) -> None:
    with pytest.raises(ValueError, match="nearly all of them empty"):
        getattr(ops, name)(ops.zeros((0, 2)), 2**70)
    assert len(getattr(ops, name)(ops.zeros((0, 2)), 5)) == 5


def test_tensors_of_other_shapes_are_not_stacked_along_any_axis(backend: str) -> None:
    for axis in (0, 1, -1):
        with pytest.raises(ValueError, match=r"shape|size"):
            ops.stack([[1.0, 2.0], [1.0, 2.0, 3.0]], axis=axis)
    with pytest.raises(IndexError, match="axis 2 is out of range for a tensor of 2 dimensions"):
        ops.stack([[1.0, 2.0], [3.0, 4.0]], axis=2)


NO_LISTS = [b"\x01\x02", bytearray(b"\x01\x02"), {1, 2}, frozenset((1, 2)), {1: 0, 2: 0}, "12"]
SIGNAL = [[[1.0], [2.0], [3.0], [4.0]]]
TAKE_LISTS: dict[str, Any] = {
    "a shape": ops.zeros,
    "a new shape": lambda given: ops.reshape([1.0, 2.0], given),
    "a shape to broadcast to": lambda given: ops.broadcast_to(1.0, given),
    "a shape of random numbers": lambda given: ops.random_normal(given),
    "sizes of a box": lambda given: ops.slice([[1.0, 2.0, 3.0]] * 3, (0, 0), given),
    "repetitions": lambda given: ops.tile([[1.0]], given),
    "widths": lambda given: ops.pad([[1.0]], given),
    "positions": lambda given: ops.split([1.0, 2.0, 3.0], given),
    "shifts": lambda given: ops.roll([[[1.0, 2.0]]], given, (1, 2)),
    "axes to flip": lambda given: ops.flip([[[1.0, 2.0]]], given),
    "axes of a norm": lambda given: ops.norm([[[1.0, 2.0]]], axis=given),
    "axes of products": lambda given: ops.tensordot([[[1.0]]], [[[1.0]]], given),
    "axes to transform": lambda given: ops.fftn([[[1.0, 2.0]]], axes=given),
    "lengths to transform": lambda given: ops.fftn([[[1.0, 2.0]]], given),
    "sizes of windows": lambda given: ops.max_pool([SIGNAL] * 3, given),
    "strides": lambda given: ops.conv([SIGNAL] * 3, [[[[1.0]]]], given),
    "tensors": ops.stack,
}


@pytest.mark.parametrize("given", NO_LISTS, ids=lambda given: type(given).__name__)
@pytest.mark.parametrize("call", TAKE_LISTS.values(), ids=list(TAKE_LISTS))
def test_bytes_sets_and_dicts_are_no_lists(call: Any, given: Any, backend: str) -> None:
    with pytest.raises((TypeError, ValueError)):
        call(given)
