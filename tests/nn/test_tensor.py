"""``ember_ml.nn.tensor``: the names and import paths, portable results."""

from typing import Any

import pytest

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.nn import tensor
from ember_ml.nn.tensor import EmberTensor
from ember_ml.nn.tensor.common.dtypes import DType, EmberDType, from_dtype_str, get_dtype, to_dtype_str
from ember_ml.nn.tensor.common.dtypes import dtype as dtype_instance
from ember_ml.nn.tensor.interfaces import TensorInterface
from ember_ml.nn.tensor.interfaces.dtype import DTypeInterface


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("array", ([1, 2],)),
        ("asarray", ([1, 2],)),
        ("zeros", ((2, 3),)),
        ("ones", (3,)),
        ("full", ((2,), 7.0)),
        ("eye", (3,)),
        ("arange", (4,)),
        ("linspace", (0.0, 1.0, 3)),
        ("zeros_like", ([1.0, 2.0],)),
    ],
)
def test_creation_is_portable_here_and_native_in_ops(backend: str, name: str, arguments: tuple[Any, ...]) -> None:
    made = getattr(tensor, name)(*arguments)
    assert type(made) is EmberTensor
    assert made.backend == backend
    native = getattr(ops, name)(*arguments)
    assert type(native) is not EmberTensor
    assert ops.to_numpy(native).tolist() == made.tolist()


def test_creation_follows_the_switch() -> None:
    made = []
    for name in installed_backends():
        with ember_ml.use_backend(name):
            made.append(tensor.zeros(2).backend)
    assert tuple(made) == installed_backends()


def test_the_other_functions_are_the_ops() -> None:
    for name in ("reshape", "transpose", "concatenate", "stack", "split", "cast", "get_item"):
        assert getattr(tensor, name) is getattr(ops, name)


def test_convert_to_tensor(backend: str) -> None:
    x = tensor.convert_to_tensor([1.0, 2.0])
    assert tensor.convert_to_tensor(x) is x
    assert tensor.convert_to_tensor(x, dtype="float32") is x
    assert tensor.convert_to_tensor(x, dtype="float64").dtype == tensor.float64
    assert tensor.convert_to_tensor(x, device="cpu").device == "cpu"
    assert tensor.convert_to_tensor(ops.array([1.0])).backend == backend


def test_dtypes() -> None:
    assert isinstance(dtype_instance, DType)
    assert dtype_instance.float32 is tensor.float32 is get_dtype("float32") is from_dtype_str("float32")
    assert dtype_instance.bool_ is tensor.bool_
    assert to_dtype_str(tensor.bfloat16) == "bfloat16"
    assert get_dtype(tensor.ones(2)) is tensor.float32
    assert {dtype.name for dtype in dtype_instance} >= {"bool", "int8", "complex64"}
    assert isinstance(tensor.float32, EmberDType)
    assert isinstance(tensor.float32, DTypeInterface)
    assert isinstance(tensor.ones(2), TensorInterface)
    with pytest.raises(AttributeError, match="float8"):
        _ = dtype_instance.float8
    with pytest.raises(TypeError, match="string"):
        from_dtype_str(3)  # type: ignore[arg-type]


def test_type_aliases() -> None:
    for alias in ("Tensor", "TensorLike", "TensorTypes", "Numeric", "Shape", "ShapeLike"):
        assert hasattr(tensor, alias)
