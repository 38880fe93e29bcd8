"""The base class of layers, whose sizes may be left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from ember_ml import ops
from ember_ml.backend.devices import lasting_device, resolve_device
from ember_ml.backend.selection import active
from ember_ml.core.dtypes import EmberDType, as_dtype
from ember_ml.nn import initializers
from ember_ml.nn.modules.deferred import DeferredParameter
from ember_ml.nn.modules.error_paths import name_module
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.parameter import Parameter
from ember_ml.typing import DeviceLike, DTypeLike, TensorLike

__all__ = ["Layer", "deferred", "empty"]

_values: ContextVar[str] = ContextVar("ember_ml_first_values", default="drawn")
"""How layers get their first values: "drawn", "deferred" or "empty"."""


@contextmanager
def empty() -> Iterator[None]:
    """Let layers that are made inside the block draw no first values: their parameters are zeros that take no memory.

    For models whose values are loaded directly after, by ``load`` or ``load_state_dict``. Before that they must not be
    trained: a parameter that takes no memory cannot be changed in place.

    >>> from ember_ml import nn
    >>> with nn.empty():
    ...     layer = nn.Linear(100_000, 100_000, bias=False)
    >>> layer.num_parameters
    10000000000
    """
    with _making("empty"):
        yield


@contextmanager
def deferred() -> Iterator[None]:
    """Let layers that are made inside the block draw their first values when they are needed, the same ones as without.

    Until then parameters take no memory. A strategy that splits them over processes, as ``FullShardStrategy``, draws
    one after another and keeps the parts, so that no process ever holds the whole model. The stream of random numbers
    moves on as if all had been drawn. Layers must know their sizes, and parameters that a module makes by itself are
    drawn at once.

    >>> from ember_ml import nn, ops
    >>> ops.random.seed(0)
    >>> at_once = nn.Linear(3, 2)
    >>> ops.random.seed(0)
    >>> with nn.deferred():
    ...     later, large = nn.Linear(3, 2), nn.Linear(100_000, 100_000)
    >>> ops.to_numpy(later.weight).tolist() == ops.to_numpy(at_once.weight).tolist()
    True
    >>> large.num_parameters
    10000100000
    """
    with _making("deferred"):
        yield


@contextmanager
def _making(how: str) -> Iterator[None]:
    token = _values.set(how)
    try:
        yield
    finally:
        _values.reset(token)


class Layer(Module):
    """A module whose sizes may be left out: it makes its parameters in ``build`` when it is first called.

    A subclass that knows all its sizes may make its parameters in ``__init__``. One that does not sets ``is_built`` to
    False there, and defines ``build(shape)``, which gets the shape of the first input.
    """

    is_built: bool
    _device: DeviceLike | None = None
    """Where parameters are made; None: on the default device."""
    _built_for: tuple[int, ...] | None = None
    """The shape of the first input, where sizes were left out: a checkpoint keeps it."""

    def build(self, shape: tuple[int, ...]) -> None:
        """Make the parameters for inputs of ``shape``."""

    def __call__(self, x: TensorLike, *args: Any, **kwargs: Any) -> Any:
        try:
            if not self.is_built:
                self.build_for(tuple(ops.shape(x)))
            return self.forward(x, *args, **kwargs)
        except Exception as error:
            name_module(self, error)
            raise

    def build_for(self, shape: tuple[int, ...]) -> None:
        """Make the parameters as the first call with an input of ``shape`` does."""
        self.build(shape)
        self.is_built, self._built_for = True, shape

    def add_parameter(
        self,
        name: str,
        shape: Sequence[int],
        initializer: str | initializers.Initializer = "zeros",
        dtype: DTypeLike = "float32",
    ) -> None:
        """Make the parameter ``name`` with the values of the initializer, on the device of the layer."""
        how = _values.get()
        if how == "drawn":
            draw = initializers.get(initializer)
            with nullcontext() if self._device is None else ops.use_device(self._device):
                value = draw(tuple(shape), dtype)
            value = value if self._device is None else ops.to_device(value, self._device)
            made = Parameter.holding(value) if initializers.draws_anew(draw) else Parameter(value)  # which copies it
        elif how == "deferred":
            made = DeferredParameter(initializers.get(initializer), tuple(shape), as_dtype(dtype), self._device)
        else:
            made = self._hold_zeros(tuple(shape), as_dtype(dtype))
        made.is_trainable = True
        setattr(self, name, made)

    def _hold_zeros(self, shape: tuple[int, ...], dtype: EmberDType) -> Parameter:
        """Return a parameter of zeros that takes no memory; on JAX it takes some where it was given a device."""
        backend = active()
        place = resolve_device(backend, self._device)
        if place == lasting_device(backend) and dtype in backend.dtypes:  # it will be there when it is read
            return Parameter.holding_zeros(dtype, shape)
        return Parameter.holding(ops.broadcast_to(ops.zeros((), dtype=dtype, device=place), shape))
