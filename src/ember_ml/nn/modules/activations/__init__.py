"""Activations: the functions, which are the ops of those names, and a class for each that holds its settings."""

from __future__ import annotations

from ember_ml.nn.modules.activations.relu_module import ReLU
from ember_ml.nn.modules.activations.sigmoid_module import Sigmoid
from ember_ml.nn.modules.activations.softmax_module import Softmax
from ember_ml.nn.modules.activations.softplus_module import Softplus
from ember_ml.nn.modules.activations.tanh_module import Tanh
from ember_ml.ops import relu, sigmoid, softmax, softplus, tanh

__all__ = [
    "ReLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Tanh",
    "relu",
    "sigmoid",
    "softmax",
    "softplus",
    "tanh",
]
