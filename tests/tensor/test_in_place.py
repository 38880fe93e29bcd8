"""Changing tensors: the object stays, whatever shares its data keeps its own, slices refuse."""

import operator
from typing import Any

import pytest

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.nn import tensor
from ember_ml.nn.tensor import EmberTensor


def _x() -> EmberTensor:
    return EmberTensor([1.0, 2.0, 3.0])


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
    alias, copy, native = x, EmberTensor(x), x.native
    assert change(x, 2) is x
    assert alias.tolist() == expected
    assert copy.tolist() == ops.to_numpy(native).tolist() == [1.0, 2.0, 3.0]


def test_bitwise_operators_keep_the_object(backend: str) -> None:
    x = EmberTensor([6, 7])
    before = x
    x &= 3
    x |= 8
    x ^= 1
    x <<= 2
    x >>= 1
    assert x is before
    assert x.tolist() == [22, 20]


def test_the_callers_arrays_never_change(backend: str) -> None:
    source = _x().numpy().copy()
    x = EmberTensor(source)
    x[0] = 9.0
    x += 1.0
    assert source.tolist() == [1.0, 2.0, 3.0]
    assert x.tolist() == [10.0, 3.0, 4.0]


def test_dtype_and_shape_stay(backend: str) -> None:
    x = EmberTensor([1, 2], dtype="int32")
    with pytest.raises(TypeError, match="int32 to float32"):
        x += 1.5
    with pytest.raises(TypeError, match="int32 to int64"):
        x += EmberTensor([1, 2])
    with pytest.raises(TypeError, match="dtype"):
        x /= 2
    with pytest.raises(ValueError, match="shape"):
        x += tensor.ones((3, 2), dtype="int32")
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
        with ember_ml.use_backend(other):
            x += y
        assert x.backend == backend
        assert x.tolist() == [2.0, 4.0, 6.0]
        assert y.backend == other


def test_assignment_copies_on_write(backend: str) -> None:
    x = _x()
    view, copy, native = x[:2], EmberTensor(x), x.native
    x[0] = 7
    assert x.tolist() == [7.0, 2.0, 3.0]
    assert view.tolist() == [1.0, 2.0]
    assert copy.tolist() == ops.to_numpy(native).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("key", [0, slice(0, 2), slice(None, None, -1), ..., None, (slice(1, None),), (..., 0)])
def test_slices_refuse(backend: str, key: Any) -> None:
    x = _x()
    y = x[key]
    with pytest.raises(ValueError, match="slic"):
        y += 1.0
    with pytest.raises(ValueError, match="slic"):
        y[...] = 1.0
    with pytest.raises(ValueError, match="slic"):
        operator.iadd(y, 1.0)
    assert x.tolist() == [1.0, 2.0, 3.0]
    y = y + 1.0
    y += 1.0  # the sum is a tensor of its own


def test_rows_of_an_iteration_refuse(backend: str) -> None:
    for row in tensor.zeros((2, 2)):
        with pytest.raises(ValueError, match="slic"):
            row += 1.0


@pytest.mark.parametrize("make", [list, EmberTensor])
def test_selected_by_index_is_no_slice(backend: str, make: Any) -> None:
    y = _x()[make([0, 0])]
    y += 1.0
    assert y.tolist() == [2.0, 2.0]


def test_a_slice_of_a_tensor_that_is_gone_may_be_changed(backend: str) -> None:
    x = _x()
    y = x[:2][1:]
    with pytest.raises(ValueError, match="slic"):
        y += 1.0
    del x
    y += 1.0
    y[0] *= 2.0
    assert y.tolist() == [6.0]


class _Holder:
    def __init__(self, x: EmberTensor) -> None:
        self.x = x


def test_item_statements_work(backend: str) -> None:
    x = tensor.zeros((3, 2))
    x[0] += 1
    x[1, 1] -= 2
    x[2:] += x[0] * 3
    x[..., 0] *= 2
    holder = _Holder(x)
    holder.x[2] /= 2
    x[x < 0] **= 2
    assert x.tolist() == [[2.0, 1.0], [0.0, 4.0], [3.0, 1.5]]


def test_item_statement_at_module_level(backend: str) -> None:
    scope = {"x": _x()}
    exec("x[0] += 1\nx[1:] *= 2", scope)
    assert scope["x"].tolist() == [2.0, 4.0, 6.0]
    with pytest.raises(ValueError, match="slic"):
        exec("y = x[0]\ny += 1", scope)


def test_an_attribute_that_holds_a_slice_refuses(backend: str) -> None:
    x = _x()
    holder = _Holder(x[:2])
    with pytest.raises(ValueError, match="slic"):
        holder.x += 1
    with pytest.raises(ValueError, match="slic"):
        holder.x[0] = 1
