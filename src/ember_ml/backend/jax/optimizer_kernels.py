"""Update all parameters in one compiled program, which uses the memory of the old ones again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
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
    """Make a kernel of the update of one parameter, a function of the settings, the gradient and what is updated.

    ``choices`` are the settings that decide what is computed.
    """

    def update(columns: Sequence[Arrays], gradients: Arrays, settings: dict[str, Any], **chosen: Any) -> list[Arrays]:
        rows, given = [], SimpleNamespace(**settings, **chosen)
        for g, *own in zip(gradients, *columns, strict=True):
            new = rule(given, widen(g), *map(widen, own))
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


def _adam(given: Any, g: jax.Array, p: jax.Array, m: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
    if given.weight_decay and given.is_decoupled:
        p = p * (1.0 - given.rate * given.weight_decay)
    elif given.weight_decay:
        g = g + given.weight_decay * p
    m = given.beta1 * m + (1.0 - given.beta1) * g
    v = given.beta2 * v + (1.0 - given.beta2) * jnp.square(g)
    return p - given.factor * m / (jnp.sqrt(v) + given.scaled_epsilon), m, v


def _sgd(given: Any, g: jax.Array, p: jax.Array, velocity: jax.Array | None = None) -> tuple[jax.Array, ...]:
    g = g + given.weight_decay * p if given.weight_decay else g
    if velocity is None:
        return (p - given.rate * g,)
    new = given.momentum * velocity + g
    return p - given.rate * (g + given.momentum * new if given.nesterov else new), new


def _lion(given: Any, g: jax.Array, p: jax.Array, mean: jax.Array) -> tuple[jax.Array, ...]:
    step = jnp.sign(given.beta1 * mean + (1.0 - given.beta1) * g)
    step = step + given.weight_decay * p if given.weight_decay else step
    return p - given.rate * step, given.beta2 * mean + (1.0 - given.beta2) * g


def _rmsprop(
    given: Any, g: jax.Array, p: jax.Array, square: jax.Array, velocity: jax.Array | None = None
) -> tuple[jax.Array, ...]:
    g = g + given.weight_decay * p if given.weight_decay else g
    square = given.decay * square + (1.0 - given.decay) * jnp.square(g)
    change = g / (jnp.sqrt(square) + given.epsilon)
    if velocity is None:
        return p - given.rate * change, square
    new = given.momentum * velocity + change
    return p - given.rate * new, square, new


def _adagrad(given: Any, g: jax.Array, p: jax.Array, square: jax.Array) -> tuple[jax.Array, ...]:
    g = g + given.weight_decay * p if given.weight_decay else g
    square = square + jnp.square(g)
    return p - given.rate * g / (jnp.sqrt(square) + given.epsilon), square


kernels = {
    "adagrad": _kernel(_adagrad, "weight_decay"),
    "adam": _kernel(_adam, "beta1", "beta2", "epsilon", "weight_decay", "is_decoupled"),
    "lion": _kernel(_lion, "beta1", "beta2", "weight_decay"),
    "rmsprop": _kernel(_rmsprop, "decay", "epsilon", "momentum", "weight_decay"),
    "sgd": _kernel(_sgd, "momentum", "nesterov", "weight_decay"),
}
