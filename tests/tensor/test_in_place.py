"""Changing tensors: the object stays, views write through in both directions, everything else is a copy."""

import copy
import gc
import operator
import pickle
import weakref
from typing import Any

import pytest

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.nn import tensor
from ember_ml.nn.tensor import EmberTensor


def _x() -> EmberTensor:
    return EmberTensor([1.0, 2.0, 3.0])


def _matrix() -> EmberTensor:
    return EmberTensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (operator.iadd, [3.0, 4.0, 5.0]),
        (operator.isub, [-1.0, 0.0, 1.0]),
        (operator.imul, [2.0, 4.0, 6.0]),
        (operator.itruediv, [0.5, 1.0, 1.5]),
        (operator.ifloordiv, [0.0, 1.0, 1.0]),
        (operator.imod, [1.0, 0.0, 1.0]),
        (operator.ipow, [1.0, 4.0, 9.0]),
    ],
)
def test_operators_keep_the_object(backend: str, change: Any, expected: list[float]) -> None:
    x = _x()
    alias, copied, native = x, EmberTensor(x), x.native
    view = x[1:]
    assert change(x, 2) is x
    assert alias.tolist() == expected
    assert view.tolist() == expected[1:]
    assert copied.tolist() == ops.to_numpy(native).tolist() == [1.0, 2.0, 3.0]


def test_bitwise_operators_keep_the_object(backend: str) -> None:
    x = EmberTensor([6, 7])
    before, view = x, x[::-1]
    x &= 3
    x |= 8
    x ^= 1
    view <<= 2
    view >>= 1
    assert x is before
    assert (x.tolist(), view.tolist()) == ([22, 20], [20, 22])


def test_the_callers_arrays_never_change(backend: str) -> None:
    source = _x().numpy().copy()
    x = EmberTensor(source)
    part, native = x[1:], x.native
    x[0] = 9.0
    x += 1.0
    part *= 2.0
    assert source.tolist() == ops.to_numpy(native).tolist() == [1.0, 2.0, 3.0]
    assert x.tolist() == [10.0, 6.0, 8.0]


def test_dtype_and_shape_stay(backend: str) -> None:
    x = EmberTensor([1, 2], dtype="int32")
    for target in (x, x[:]):
        with pytest.raises(TypeError, match="int32 to float32"):
            target += 1.5
        with pytest.raises(TypeError, match="int32 to int64"):
            target += EmberTensor([1, 2])
        with pytest.raises(TypeError, match="dtype"):
            target /= 2
        with pytest.raises(ValueError, match="shape"):
            target += tensor.ones((3, 2), dtype="int32")
        with pytest.raises(TypeError, match="lose something"):
            target[0] = EmberTensor(1.5)
    assert x.tolist() == [1, 2]
    assert x.dtype == "int32"


def test_what_is_no_tensor_is_refused(backend: str) -> None:
    x = _x()
    with pytest.raises(TypeError, match="unsupported operand"):
        x += "text"


def test_the_backend_stays(backend: str) -> None:
    for other in installed_backends():
        with ember_ml.use_backend(other):
            y = _x()
        x = _x()
        view = x[:2]
        with ember_ml.use_backend(other):
            x += y
            view += y[:2]
            x.reshape(3, 1)[2] = y[0]
        assert x.backend == view.backend == backend
        assert x.tolist() == [3.0, 6.0, 1.0]
        assert view.tolist() == [3.0, 6.0]
        assert (y.backend, y.tolist()) == (other, [1.0, 2.0, 3.0])


def test_what_is_brought_to_another_backend_is_a_copy(backend: str) -> None:
    for other in installed_backends():
        x = _x()
        with ember_ml.use_backend(other):
            y = ops.reshape(x, (3, 1))
            y += 1.0
        assert x.tolist() == ([1.0, 2.0, 3.0] if other != backend else [2.0, 3.0, 4.0])


# Views

KEYS = [0, slice(0, 2), slice(None, None, -1), ..., None, (slice(1, None),), (..., 0), (), (None, -1), slice(5, 9)]


