"""Compile functions on JAX by jax.jit, with the stream of random numbers as an argument."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ember_ml.backend.capabilities import OtherForm
from ember_ml.backend.common.programs import TracedProgram, follows_python, may_leave_program, run_uncompiled
from ember_ml.backend.host_arrays import as_host
from ember_ml.backend.jax.host_transfer import from_host
from ember_ml.backend.jax.sharding import Gathers, over_ranks
from ember_ml.backend.random.generator import TracedGenerator, default_generator, streaming
from ember_ml.core.dtypes import as_dtype
from ember_ml.errors import UnsupportedOp

__all__ = [
    "arguments",
    "build",
    "compiles_steps",
    "differentiates_programs",
    "direct",
    "follows_python",
    "from_python",
    "may_leave_program",
    "repeat",
    "replace_rows",
    "run_uncompiled",
]

differentiates_programs = False
compiles_steps = True
MANY = 10
"""As many shapes a program is compiled for before it is said that this costs time."""

_READING = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)


def from_python(data: Any, dtype: np.dtype | None, device: str | None) -> jax.Array:
    return from_host(as_host(data, None if dtype is None else as_dtype(dtype)), device)


def arguments(rows: list[list[float]], last: Any) -> list[np.ndarray]:
    arrays = list(np.array(rows, last.dtype))  # which the call of a program copies in a tenth of the time of device_put
    return arrays if len(arrays) == 1 else _to_device(arrays)


_to_device = jax.jit(lambda arrays: arrays)  # so a program need not wait for a copy before it begins


class _Draws(OtherForm):
    """A function draws random numbers, and was traced without the state of the stream."""


class _Undrawn(TracedGenerator):
    """The stream of a program that has drawn nothing so far."""

    def next_key(self) -> Any:
        raise _Draws


class _Program(TracedProgram):
    """A compiled function; the state of the stream is an argument of it once it draws."""

    def __init__(self, function: Callable[..., Any], donates: bool) -> None:
        super().__init__(function)
        self.compiled = jax.jit(self._trace, donate_argnums=0 if donates else ())
        self.draws = self.is_direct = False
        self.structure: Any = None

    def _trace(self, state: list[jax.Array], others: Any, words: jax.Array | None) -> tuple[Any, list[jax.Array]]:
        tensors, structure = jax.tree.flatten(others)
        if self.is_direct and structure != self.structure:
            raise OtherForm
        generator = _Undrawn(None) if words is None else TracedGenerator(words)
        try:
            with streaming(generator):
                result, new, note = self.function(*state, *tensors)
        except _READING as error:
            raise UnsupportedOp(
                "a function that JAX compiles, vectorizes or computes again asked for the value of a tensor, which is "
                "not known while it is traced: choose with ops.where or ops.cond, loop with ops.while_loop or "
                "ops.scan, and take what decides about Python code as a Python value; a Trainer takes compile=False"
            ) from error
        found = self.record([*state, *tensors], jax.Array, result, new, note, generator.drawn)
        # JAX would take a number of Python for a tensor that is weak, and a truth value for any
        is_sure = not any(x.weak_type or (x.ndim == 0 and x.dtype == bool) for x in map(jax.typeof, tensors))
        is_direct = is_sure and self.only is not None and self.only.places is None and not self.draws
        was_direct, self.is_direct, self.structure = self.is_direct, is_direct, structure
        if was_direct and not is_direct:  # whoever called it directly does not know
            raise OtherForm
        if self.traced == MANY:
            name = getattr(self.function, "__name__", "a function")
            what = f"{name} is compiled for the {MANY}th shape of its tensors; each costs a compilation"
            advice = "so pad what varies, as the length of sequences or the last batch, to few shapes"
            warnings.warn(f"{what}, {advice}", stacklevel=2)
        return found

    def __call__(self, state: list[jax.Array], others: Any) -> Any:
        while True:
            try:
                words = np.array(default_generator().words(), np.uint32) if self.draws else None
                found, new = self.compiled(state, others, words)
                break
            except _Draws:
                self.draws = True
            except Gathers as error:
                self.draws, self.compiled = True, over_ranks(self._trace, *error.args)
            except OtherForm:
                if self.is_direct:
                    raise
        form = self.only or self.form_of([*state, *jax.tree.leaves(others)])
        if self.draws:
            default_generator().skip(form.drawn)
        return (found, new, form.note) if form.places is None else form.fill(found, new)


def build(function: Callable[..., Any], donates: bool = False) -> Callable[..., Any]:
    return _Program(function, donates)


def direct(program: Any) -> tuple[Callable[..., Any], Any] | None:
    return (program.compiled, program.only.note) if program.is_direct else None


def repeat(function: Callable[..., list[jax.Array]]) -> Callable[..., Callable[[], list[jax.Array]]]:
    """Compile a step from one state to the next, which takes the memory of the one before."""
    compiled = jax.jit(function, donate_argnums=1)

    def begin(fixed: list[jax.Array], state: list[jax.Array]) -> Callable[[], list[jax.Array]]:
        def advance() -> list[jax.Array]:
            nonlocal state
            state = compiled(fixed, state)
            return state

        return advance

    return begin


def replace_rows(x: jax.Array, axis: int, position: jax.Array, rows: jax.Array) -> jax.Array:
    return jax.lax.dynamic_update_slice_in_dim(x, rows, position[0], axis)
