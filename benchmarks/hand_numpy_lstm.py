"""Two recurrent layers with backpropagation through time derived by hand, on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from hand_numpy import Tensors, cross_entropy, rows_of

NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def _layer(x: np.ndarray, weights: list[np.ndarray]) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Return the states of all steps, and what their gradient needs; ``x`` has the steps first."""
    by_input, by_state, bias1, bias2 = weights
    steps, batch, _ = x.shape
    n = by_state.shape[1]
    # sigmoid(x) is (tanh(x / 2) + 1) / 2: one tanh for the four gates
    scale, shift = np.full(4 * n, 0.5, np.float32), np.full(4 * n, 0.5, np.float32)
    scale[2 * n : 3 * n], shift[2 * n : 3 * n] = 1, 0
    gates = x.reshape(steps * batch, -1) @ (by_input.T * scale)
    gates += (bias1 + bias2) * scale
    gates = gates.reshape(steps, batch, 4 * n)
    turn = by_state.T * scale
    states, cells = np.zeros((steps + 1, batch, n), np.float32), np.zeros((steps + 1, batch, n), np.float32)
    bent = np.empty((steps, batch, n), np.float32)
    for t in range(steps):
        z = gates[t]
        z += states[t] @ turn
        np.tanh(z, out=z)
        z *= scale
        z += shift
        cell = np.multiply(z[:, n : 2 * n], cells[t], out=cells[t + 1])
        cell += z[:, :n] * z[:, 2 * n : 3 * n]
        np.tanh(cell, out=bent[t])
        np.multiply(z[:, 3 * n :], bent[t], out=states[t + 1])
    return states[1:], (x, gates, states, cells, bent)


def _layer_back(g: np.ndarray, weights: list[np.ndarray], kept: tuple[Any, ...], is_first: bool) -> tuple[Any, ...]:
    """Return the gradients by the inputs, unless they are those of the model, and by the weights."""
    x, gates, states, cells, bent = kept
    by_input, by_state = weights[:2]
    steps, batch, n = g.shape
    slopes = 1 - gates
    slopes *= gates
    part = gates[:, :, 2 * n : 3 * n]
    slopes[:, :, 2 * n : 3 * n] = 1 - part * part
    inner = 1 - bent * bent
    inner *= gates[:, :, 3 * n :]
    dz = np.empty_like(gates)
    dh, dc = np.zeros((batch, n), np.float32), np.zeros((batch, n), np.float32)
    for t in reversed(range(steps)):
        dh += g[t]
        z, d = gates[t], dz[t]
        np.multiply(dh, bent[t], out=d[:, 3 * n :])
        dc += dh * inner[t]
        np.multiply(dc, z[:, 2 * n : 3 * n], out=d[:, :n])
        np.multiply(dc, cells[t], out=d[:, n : 2 * n])
        np.multiply(dc, z[:, :n], out=d[:, 2 * n : 3 * n])
        d *= slopes[t]
        dc *= z[:, n : 2 * n]
        dh = d @ by_state
    flat = dz.reshape(steps * batch, 4 * n)
    bias = flat.sum(axis=0)
    by_rows = [flat.T @ x.reshape(steps * batch, -1), flat.T @ states[:-1].reshape(steps * batch, n), bias, bias]
    return None if is_first else (flat @ by_input).reshape(steps, batch, -1), by_rows


def classifier(p: Tensors, x: np.ndarray, y: np.ndarray) -> tuple[Any, Tensors]:
    """Loss and gradients of two recurrent layers and a linear map of the last state."""
    layers = [[p[f"{name}_l{k}"] for name in NAMES] for k in (0, 1)]
    first, kept1 = _layer(np.ascontiguousarray(x.swapaxes(0, 1)), layers[0])
    second, kept2 = _layer(first, layers[1])
    loss, d = cross_entropy(rows_of(second[-1], p["head.weight"], p["head.bias"]), y)
    g = np.zeros_like(second)
    g[-1] = d @ p["head.weight"]
    found = {"head.weight": d.T @ second[-1], "head.bias": d.sum(axis=0)}
    g, by_second = _layer_back(g, layers[1], kept2, False)
    _, by_first = _layer_back(g, layers[0], kept1, True)
    for k, rows in enumerate((by_first, by_second)):
        found |= {f"{name}_l{k}": row for name, row in zip(NAMES, rows, strict=True)}
    return loss, found
