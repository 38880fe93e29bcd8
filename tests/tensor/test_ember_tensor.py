"""EmberTensor as an object: what it is, how it is read, copied and handed on."""

import copy
import gc
import inspect
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
from ember_ml.tensor.operations import METHODS, Operations


def test_facts(backend: str) -> None:
    x = EmberTensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert (x.shape, x.ndim, x.size, x.dtype, x.itemsize, x.nbytes) == ((2, 3), 2, 6, tensor.float32, 4, 24)
    assert isinstance(x.shape, tuple)
    assert x.backend == backend
    assert isinstance(x.device, str)
    assert len(x) == 2
    assert isinstance(x, tensor.TensorInterface)


@pytest.mark.parametrize(
    ("data", "dtype", "expected"),
    [
        ([1, 2], None, "int64"),
        ([1.0, 2.0], None, "float32"),
        ([True], None, "bool"),
        ([1j], None, "complex64"),
        ([1, 2], "float16", "float16"),
        ([1.5], "bfloat16", "bfloat16"),
        ([2.7], "int8", "int8"),
        ([2.7], float, "float32"),
    ],
)
def test_made_of_python_numbers(backend: str, data: Any, dtype: Any, expected: str) -> None:
    assert EmberTensor(data, dtype=dtype).dtype == expected


def test_made_of_tensors_of_every_kind(backend: str) -> None:
    x = EmberTensor([1.0, 2.0])
    for source in (x, x.native, x.numpy(), [x[0], x[1]]):
        assert EmberTensor(source).tolist() == [1.0, 2.0]
    assert EmberTensor(x, dtype="int32").tolist() == [1, 2]


def test_a_python_integer_that_does_not_fit(backend: str) -> None:
    with pytest.raises(OverflowError, match="300"):
        EmberTensor([300], dtype="int8")


def test_transposes(backend: str) -> None:
    x = EmberTensor([[1, 2, 3], [4, 5, 6]])
    assert x.T.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert tensor.zeros((2, 3, 4)).mT.shape == (2, 4, 3)
    with pytest.raises(ValueError, match="permute_dims"):
        _ = tensor.zeros((2, 3, 4)).T
    with pytest.raises(ValueError, match="2 dimensions"):
        _ = tensor.zeros((2,)).mT


@pytest.mark.parametrize(
    ("read", "data"), [(bool, True), (int, 3), (float, 2.5), (complex, 1 + 2j), (operator.index, 7)]
)
def test_single_values(backend: str, read: Any, data: Any) -> None:
    assert read(EmberTensor(data)) == data
    assert type(read(EmberTensor(data))) is type(data)
    assert EmberTensor(data).item() == data


@pytest.mark.parametrize("read", [bool, int, float, complex, operator.index])
@pytest.mark.parametrize("data", [[1, 2], []])
def test_several_values_are_no_number(backend: str, read: Any, data: Any) -> None:
    with pytest.raises(TypeError):
        read(EmberTensor(data, dtype="int64"))


def test_a_float_is_no_index(backend: str) -> None:
    with pytest.raises(TypeError, match="0-d integer"):
        operator.index(EmberTensor(1.0))
    with pytest.raises(ValueError, match="exactly one"):
        EmberTensor([1, 2]).item()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64"])
def test_lists_hold_python_numbers(backend: str, dtype: str) -> None:
    values = EmberTensor([[0, 1]], dtype=dtype).tolist()
    assert values == [[0, 1]]
    assert type(values[0][0]) in (bool, int, float, complex)


def test_iteration_and_membership(backend: str) -> None:
    x = EmberTensor([[1, 2], [3, 4]])
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert 3 in x
    assert 5 not in x
    assert None not in x
    with pytest.raises(TypeError, match="0-d"):
        iter(EmberTensor(1))
    with pytest.raises(TypeError, match="0-d"):
        len(EmberTensor(1))


def test_unhashable(backend: str) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(EmberTensor(1))


def test_text(backend: str) -> None:
    text = repr(EmberTensor([1.5, 2.0]))
    assert text.startswith("EmberTensor([1.5, 2. ]")
    assert "dtype=float32" in text
    assert f"backend={backend!r}" in text
    assert "device='" in text
    assert "shape=(0, 3)" in repr(tensor.zeros((0, 3)))
    assert len(repr(tensor.zeros((1000, 1000)))) < 1000
    assert f"{EmberTensor(2.5):.3f}" == "2.500"
    assert f"{EmberTensor([2.5])}".startswith("EmberTensor(")
    with pytest.raises(TypeError, match="0-d"):
        format(EmberTensor([2.5]), ".3f")


@pytest.mark.parametrize("dtype", ["bool", "uint64", "bfloat16", "float64", "complex64"])
def test_pickle_keeps_everything(backend: str, dtype: str) -> None:
    x = EmberTensor([[0, 1, 1]], dtype=dtype)
    y = pickle.loads(pickle.dumps(x))
    assert (y.tolist(), y.dtype, y.shape, y.backend, y.device) == (x.tolist(), x.dtype, x.shape, x.backend, x.device)
    y[0, 0] = True  # what was unpickled can be changed
    assert y.tolist() == [[1, 1, 1]]


def test_pickle_moves_to_the_active_backend_where_its_own_is_missing(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pickle.dumps(EmberTensor([1.0]))
    ember_ml.set_backend("numpy")
    monkeypatch.setattr("ember_ml.tensor.ember_tensor.is_installed", lambda name: name == "numpy")
    assert pickle.loads(data).backend == "numpy"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, ops.copy])