@pytest.mark.parametrize("key", KEYS)
def test_slices_write_through(backend: str, key: Any) -> None:
    x = _x()
    y = x[key]
    y += 10.0
    assert x[key].tolist() == y.tolist()
    y[...] = 5.0
    assert x[key].tolist() == y.tolist()
    x *= 2.0
    assert x[key].tolist() == y.tolist()
    assert all(value == 10.0 for value in y.ravel().tolist())
    assert x.tolist() == [10.0 if place in _places(key) else before for place, before in enumerate((2.0, 4.0, 6.0))]


def _places(key: Any) -> list[int]:
    """The positions that a key selects of three."""
    items = [item for item in (key if type(key) is tuple else (key,)) if item is not None and item is not ...]
    if not items:
        return [0, 1, 2]
    return list(range(3))[items[0]] if type(items[0]) is slice else [range(3)[items[0]]]


VIEWS: dict[str, Any] = {
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "transpose": lambda x: x.transpose(),
    "transpose axes": lambda x: x.transpose(1, 0),
    "permute_dims": lambda x: ops.permute_dims(x, [1, 0]),
    "swapaxes": lambda x: ops.swapaxes(x, 0, 1),
    "swapaxes method": lambda x: x.swapaxes(0, -1),
    "matrix_transpose": ops.matrix_transpose,
    "moveaxis": lambda x: ops.moveaxis(x, 0, 1),
    "standard": lambda x: x.__array_namespace__().permute_dims(x, (1, 0)),
    "twice": lambda x: ops.squeeze(ops.expand_dims(x, 0), 0).T,
    "flipped": lambda x: ops.flip(ops.rot90(ops.rot90(ops.fliplr(ops.flipud(x)))).T.T).T[::-1, ::-1],
    "nn.tensor": lambda x: tensor.swapaxes(x, 0, 1),
}


@pytest.mark.parametrize("make", VIEWS.values(), ids=VIEWS)
def test_transposes_write_through(backend: str, make: Any) -> None:
    x = _matrix()
    y = make(x)
    y[0] += 10.0
    assert x.tolist() == [[11.0, 2.0, 3.0], [14.0, 5.0, 6.0]]
    x[1] = 0.0
    assert y.tolist() == [[11.0, 0.0], [2.0, 0.0], [3.0, 0.0]]


def test_arguments_that_change_later_do_not_count(backend: str) -> None:
    x = _x()
    shape, order = [1, 3, 1], [2, 1, 0]
    axes: Any = [1]
    y = ops.transpose(ops.reshape(x, shape), order)
    z: Any = ops.flip(y, axes)
    shape[:], order[:], axes[:] = [3, 1, 1], [0, 1, 2], [0]
    z += 1.0
    x[0] = 9.0
    assert (x.tolist(), z.ravel().tolist(), y.shape) == ([9.0, 3.0, 4.0], [4.0, 3.0, 9.0], (1, 3, 1))


def test_reshape_is_a_view_where_no_copy_is_needed(backend: str) -> None:
    x = _matrix()
    flat, column, turned, copied = x.reshape(-1), x[:, 1].reshape(2, 1), x.T.reshape(6), x.flatten()
    halves = x.T.reshape(3, 1, 2)
    x += 10.0
    assert flat.tolist() == [11.0, 12.0, 13.0, 14.0, 15.0, 16.0]
    assert column.tolist() == [[12.0], [15.0]]
    assert halves.tolist() == [[[11.0, 14.0]], [[12.0, 15.0]], [[13.0, 16.0]]]
    assert turned.tolist() == [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]
    assert copied.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    turned -= 1.0
    copied -= 1.0
    column[1, 0] = 0.0
    assert x.tolist() == [[11.0, 12.0, 13.0], [14.0, 0.0, 16.0]]


def test_ravel_is_a_view_of_contiguous_elements(backend: str) -> None:
    x = _x()
    whole, part = x.ravel(), x[::2].ravel()
    x += 1.0
    assert (whole.tolist(), part.tolist()) == ([2.0, 3.0, 4.0], [1.0, 3.0])


