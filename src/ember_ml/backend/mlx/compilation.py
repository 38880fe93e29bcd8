"""Compile functions on MLX by mx.compile, with the stream of random numbers as an argument."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import mlx.core as mx

from ember_ml.backend.common.programs import TracedProgram, follows_python, may_leave_program, run_uncompiled
from ember_ml.backend.host_arrays import as_host
from ember_ml.backend.mlx.host_transfer import from_host
from ember_ml.backend.random.generator import TracedGenerator, default_generator, streaming
from ember_ml.core.dtypes import as_dtype

__all__ = [
    "arguments",
    "build",
    "compiles_steps",
    "differentiates_programs",
    "direct",
    "follows_python",
    "from_python",
    "is_tracing",
    "may_leave_program",
    "repeat",
    "replace_rows",
    "run_uncompiled",
]

compiles_steps = False
direct = None
differentiates_programs = False

_state = threading.local()
_NO_WORDS = mx.zeros(4, dtype=mx.uint32)


def is_tracing() -> bool:
    return getattr(_state, "depth", 0) > 0


def from_python(data: Any, dtype: mx.Dtype | None, device: str | None) -> mx.array:
    return from_host(as_host(data, None if dtype is None else as_dtype(dtype)), device)


def arguments(rows: list[list[float]], last: mx.array) -> list[mx.array]:
    return [mx.array(row, dtype=last.dtype) for row in rows]


class _Program(TracedProgram):
    """A compiled function; the state of the stream is an argument of it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.compiled = mx.compile(self._trace)
        self.draws = False

    def _trace(self, words: mx.array, *tensors: mx.array) -> tuple[Any, list[mx.array]]:
        generator = TracedGenerator(words)
        _state.depth = getattr(_state, "depth", 0) + 1
        try:
            with streaming(generator):
                result, others, note = self.function(*tensors)
        finally:
            _state.depth -= 1
        return self.record(tensors, mx.array, result, others, note, generator.drawn)

    def __call__(self, state: list[mx.array], tensors: list[mx.array]) -> Any:
        tensors = [*state, *tensors]
        if not self.draws:
            found = self.compiled(_NO_WORDS, *tensors)
            form = self.form_of(tensors)
            if not form.drawn:
                return form.fill(*found)
            self.draws = True  # what was traced just now does; nothing of it is computed yet
        generator = default_generator()
        found = self.compiled(mx.array(generator.words(), dtype=mx.uint32), *tensors)
        form = self.form_of(tensors)
        generator.skip(form.drawn)
        return form.fill(*found)


def build(function: Callable[..., Any], donates: bool = False) -> Callable[..., Any]:
    return _Program(function)


def repeat(function: Callable[..., list[mx.array]]) -> Callable[..., Callable[[], list[mx.array]]]:
    """Compile a step from one state to the next, whose arrays are computed while Python goes on."""

    def trace(fixed: list[mx.array], state: list[mx.array]) -> list[mx.array]:
        _state.depth = getattr(_state, "depth", 0) + 1
        try:
            return function(fixed, state)
        finally:
            _state.depth -= 1

    compiled = mx.compile(trace)

    def begin(fixed: list[mx.array], state: list[mx.array]) -> Callable[[], list[mx.array]]:
        def advance() -> list[mx.array]:
            nonlocal state
            state = compiled(fixed, state)
            mx.async_eval(state)
            return state

        return advance

    return begin


def replace_rows(x: mx.array, axis: int, position: mx.array, rows: mx.array) -> mx.array:
    return mx.slice_update(x, rows, position, (axis,))
