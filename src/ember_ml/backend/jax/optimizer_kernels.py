"""Update all parameters in one compiled program, which uses the memory of the old ones again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from ember_ml.backend.jax.half_precision import widen
from ember_ml.backend.jax.tracing import is_tracing

__all__ = ["is_in_place", "kernels", "takes_halves"]

Arrays = Sequence[jax.Array]
is_in_place = False
takes_halves = True


def _kernel(rule: Callable[..., tuple[jax.Array, ...]], *choices: str) -> Callable[..., list[Arrays]]:
    """Make a kernel of the update of one parameter; ``choices`` are the settings that decide what is computed."""

    def update(columns: Sequence[Arrays], gradients: Arrays, settings: dict[str, Any], **chosen: Any) -> list[Arrays]:
        rows = []
        for g, *own in zip(gradients, *columns, strict=True):
            new = rule(widen(g), *map(widen, own), **settings, **chosen)
            rows.append([y.astype(x.dtype) for x, y in zip(own, new, strict=True)])
        return [list(column) for column in zip(*rows, strict=True)]

    compiled = partial(jax.jit, static_argnames=choices, donate_argnums=0)(update)

    def kernel(parameters: Arrays, gradients: Arrays, *slots: Arrays, **settings: Any) -> list[Arrays]:
        columns: list[Arrays] = [list(parameters), *map(list, slots)]
        if not parameters:
            return columns
        chosen = {name: settings.pop(name) for name in choices}
        return (update if is_tracing() else compiled)(columns, list(gradients), settings, **chosen)

    return kernel


def _adam(
    g: jax.Array,
    p: jax.Array,
    m: jax.Array,
    v: jax.Array,
    *,
    rate: Any,
    factor: Any,
    scaled_epsilon: Any,
    step: Any,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
    is_decoupled: bool,
) -> tuple[jax.Array, ...]:
    if weight_decay and is_decoupled:
        p = p * (1.0 - rate * weight_decay)
    elif weight_decay:
        g = g + weight_decay * p
    m = beta1 * m + (1.0 - beta1) * g
    v = beta2 * v + (1.0 - beta2) * jnp.square(g)
    return p - factor * m / (jnp.sqrt(v) + scaled_epsilon), m, v


def _sgd(
    g: jax.Array,
    p: jax.Array,
    velocity: jax.Array | None = None,
    *,
    rate: Any,
    momentum: float,
    nesterov: bool,
    weight_decay: float,
) -> tuple[jax.Array, ...]:
    g = g + weight_decay * p if weight_decay else g
    if velocity is None:
        return (p - rate * g,)
    velocity = momentum * velocity + g
    return p - rate * (g + momentum * velocity if nesterov else velocity), velocity


def _lion(
    g: jax.Array, p: jax.Array, mean: jax.Array, *, rate: Any, beta1: float, beta2: float, weight_decay: float
) -> tuple[jax.Array, ...]:
    step = jnp.sign(beta1 * mean + (1.0 - beta1) * g)
    step = step + weight_decay * p if weight_decay else step
    return p - rate * step, beta2 * mean + (1.0 - beta2) * g


def _rmsprop(
    g: jax.Array,
    p: jax.Array,
    square: jax.Array,
    velocity: jax.Array | None = None,
    *,
    rate: Any,
    decay: float,
    epsilon: float,
    momentum: float,
    weight_decay: float,
) -> tuple[jax.Array, ...]:
    g = g + weight_decay * p if weight_decay else g
    square = decay * square + (1.0 - decay) * jnp.square(g)
    change = g / (jnp.sqrt(square) + epsilon)
    if velocity is None:
        return p - rate * change, square
    velocity = momentum * velocity + change
    return p - rate * velocity, square, velocity


def _adagrad(
    g: jax.Array, p: jax.Array, square: jax.Array, *, rate: Any, epsilon: float, weight_decay: float
) -> tuple[jax.Array, ...]:
    g = g + weight_decay * p if weight_decay else g
    square = square + jnp.square(g)
    return p - rate * g / (jnp.sqrt(square) + epsilon), square


kernels = {
    "adagrad": _kernel(_adagrad, "weight_decay"),
    "adam": _kernel(_adam, "beta1", "beta2", "epsilon", "weight_decay", "is_decoupled"),
    "lion": _kernel(_lion, "beta1", "beta2", "weight_decay"),
    "rmsprop": _kernel(_rmsprop, "decay", "epsilon", "momentum", "weight_decay"),
    "sgd": _kernel(_sgd, "momentum", "nesterov", "weight_decay"),
}
