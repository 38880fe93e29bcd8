"""Recurrent layers on NumPy: a loop over the positions, and one that goes back, with few calls for each position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ember_ml.backend.numpy.vjps.basic import column_sums, rows_of

__all__ = ["pullback", "run"]

Array = np.ndarray[Any, Any]
Outputs = tuple[Array, list[Array]]


def run(
    kind: str,
    x: Array,
    state: Sequence[Array],
    weights: Sequence[Array],
    has_bias: bool,
    layers: int,
    bidirectional: bool,
) -> Outputs | None:
    """Return the results and the last state, or None where the loop in Python must compute them."""
    found = pullback(kind, x, state, weights, has_bias, layers, bidirectional, False)
    return None if found is None else found[0]


def pullback(
    kind: str,
    x: Array,
    state: Sequence[Array],
    weights: Sequence[Array],
    has_bias: bool,
    layers: int,
    bidirectional: bool,
    wants_x: bool,
) -> tuple[Outputs, Callable[[Array, Sequence[Array]], list[Any]]] | None:
    """Return what :func:`run` does, and the function from gradients of these to those of x, the state and the weights.

    The gradient of x is None unless it is wanted. Inside, the positions come first, and a carry has the tensors of a
    state for one cell.
    """
    if x.dtype not in (np.float32, np.float64) or not x.size or any(t.dtype != x.dtype for t in (*state, *weights)):
        return None
    count, directions = (4 if has_bias else 2), 2 if bidirectional else 1
    cells: list[_Cell] = []
    below = np.ascontiguousarray(x.swapaxes(0, 1))
    for first in range(0, layers * directions, directions):
        for place in range(first, first + directions):
            own = weights[place * count : (place + 1) * count]
            cells.append(_run_cell(_KINDS[kind], below, [part[place] for part in state], own, place > first))
        below = cells[first].results
        if directions == 2:
            below = np.concatenate((below, cells[-1].results), axis=-1)
    last = [np.stack(column) for column in zip(*[cell.last for cell in cells], strict=True)]

    def pull(by_results: Array, by_last: Sequence[Array]) -> list[Any]:
        by_below: Any = by_results.swapaxes(0, 1)
        by_state = [np.empty(part.shape, part.dtype) for part in state]
        by_weights: list[Array] = []
        for first in reversed(range(0, len(cells), directions)):
            parts, by_below, by_layer = np.split(by_below, directions, axis=-1), None, []
            for place, g in enumerate(parts, first):
                slopes, by_carry, by_own = _pull_cell(cells[place], g, [part[place] for part in by_last])
                for whole, part in zip(by_state, by_carry, strict=True):
                    whole[place] = part
                by_layer += by_own
                if first or wants_x:
                    found = _pull_inputs(cells[place], slopes)
                    by_below = found if by_below is None else by_below + found
            by_weights = by_layer + by_weights
        return [None if by_below is None else by_below.swapaxes(0, 1), *by_state, *by_weights]

    return (below.swapaxes(0, 1), last), pull


class _Kind(NamedTuple):
    """The loops of a kind of cell."""

    forward: Callable[..., tuple[Array, list[Array], tuple[Array, ...]]]
    """``forward(gates, carry, by_state, inner, factors)`` returns the states, the first one too, the last carry and the
    residuals.

    The gates are what comes from the inputs; the weights of the state are transposed, ``inner`` is a bias beside it.
    """
    back: Callable[..., tuple[Array, Array, list[Array]]]
    """``back(g, by_carry, by_state, states, *residuals)`` returns the gradients of what came from the inputs, of what
    came from the states, and of the first carry."""
    factors: tuple[float, ...] = (1.0,)
    """For each gate 1/2 where it is a sigmoid, which is ``(tanh(x / 2) + 1) / 2``: so one tanh serves all gates."""
    has_inner_bias: bool = False


class _Cell(NamedTuple):
    """What one cell computed: ``x`` and ``states`` in the order in which it went over the positions."""

    kind: _Kind
    x: Array
    weights: Sequence[Array]
    is_reversed: bool
    states: Array
    last: list[Array]
    residuals: tuple[Array, ...]

    @property
    def results(self) -> Array:
        return self.states[:0:-1] if self.is_reversed else self.states[1:]


def _run_cell(kind: _Kind, x: Array, carry: list[Array], weights: Sequence[Array], is_reversed: bool) -> _Cell:
    by_input, by_state, *biases = weights
    factors = np.repeat(np.array(kind.factors, x.dtype), by_state.shape[1])
    own = x[::-1] if is_reversed else x
    gates = rows_of(own).dot(by_input.T * factors)
    inner = None
    if biases and kind.has_inner_bias:
        gates += biases[0] * factors
        inner = biases[1] * factors
    elif biases:
        gates += (biases[0] + biases[1]) * factors
    gates = gates.reshape(*x.shape[:2], -1)
    found = kind.forward(gates, carry, by_state.T * factors, inner, factors)
    return _Cell(kind, own, weights, is_reversed, *found)


def _pull_cell(cell: _Cell, g: Array, by_last: list[Array]) -> tuple[Array, list[Array], list[Array]]:
    """Return the gradients of what came from the inputs, as rows, of the first carry and of the weights."""
    _, by_state, *biases = cell.weights
    own = g[::-1] if cell.is_reversed else g
    by_gates, by_inner, by_carry = cell.kind.back(own, by_last, by_state, cell.states, *cell.residuals)
    rows, inner = rows_of(by_gates), rows_of(by_inner)
    by_weights = [rows.T.dot(rows_of(cell.x)), inner.T.dot(rows_of(cell.states[:-1]))]
    if biases:
        by_bias = column_sums(rows)
        by_weights += [by_bias, by_bias if by_inner is by_gates else column_sums(inner)]
    return rows, by_carry, by_weights


def _pull_inputs(cell: _Cell, rows: Array) -> Array:
    by_x = rows.dot(cell.weights[0]).reshape(cell.x.shape)
    return by_x[::-1] if cell.is_reversed else by_x


def _room(gates: Array, first: Array) -> Array:
    """Return memory for a part of the carry before and after each position, with the first one in it."""
    found = np.empty((len(gates) + 1, *first.shape), gates.dtype)
    found[0] = first
    return found


def _bend(gates: Array, factors: Array, shifts: Array) -> None:
    """Apply sigmoid or tanh to each gate, in place; those of sigmoids were halved."""
    np.tanh(gates, out=gates)
    gates *= factors
    gates += shifts


def _lstm(gates: Array, carry: list[Array], by_state: Array, inner: None, factors: Array) -> Any:
    n = len(by_state)
    states, cells, shifts = _room(gates, carry[0]), _room(gates, carry[1]), 1 - factors
    bent = np.empty((len(gates), *carry[0].shape), gates.dtype)
    for t, z in enumerate(gates):
        z += states[t].dot(by_state)
        _bend(z, factors, shifts)
        cell = np.multiply(z[:, n : 2 * n], cells[t], out=cells[t + 1])
        cell += z[:, :n] * z[:, 2 * n : 3 * n]
        np.tanh(cell, out=bent[t])
        np.multiply(z[:, 3 * n :], bent[t], out=states[t + 1])
    return states, [states[-1], cells[-1]], (gates, cells, bent)


def _lstm_back(
    g: Array, by_carry: list[Array], by_state: Array, states: Array, gates: Array, cells: Array, bent: Array
) -> Any:
    n = by_state.shape[1]
    slopes = 1 - gates
    slopes *= gates
    candidates = gates[..., 2 * n : 3 * n]
    np.subtract(1, candidates * candidates, out=slopes[..., 2 * n : 3 * n])
    inner = 1 - bent * bent
    inner *= gates[..., 3 * n :]
    by_h, by_c, by_z = by_carry[0].copy(), by_carry[1].copy(), np.empty_like(gates[0])
    for t in reversed(range(len(gates))):
        by_h += g[t]
        z, slope = gates[t], slopes[t]
        by_c += by_h * inner[t]
        np.multiply(by_c, z[:, 2 * n : 3 * n], out=by_z[:, :n])
        np.multiply(by_c, cells[t], out=by_z[:, n : 2 * n])
        np.multiply(by_c, z[:, :n], out=by_z[:, 2 * n : 3 * n])
        np.multiply(by_h, bent[t], out=by_z[:, 3 * n :])
        slope *= by_z
        by_c *= z[:, n : 2 * n]
        by_h = slope.dot(by_state)
    return slopes, slopes, [by_h, by_c]


def _gru(gates: Array, carry: list[Array], by_state: Array, inner: Array | None, factors: Array) -> Any:
    n = len(by_state)
    states, shifts = _room(gates, carry[0]), 1 - factors
    candidates = np.empty((len(gates), *carry[0].shape), gates.dtype)  # what the states give to the candidates
    for t, z in enumerate(gates):
        from_state = states[t].dot(by_state)
        if inner is not None:
            from_state += inner
        both, new = z[:, : 2 * n], z[:, 2 * n :]
        both += from_state[:, : 2 * n]
        _bend(both, factors[: 2 * n], shifts[: 2 * n])
        candidates[t] = from_state[:, 2 * n :]
        new += both[:, :n] * candidates[t]
        np.tanh(new, out=new)
        h = np.subtract(states[t], new, out=states[t + 1])
        h *= both[:, n:]
        h += new
    return states, [states[-1]], (gates, candidates)


def _gru_back(g: Array, by_carry: list[Array], by_state: Array, states: Array, gates: Array, candidates: Array) -> Any:
    n = by_state.shape[1]
    slopes = 1 - gates
    slopes *= gates
    news = gates[..., 2 * n :]
    np.subtract(1, news * news, out=slopes[..., 2 * n :])
    by_inner = np.empty_like(slopes)
    by_h = by_carry[0].copy()
    for t in reversed(range(len(gates))):
        by_h += g[t]
        z, slope = gates[t], slopes[t]
        by_new = slope[:, 2 * n :]
        by_new *= by_h * (1 - z[:, n : 2 * n])
        slope[:, n : 2 * n] *= by_h * (states[t] - news[t])
        slope[:, :n] *= by_new * candidates[t]
        by_inner[t, :, : 2 * n] = slope[:, : 2 * n]
        np.multiply(by_new, z[:, :n], out=by_inner[t, :, 2 * n :])
        by_h *= z[:, n : 2 * n]
        by_h += by_inner[t].dot(by_state)
    return slopes, by_inner, [by_h]


def _tanh(gates: Array, carry: list[Array], by_state: Array, inner: None, factors: Array) -> Any:
    states = _room(gates, carry[0])
    for t, z in enumerate(gates):
        z += states[t].dot(by_state)
        np.tanh(z, out=states[t + 1])
    return states, [states[-1]], ()


def _tanh_back(g: Array, by_carry: list[Array], by_state: Array, states: Array) -> Any:
    return _elman_back(g, by_carry, by_state, 1 - states[1:] * states[1:])


def _relu(gates: Array, carry: list[Array], by_state: Array, inner: None, factors: Array) -> Any:
    states = _room(gates, carry[0])
    for t, z in enumerate(gates):
        z += states[t].dot(by_state)
        np.maximum(z, 0, out=states[t + 1])
    return states, [states[-1]], ()


def _relu_back(g: Array, by_carry: list[Array], by_state: Array, states: Array) -> Any:
    return _elman_back(g, by_carry, by_state, (states[1:] > 0).astype(states.dtype))


def _elman_back(g: Array, by_carry: list[Array], by_state: Array, slopes: Array) -> Any:
    by_h = by_carry[0].copy()
    for t in reversed(range(len(slopes))):
        by_h += g[t]
        slopes[t] *= by_h
        by_h = slopes[t].dot(by_state)
    return slopes, slopes, [by_h]


_KINDS = {
    "tanh": _Kind(_tanh, _tanh_back),
    "relu": _Kind(_relu, _relu_back),
    "gru": _Kind(_gru, _gru_back, (0.5, 0.5, 1.0), has_inner_bias=True),
    "lstm": _Kind(_lstm, _lstm_back, (0.5, 0.5, 1.0, 0.5)),
}
