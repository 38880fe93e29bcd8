"""Compile functions on JAX by jax.jit, with the stream of random numbers as an argument."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ember_ml.backend.host_arrays import as_host
from ember_ml.backend.jax.host_transfer import from_host
from ember_ml.backend.random.generator import TracedGenerator, default_generator, streaming
from ember_ml.core import trees
from ember_ml.core.dtypes import as_dtype
from ember_ml.errors import UnsupportedOp

__all__ = [
    "argument",
    "build",
    "compiles_steps",
    "differentiates_programs",
    "follows_python",
    "from_python",
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


def follows_python() -> bool:
    return False


def run_uncompiled(function: Callable[..., None], *args: Any) -> None:
    function(*args)


def from_python(data: Any, dtype: np.dtype | None, device: str | None) -> jax.Array:
    return from_host(as_host(data, None if dtype is None else as_dtype(dtype)), device)


def argument(numbers: Sequence[float], device: str) -> np.ndarray:
    return np.array(numbers, np.float32)  # which a program takes at a fifth of what making an array of JAX's costs


class _Form(NamedTuple):
    """The result of a trace: the positions of arrays among the other values of the result, and how often it draws."""

    structure: trees.Structure
    leaves: list[Any]
    places: list[int]
    note: Any
    drawn: int


class _Result:
    """The arrays that a program returns; jax.jit keeps the form beside each program that it compiles."""

    __slots__ = ("arrays", "form")

    def __init__(self, arrays: Sequence[jax.Array], form: _Form) -> None:
        self.arrays, self.form = arrays, form


class _Held:
    """A form as jax.jit compares it: by identity."""

    __slots__ = ("form",)

    def __init__(self, form: _Form) -> None:
        self.form = form


jax.tree_util.register_pytree_node(
    _Result, lambda x: (x.arrays, _Held(x.form)), lambda held, arrays: _Result(arrays, held.form)
)


class _Draws(BaseException):  # which no handler of errors catches
    """A function draws random numbers, and was traced without the state of the stream."""


class _Undrawn(TracedGenerator):
    """The stream of a program that has drawn nothing so far."""

    def next_key(self) -> Any:
        raise _Draws


class _Program:
    """A compiled function; the state of the stream is an argument of it once it draws."""

    def __init__(self, function: Callable[..., Any], donated: int) -> None:
        self.function = function
        self.compiled = jax.jit(self._trace, donate_argnums=tuple(range(1, 1 + donated)))
        self.draws, self.traced = False, 0

    def _trace(self, words: jax.Array | None, *tensors: jax.Array) -> _Result:
        self._count()
        generator = _Undrawn(None) if words is None else TracedGenerator(words)
        try:
            with streaming(generator):
                result, note = self.function(*tensors)
        except _READING as error:
            raise UnsupportedOp(
                "a function that JAX compiles, vectorizes or computes again asked for the value of a tensor, which is "
                "not known while it is traced: choose with ops.where or ops.cond, loop with ops.while_loop or "
                "ops.scan, and take what decides about Python code as a Python value; a Trainer takes compile=False"
            ) from error
        leaves, structure = trees.flatten(result)
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]
        arrays = [leaves[place] for place in places]
        for place in places:
            leaves[place] = None  # an array of the trace would keep all of it alive
        return _Result(arrays, _Form(structure, leaves, places, note, generator.drawn))

    def _count(self) -> None:
        self.traced += 1
        if self.traced == MANY:
            name = getattr(self.function, "__name__", "a function")
            warnings.warn(
                f"{name} is compiled for the {MANY}th shape of its tensors; each costs a compilation, so pad what "
                "varies, as the length of sequences or the last batch, to few shapes",
                stacklevel=2,
            )

    def __call__(self, *tensors: jax.Array) -> Any:
        if self.draws:
            generator = default_generator()
            found = self.compiled(np.array(generator.words(), np.uint32), *tensors)
            generator.skip(found.form.drawn)
        else:
            try:
                found = self.compiled(None, *tensors)
            except _Draws:
                self.draws, self.traced = True, self.traced - 1
                return self(*tensors)
        form = found.form
        leaves = list(form.leaves)
        for place, array in zip(form.places, found.arrays, strict=True):
            leaves[place] = array
        return form.structure(leaves), form.note


def build(function: Callable[..., Any], donated: int = 0) -> Callable[..., Any]:
    """Compile a ``function`` of tensors, whose result is a tree of arrays and other values.

    The memory of the first ``donated`` tensors is used again for the results.
    """
    return _Program(function, donated)
