"""The activation classes compute the ops of their names, with their settings."""

import math
from typing import Any

import pytest

from ember_ml import nn, ops
from ember_ml.nn import tensor
from ember_ml.nn.modules import activations
from ember_ml.nn.modules.activations.activation import Activation
from ember_ml.nn.modules.activations.relu_module import ReLU
from ember_ml.nn.modules.activations.sigmoid_module import Sigmoid
from ember_ml.nn.modules.activations.softmax_module import Softmax
from ember_ml.nn.modules.activations.softplus_module import Softplus
from ember_ml.nn.modules.activations.tanh_module import Tanh
from ember_ml.ops.neural import activations as activation_ops
from ember_ml.training import optimizers

_VALUES = [[-2.0, 0.0, 1.0, 7.0], [3.0, -1.0, 0.5, 0.25]]
_NAMES = sorted([*activation_ops.__all__, "tanh"])  # which is declared among the elementwise functions
# settings other than the defaults, where there are any
_SETTINGS: dict[str, dict[str, Any]] = {
    "leaky_relu": {"negative_slope": 0.5},
    "prelu": {"weight": 0.5},
    "elu": {"alpha": 2.0},
    "celu": {"alpha": 2.0},
    "gelu": {"approximate": False},
    "squareplus": {"b": 1.0},
    "threshold": {"threshold": 0.25, "default_value": 3.0},
    "hard_shrink": {"threshold": 1.0},
    "soft_shrink": {"threshold": 1.0},
    **{name: {"axis": 0} for name in ("softmax", "log_softmax", "sparsemax", "glu")},
}


def _class_of(name: str) -> type[Activation]:
    """The class whose name is that of the op, whatever its capitals."""
    wanted = name.replace("_", "")
    (found,) = (thing for key, thing in vars(activations).items() if isinstance(thing, type) and key.lower() == wanted)
    return found


@pytest.mark.parametrize("name", _NAMES)
def test_class_and_function_agree(name: str, backend: str) -> None:
    function = getattr(activations, name)
    assert function is getattr(ops, name)
    assert name in activations.__all__
    settings = _SETTINGS.get(name, {})
    module = _class_of(name)(**settings)
    assert type(module).__name__ in activations.__all__
    x = tensor.array(_VALUES)
    found = module(x)
    assert type(found) is type(x)
    assert found.tolist() == function(x, **settings).tolist()
    shown = {key: value for key, value in settings.items() if key != "weight"}  # which is a parameter
    assert repr(module).startswith(f"{type(module).__name__}({', '.join(f'{k}={v}' for k, v in shown.items())})")


@pytest.mark.parametrize("name", sorted({*_NAMES} - {"prelu", "threshold"}))
def test_defaults_are_those_of_the_function(name: str, backend: str) -> None:
    x = tensor.array(_VALUES)
    assert _class_of(name)()(x).tolist() == getattr(ops, name)(x).tolist()


def test_values(backend: str) -> None:
    assert ReLU()(tensor.array(_VALUES)).tolist() == [[0.0, 0.0, 1.0, 7.0], [3.0, 0.0, 0.5, 0.25]]
    columns = ops.sum(Softmax(axis=0)(tensor.array(_VALUES)), axis=0).tolist()
    assert columns == pytest.approx([1.0, 1.0, 1.0, 1.0], rel=1e-6)
    assert repr(Softmax(axis=0)) == "Softmax(axis=0)"


def test_activations_are_modules_that_train(backend: str) -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.PReLU([0.25, 0.5]), nn.Sigmoid())
    assert all(isinstance(part, nn.Module) for part in model)
    state = {"0.weight": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], "0.bias": [0.0, 0.0], "1.weight": [0.5, 2.0]}
    model.load_state_dict(state)
    x = ops.array([[-1.0, -2.0, 5.0]])
    scores = ops.to_numpy(model(x)).ravel().tolist()
    assert scores == pytest.approx([1 / (1 + math.exp(0.5)), 1 / (1 + math.exp(4.0))])
    _, gradients = nn.value_and_grad(model, lambda: ops.sum(model(x)))()
    wanted = [s * (1 - s) * value for s, value in zip(scores, (-1.0, -2.0), strict=True)]
    assert ops.to_numpy(gradients["1.weight"]).tolist() == pytest.approx(wanted)
    optimizers.SGD(1.0).update(model, gradients)
    assert ops.to_numpy(model[1].weight).tolist() == pytest.approx([0.5 - wanted[0], 2.0 - wanted[1]])
    assert list(model.freeze("1").trainable()) == ["0.weight", "0.bias"]
    assert not nn.ReLU().parameters()


def test_the_names_of_the_documents() -> None:
    assert [activations.ReLU, activations.Sigmoid, activations.Tanh] == [ReLU, Sigmoid, Tanh]
    assert [activations.Softmax, activations.Softplus] == [Softmax, Softplus]
    assert activations.Swish is activations.SiLU
