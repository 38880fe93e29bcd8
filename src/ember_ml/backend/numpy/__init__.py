"""The NumPy backend: always there, eager, on the CPU; bfloat16 through ml_dtypes."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from ember_ml.backend.capabilities import deferred
from ember_ml.backend.common.own_ops import op_on
from ember_ml.backend.contract import ByDType, FastPath, load_bodies
from ember_ml.backend.devices import host_memory
from ember_ml.backend.host_arrays import cast_host, host_dtypes
from ember_ml.backend.numpy import optimizer_kernels, random, recurrent, tape_kernels  # noqa: F401
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType, find_dtype
from ember_ml.errors import LinAlgError

name = key = "numpy"
is_tape = False
tensor_type = np.ndarray
dtypes = {dtype: host_dtypes[dtype] for dtype in dt.ALL}
weak_dtypes = frozenset({dt.float32, dt.float64})
families = load_bodies(f"{__name__}.bodies")
gaps: dict[tuple[str, str], str] = {}
notes: dict[str, str] = {}
processes = deferred(f"{__name__}.processes")
bench_calls = deferred(f"{__name__}.bench_calls")
gradients = compilation = control_flow = sharding = device_mesh = laziness = weight_layout = None

_EMBER = {native: dtype for dtype, native in dtypes.items()}

# A ufunc call is so short that every test counts: float32 is compared by identity first, since hashing a dtype takes
# longer. A Python number is computed in the array's dtype, or else the dtype of the result shows that it was not.
# NumPy 2.4: returns scalars for 0-d arrays and for full reductions.
_UFUNC = FastPath(
    unary=(
        "if type({x}) is _NATIVE:\n"
        "    _dtype = {x}.dtype\n"
        "    if _dtype is _F32 or _dtype in _OK:\n"
        "        _result = _BODY({args})\n"
        "        return _result if type(_result) is _NATIVE else _FINISH(_result, _BACKEND)"
    ),
    binary=(
        "if type({x}) is _NATIVE:\n"
        "    _dtype = {x}.dtype\n"
        "    if type({y}) is _NATIVE:\n"
        "        if _dtype is {y}.dtype and (_dtype is _F32 or _dtype in _OK):\n"
        "            _result = _BODY({args})\n"
        "            if type(_result) is _NATIVE:\n"
        "                return _result\n"
        "            return _FINISH(_result, _BACKEND)\n"
        "    elif (type({y}) is float or type({y}) is int) and (_dtype is _F32 or _dtype in _OK):\n"
        "        _result = _BODY({args})\n"
        "        if _result.dtype is _dtype:\n"
        "            return _result if type(_result) is _NATIVE else _FINISH(_result, _BACKEND)"
    ),
)
_ARRAY = FastPath(
    unary=(
        "if type({x}) is _NATIVE and {x}.dtype in _OK:\n"
        "    _result = _BODY({args})\n"
        "    return _result if type(_result) is _NATIVE else _FINISH(_result, _BACKEND)"
    ),
    binary=(
        "if type({x}) is _NATIVE:\n"
        "    _dtype = {x}.dtype\n"
        "    if type({y}) is _NATIVE:\n"
        "        if {y}.dtype == _dtype and _dtype in _OK:\n"
        "            _result = _BODY({args})\n"
        "            return _result if type(_result) is _NATIVE else _FINISH(_result, _BACKEND)\n"
        "    elif (type({y}) is float or type({y}) is int) and _dtype in _WEAK:\n"
        "        _result = _BODY({number_args})\n"
        "        return _result if type(_result) is _NATIVE else _FINISH(_result, _BACKEND)"
    ),
    sequence=(
        "_dtype = {x}[0].dtype\n"
        "if _dtype in _OK:\n"
        "    for _item in {x}:\n"
        "        if type(_item) is not _NATIVE or _item.dtype is not _dtype:\n"
        "            break\n"
        "    else:\n"
        "        return _BODY({args})"
    ),
    pair=(
        "if type(_first) is _NATIVE is type(_second) and _first.dtype is _F32 is _second.dtype:\n"
        "    return _BODY({args})"
    ),
)
# NumPy 2.4: promotes float32 with float16, which a contraction must refuse; returns a scalar for vectors.
_CONTRACTION = FastPath(
    binary=(
        "if type({x}) is _NATIVE and type({y}) is _NATIVE:\n"
        "    _dtype = {x}.dtype\n"
        "    if _dtype is {y}.dtype and _dtype in _OK:\n"
        "        _result = _BODY({args})\n"
        "        return _result if type(_result) is _NATIVE else _FINISH(_result, _BACKEND)"
    ),
)


def fast_path(op: Any, body: Any) -> FastPath:
    native = body.native if isinstance(body, ByDType) else body
    if op.rule.contraction:
        return _CONTRACTION
    takes_f32 = dt.float32 in op.rule.domain and not (isinstance(body, ByDType) and dt.float32 in body.others)
    return _UFUNC if isinstance(native, np.ufunc) and op.rule.result == "same" and takes_f32 else _ARRAY


def is_native(x: Any) -> bool:
    """Arrays of objects, text, dates or foreign byte order are data to be read, not tensors."""
    return type(x) is np.ndarray and x.dtype in _EMBER


def dtype_of(x: np.ndarray) -> EmberDType:
    found = _EMBER.get(x.dtype) or find_dtype(x.dtype)
    if found is None:
        raise TypeError(f"a tensor cannot hold the dtype {x.dtype}")
    return found


def device_of(x: np.ndarray) -> str:
    return "cpu"


def from_host(array: np.ndarray, device: str | None, copy: bool = False) -> np.ndarray:
    return array.copy() if copy else array


def to_host(x: np.ndarray) -> np.ndarray:
    return x


cast = cast_host


def scalar(value: Any, dtype: np.dtype, device: str | None) -> np.ndarray:
    return np.array(value, dtype=dtype)


def finish(result: Any) -> Any:
    return np.asarray(result) if isinstance(result, np.generic) else result


def translate(error: Exception) -> Exception | None:
    if isinstance(error, np.linalg.LinAlgError):
        return LinAlgError(str(error))
    if isinstance(error, np.exceptions.AxisError):
        return IndexError(str(error))
    return None


def to_dlpack(x: np.ndarray, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    if copy is None and not x.flags.writeable and (max_version is None or max_version[0] < 1):
        x = x.copy()  # an old consumer cannot be told that the memory is not to be written
    return x.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


def dlpack_device(x: np.ndarray) -> tuple[Any, int]:
    return x.__dlpack_device__()


def to_device(x: np.ndarray, device: str) -> np.ndarray:
    return x


def available_devices() -> tuple[str, ...]:
    return ("cpu",)


def initial_device() -> str:
    return "cpu"


def set_device(device: str) -> None:
    """There is but one."""


def device_scope(device: str) -> AbstractContextManager[Any]:
    return nullcontext()


def synchronize(device: str | None) -> None:
    """NumPy has computed before it returns."""


def memory_info(device: str) -> dict[str, int | None]:
    return host_memory()


def is_tracing() -> bool:
    return False


def is_traced(x: np.ndarray) -> bool:
    return False


def is_recorded(x: np.ndarray) -> bool:
    return False


def __getattr__(name: str) -> Any:
    """Find the ops, which are declared above all backends, as functions of this one."""
    return op_on("numpy", name)


if TYPE_CHECKING:  # the type checker compares this module with the contract
    from ember_ml.backend import numpy as _this
    from ember_ml.backend.contract import Backend

    _checked: Backend = _this
