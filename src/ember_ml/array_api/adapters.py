"""The functions of the standard that are more than an op with another signature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml.backend.contract import Backend
from ember_ml.core.dtypes import as_dtype
from ember_ml.dispatch.declare import OPS
from ember_ml.dispatch.slow_path import dispatch
from ember_ml.tensor.ember_tensor import EmberTensor, to_native, wrap_native
from ember_ml.tensor.in_place import is_view
from ember_ml.typing import DataLike, DeviceLike, DTypeLike

__all__ = ["adapters"]

_PYTHON_DATA = frozenset({bool, int, float, complex, list, tuple})


def _is_already(x: Any, dtype: DTypeLike | None, device: DeviceLike | None) -> bool:
    return (dtype is None or x.dtype == dtype) and (device is None or x.device == device)


def astype(x: EmberTensor, dtype: DTypeLike, /, *, copy: bool = True, device: DeviceLike | None = None) -> EmberTensor:
    """Cast ``x`` by the rules of ``ops.cast``; without ``copy``, return ``x`` itself where nothing changes."""
    if _is_already(x, dtype, device):
        return x.copy() if copy else x
    result = x if x.dtype == dtype else x.cast(dtype)
    return result if device is None else result.to_device(device)


def reshape(x: EmberTensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> EmberTensor:
    """Return ``x`` in another shape: a view where the order of its elements allows it, unless ``copy`` is True.

    Where ``copy`` is False and a view is impossible, ``ValueError``.
    """
    result = (x.copy() if copy else x).reshape(shape)
    if copy is False and not is_view(result):
        raise ValueError(f"a tensor of shape {x.shape} cannot become {tuple(result.shape)} without a copy")
    return result


def adapters(backend: Backend) -> dict[str, Callable[..., Any]]:
    """Return the functions for the namespace of ``backend``."""

    def asarray(
        obj: DataLike,
        /,
        *,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        copy: bool | None = None,
    ) -> EmberTensor:
        """Convert ``obj`` to a tensor of this namespace's backend; return it if it is one, unless ``copy`` is True."""
        if type(obj) is EmberTensor:
            if obj._kind.backend is backend and not copy and _is_already(obj, dtype, device):
                return obj
        elif type(obj) in _PYTHON_DATA and copy is not False:  # clients do this in every step; dispatch is for the rest
            return wrap_native(to_native(obj, backend, None if dtype is None else as_dtype(dtype), device), backend)
        return dispatch(OPS["asarray"], (obj, dtype, device, copy), backend, portable=True)

    def from_dlpack(x: Any, /, *, device: DeviceLike | None = None, copy: bool | None = None) -> EmberTensor:
        """Return a tensor of this namespace's backend of anything that has ``__dlpack__``."""
        return dispatch(OPS["from_dlpack"], (x, device, copy), backend, portable=True)

    return {function.__name__: function for function in (asarray, astype, from_dlpack, reshape)}
