"""Activations: the ops of these names, and for each a module that holds its settings."""

from __future__ import annotations

from types import ModuleType

from ember_ml.backend.selection import get_backend_module
from ember_ml.nn.modules.activations.classes import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    HardShrink,
    HardSigmoid,
    HardSiLU,
    HardTanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU6,
    SiLU,
    SoftShrink,
    Softsign,
    Sparsemax,
    Squareplus,
    TanhShrink,
    Threshold,
)
from ember_ml.nn.modules.activations.relu_module import ReLU
from ember_ml.nn.modules.activations.sigmoid_module import Sigmoid
from ember_ml.nn.modules.activations.softmax_module import Softmax
from ember_ml.nn.modules.activations.softplus_module import Softplus
from ember_ml.nn.modules.activations.tanh_module import Tanh
from ember_ml.ops import tanh
from ember_ml.ops.neural.activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_shrink,
    hard_sigmoid,
    hard_silu,
    hard_tanh,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    mish,
    prelu,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_shrink,
    softmax,
    softplus,
    softsign,
    sparsemax,
    squareplus,
    swish,
    tanh_shrink,
    threshold,
)

Swish = SiLU


def get_activations_module() -> ModuleType:
    """Return the module of the active backend, which has these functions for that backend.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules import activations
    >>> ops.to_numpy(activations.get_activations_module().relu([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return get_backend_module()


__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "HardShrink",
    "HardSiLU",
    "HardSigmoid",
    "HardTanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "SoftShrink",
    "Softmax",
    "Softplus",
    "Softsign",
    "Sparsemax",
    "Squareplus",
    "Swish",
    "Tanh",
    "TanhShrink",
    "Threshold",
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_shrink",
    "softmax",
    "softplus",
    "softsign",
    "sparsemax",
    "squareplus",
    "swish",
    "tanh",
    "tanh_shrink",
    "threshold",
]