def test_the_standard_reshapes_with_and_without_a_copy(backend: str) -> None:
    x = _matrix()
    reshape = x.__array_namespace__().reshape
    copied, shared = reshape(x, (6,), copy=True), reshape(x, (6,), copy=False)
    shared += 1.0
    assert (copied.tolist()[0], x.tolist()[0][0]) == (1.0, 2.0)
    with pytest.raises(ValueError, match="without a copy"):
        reshape(x.T, (6,), copy=False)


def test_parts_of_complex_numbers_write_through(backend: str) -> None:
    x = EmberTensor([1 + 2j, complex(3, -float("inf"))])
    real, imag = ops.real(x), ops.imag(x[:1])
    real += 10.0
    imag[0] = float("inf")
    assert x.tolist() == [complex(11, float("inf")), complex(13, -float("inf"))]
    x[0] = -1j
    assert (real.tolist(), imag.tolist()) == ([0.0, 13.0], [-1.0])


def test_gradients_go_through_parts_of_complex_numbers(backend: str) -> None:
    def function(x: Any) -> Any:
        z = x * (1 + 2j)
        real, imag = ops.real(z), ops.imag(z)
        real *= imag  # z is (2 x^2, 2 x)
        imag += real
        return ops.sum(ops.real(z) + ops.imag(z) * 3.0)  # 8 x^2 + 6 x

    assert ops.grad(function)(EmberTensor([1.0, 2.0])).tolist() == [22.0, 38.0]


def test_the_real_part_of_real_tensors_is_a_view(backend: str) -> None:
    x = _x()
    real, imag = ops.real(x)[1:], ops.imag(x)
    real += 1.0
    imag += 1.0
    assert (x.tolist(), imag.tolist()) == ([1.0, 3.0, 4.0], [1.0, 1.0, 1.0])


def test_bytes_write_through(backend: str) -> None:
    x = EmberTensor([1.0, 2.0])
    bits = ops.view(x, "int32")
    bits[0] = 0
    x[1] = 1.0
    assert (x.tolist(), bits.tolist()) == ([0.0, 1.0], [0, 0x3F800000])


@pytest.mark.parametrize("offset", [-3, -1, 0, 1, 2, 5])
def test_diagonals_write_through(backend: str, offset: int) -> None:
    x = _matrix()
    diagonal = x.diagonal(offset)
    diagonal += 10.0
    expected = [[v + 10.0 * (j - i == offset) for j, v in enumerate(row)] for i, row in enumerate(_matrix().tolist())]
    assert x.tolist() == expected


def test_parts_and_rows_write_through(backend: str) -> None:
    x = _matrix()
    for row in x:
        row += 10.0
    left, right = ops.split(x, [1], axis=1)
    right -= 10.0
    first, *_ = ops.unstack(x, axis=1)
    first[1] = 0.0
    ops.hsplit(x, 3)[2][:] = ops.vsplit(x, 2)[0][0, 1]
    assert x.tolist() == [[11.0, 2.0, 2.0], [0.0, 5.0, 2.0]]
    assert (left.tolist(), right.tolist()) == ([[11.0], [0.0]], [[2.0, 2.0], [5.0, 2.0]])


def test_what_was_broadcast_shows_changes_and_refuses_them(backend: str) -> None:
    x = _x()
    wide: Any = ops.broadcast_to(x, (2, 3))
    also: Any
    also, _ = ops.broadcast_arrays(x, tensor.ones((2, 3)))
    x[0] = 7.0
    assert wide.tolist() == also.tolist() == [[7.0, 2.0, 3.0]] * 2
    for change in (lambda: operator.iadd(wide, 1.0), lambda: operator.setitem(also, 0, 1.0), lambda: _add(wide[0][1:])):
        with pytest.raises(ValueError, match=r"broadcast.*copy it first"):
            change()
    assert x.tolist() == [7.0, 2.0, 3.0]


