"""Recurrent layers as one program, whose loop over the positions is ``lax.scan``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ember_ml.backend.jax.bodies.products import matmul
from ember_ml.backend.jax.jitting import static

__all__ = ["pullback", "run"]

pullback = None

Carry = tuple[jax.Array, ...]


def run(
    kind: str,
    x: jax.Array,
    state: Sequence[jax.Array],
    weights: Sequence[jax.Array],
    has_bias: bool,
    layers: int,
    bidirectional: bool,
) -> tuple[jax.Array, Sequence[jax.Array]] | None:
    """Return the results and the last state, or None where the loop in Python must compute them."""
    if any(t.dtype != x.dtype for t in (*state, *weights)) or x.dtype not in (jnp.float32, jnp.float64):
        return None
    return _run(kind, x, list(state), list(weights), has_bias, 2 if bidirectional else 1)


@static(0, 4, 5)
def _run(
    kind: str, x: jax.Array, state: list[jax.Array], weights: list[jax.Array], has_bias: bool, directions: int
) -> tuple[jax.Array, list[jax.Array]]:
    count = 4 if has_bias else 2
    x, carries = jnp.swapaxes(x, 0, 1), []
    for first in range(0, state[0].shape[0], directions):
        found = []
        for place in range(first, first + directions):
            own = weights[place * count : (place + 1) * count]
            carry, y = _cell(kind, x, tuple(part[place] for part in state), own, place > first)
            carries.append(carry)
            found.append(y)
        x = found[0] if directions == 1 else jnp.concatenate(found, axis=-1)
    return jnp.swapaxes(x, 0, 1), [jnp.stack(column) for column in zip(*carries, strict=True)]


def _cell(
    kind: str, x: jax.Array, carry: Carry, weights: Sequence[jax.Array], reverse: bool
) -> tuple[Carry, jax.Array]:
    """Run one cell over all positions; what it takes from the inputs is computed for all at once."""
    of_input, of_state, *biases = weights
    from_input, inner = matmul(x, of_input.T), None
    if biases and kind == "gru":  # whose gate multiplies the bias beside the state
        from_input, inner = from_input + biases[0], biases[1]
    elif biases:
        from_input = from_input + (biases[0] + biases[1])

    def step(carry: Carry, part: jax.Array) -> tuple[Carry, jax.Array]:
        from_state = matmul(carry[0], of_state.T)
        new = _CELLS[kind](part, from_state if inner is None else from_state + inner, carry)
        return new, new[0]

    return lax.scan(step, carry, from_input, reverse=reverse)


def _gru(from_input: jax.Array, from_state: jax.Array, carry: Carry) -> Carry:
    r, z, n = jnp.split(from_input, 3, axis=-1)
    state_r, state_z, state_n = jnp.split(from_state, 3, axis=-1)
    n = jnp.tanh(n + jax.nn.sigmoid(r + state_r) * state_n)
    return (n + jax.nn.sigmoid(z + state_z) * (carry[0] - n),)


def _lstm(from_input: jax.Array, from_state: jax.Array, carry: Carry) -> Carry:
    i, f, g, o = jnp.split(from_input + from_state, 4, axis=-1)
    memory = jax.nn.sigmoid(f) * carry[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(memory), memory


_CELLS: dict[str, Any] = {
    "tanh": lambda from_input, from_state, carry: (jnp.tanh(from_input + from_state),),
    "relu": lambda from_input, from_state, carry: (jax.nn.relu(from_input + from_state),),
    "gru": _gru,
    "lstm": _lstm,
}
