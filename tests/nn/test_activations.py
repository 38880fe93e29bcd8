"""The activation classes compute the ops of their names."""

from typing import Any

import pytest

from ember_ml import ops
from ember_ml.nn import tensor
from ember_ml.nn.modules import activations
from ember_ml.nn.modules.activations.relu_module import ReLU
from ember_ml.nn.modules.activations.sigmoid_module import Sigmoid
from ember_ml.nn.modules.activations.softmax_module import Softmax
from ember_ml.nn.modules.activations.softplus_module import Softplus
from ember_ml.nn.modules.activations.tanh_module import Tanh

_VALUES = [[-2.0, 0.0, 1.0], [3.0, -1.0, 0.5]]


@pytest.mark.parametrize(
    ("module", "name"),
    [(ReLU(), "relu"), (Sigmoid(), "sigmoid"), (Tanh(), "tanh"), (Softmax(), "softmax"), (Softplus(), "softplus")],
)
def test_class_and_function_agree(backend: str, module: Any, name: str) -> None:
    function = getattr(activations, name)
    assert function is getattr(ops, name)
    x = tensor.array(_VALUES)
    assert module(x).tolist() == function(x).tolist()
    assert repr(module).startswith(type(module).__name__ + "(")


def test_values(backend: str) -> None:
    assert ReLU()(tensor.array(_VALUES)).tolist() == [[0.0, 0.0, 1.0], [3.0, 0.0, 0.5]]
    columns = ops.sum(Softmax(axis=0)(tensor.array(_VALUES)), axis=0).tolist()
    assert columns == pytest.approx([1.0, 1.0, 1.0], rel=1e-6)
    assert repr(Softmax(axis=0)) == "Softmax(axis=0)"
