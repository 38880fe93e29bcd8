"""The methods and the indexing of EmberTensor: the ops of those names, on the tensor's own backend."""

from __future__ import annotations

from typing import Any
from weakref import ref

from ember_ml.dispatch.codegen import bind
from ember_ml.dispatch.declare import OPS, Op
from ember_ml.dispatch.portable import on_own_backend
from ember_ml.dispatch.slow_path import dispatch
from ember_ml.tensor.ember_tensor import EmberTensor
from ember_ml.tensor.in_place import is_fixed, refusal
from ember_ml.tensor.operations import METHODS
from ember_ml.tensor.var import Var

__all__: list[str] = []


def _is_basic(key: Any) -> bool:
    """Whether a key selects by position alone: what NumPy and PyTorch answer with a view."""
    if type(key) is tuple:
        return all(_is_basic(item) for item in key)
    return key is None or key is Ellipsis or isinstance(key, slice) or type(key) is int


def _get_item(self: EmberTensor, key: Any) -> EmberTensor:
    """The part of this tensor that ``key`` selects: integers, slices, None, ``...``, masks and integer tensors."""
    result = dispatch(OPS["get_item"], (self, key), self._kind.backend, portable=True)
    if _is_basic(key):
        result._sliced_from = (ref(self), *getattr(self, "_sliced_from", ()))
    return result


def _set_item(self: EmberTensor, key: Any, value: Any) -> None:
    """Replace the part that ``key`` selects: the tensor then holds a changed copy, other tensors keep their data."""
    if is_fixed(self):
        raise refusal(self, "this assignment")
    result = dispatch(OPS["index_update"], (self, key, value), self._kind.backend, portable=True)
    self._array, self._kind = result._array, result._kind  # which is recorded if the value is


def _gathered(values: tuple[Any, ...]) -> Any:
    """``f(2, 3)`` and ``f((2, 3))`` mean the same."""
    return values[0] if len(values) == 1 and not isinstance(values[0], int) else values


def _reshape(self: EmberTensor, *shape: Any) -> EmberTensor:
    """This tensor in another shape, given as one tuple or as separate lengths."""
    return on_own_backend(OPS["reshape"], (self, _gathered(shape), *_defaults(OPS["reshape"], 2)))


def _transpose(self: EmberTensor, *axes: Any) -> EmberTensor:
    """This tensor with its axes reversed, or in the order of ``axes``, given as one tuple or as separate numbers."""
    return on_own_backend(OPS["transpose"], (self, _gathered(axes) if axes else None, *_defaults(OPS["transpose"], 2)))


def _defaults(op: Op, given: int) -> tuple[Any, ...]:
    """The defaults of the op's parameters after the first ``given``."""
    defaults = (*(op.declaration.__defaults__ or ()), *(op.declaration.__kwdefaults__ or {}).values())
    return defaults[len(defaults) - (len(op.parameters) - given) :]


def _set(name: str, function: Any) -> None:
    function.__name__, function.__qualname__ = name, f"EmberTensor.{name}"
    setattr(EmberTensor, name, function)


def _get_recorded(self: Var, key: Any) -> Any:
    """The part of a recorded tensor that ``key`` selects."""
    return OPS["get_item"].function(self, key)


_BY_NAME = OPS | {alias: op for op in OPS.values() for alias in op.aliases}
for _name in METHODS:
    _set(_name, bind(_BY_NAME[_name], on_own_backend))
    setattr(Var, _name, bind(_BY_NAME[_name], dispatch))
Var.__getitem__ = _get_recorded
_set("reshape", _reshape)
_set("transpose", _transpose)
_set("__getitem__", _get_item)
_set("__setitem__", _set_item)
