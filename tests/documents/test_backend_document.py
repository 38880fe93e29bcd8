"""What the backend document promises: its calls, its lists of names, its imports."""

from __future__ import annotations

import importlib
import math
from types import ModuleType, SimpleNamespace

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.nn.modules import activations

# The lists of names that the document prints.
STATS = [
    "mean",
    "var",
    "median",
    "std",
    "percentile",
    "max",
    "min",
    "sum",
    "cumsum",
    "argmax",
    "sort",
    "argsort",
    "gaussian",
]
LINEARALG = ["solve", "inv", "svd", "eig", "eigvals", "det", "norm", "qr", "cholesky", "lstsq", "diag", "diagonal"]
ACTIVATIONS = ["relu", "sigmoid", "tanh", "softmax", "softplus"]
MASTER = [
    *("add", "subtract", "multiply", "divide", "matmul", "dot", "mean", "sum", "max", "min"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    *("to_device", "get_device", "get_available_devices"),
]


def test_management_calls(backend):
    assert ember_ml.get_backend() == backend
    assert isinstance(ember_ml.get_backend_module(), ModuleType)
    name, device = ember_ml.auto_select_backend()
    assert name in ember_ml.backend.backend_names()
    assert device is None or isinstance(device, str)
    ops.set_backend("numpy")
    assert ember_ml.get_backend() == "numpy"


@pytest.mark.parametrize("name", MASTER)
def test_master_list(backend, name):
    assert callable(getattr(ops, name))


def test_sub_namespaces_are_views(backend):
    stats = importlib.import_module("ember_ml.ops.stats")
    linearalg = importlib.import_module("ember_ml.ops.linearalg")
    assert all(getattr(stats, name) is getattr(ops, name) for name in STATS)
    assert all(getattr(linearalg, name) is getattr(ops, name) for name in LINEARALG)
    assert ops.stats is stats
    assert ops.linearalg is linearalg


def test_activation_modules(backend):
    from ember_ml.nn.modules import activations
    from ember_ml.nn.modules.activations.relu_module import ReLU
    from ember_ml.nn.modules.activations.sigmoid_module import Sigmoid

    assert all(getattr(activations, name) is getattr(ops, name) for name in ACTIVATIONS)
    assert ops.to_numpy(ReLU()(ops.array([-1.0, 2.0]))).tolist() == [0.0, 2.0]
    assert ops.to_numpy(Sigmoid()(ops.array([0.0]))).tolist() == [0.5]


def test_tensor_module_imports(backend):
    # Import interfaces
    # Import common implementation
    from ember_ml.nn.tensor.common import (
        EmberTensor,
        arange,
        concatenate,
        eye,
        full,
        full_like,
        linspace,
        ones,
        ones_like,
        reshape,
        split,
        stack,
        transpose,
        zeros,
        zeros_like,
    )
    from ember_ml.nn.tensor.common.dtypes import DType, EmberDType, from_dtype_str, get_dtype, to_dtype_str
    from ember_ml.nn.tensor.common.dtypes import dtype as dtype_instance
    from ember_ml.nn.tensor.interfaces import TensorInterface
    from ember_ml.nn.tensor.interfaces.dtype import DTypeInterface

    made = [zeros((2,)), ones((2,)), eye(2), arange(3), linspace(0, 1, 2), full((2,), 1.0)]
    made += [
        zeros_like(made[0]),
        ones_like(made[0]),
        full_like(made[0], 2.0),
        reshape(made[2], (4,)),
        transpose(made[2]),
    ]
    made += [concatenate([made[0], made[1]]), stack([made[0], made[1]]), *split(made[3], 3)]
    assert all(type(x) is EmberTensor for x in made)
    assert isinstance(made[0], TensorInterface)
    assert isinstance(made[0].dtype, DTypeInterface)
    assert isinstance(made[0].dtype, EmberDType)
    assert to_dtype_str(made[0].dtype) == "float32"
    assert from_dtype_str("float32") == made[0].dtype
    assert get_dtype("float32") == made[0].dtype
    assert isinstance(dtype_instance, DType)


def test_type_aliases():
    from ember_ml.nn import tensor

    for name in ("Numeric", "Shape", "ShapeLike", "TensorLike", "TensorTypes", "Tensor"):
        assert hasattr(tensor, name)


def test_convert_to_tensor(backend):
    from ember_ml.nn import tensor

    x = tensor.convert_to_tensor([1.0, 2.0], dtype=tensor.float32, device="cpu", requires_grad=True)
    assert type(x) is tensor.EmberTensor
    assert x.requires_grad
    assert tensor.convert_to_tensor(x) is x
    wrapped = tensor.EmberTensor(ops.array([1.0]), dtype=tensor.float32, device="cpu", requires_grad=False)
    assert wrapped.tolist() == [1.0]


def test_get_device(backend):
    from ember_ml.nn import tensor

    assert ops.get_device() in ops.get_available_devices()
    assert ops.get_device(ops.zeros((1,))) in ops.get_available_devices()
    assert ops.get_device(tensor.zeros((1,))) in ops.get_available_devices()
    assert ops.get_device(nn.Parameter([1.0])) == ops.get_device([1.0]) == ops.get_device()
    assert ops.get_device(SimpleNamespace(device="xpu:3")) == "xpu:3"  # str(tensor.device), as the document has it


def test_from_imports_follow_the_switch(backend):
    from ember_ml.ops import add

    for name in [*ember_ml.backend.installed_backends(), backend]:
        ember_ml.set_backend(name)
        assert type(add([1], [2])) is ember_ml.get_backend_module().tensor_type


def test_ops_take_parameters(backend):
    parameter = ember_ml.nn.Parameter([1.0, 2.0])
    assert ops.to_numpy(ops.add(parameter, 1.0)).tolist() == [2.0, 3.0]
    assert ops.shape(parameter) == (2,)
    assert ops.item(ops.matmul(parameter, parameter)) == 5.0


def test_backend_modules_have_the_functions(backend):
    module = ember_ml.get_backend_module()
    assert ops.item(getattr(module, "add")(1.0, 2.0)) == 3.0  # noqa: B009 - as the document reads it
    assert ops.item(module.sin(0.5)) == pytest.approx(math.sin(0.5))
    assert ops.item(ops.stats.get_stats_module().mean([1.0, 3.0])) == 2.0
    assert ops.to_numpy(activations.get_activations_module().relu([-1.0, 2.0])).tolist() == [0.0, 2.0]
    assert not hasattr(module, "no_such_op")
    with ember_ml.use_backend("numpy"):  # the functions are those of their module, whatever is active
        assert type(module.cos([0.0])) is module.tensor_type


@pytest.mark.parametrize(
    ("names", "compute"),
    [
        ("zeros ones reshape concatenate convert_to_tensor", lambda module: module.reshape(module.zeros((2, 2)), (4,))),
        ("sin add matmul exp", lambda module: module.matmul([[0.0]], [[1.0]])),
        ("to_device get_device get_available_devices", lambda module: module.to_device(module.zeros((1,)), "cpu")),
        ("random_normal random_uniform", lambda module: module.multiply(module.random_normal((2,)), 0.0)),
        ("equal less greater_equal isclose", lambda module: module.equal([1.0], [2.0])),
        ("astype dtype result_type", lambda module: module.astype([0], "float16")),
        ("solve inv svd eig cholesky lstsq", lambda module: module.solve([[2.0]], [0.0])),
    ],
    ids=["TensorOps", "MathOps", "DeviceOps", "RandomOps", "ComparisonOps", "DTypeOps", "SolverOps"],
)
def test_backend_modules_have_what_their_classes_had(backend, names, compute):
    module = ember_ml.get_backend_module()
    assert all(callable(getattr(module, name)) for name in names.split())
    result = compute(module)
    assert type(result) is module.tensor_type
    assert not ops.to_numpy(result).any()


def test_reload_keeps_the_backend(backend):
    importlib.reload(ember_ml)
    assert ember_ml.get_backend() == backend
    assert type(ops.add([1], [2])) is ember_ml.get_backend_module().tensor_type


def test_features_are_made_by_factories_and_fitted(backend):
    from ember_ml.nn import features
    from ember_ml.nn.features import common
    from ember_ml.nn.features.common import tensor_features

    data = [[1.0, 2.0], [3.0, 5.0], [4.0, 0.0]]
    for factory in ("pca", "standardize_features", "normalize_features"):
        assert getattr(features, factory) is getattr(common, factory)
        instance = getattr(features, factory)()
        instance.fit(data)
        assert ops.shape(instance.transform(data)) == (3, 2)
    assert type(features.pca()) is common.PCA
    for direct in ("one_hot", "scatter"):
        assert getattr(features, direct) is getattr(common, direct) is getattr(tensor_features, direct)
    assert ops.to_numpy(features.one_hot([1], 2)).tolist() == [[0.0, 1.0]]