def test_copies_are_independent(backend: str, duplicate: Any) -> None:
    x = EmberTensor([1.0, 2.0])
    y = duplicate(x)
    y[0] = 5.0
    assert x.tolist() == [1.0, 2.0]
    assert y.tolist() == [5.0, 2.0]


def test_requires_grad(backend: str) -> None:
    x = tensor.convert_to_tensor([1.0], requires_grad=True)
    assert x.requires_grad
    assert "requires_grad=True" in repr(x)
    assert pickle.loads(pickle.dumps(x)).requires_grad
    assert copy.deepcopy(x).requires_grad
    x.requires_grad = False
    assert not x.requires_grad
    assert not EmberTensor([1.0]).requires_grad
    with pytest.raises(TypeError, match="no gradient"):
        tensor.convert_to_tensor([1], requires_grad=True)


def test_asking_for_gradients_leaves_the_source_alone(backend: str) -> None:
    x = EmberTensor([1.0])
    y = tensor.convert_to_tensor(x, requires_grad=True)
    assert y.requires_grad
    assert not x.requires_grad
    assert not EmberTensor(x.native).requires_grad


def test_to_device(backend: str) -> None:
    x = EmberTensor([1.0])
    assert x.to_device(x.device).device == x.device
    assert x.to_device("cpu").device == "cpu"


def test_weak_references(backend: str) -> None:
    x = EmberTensor([1.0])
    reference = weakref.ref(x)
    del x
    gc.collect()
    assert reference() is None


def test_array_protocol(backend: str) -> None:
    x = EmberTensor([[1, 2]])
    assert x.__array__().tolist() == [[1, 2]]
    assert x.__array__("float64").dtype == "float64"
    copied = x.__array__(copy=True)
    copied[0, 0] = 9
    assert x.tolist() == [[1, 2]]
    with pytest.raises(ValueError, match="without a copy"):
        x.__array__("float64", copy=False)


@pytest.mark.parametrize("other", installed_backends())
def test_dlpack_reaches_every_backend(backend: str, other: str) -> None:
    x = EmberTensor([[1.0, 2.0], [3.0, 4.0]])
    with ember_ml.use_backend(other):
        y = ops.from_dlpack(x)
        assert ops.to_numpy(y).tolist() == x.tolist()
    assert x.__dlpack_device__()[1] == 0


def test_methods_are_the_ops(backend: str) -> None:
    x = EmberTensor([[3.0, 1.0], [2.0, 4.0]])
    assert x.sum().item() == 10.0
    assert x.sum(axis=0).tolist() == [5.0, 5.0]
    assert x.mean(axis=1, keepdims=True).shape == (2, 1)
    assert x.max(axis=0).tolist() == [3.0, 4.0]
    assert x.reshape(4).tolist() == x.reshape((4,)).tolist() == x.reshape(-1).tolist() == x.flatten().tolist()
    assert x.reshape(1, 4).shape == (1, 4)
    assert x.transpose().tolist() == x.transpose(1, 0).tolist() == x.transpose((1, 0)).tolist() == x.T.tolist()
    assert x.astype("int32").dtype == "int32"
    assert x.sort(axis=-1).tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert x.expand_dims(0).squeeze(0).shape == (2, 2)
    assert not hasattr(x, "repeat")


@pytest.mark.parametrize("name", [name for name in METHODS if name not in ("reshape", "transpose")])
def test_methods_are_declared_as_the_ops(name: str) -> None:
    declared = list(inspect.signature(getattr(Operations, name)).parameters.values())[1:]
    bound = list(inspect.signature(getattr(EmberTensor, name)).parameters.values())[1:]
    assert [str(parameter) for parameter in declared] == [str(parameter) for parameter in bound]


def test_methods_stay_on_their_backend(backend: str) -> None:
    x = EmberTensor([1.0, 2.0])
    for other in installed_backends():
        with ember_ml.use_backend(other):
            results = (x + 1, x.sum(), x[0], x.reshape(2, 1), -x, 2 / x, x == 1)
        assert {result.backend for result in results} == {backend}
        assert ember_ml.EmberTensor is EmberTensor


def test_operators_of_two_backends_compute_on_the_active_one(backend: str) -> None:
    x = EmberTensor([1.0, 2.0])
    for other in installed_backends():
        with ember_ml.use_backend(other):
            y = EmberTensor([3.0, 4.0])
        total = x + y
        assert total.tolist() == [4.0, 6.0]
        assert total.backend == backend
        assert y.backend == other


def test_operators_take_native_tensors_and_numpy_scalars(backend: str) -> None:
    x = EmberTensor([3.0, 4.0])
    for other in (ops.array([1.0, 2.0]), EmberTensor([1.0, 2.0])):
        assert type(x - other) is EmberTensor
        assert (x - other).tolist() == [2.0, 2.0]
    scalar = EmberTensor([2.0], dtype="float64").numpy()[0]
    for result, expected in ((scalar * x, [6.0, 8.0]), (x * scalar, [6.0, 8.0]), (scalar - x, [-1.0, -2.0])):
        assert type(result) is EmberTensor
        assert result.dtype == "float64"  # such a scalar is typed
        assert result.tolist() == expected
    integer = EmberTensor([2]).numpy()[0]
    assert (integer * x).dtype == "float32"
    for other in ("text", [1.0, 2.0], None, object()):
        with pytest.raises(TypeError, match="unsupported operand"):
            _ = x + other


def test_follows_the_switch_when_used_through_ops(backend: str) -> None:
    x = EmberTensor([1.0, 2.0])
    for other in installed_backends():
        with ember_ml.use_backend(other):
            y = ops.add(x, 1)
        assert type(y) is EmberTensor
        assert y.backend == other
        assert x.backend == backend
