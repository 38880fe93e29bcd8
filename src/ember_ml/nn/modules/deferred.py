"""Parameters whose first values are drawn when they are first needed, by the part of the stream that was theirs."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.backend.contract import Backend
from ember_ml.backend.devices import resolve_device
from ember_ml.backend.random.generator import Generator, default_generator, streaming
from ember_ml.backend.selection import active
from ember_ml.core.dtypes import EmberDType
from ember_ml.nn.initializers import Initializer, count_draws
from ember_ml.nn.modules.parameter import Parameter
from ember_ml.tensor.variable import Variable, own

__all__ = ["DeferredParameter"]

_lock = threading.RLock()
# the slots themselves, which the properties below hide
_HELD: Any = Variable.__dict__["held"]
_HOME: Any = Variable.__dict__["home"]


class _Recipe(NamedTuple):
    """How the first value of a parameter is made."""

    initializer: Initializer
    shape: tuple[int, ...]
    dtype: EmberDType
    device: str
    backend: Backend
    """That of which ``device`` is one."""
    stream: Mapping[str, Any]
    """Where the random numbers begin."""


class DeferredParameter(Parameter):
    """A parameter that has no value yet, and takes no memory: reading its tensor draws it, as it would have been.

    From then on, or once it is assigned to, it is a plain :class:`Parameter`: it changes its class, since others hold
    references to it.

    Args:
        initializer: A function of a shape and a dtype that draws from the default generator, which moves on at once.
        shape: The shape.
        dtype: The dtype.
        device: The device; None: the default one.
    """

    __slots__ = ()

    def __init__(
        self,
        initializer: Initializer,
        shape: tuple[int, ...],
        dtype: EmberDType,
        device: str | None,
    ) -> None:
        backend, generator = active(), default_generator()
        place = resolve_device(backend, device)  # raises where there is no such device
        stream = generator.state()
        if stream["native"]:
            raise ValueError("a native generator cannot draw the values later: seed the default generator by a number")
        recipe = _Recipe(initializer, shape, dtype, place, backend, stream)
        draws = count_draws(initializer)
        if draws is None:  # an initializer of one's own: only its call tells
            _make(recipe, generator)
        else:
            generator.skip(draws)
        _HELD.__set__(self, recipe)
        self.is_trainable = True

    @property
    def _recipe(self) -> _Recipe:
        return _HELD.__get__(self)

    def draw(self) -> Any:
        """Return the first value, native to the active backend; the parameter itself stays without one."""
        recipe = self._recipe
        return _make(recipe, Generator.from_state(recipe.stream))

    @property
    def held(self) -> Any:
        """The native tensor, which is drawn now."""
        with _lock:
            if type(self) is DeferredParameter:  # another thread may have drawn it
                backend, value = active(), self.draw()
                _become_plain(self, value)
                _HOME.__set__(self, backend)
        return _HELD.__get__(self)

    @held.setter
    def held(self, value: Any) -> None:
        _become_plain(self, value)

    @property
    def home(self) -> Backend:  # type: ignore[override]
        """The backend of the native tensor, which is drawn now."""
        _ = self.held
        return _HOME.__get__(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        _ = self.held  # a pickle has the values
        return self.__reduce_ex__(protocol)  # of the class that it has now

    @property
    def shape(self) -> tuple[int, ...]:
        return self._recipe.shape

    @property
    def dtype(self) -> EmberDType:
        return self._recipe.dtype

    @property
    def size(self) -> int:
        return math.prod(self._recipe.shape)

    @property
    def device(self) -> str:
        return self._recipe.device if self._recipe.backend is active() else resolve_device(active(), None)


def _become_plain(parameter: Any, held: Any) -> None:
    parameter.__class__ = Parameter
    parameter.held = held


def _make(recipe: _Recipe, generator: Generator) -> Any:
    """Return the value of a parameter, drawn from a generator, native to the active backend."""
    backend = active()
    is_same = recipe.backend is backend
    with streaming(generator), ops.use_device(recipe.device) if is_same else nullcontext():
        value = recipe.initializer(recipe.shape, recipe.dtype)
    return own(value, backend)
