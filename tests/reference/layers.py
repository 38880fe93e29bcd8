"""What the layers of tests/nn/layer_cases.py compute, from their formulas, in double precision or wider.

Each function takes the input and the layer's state, both as arrays, and gives the result of a layer in training.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.reference.convolutions import adaptive_pool, average, conv, conv_transpose, largest, pool

__all__ = ["REFERENCES", "balance", "expected", "running"]

Array = np.ndarray[Any, Any]
State = dict[str, Array]


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _gelu(x: Array) -> Array:
    """The approximation with the hyperbolic tangent, which is the default."""
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def _linear(x: Array, state: State, name: str = "") -> Array:
    prefix = f"{name}." if name else ""
    return x @ state[f"{prefix}weight"].T + state.get(f"{prefix}bias", 0.0)


def _mlp(activation: Callable[[Array], Array], prefix: str = "") -> Callable[[Array, State], Array]:
    return lambda x, state: _linear(activation(_linear(x, state, f"{prefix}up")), state, f"{prefix}down")


def _gated(activation: Callable[[Array], Array]) -> Callable[[Array, State], Array]:
    def reference(x: Array, state: State) -> Array:
        return _linear(activation(_linear(x, state, "gate")) * _linear(x, state, "up"), state, "down")

    return reference


def _probabilities(x: Array, state: State) -> Array:
    scores = np.exp(x @ state["router"].T)
    return scores / scores.sum(-1, keepdims=True)


def _mixture(x: Array, state: State) -> Array:
    """One position after the other, and for each its two best experts."""
    rows, result = x.reshape(-1, x.shape[-1]), []
    for row, rates in zip(rows, _probabilities(rows, state), strict=True):
        best = sorted(range(len(rates)), key=lambda expert, rates=rates: -rates[expert])[:2]
        total = np.zeros_like(row)
        for expert in best:
            gate, up = state["gate"][expert] @ row, state["up"][expert] @ row
            total += rates[expert] * (state["down"][expert] @ (gate * _sigmoid(gate) * up))
        result.append(total / sum(rates[expert] for expert in best))
    return np.reshape(result, x.shape)


def balance(x: Array, state: State, top_k: int) -> float:
    """The number of experts times the sum over them of their share of the positions and their mean probability."""
    rates = _probabilities(x.reshape(-1, x.shape[-1]), state)
    experts = rates.shape[-1]
    best = np.argsort(-rates, axis=-1)[:, :top_k].ravel()
    return float(experts * sum((best == e).mean() * rates[:, e].mean() for e in range(experts)))


def _normalized(x: Array, axes: tuple[int, ...], epsilon: float = 1e-5) -> Array:
    mean = x.mean(axis=axes, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axis=axes, keepdims=True) + epsilon)


def _layer(*axes: int, prefix: str = "") -> Callable[[Array, State], Array]:
    return lambda x, state: _normalized(x, axes) * state[f"{prefix}weight"] + state.get(f"{prefix}bias", 0.0)


def _rms(x: Array, state: State) -> Array:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * state["weight"]


def _affine(x: Array, state: State, axis: int) -> Array:
    shape = [1] * x.ndim
    shape[axis] = -1
    return x * state["weight"].reshape(shape) + state["bias"].reshape(shape)


def _batch(axis: int) -> Callable[[Array, State], Array]:
    return lambda x, s: _affine(_normalized(x, tuple(i for i in range(x.ndim) if i != axis % x.ndim)), s, axis)


def running(x: Array, axis: int, momentum: float, mean: Array, variance: Array) -> tuple[Array, Array]:
    """The running mean and variance of a batch normalization after a step."""
    channels = np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
    keep = 1.0 - momentum
    return keep * mean + momentum * channels.mean(1), keep * variance + momentum * channels.var(1, ddof=1)


def _group(groups: int, axis: int) -> Callable[[Array, State], Array]:
    def reference(x: Array, state: State) -> Array:
        parts = np.split(x, groups, axis)
        whole = np.concatenate([_normalized(part, tuple(range(1, x.ndim))) for part in parts], axis)
        return _affine(whole, state, axis)

    return reference


def _kernel(weight: Array) -> Array:
    """A weight (outputs, inputs, window...) as the kernel (window..., inputs, outputs)."""
    return np.moveaxis(weight, (0, 1), (-1, -2))


def _with_bias(result: Array, state: State, data_format: str, prefix: str = "") -> Array:
    bias = state.get(f"{prefix}bias", np.zeros(()))
    return result + (bias.reshape(-1, *(1,) * (result.ndim - 2)) if data_format == "channels_first" else bias)


def _conv(**how: Any) -> Callable[[Array, State], Array]:
    form = how.get("data_format", "channels_last")
    return lambda x, state: _with_bias(conv(x, _kernel(state["weight"]), **how), state, form)


def _separable(**how: Any) -> Callable[[Array, State], Array]:
    form = how.get("data_format", "channels_last")

    def reference(x: Array, state: State) -> Array:
        each = conv(x, _kernel(state["depthwise.weight"]), **how)
        mixed = conv(each, _kernel(state["pointwise.weight"]), data_format=form)
        return _with_bias(mixed, state, form, "pointwise.")

    return reference


def _transposed(**how: Any) -> Callable[[Array, State], Array]:
    form = how.get("data_format", "channels_last")
    return lambda x, state: _with_bias(conv_transpose(x, _kernel(state["weight"]), **how), state, form)


def _pool(function: Callable[..., Array], combine: Callable[..., Any], *sizes: Any, **how: Any) -> Any:
    return lambda x, state: function(combine, x, *sizes, **how)


def _mixer(x: Array, state: State) -> Array:
    turned = np.swapaxes(_layer(-1, prefix="position_norm.")(x, state), 1, 2)
    x = x + np.swapaxes(_mlp(_gelu, "positions.")(turned, state), 1, 2)
    return x + _mlp(_gelu, "channels.")(_layer(-1, prefix="channel_norm.")(x, state), state)


_FIRST = {"data_format": "channels_first"}
_same: Callable[[Array, State], Array] = lambda x, state: x  # noqa: E731

REFERENCES: dict[str, Callable[[Array, State], Array]] = {
    "Linear": _linear,
    "MLP": _mlp(_gelu),
    "MLP of its own": _mlp(np.tanh),
    "GatedMLP": _gated(_sigmoid),
    "SwiGLU": _gated(lambda x: x * _sigmoid(x)),
    "GEGLU": _gated(_gelu),
    "MixtureOfExperts": _mixture,
    "LayerNorm": _layer(-1),
    "LayerNorm of two axes": _layer(-2, -1),
    "RMSNorm": _rms,
    "BatchNorm": _batch(-1),
    "BatchNorm first": _batch(1),
    "GroupNorm": _group(2, -1),
    "GroupNorm first": _group(2, 1),
    "InstanceNorm": _group(3, -1),
    "Embedding": lambda x, state: np.stack([[state["weight"][int(i)] for i in row] for row in x]),
    "Conv1d": _conv(padding="causal"),
    "Conv2d": _conv(strides=2, padding="same"),
    "Conv2d first": _conv(padding=1, dilation_rate=(1, 2), **_FIRST),
    "Conv3d": _conv(),
    "DepthwiseConv1d": _conv(),
    "DepthwiseConv2d": _conv(padding="same"),
    "DepthwiseConv3d": _conv(),
    "SeparableConv1d": _separable(),
    "SeparableConv2d": _separable(strides=2, **_FIRST),
    "SeparableConv3d": _separable(),
    "ConvTranspose1d": _transposed(strides=2, padding="same"),
    "ConvTranspose2d": _transposed(strides=2, padding=1, output_padding=1, **_FIRST),
    "ConvTranspose3d": _transposed(),
    "MaxPool1d": _pool(pool, largest, 2),
    "MaxPool2d": _pool(pool, largest, 3, 2, padding="same"),
    "MaxPool3d": _pool(pool, largest, (1, 2, 2), **_FIRST),
    "AvgPool1d": _pool(pool, average, 3, 1),
    "AvgPool2d": _pool(pool, average, (2, 3), padding="same"),
    "AvgPool3d": _pool(pool, average, 2, **_FIRST),
    "AdaptiveMaxPool1d": _pool(adaptive_pool, largest, 2),
    "AdaptiveMaxPool2d": _pool(adaptive_pool, largest, (2, 3)),
    "AdaptiveMaxPool3d": _pool(adaptive_pool, largest, 2, **_FIRST),
    "AdaptiveAvgPool1d": _pool(adaptive_pool, average, 2),
    "AdaptiveAvgPool2d": _pool(adaptive_pool, average, (2, 3)),
    "AdaptiveAvgPool3d": _pool(adaptive_pool, average, 2, **_FIRST),
    "GlobalAvgPool": lambda x, state: x.mean((1, 2)),
    "GlobalMaxPool": lambda x, state: x.max((2, 3), keepdims=True),
    "Flatten": lambda x, state: np.stack([sample.ravel() for sample in x]),
    "Reshape": lambda x, state: np.stack([np.stack(np.split(sample.ravel(), 3)) for sample in x]),
    "Identity": _same,
    "Mask": _same,
    "Dropout": _same,
    "Residual": lambda x, state: (
        x + _linear(_layer(-1, prefix="0.")(x, state), {key[2:]: y for key, y in state.items() if key[0] == "1"})
    ),
    "MixerBlock": _mixer,
}


def expected(name: str, x: Any, state: dict[str, Any]) -> Array:
    """What the layer ``name`` makes of ``x`` in training, with a state of arrays."""
    wide = {key: np.asarray(y, dtype=np.float64) for key, y in state.items()}
    return REFERENCES[name](np.asarray(x, dtype=np.float64), wide)
