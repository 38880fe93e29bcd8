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
    """Layer normalization, computed in float32."""
    wide = x.astype(jnp.float32)
    wide = wide - jnp.mean(wide, axis=-1, keepdims=True)
    wide = wide * jax.lax.rsqrt(jnp.mean(jnp.square(wide), axis=-1, keepdims=True) + 1e-5)
    return (wide * p[f"{name}.weight"] + p[f"{name}.bias"]).astype(x.dtype)


def dense(p: Parameters, name: str, x: jax.Array) -> jax.Array:
    """A linear layer."""
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def attend(*qkv: jax.Array) -> jax.Array:
    """Causal attention: cuDNN's kernel for half precision on a GPU."""
    is_fused = jax.default_backend() == "gpu" and qkv[0].dtype == jnp.bfloat16
    return jax.nn.dot_product_attention(*qkv, is_causal=True, implementation="cudnn" if is_fused else "xla")


def transformer(p: Parameters, x: jax.Array, heads: int) -> jax.Array:
    """A decoder-only language model of pre-norm blocks."""
    x = p["tokens.weight"][x] + p["places"][: x.shape[1]]
    for block in range(sum(name.endswith("qkv.weight") for name in p)):
        name = f"blocks.{block}"
        b, t, c = x.shape
        qkv = dense(p, f"{name}.qkv", norm(p, f"{name}.norm1", x)).reshape(b, t, 3, heads, -1)
        y = attend(*(qkv[:, :, i] for i in range(3)))
        x = x + dense(p, f"{name}.out", y.reshape(b, t, c))
        x = x + dense(p, f"{name}.down", jax.nn.gelu(dense(p, f"{name}.up", norm(p, f"{name}.norm2", x))))
    return norm(p, "norm", x) @ p["head.weight"].T


def perceptron(p: Parameters, x: jax.Array) -> jax.Array:
    """A multilayer perceptron."""
    for place in (0, 2):
        x = jax.nn.relu(dense(p, str(place), x))
    return dense(p, "4", x)


def advance(
    model: Callable[..., jax.Array],
    state: Parameters,
    inputs: jax.Array,
    target: jax.Array,
    rate: float,
    compiled: bool,
    decay: float = 0.0,
) -> Callable[[], jax.Array]:
    """Return a function that takes one step, forward, backward, AdamW in float32, and does not wait for its loss."""

    def loss_of(p: Parameters, inputs: jax.Array, target: jax.Array) -> jax.Array:
        logits = model(p, inputs).astype(jnp.float32)
        picked = jnp.take_along_axis(logits, target[..., None], axis=-1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - picked)

    def change(p: jax.Array, g: jax.Array, m: jax.Array, v: jax.Array, count: jax.Array) -> tuple[jax.Array, ...]:
        wide, g, m, v = (x.astype(jnp.float32) for x in (p, g, m, v))
        m = BETA1 * m + (1 - BETA1) * g
        v = BETA2 * v + (1 - BETA2) * jnp.square(g)
        first, second = 1 - BETA1**count, 1 - BETA2**count
        wide = wide * (1 - rate * decay) - rate * (m / first) / (jnp.sqrt(v / second) + EPSILON)
        return tuple(x.astype(p.dtype) for x in (wide, m, v))

    def update(held: Any, inputs: jax.Array, target: jax.Array) -> tuple[Any, jax.Array]:
        p, m, v, count = held
        loss, g = jax.value_and_grad(loss_of)(p, inputs, target)
        count = count + 1
        new = {name: change(p[name], g[name], m[name], v[name], count) for name in p}
        p, m, v = ({name: parts[place] for name, parts in new.items()} for place in range(3))
        return (p, m, v, count), loss

    run_update = partial(jax.jit, donate_argnums=0)(update) if compiled else update
    zeros = partial(jax.tree.map, jnp.zeros_like)
    held = (state, zeros(state), zeros(state), jnp.zeros((), jnp.float32))

    def run() -> jax.Array:
        nonlocal held
        held, loss = run_update(held, inputs, target)
        return loss

    return run


def step(
    name: str, parameters: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray, rate: float, compiled: bool
) -> Callable[[], Any]:
    """One step: forward, backward, Adam."""
    model: Callable[..., jax.Array] = perceptron
    state = {key: jnp.array(value) for key, value in parameters.items()}
    if name == "transformer":
        names = hand_numpy.transformer_names(parameters)
        model, state = partial(transformer, heads=hand_numpy.HEADS), {key: state[names[key]] for key in names}
    run = advance(model, state, jnp.array(x), jnp.array(y), rate, compiled)
    return lambda: jax.block_until_ready(run())


def language_step(
    parameters: dict[str, Any], heads: int, tokens: jax.Array, target: jax.Array, rate: float, decay: float
) -> Callable[[], jax.Array]:
    """One step of a language model, forward, backward, AdamW, compiled; it does not wait for the loss."""
    names = hand_numpy.transformer_names(parameters)
    state = {key: jnp.array(parameters[names[key]]) for key in names}
    return advance(partial(transformer, heads=heads), state, tokens, target, rate, True, decay)
