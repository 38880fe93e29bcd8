"""Sharded parameters: each process holds a part, and a program over all of them gathers the whole where it is used.

The backward pass gathers it again: of what the forward pass computes, programs keep everything but the wholes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax._src import core  # JAX 0.10: no public way to ask

from ember_ml.backend.capabilities import OtherForm
from ember_ml.backend.common.sharding import Shares
from ember_ml.backend.jax.half_precision import widen
from ember_ml.backend.jax.tracing import is_tracing
from ember_ml.backend.processes.group import Group

__all__ = ["Gathers", "make_splits", "over_ranks", "recomputing_wholes", "recording", "takes_unequal_parts"]

Collective = Callable[[jax.Array], jax.Array]
_RANKS = "ranks"
# whole parameters, and what is one in another form
_RECOMPUTED = {"all_gather", "broadcast_in_dim", "convert_element_type", "reshape", "slice", "squeeze", "transpose"}
# JAX 0.10 on the CPU: XLA takes what is gathered twice for one, and gathers all parameters first
_SAVING = {"xla_disable_hlo_passes": "cse", "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}
recording: Callable[[], AbstractContextManager[Any]] = nullcontext
takes_unequal_parts: bool = False  # all ranks run one program, of one shape
_drop_axes = jax.jit(lambda xs: [x[0] for x in xs])


class Gathers(OtherForm):
    """A function gathers parameters, the first of which is in ``args``, and was traced as a program of one process."""


class Split(Shares):
    """A parameter of which this process holds a part."""

    def part_of(self, whole: jax.Array) -> jax.Array:
        """Copy this process's part of a whole parameter."""
        flat = whole.reshape(-1)[self._start : self._start + self.share]
        return jnp.pad(flat, (0, self.share - flat.size))

    def whole_of(self, part: jax.Array) -> jax.Array:
        """Return the whole parameter, whose gradient goes to the parts."""
        if not is_tracing():
            return self.gather_whole(part)
        if not _is_over_ranks():
            raise Gathers(self)
        return self._join(_gather, _scatter)(part)

    def gather_whole(self, part: jax.Array) -> jax.Array:
        return self._join(self.gather, self.scatter)(part)

    def _join(self, gather: Collective, scatter: Collective) -> Collective:
        def whole_of(part: jax.Array) -> jax.Array:
            return gather(part)[: self.size].reshape(self.shape)

        def part_of(_: Any, gradient: jax.Array) -> tuple[jax.Array]:
            return (scatter(jnp.pad(gradient.reshape(-1), (0, self._padding))),)

        joined = jax.custom_vjp(whole_of)
        joined.defvjp(lambda part: (whole_of(part), None), part_of)
        return joined


def make_splits(shapes: Sequence[tuple[int, ...]], group: Group, collectives: Any) -> list[Split]:
    return [Split(shape, group, collectives) for shape in shapes]


def _gather(part: jax.Array) -> jax.Array:
    return lax.all_gather(part, _RANKS, tiled=True)


def _scatter(gradient: jax.Array) -> jax.Array:
    total = lax.psum_scatter(widen(gradient), _RANKS, tiled=True)
    return (total / lax.axis_size(_RANKS)).astype(gradient.dtype)


def over_ranks(function: Callable[..., Any], split: Split) -> Callable[..., Any]:
    """Compile ``function`` of the arrays of each process, in which ``split`` gathers, as a program of all."""
    group = split.group

    @cache
    def compile(kinds: tuple[Any, ...], structure: Any) -> tuple[Callable[..., Any], list[Any]]:
        form: list[Any] = [None]  # of the result, once it is traced

        def trace(arrays: list[jax.Array]) -> list[jax.Array]:
            given = [x if shape else x[0] for x, (shape, _) in zip(arrays, kinds, strict=True)]
            results, form[0] = jax.tree.flatten(function(*structure.unflatten(given)))
            return [x[None] for x in results]

        return group.ranks.compile(trace, _SAVING if group.ranks.own.platform == "cpu" else None), form

    def run(*args: Any) -> Any:
        arrays, structure = jax.tree.flatten(args)
        program, form = compile(tuple([(x.shape, x.dtype) for x in arrays]), structure)
        given, what = [jnp.atleast_1d(x) for x in arrays], "a program that gathers parameters"
        results = _drop_axes(split.collectives.exchange(what, lambda: group.ranks.run_all(program, given), group))
        return form[0].unflatten(results)

    return run


def recomputing_wholes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` for its gradient, which keeps no whole parameters in a program over the ranks."""
    if not _is_over_ranks():
        return function
    return jax.checkpoint(function, policy=lambda primitive, *_, **__: primitive.name not in _RECOMPUTED)


def _is_over_ranks() -> bool:
    return core.get_axis_env().axis_exists(_RANKS)
