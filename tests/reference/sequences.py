"""Layers over sequences, from their definitions: loops over positions in float64, on parameters by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = [
    "causal_convolution",
    "cfc",
    "language_model",
    "linear_attention",
    "multi_head_attention",
    "recurrent",
    "state_space",
    "transformer_block",
]

Array = np.ndarray[Any, Any]
Parameters = Mapping[str, Any]


def _wide(x: Any) -> Array:
    return np.asarray(x, dtype=np.float64)


def _linear(x: Array, parameters: Parameters, name: str) -> Array:
    y = x @ _wide(parameters[f"{name}.weight"]).T
    return y + _wide(parameters[f"{name}.bias"]) if f"{name}.bias" in parameters else y


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _rotated(x: Array, first: int, base: float, rates: Any = None) -> Array:
    """Each vector (batch, length, heads, width) as complex numbers, turned by its place."""
    half = x.shape[-1] // 2
    rates = base ** (-np.arange(half) / half) if rates is None else _wide(rates)
    turns = np.exp(1j * (first + np.arange(x.shape[1]))[:, np.newaxis, np.newaxis] * rates)
    turned = (x[..., :half] + 1j * x[..., half:]) * turns
    return np.concatenate([turned.real, turned.imag], axis=-1)


def multi_head_attention(
    x: Any,
    parameters: Parameters,
    heads: int,
    groups: int,
    causal: bool = False,
    rotary: bool = False,
    mask: Any = None,
    bias: Any = None,
    context: Any = None,
    *,
    width: int | None = None,
    window: int | None = None,
    cap: float | None = None,
    scale: float | None = None,
    qk_norm: str | None = None,
    epsilon: float = 1e-5,
    base: float = 10000.0,
    rates: Any = None,
    factor: float = 1.0,
) -> Array:
    """Attention, one query after the other; rates and factor are those of a scaled rotation."""
    x = _wide(x)
    batch, length = x.shape[:2]
    width = x.shape[2] // heads if width is None else width
    if context is None:
        joined = _linear(x, parameters, "qkv").reshape(batch, length, heads + 2 * groups, width)
        query, key, value = np.split(joined, [heads, heads + groups], axis=2)
    else:
        query = _linear(x, parameters, "query").reshape(batch, length, heads, width)
        joined = _linear(_wide(context), parameters, "key_value")
        key, value = np.split(joined.reshape(batch, joined.shape[1], 2 * groups, width), 2, axis=2)
    if qk_norm is not None:
        query = _normalized(query, parameters, "query_norm", qk_norm, epsilon)
        key = _normalized(key, parameters, "key_norm", qk_norm, epsilon)
    if rotary:
        query, key = (factor * _rotated(part, 0, base, rates) for part in (query, key))
    keys = key.shape[1]
    seen = np.broadcast_to(True if mask is None else np.asarray(mask), (batch, heads, length, keys))
    added = np.broadcast_to(0.0 if bias is None else _wide(bias), (batch, heads, length, keys))
    found = np.zeros((batch, length, heads, width))
    for b, h, t in np.ndindex(batch, heads, length):
        group = h // (heads // groups)
        visible = [j for j in range(keys) if seen[b, h, t, j] and (not causal or j <= t)]
        visible = [j for j in visible if window is None or j > t - window]
        if visible:
            scores = key[b, visible, group] @ query[b, t, h] * (width**-0.5 if scale is None else scale)
            scores = scores if cap is None else cap * np.tanh(scores / cap)
            scores = scores + added[b, h, t, visible]
            weights = np.exp(scores - scores.max())
            found[b, t, h] = weights @ value[b, visible, group] / weights.sum()
    return _linear(found.reshape(batch, length, heads * width), parameters, "output")


def recurrent(
    kind: str, x: Any, parameters: Parameters, hidden: int, layers: int, directions: int, state: Any = None
) -> tuple[Array, list[Array]]:
    """RNN, GRU or LSTM: the results, and what each carries at the end."""
    x = _wide(x)
    carried = 2 if kind == "LSTM" else 1
    start = np.zeros((carried, layers * directions, x.shape[0], hidden)) if state is None else _wide(state)
    last = np.zeros_like(start)
    for layer in range(layers):
        found = []
        for way in range(directions):
            name, place = f"l{layer}{'_reverse' * way}", layer * directions + way
            carry, y = list(start[:, place]), np.zeros((*x.shape[:2], hidden))
            for t in range(x.shape[1])[:: -1 if way else 1]:
                gates = [x[:, t] @ _wide(parameters[f"weight_ih_{name}"]).T]
                gates.append(carry[0] @ _wide(parameters[f"weight_hh_{name}"]).T)
                for part, which in enumerate(("ih", "hh")):
                    gates[part] = gates[part] + _wide(parameters.get(f"bias_{which}_{name}", 0.0))
                carry = _cell(kind, gates[0], gates[1], carry)
                y[:, t] = carry[0]
            last[:, place] = carry
            found.append(y)
        x = np.concatenate(found, axis=-1)
    return x, list(last)


def _cell(kind: str, inner: Array, outer: Array, carry: list[Array]) -> list[Array]:
    if kind == "RNN":
        return [np.tanh(inner + outer)]
    if kind == "GRU":
        r, z, n = np.split(inner, 3, axis=-1)
        r_state, z_state, n_state = np.split(outer, 3, axis=-1)
        z = _sigmoid(z + z_state)
        n = np.tanh(n + _sigmoid(r + r_state) * n_state)
        return [(1.0 - z) * n + z * carry[0]]
    i, f, g, o = np.split(inner + outer, 4, axis=-1)
    memory = _sigmoid(f) * carry[1] + _sigmoid(i) * np.tanh(g)
    return [_sigmoid(o) * np.tanh(memory), memory]


def causal_convolution(x: Any, parameters: Parameters, dilation: int, groups: int) -> Array:
    """A convolution of what came before, one result after the other."""
    x, weight = _wide(x), _wide(parameters["weight"])
    outputs, each, size = weight.shape
    y = np.zeros((*x.shape[:2], outputs)) + _wide(parameters.get("bias", 0.0))
    for t, o, i in np.ndindex(x.shape[1], outputs, size):
        place, first = t - (size - 1 - i) * dilation, o // (outputs // groups) * each
        if place >= 0:
            y[:, t, o] += x[:, place, first : first + each] @ weight[o, :, i]
    return y


def linear_attention(x: Any, parameters: Parameters, heads: int, causal: bool, mask: Any = None) -> Array:
    """Linear attention with all its weights written out."""
    x = _wide(x) * (1.0 if mask is None else _wide(mask))
    batch, length, hidden = x.shape
    joined = _linear(x, parameters, "qkv").reshape(batch, length, 3, heads, hidden // heads)
    query, key = (np.where(part > 0, part + 1.0, np.exp(part)) for part in (joined[:, :, 0], joined[:, :, 1]))
    if mask is not None:
        key = key * _wide(mask)[..., np.newaxis]
    weights = np.einsum("bihd,bjhd->bhij", query, key)
    if causal:
        weights = np.tril(weights)
    total = weights.sum(axis=-1, keepdims=True)
    found = np.einsum("bhij,bjhd->bihd", weights / np.where(total == 0.0, 1.0, total), joined[:, :, 2])
    return _linear(found.reshape(x.shape), parameters, "output")


def state_space(x: Any, parameters: Parameters, states: int) -> Array:
    """The recurrence of a selective state space, one position after the other."""
    x, y = _wide(x), np.zeros_like(_wide(x))
    h = np.zeros((x.shape[0], x.shape[2], states))
    for t in range(x.shape[1]):
        selected = _linear(x[:, t], parameters, "select")
        into, out = selected[:, -2 * states : -states], selected[:, -states:]
        step = np.log1p(np.exp(_linear(selected[:, : -2 * states], parameters, "step")))[..., np.newaxis]
        h = np.exp(-step * np.exp(_wide(parameters["log_rate"]))) * h
        h = h + step * into[:, np.newaxis] * x[:, t, :, np.newaxis]
        y[:, t] = (h * out[:, np.newaxis]).sum(axis=-1) + _wide(parameters["skip"]) * x[:, t]
    return y


def cfc(x: Any, parameters: Parameters, hidden: int, times: Any) -> Array:
    """A closed-form continuous-time cell, one position after the other."""
    x, times = _wide(x), _wide(times)
    h, y = np.zeros((x.shape[0], hidden)), np.zeros((*x.shape[:2], hidden))
    weight = np.concatenate([_wide(parameters["weight_ih"]), _wide(parameters["weight_hh"])], axis=1)
    for t in range(x.shape[1]):
        mixed = np.concatenate([x[:, t], h], axis=1) @ weight.T + _wide(parameters["bias_ih"])
        features = 1.7159 * np.tanh(2.0 / 3.0 * mixed)
        p, q, a, b = np.split(features @ _wide(parameters["weight_out"]).T + _wide(parameters["bias_out"]), 4, axis=1)
        share = _sigmoid(b - a * times[:, t, np.newaxis])
        h = share * np.tanh(p) + (1.0 - share) * np.tanh(q)
        y[:, t] = h
    return y


def _normalized(x: Array, parameters: Parameters, name: str, kind: str, epsilon: float = 1e-5) -> Array:
    if kind == "layer":
        x = x - x.mean(axis=-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + epsilon)
    return x * _wide(parameters[f"{name}.weight"]) + _wide(parameters.get(f"{name}.bias", 0.0))


def _part(parameters: Parameters, name: str) -> dict[str, Any]:
    return {key.removeprefix(f"{name}."): value for key, value in parameters.items() if key.startswith(f"{name}.")}


def transformer_block(
    x: Any,
    parameters: Parameters,
    heads: int,
    groups: int,
    gated: bool,
    norm: str,
    causal: bool,
    rotary: bool,
    order: str = "pre",
    epsilon: float = 1e-5,
    **attention: Any,
) -> Array:
    """A block; its network is gated by SiLU, or has GELU in the form with tanh."""

    def attend(x: Array) -> Array:
        part = _part(parameters, "attention")
        return multi_head_attention(x, part, heads, groups, causal, rotary, epsilon=epsilon, **attention)

    def mix(x: Array) -> Array:
        inner = _linear(x, parameters, "mlp.up")
        if gated:
            gate = _linear(x, parameters, "mlp.gate")
            inner = gate * _sigmoid(gate) * inner
        else:
            inner = 0.5 * inner * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (inner + 0.044715 * inner**3)))
        return _linear(inner, parameters, "mlp.down")

    def normalize(x: Array, name: str) -> Array:
        return _normalized(x, parameters, name, norm, epsilon)

    x = _wide(x)
    if order == "post":
        x = normalize(x + attend(x), "attention_norm")
        return normalize(x + mix(x), "mlp_norm")
    if order == "parallel":
        y = normalize(x, "attention_norm")
        return x + attend(y) + mix(y)
    x = x + attend(normalize(x, "attention_norm"))
    return x + mix(normalize(x, "mlp_norm"))


def language_model(tokens: Any, parameters: Parameters, layers: int, heads: int) -> Array:
    """The logits of a model that is tied, with places that are learned if it has some."""
    embedding, places = _wide(parameters["embedding.weight"]), parameters.get("places.weight")
    x = embedding[np.asarray(tokens)]
    if places is not None:
        x = x + _wide(places)[: x.shape[1]]
    for layer in range(layers):
        part = _part(parameters, f"transformer.blocks.{layer}")
        x = transformer_block(x, part, heads, heads, False, "layer", True, places is None)
    return _normalized(x, parameters, "transformer.norm", "layer") @ embedding.T
