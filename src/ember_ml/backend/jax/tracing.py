"""What JAX traces now: whether a function is compiled, and which arrays are known, differentiated or stand for many."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax._src import core  # JAX 0.10: no public name for what is traced now
from jax._src.interpreters import ad, batching, partial_eval
from jax.core import Tracer

from ember_ml.backend import value_checks as checks

__all__ = ["is_differentiating", "is_recorded", "is_top_level", "is_traced", "is_tracing", "values_are_read"]

_Compiling = partial_eval.DynamicJaxprTrace
_Differentiating = (ad.JVPTrace, ad.LinearizeTrace)
_Differentiated = (ad.JVPTracer, ad.LinearizeTracer)


def is_top_level() -> bool:
    """Whether nothing is traced in this thread: the call is computed at once."""
    return type(core.trace_ctx.trace) is core.EvalTrace


def is_tracing() -> bool:
    """Whether a function is being traced to be compiled, also as a part of a loop, a branch or a checkpoint."""
    return type(core.trace_ctx.trace) is not core.EvalTrace and _is_inside(_Compiling)


def is_differentiating() -> bool:
    """Whether what is computed now may be differentiated: inside a gradient, or in a program, of which one may be."""
    return type(core.trace_ctx.trace) is not core.EvalTrace and _is_inside((_Compiling, *_Differentiating))


def _is_inside(kinds: Any) -> bool:
    trace = core.trace_ctx.trace
    while trace is not None and not isinstance(trace, kinds):
        trace = getattr(trace, "parent_trace", None)
    return trace is not None


def is_traced(x: jax.Array) -> bool:
    """Whether the value of ``x`` cannot be read now; that of an array which is differentiated eagerly can."""
    return isinstance(x, Tracer) and x.to_concrete_value() is None


def values_are_read(x: jax.Array) -> bool:
    """Whether the values of ``x`` are checked: they can be read, and checks are on."""
    return checks.enabled and not is_traced(x)


def is_recorded(x: jax.Array) -> bool:
    """Whether a gradient could flow through ``x``."""
    if not isinstance(x, Tracer) or not jnp.issubdtype(x.dtype, jnp.inexact):
        return False
    while isinstance(x, Tracer):
        if isinstance(x, _Differentiated):
            if type(x.tangent) is not ad.Zero:  # pyright: ignore[reportPrivateImportUsage]
                return True
            x = x.primal
        elif isinstance(x, batching.BatchTracer):
            x = x.val
        else:
            return False
    return False
