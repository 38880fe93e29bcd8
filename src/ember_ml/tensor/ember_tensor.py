"""EmberTensor: a tensor that behaves the same whatever library computes underneath."""

from __future__ import annotations

from typing import Any

from ember_ml.backend import backend_of
from ember_ml.backend.host import read_portable_with
from ember_ml.dtypes import EmberDType
from ember_ml.tensor.kinds import Kind, kind_of

__all__ = ["EmberTensor", "wrap", "wrap_native"]

_new = object.__new__


class EmberTensor:
    """A portable tensor: holds a native tensor and outlives a switch of the backend."""

    __slots__ = ("__weakref__", "_array", "_is_slice", "_kind", "_requires_grad")
    __array_ufunc__ = None  # NumPy's operators give way to ours
    __hash__ = None  # type: ignore[assignment]

    _array: Any
    _kind: Kind

    @property
    def dtype(self) -> EmberDType:
        return self._kind.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._array.shape)


def _read(value: Any) -> Any:
    return value._kind.backend.to_host(value._array) if type(value) is EmberTensor else None


read_portable_with(_read)


def wrap_native(native: Any, backend: Any) -> EmberTensor:
    """A portable tensor that holds ``native``, a tensor of ``backend``."""
    tensor = _new(EmberTensor)
    tensor._array = native
    tensor._kind = kind_of(backend, native)
    return tensor


def wrap(result: Any, backend: Any) -> Any:
    """Native tensors in ``result`` as portable ones, tuples and lists included; all else as it is."""
    if type(result) is backend.tensor_type or backend.is_native(result):
        return wrap_native(result, backend)
    if isinstance(result, tuple):
        parts = [wrap(part, backend) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if isinstance(result, list):
        return [wrap(part, backend) for part in result]
    return result
