"""Steps of training as they are written by hand on JAX: one jitted function, whose state is donated."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import hand_numpy
import jax
import jax.numpy as jnp
import numpy as np

Parameters = dict[str, jax.Array]
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


def norm(p: Parameters, name: str, x: jax.Array) -> jax.Array:
    """Layer normalization."""
    x = x - jnp.mean(x, axis=-1, keepdims=True)
    x = x * jax.lax.rsqrt(jnp.mean(jnp.square(x), axis=-1, keepdims=True) + 1e-5)
    return x * p[f"{name}.weight"] + p[f"{name}.bias"]


def dense(p: Parameters, name: str, x: jax.Array) -> jax.Array:
    """A linear layer."""
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def transformer(p: Parameters, x: jax.Array) -> jax.Array:
    """A decoder-only language model of pre-norm blocks."""
    x = p["tokens.weight"][x] + p["places"][: x.shape[1]]
    for block in range(hand_numpy.DEPTH):
        name = f"blocks.{block}"
        b, t, c = x.shape
        qkv = dense(p, f"{name}.qkv", norm(p, f"{name}.norm1", x)).reshape(b, t, 3, hand_numpy.HEADS, -1)
        y = jax.nn.dot_product_attention(*(qkv[:, :, i] for i in range(3)), is_causal=True)
        x = x + dense(p, f"{name}.out", y.reshape(b, t, c))
        x = x + dense(p, f"{name}.down", jax.nn.gelu(dense(p, f"{name}.up", norm(p, f"{name}.norm2", x))))
    return norm(p, "norm", x) @ p["head.weight"].T


def perceptron(p: Parameters, x: jax.Array) -> jax.Array:
    """A multilayer perceptron."""
    for place in (0, 2):
        x = jax.nn.relu(dense(p, str(place), x))
    return dense(p, "4", x)


def step(
    name: str, parameters: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray, rate: float, compiled: bool
) -> Callable[[], Any]:
    """One step: forward, backward, Adam."""
    model: Callable[..., jax.Array] = perceptron
    state = {key: jnp.array(value) for key, value in parameters.items()}
    if name == "transformer":
        names = hand_numpy.transformer_names(parameters)
        model, state = transformer, {key: state[value] for key, value in names.items() if value in state}
    inputs, target = jnp.array(x), jnp.array(y)

    def loss_of(p: Parameters, inputs: jax.Array, target: jax.Array) -> jax.Array:
        logs = jax.nn.log_softmax(model(p, inputs))
        return -jnp.mean(jnp.take_along_axis(logs, target[..., None], axis=-1))

    def update(held: Any, inputs: jax.Array, target: jax.Array) -> tuple[Any, jax.Array]:
        p, m, v, count = held
        loss, g = jax.value_and_grad(loss_of)(p, inputs, target)
        count = count + 1
        m = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, m, g)
        v = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * jnp.square(g), v, g)
        first, second = 1 - BETA1**count, 1 - BETA2**count
        p = jax.tree.map(lambda p, m, v: p - rate * (m / first) / (jnp.sqrt(v / second) + EPSILON), p, m, v)
        return (p, m, v, count), loss

    run_update = partial(jax.jit, donate_argnums=0)(update) if compiled else update
    zeros = partial(jax.tree.map, jnp.zeros_like)
    held = (state, zeros(state), zeros(state), jnp.zeros((), jnp.float32))

    def run() -> jax.Array:
        nonlocal held
        held, loss = run_update(held, inputs, target)
        return jax.block_until_ready(loss)

    return run