def _add(x: Any) -> None:
    x += 1.0


@pytest.mark.parametrize("key", [[0, 0], [True, False, True]])
@pytest.mark.parametrize("make", [list, EmberTensor])
def test_selected_by_index_or_mask_is_a_copy(backend: str, make: Any, key: Any) -> None:
    x = _x()
    y = x[make(key)]
    y += 1.0
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_numbers_of_other_libraries_are_integers_of_a_key(backend: str) -> None:
    x = _x()
    number = EmberTensor([1, 2]).numpy()[0]
    y = x[number : number + 2]
    x[number] += 1.0
    z = x[number]
    z *= 2.0
    assert (x.tolist(), y.tolist()) == ([1.0, 6.0, 3.0], [6.0, 3.0])


def test_overlapping_views_are_read_before_they_are_written(backend: str) -> None:
    x = _x()
    x[1:] += x[:-1]
    assert x.tolist() == [1.0, 3.0, 5.0]
    x[:-1] = x[1:]
    assert x.tolist() == [3.0, 5.0, 5.0]
    x[::-1] -= x
    assert x.tolist() == [-2.0, 0.0, 2.0]


def test_asarray_is_the_same_elements(backend: str) -> None:
    x = _x()
    y, z, w = ops.asarray(x), ops.asarray(x, copy=True), ops.asarray(x, dtype="int32")
    y += 1.0
    assert (x.tolist(), z.tolist(), w.tolist()) == ([2.0, 3.0, 4.0], [1.0, 2.0, 3.0], [1, 2, 3])


def test_a_failed_change_changes_nothing(backend: str) -> None:
    x = _x()
    views = [x[:2], x[1:], x.reshape(3, 1)]
    with pytest.raises(IndexError):
        views[0][5] = 1.0
    with pytest.raises(ValueError, match="broadcast"):
        views[1][:] = EmberTensor([1.0, 2.0, 3.0])
    assert [x.tolist(), *(view.tolist() for view in views)] == [
        [1.0, 2.0, 3.0],
        [1.0, 2.0],
        [2.0, 3.0],
        [[1], [2], [3]],
    ]


# Lives


def test_views_of_a_tensor_that_is_gone_share_its_elements(backend: str) -> None:
    x = _x()
    y, z = x[:2][1:], x[1:]
    del x
    y += 1.0
    y[0] *= 2.0
    assert (y.tolist(), z.tolist()) == ([6.0], [6.0, 3.0])


def test_dead_views_are_forgotten(backend: str) -> None:
    x: Any = tensor.zeros((4,))
    kept = [x[:], x[1:]]
    for place in range(200):
        _add(x[place % 4])
    assert len(x._views) < 40
    assert kept[0].tolist() == [50.0] * 4
    del kept
    gc.collect()
    x += 1.0
    assert x.tolist() == [51.0] * 4


def test_a_view_lets_its_own_views_go(backend: str) -> None:
    x = _x()
    y = x[1:]
    inner = weakref.ref(y[:1])
    assert inner() is None
    gone = weakref.ref(x)
    del x
    assert gone() is not None  # as in NumPy, a view keeps its source
    del y
    assert gone() is None


def test_long_chains_of_views_keep_few_tensors_and_write_through(backend: str) -> None:
    x: Any = tensor.arange(120.0)
    y = x.reshape(2, 60)
    sources = []
    for number in range(50):
        sources.append(weakref.ref(y))
        y = y.T[1:].T if number % 3 else y[:, ::-1].swapaxes(0, 1).transpose()
    alive = sum(source() is not None for source in sources)
    assert alive < 12, f"{alive} of 50 views are kept"
    y += 1000.0
    changed = [place for place, value in enumerate(x.tolist()) if value >= 1000.0]
    assert len(changed) == y.size == 2 * 27
    assert sorted(value - 1000.0 for value in y.ravel().tolist()) == changed
    x[:] = 0.0
    assert set(y.ravel().tolist()) == {0.0}


