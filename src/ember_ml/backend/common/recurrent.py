"""Recurrent layers for backends whose own engine differentiates them: layers, directions and cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["cells_of", "run_layers"]

Carry = tuple[Any, ...]
Cell = Callable[[Any, Any, Carry], Carry]
Step = Callable[[Carry, Any], tuple[Carry, Any]]


def cells_of(xp: Any, sigmoid: Callable[[Any], Any], relu: Callable[[Any], Any]) -> dict[str, Cell]:
    """Return by kind the functions that take what comes from inputs and state, and the carry, to the next carry."""

    def gru(from_input: Any, from_state: Any, carry: Carry) -> Carry:
        r, z, n = xp.split(from_input, 3, axis=-1)
        state_r, state_z, state_n = xp.split(from_state, 3, axis=-1)
        n = xp.tanh(n + sigmoid(r + state_r) * state_n)
        return (n + sigmoid(z + state_z) * (carry[0] - n),)

    def lstm(from_input: Any, from_state: Any, carry: Carry) -> Carry:
        i, f, g, o = xp.split(from_input + from_state, 4, axis=-1)
        memory = sigmoid(f) * carry[1] + sigmoid(i) * xp.tanh(g)
        return sigmoid(o) * xp.tanh(memory), memory

    return {
        "tanh": lambda from_input, from_state, carry: (xp.tanh(from_input + from_state),),
        "relu": lambda from_input, from_state, carry: (relu(from_input + from_state),),
        "gru": gru,
        "lstm": lstm,
    }


def run_layers(
    xp: Any,
    matmul: Callable[[Any, Any], Any],
    loop: Callable[[Step, Carry, Any, bool], tuple[Carry, Any]],
    cells: dict[str, Cell],
    kind: str,
    x: Any,
    state: Sequence[Any],
    weights: Sequence[Any],
    has_bias: bool,
    directions: int,
) -> tuple[Any, list[Any]]:
    """Return the results and the last state.

    ``loop(step, carry, parts, is_reversed)`` runs a step along the first dimension of the parts, and returns the last
    carry and the stacked results.
    """
    count, carries = (4 if has_bias else 2), []
    x = xp.swapaxes(x, 0, 1)
    for first in range(0, state[0].shape[0], directions):
        found = []
        for place in range(first, first + directions):
            own = weights[place * count : (place + 1) * count]
            # what comes from the inputs is computed for all positions at once
            from_input, step = _cell_of(matmul, cells[kind], x, own, kind == "gru")
            carry, y = loop(step, tuple(part[place] for part in state), from_input, place > first)
            carries.append(carry)
            found.append(y)
        x = found[0] if directions == 1 else xp.concatenate(found, axis=-1)
    return xp.swapaxes(x, 0, 1), [xp.stack(column) for column in zip(*carries, strict=True)]


def _cell_of(
    matmul: Callable[[Any, Any], Any], cell: Cell, x: Any, weights: Sequence[Any], is_gated: bool
) -> tuple[Any, Step]:
    of_input, of_state, *biases = weights
    from_input, inner = matmul(x, of_input.T), None
    if biases and is_gated:  # the gate multiplies the bias beside the state
        from_input, inner = from_input + biases[0], biases[1]
    elif biases:
        from_input = from_input + (biases[0] + biases[1])

    def step(carry: Carry, part: Any) -> tuple[Carry, Any]:
        from_state = matmul(carry[0], of_state.T)
        new = cell(part, from_state if inner is None else from_state + inner, carry)
        return new, new[0]

    return from_input, step
