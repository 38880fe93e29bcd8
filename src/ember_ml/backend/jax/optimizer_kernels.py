"""Update all parameters in one compiled program, which uses the memory of the old ones again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp

from ember_ml.backend.common import update_rules
from ember_ml.backend.jax.half_precision import widen
from ember_ml.backend.jax.tracing import is_tracing

__all__ = ["is_in_place", "kernels", "takes_halves"]

Arrays = Sequence[jax.Array]
is_in_place = False
takes_halves = True


def _kernel(rule: Callable[..., tuple[jax.Array, ...]], *choices: str) -> Callable[..., list[Arrays]]:
    """Make a kernel of the update of one parameter; ``choices`` are the settings that decide what is computed."""

    def update(columns: Sequence[Arrays], gradients: Arrays, settings: dict[str, Any], **chosen: Any) -> list[Arrays]:
        rows, given = [], SimpleNamespace(**settings, **chosen)
        for g, *own in zip(gradients, *columns, strict=True):
            new = rule(jnp, given, widen(g), *map(widen, own))
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


kernels = {
    "adagrad": _kernel(update_rules.adagrad, "weight_decay"),
    "adam": _kernel(update_rules.adam, "beta1", "beta2", "epsilon", "weight_decay", "is_decoupled"),
    "lion": _kernel(update_rules.lion, "beta1", "beta2", "weight_decay"),
    "rmsprop": _kernel(update_rules.rmsprop, "decay", "epsilon", "momentum", "weight_decay"),
    "sgd": _kernel(update_rules.sgd, "momentum", "nesterov", "weight_decay"),
}