@pytest.mark.parametrize(
    "make", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), EmberTensor, ops.copy]
)
def test_copies_of_views_are_independent(backend: str, make: Any) -> None:
    x = _x()
    view = x[1:]
    copied = make(view)
    copied += 1.0
    view *= 10.0
    assert (x.tolist(), copied.tolist()) == ([1.0, 20.0, 30.0], [3.0, 4.0])


def test_moving_a_view_to_its_device_gives_its_values(backend: str) -> None:
    x = _x()
    view = x[1:]
    view += 1.0
    assert view.to_device(view.device).tolist() == [3.0, 4.0]


# Statements


class _Holder:
    def __init__(self, x: EmberTensor) -> None:
        self.x = x


def test_item_statements_work(backend: str) -> None:
    x: Any = tensor.zeros((3, 2))
    x[0] += 1
    x[1, 1] -= 2
    x[2:] += x[0] * 3
    x[..., 0] *= 2
    holder = _Holder(x)
    holder.x[2] /= 2
    x[x < 0] **= 2
    holder.x[0][1:] += 1
    assert x.tolist() == [[2.0, 2.0], [0.0, 4.0], [3.0, 1.5]]


def test_item_statements_write_once(backend: str) -> None:
    """Python stores the changed part back into ``x[key]``, where it is already."""
    x = _matrix()
    x[1:, 0] += 1.0
    part = x[1:, 0]
    native = x.native
    x[1:, 0] = part
    assert x.native is native


def test_item_statement_at_module_level(backend: str) -> None:
    scope = {"x": _x()}
    exec("x[0] += 1\nx[1:] *= 2\ny = x[0]\ny += 1", scope)
    assert scope["x"].tolist() == [3.0, 4.0, 6.0]


def test_an_attribute_that_holds_a_slice_writes_through(backend: str) -> None:
    x = _x()
    holder = _Holder(x[:2])
    holder.x += 1
    holder.x[0] = 1
    assert x.tolist() == [1.0, 3.0, 3.0]


# Transformations


def _shuffle(x: EmberTensor) -> EmberTensor:
    y = x * 1.0
    rows, turned = y.reshape(2, 3), y.reshape(2, 3).T
    rows[0] += rows[1]
    turned[1:] *= 2.0
    part = turned[0]
    part -= y[3]
    y[:2] = y[4:]
    return rows * turned.T + part[0]


# of x = (a, b, c, d, e, f): y is (2e, 2f, 2(c + f), 0, 2e, 2f) at the end, and the part is (2e, 0)
def _shuffled(values: list[float]) -> list[list[float]]:
    _, _, c, _, e, f = values
    return [
        [4 * e * e + 2 * e, 4 * f * f + 2 * e, 4 * (c + f) ** 2 + 2 * e],
        [2 * e, 4 * e * e + 2 * e, 4 * f * f + 2 * e],
    ]


VALUES = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_compiled_functions_change_the_same_elements(backend: str) -> None:
    compiled = ops.compile(_shuffle)
    for _ in range(2):
        assert compiled(EmberTensor(VALUES)).tolist() == _shuffled(VALUES)
    assert _shuffle(EmberTensor(VALUES)).tolist() == _shuffled(VALUES)


def test_vmapped_functions_change_the_same_elements(backend: str) -> None:
    rows = [VALUES, VALUES[::-1]]
    assert ops.vmap(_shuffle)(EmberTensor(rows)).tolist() == [_shuffled(row) for row in rows]


def test_gradients_go_through_changed_views(backend: str) -> None:
    # the sum is 8 e^2 + 8 f^2 + 4 (c + f)^2 + 12 e
    expected = [0.0, 0.0, 72.0, 0.0, 92.0, 168.0]
    assert ops.grad(lambda x: _shuffle(x).sum())(EmberTensor(VALUES)).tolist() == expected
    x = EmberTensor(VALUES, requires_grad=True)
    _shuffle(x).sum().backward()
    gradient = x.grad
    assert gradient is not None
    assert gradient.tolist() == expected
