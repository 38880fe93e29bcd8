"""Compile functions on MLX by mx.compile, with the stream of random numbers as an argument."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import mlx.core as mx

from ember_ml.backend.host_arrays import as_host
from ember_ml.backend.mlx.host_transfer import from_host
from ember_ml.backend.random.generator import TracedGenerator, default_generator, streaming
from ember_ml.core import trees
from ember_ml.core.dtypes import as_dtype

__all__ = [
    "argument",
    "build",
    "compiles_steps",
    "differentiates_programs",
    "follows_python",
    "from_python",
    "is_tracing",
    "run_uncompiled",
]

compiles_steps = False
differentiates_programs = False

_state = threading.local()
_NO_WORDS = mx.zeros(4, dtype=mx.uint32)


def is_tracing() -> bool:
    return getattr(_state, "depth", 0) > 0


def follows_python() -> bool:
    return False


def run_uncompiled(function: Callable[..., None], *args: Any) -> None:
    function(*args)


def from_python(data: Any, dtype: mx.Dtype | None, device: str | None) -> mx.array:
    return from_host(as_host(data, None if dtype is None else as_dtype(dtype)), device)


def argument(numbers: Sequence[float], device: str) -> mx.array:
    return mx.array(list(numbers), dtype=mx.float32)


class _Form(NamedTuple):
    """The result of a trace: the positions of arrays among the other values of the result, and how often it draws."""

    structure: trees.Structure
    leaves: list[Any]
    places: list[int]
    note: Any
    drawn: int


class _Program:
    """A compiled function, and the structure of its result for each structure of its arguments."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.compiled = mx.compile(self._trace)
        self.forms: dict[Any, _Form] = {}

    def _trace(self, words: mx.array, *tensors: mx.array) -> list[mx.array]:
        generator = TracedGenerator(words)
        _state.depth = getattr(_state, "depth", 0) + 1
        try:
            with streaming(generator):
                result, note = self.function(*tensors)
        finally:
            _state.depth -= 1
        leaves, structure = trees.flatten(result)
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, mx.array)]
        self.forms[self._key(tensors)] = _Form(structure, leaves, places, note, generator.drawn)
        return [leaves[place] for place in places]

    @staticmethod
    def _key(tensors: tuple[mx.array, ...]) -> Any:
        return tuple((x.shape, x.dtype) for x in tensors)

    def __call__(self, *tensors: mx.array) -> Any:
        key = self._key(tensors)
        form = self.forms.get(key)
        if form is not None and not form.drawn:
            arrays = self.compiled(_NO_WORDS, *tensors)
        else:
            generator = default_generator()
            arrays = self.compiled(mx.array(generator.words(), dtype=mx.uint32), *tensors)
            form = self.forms[key]
            generator.skip(form.drawn)
        leaves = list(form.leaves)
        for place, array in zip(form.places, arrays, strict=True):
            leaves[place] = array
        return form.structure(leaves), form.note


def build(function: Callable[..., Any], donated: int = 0) -> Callable[..., Any]:
    """Compile a ``function`` of tensors, whose result is a tree of arrays and other values."""
    return _Program(function)
