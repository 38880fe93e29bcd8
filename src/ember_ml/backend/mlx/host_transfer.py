"""Transfer between NumPy arrays and MLX arrays, and casts."""

from __future__ import annotations

from functools import cache
from typing import Any

import mlx.core as mx
import numpy as np

from ember_ml.backend.devices import default_device, host_memory
from ember_ml.backend.host_arrays import host_dtypes
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType
from ember_ml.errors import DeviceError, UnsupportedDType

__all__ = ["cast", "check_device", "check_fits", "dtypes", "from_host", "scalar", "to_host"]

dtypes: dict[EmberDType, mx.Dtype] = {
    dtype: mx.bool_ if dtype is dt.bool_ else getattr(mx, dtype.name) for dtype in dt.ALL if dtype is not dt.complex128
}
_HOST = {host_dtypes[dtype]: dtype for dtype in dt.ALL}


_has_gpu = mx.is_available(mx.gpu)


def check_device(device: str | None) -> None:
    """Raise ``DeviceError`` for another device than the default or the scope's: MLX places no array on a device."""
    # MLX 0.32: arrays lie in memory that all devices share; where an operation runs, the default or the stream decides
    if not _has_gpu or device is None:
        return
    from ember_ml.backend import mlx

    computing = default_device(mlx)
    if device != computing:
        raise DeviceError(
            f"MLX cannot place a tensor on {device!r}: its tensors lie in memory that all devices share, and are "
            f"computed on {computing!r} now. `with ops.use_device({device!r}):` computes there"
        )


def from_host(array: np.ndarray, device: str | None, copy: bool = False) -> mx.array:
    """Copy a NumPy array to MLX."""
    check_device(device)
    if array.dtype == np.complex128:
        raise UnsupportedDType("MLX has no complex128; cast to complex64, or use another backend")
    if any(stride < 0 for stride in array.strides):  # MLX 0.32: refuses them
        array = array.copy(order="C")
    if not array.size:  # MLX 0.32: imports it with random strides, and its sum may never end
        return mx.zeros(array.shape, dtypes[_HOST[array.dtype]])
    return mx.array(array, dtype=dtypes[_HOST[array.dtype]])  # MLX 0.32: by default float64 becomes float32


@cache
def _memory() -> int:
    return host_memory()["total"] or 2**62


def check_fits(*arrays: mx.array) -> None:
    """Raise MemoryError for arrays that this machine cannot hold."""
    # MLX 0.32: ends the process
    for x in arrays:
        if x.nbytes > _memory():
            raise MemoryError(f"{x.dtype}{tuple(x.shape)} takes {x.nbytes} bytes, and the machine has {_memory()}")


def to_host(x: mx.array) -> np.ndarray:
    """Return a view of another array in the same memory: ``x[0] = 1`` leaves that memory unchanged and alive."""
    check_fits(x)
    own = mx.view(x, mx.uint16) if x.dtype == mx.bfloat16 else mx.stop_gradient(x)
    mx.eval(own)  # otherwise NumPy reads a value that failed to compute, without an error
    array = np.asarray(memoryview(own).toreadonly())  # pyright: ignore[reportArgumentType]  # it is a buffer
    return array.view(host_dtypes[dt.bfloat16]) if x.dtype == mx.bfloat16 else array


def cast(x: mx.array, dtype: mx.Dtype) -> mx.array:
    source = x.dtype
    if source == dtype:
        return x
    if source == mx.complex64 and dtype != mx.bool_:
        raise TypeError(f"{source} cannot become {dtype}; take real() or imag() first")
    if mx.issubdtype(source, mx.floating) and mx.issubdtype(dtype, mx.integer):
        return _saturate(x, dtype)
    return x.astype(dtype)


def _saturate(x: mx.array, dtype: mx.Dtype) -> mx.array:
    if x.dtype.size < 4:
        x = x.astype(mx.float32)
    info = mx.iinfo(dtype)
    result = mx.where(mx.isfinite(x), x, 0).astype(dtype)
    result = mx.where(x >= float(info.max), scalar(info.max, dtype, None), result)
    result = mx.where(x <= float(info.min), scalar(info.min, dtype, None), result)
    return mx.where(mx.isnan(x), scalar(0, dtype, None), result)


def scalar(value: Any, dtype: mx.Dtype, device: str | None) -> mx.array:
    check_device(device)
    if type(value) is int and mx.issubdtype(dtype, mx.inexact):
        value = float(value)  # MLX 0.32: reads Python integers as int64
    if dtype == mx.uint64 and value >= 2**63:  # MLX 0.32: reads Python integers as int64
        high, low = mx.array(value >> 32, dtype=mx.uint64), mx.array(value & 0xFFFFFFFF, dtype=mx.uint64)
        return mx.left_shift(high, mx.array(32, dtype=mx.uint64)) + low
    return mx.array(value, dtype=dtype)
