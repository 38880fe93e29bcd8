"""A backend for Ember ML that computes with NumPy and counts its calls: the smallest complete example.

``ember_ml.set_backend("counting")`` works once this package is installed. The attributes and functions below are the
contract of ``ember_ml.backend.contract.Backend``; the bodies of the ops are in ``bodies.py``.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from counting_backend import bodies
from counting_backend.bodies import Counted, calls
from ember_ml import dtypes as dt
from ember_ml.backend.contract import FastPath
from ember_ml.core.dtypes import EmberDType, as_dtype

__all__ = ["Counted", "calls"]

name = key = "counting"
is_tape = False
tensor_type = Counted
dtypes: dict[EmberDType, Any] = {
    dtype: np.dtype(dtype.name) for dtype in (dt.bool_, dt.int32, dt.int64, dt.float32, dt.float64)
}
weak_dtypes = frozenset({dt.float32, dt.float64})
families = (bodies,)
gaps: dict[tuple[str, str], str] = {}
notes: dict[str, str] = {}
# the capabilities of ember_ml.backend.capabilities: none, so that the portable ways serve
gradients = tape_kernels = compilation = control_flow = optimizer_kernels = recurrent = None
random = processes = sharding = device_mesh = laziness = weight_layout = bench_calls = None


def fast_path(op: Any, body: Any) -> FastPath:
    return FastPath()  # the general lines: check the type and the dtype, then call the body


def is_native(x: Any) -> bool:
    return isinstance(x, Counted)


def dtype_of(x: Counted) -> EmberDType:
    return as_dtype(x.dtype)


def device_of(x: Counted) -> str:
    return "cpu"


def from_host(array: np.ndarray, device: str | None, copy: bool = False) -> Counted:
    return (array.copy() if copy else array).view(Counted)


def to_host(x: Counted) -> np.ndarray:
    return x.view(np.ndarray)


def cast(x: Counted, dtype: np.dtype) -> Counted:
    return x.astype(dtype).view(Counted)


def scalar(value: Any, dtype: np.dtype, device: str | None) -> Counted:
    return np.array(value, dtype=dtype).view(Counted)


def finish(result: Any) -> Any:
    # NumPy gives scalars where Ember ML promises tensors of no dimension
    return np.asarray(result).view(Counted) if isinstance(result, np.generic) else result


def translate(error: Exception) -> Exception | None:
    return IndexError(str(error)) if isinstance(error, np.exceptions.AxisError) else None


def to_dlpack(x: Counted, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    return to_host(x).__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


def dlpack_device(x: Counted) -> tuple[Any, int]:
    return to_host(x).__dlpack_device__()


def to_device(x: Counted, device: str) -> Counted:
    return x


def available_devices() -> tuple[str, ...]:
    return ("cpu",)


def initial_device() -> str:
    return "cpu"


def set_device(device: str) -> None:
    pass


def device_scope(device: str) -> AbstractContextManager[Any]:
    return nullcontext()


def synchronize(device: str | None) -> None:
    pass


def memory_info(device: str) -> dict[str, int | None]:
    return {"allocated": None, "peak": None, "total": None}


def is_tracing() -> bool:
    return False


def is_traced(x: Counted) -> bool:
    return False


def is_recorded(x: Counted) -> bool:
    return False
