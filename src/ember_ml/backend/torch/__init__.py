"""The PyTorch backend: eager, on the CPU, CUDA or Apple's MPS."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import numpy as np
import torch

from ember_ml import dtypes as dt
from ember_ml.backend.contract import FastPath
from ember_ml.backend.devices import host_memory
from ember_ml.backend.host import host_dtypes
from ember_ml.backend.torch import (
    bitwise,
    comparison,
    conversion,
    creation,
    cumulative,
    device,
    elementwise,
    exponential,
    factorizations,
    fourier,
    indexing,
    joining,
    matrices,
    norms,
    parts,
    products,
    reductions,
    scatter,
    sets,
    shape,
    sorting,
    special,
    systems,
    trigonometry,
)
from ember_ml.dtypes import EmberDType
from ember_ml.errors import LinAlgError

name = "torch"
tensor_type = torch.Tensor
dtypes: dict[EmberDType, torch.dtype] = {dtype: getattr(torch, dtype.name) for dtype in dt.ALL}
weak_dtypes = frozenset({dt.float32, dt.float64})
families = (
    elementwise,
    exponential,
    trigonometry,
    parts,
    special,
    comparison,
    bitwise,
    creation,
    conversion,
    shape,
    device,
    indexing,
    joining,
    matrices,
    scatter,
    sets,
    reductions,
    sorting,
    cumulative,
    products,
    norms,
    factorizations,
    systems,
    fourier,
)

_EMBER = {native: dtype for dtype, native in dtypes.items()}
_FAST = FastPath(
    binary=(
        "if type({x}) is NATIVE:\n"
        "    d = {x}.dtype\n"
        "    if type({y}) is NATIVE:\n"
        "        if d is {y}.dtype and d in OK:\n"
        "            return BODY({args})\n"
        "    elif (type({y}) is float or type({y}) is int) and d in WEAK:\n"
        "        return BODY({args})"
    ),
    # torch joins an empty vector to anything, so that the numbers of dimensions are compared here
    sequence=(
        "d, n = {x}[0].dtype, {x}[0].ndim\n"
        "if d in OK:\n"
        "    for t in {x}:\n"
        "        if type(t) is not NATIVE or t.dtype is not d or t.ndim != n:\n"
        "            break\n"
        "    else:\n"
        "        return BODY({args})"
    ),
)


def fast_path(op: Any, body: Any) -> FastPath:
    return _FAST


def is_native(x: Any) -> bool:
    return isinstance(x, torch.Tensor)


def dtype_of(x: torch.Tensor) -> EmberDType:
    found = _EMBER.get(x.dtype)
    if found is None:
        raise TypeError(f"Ember ML has no dtype for {x.dtype}; cast the tensor first")
    return found


def device_of(x: torch.Tensor) -> str:
    return str(x.device)


def from_host(array: np.ndarray, device: str | None, copy: bool = False) -> torch.Tensor:
    # torch refuses negative strides, and would let an array that must not be changed be written to
    if copy or not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    if array.dtype == host_dtypes[dt.bfloat16]:
        tensor = torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    else:
        tensor = torch.from_numpy(array)
    return tensor if device is None or device == "cpu" else tensor.to(device)


def to_host(x: torch.Tensor) -> np.ndarray:
    if x.requires_grad:
        x = x.detach()
    x = x.cpu().resolve_conj().resolve_neg()
    if x.dtype is torch.bfloat16:
        return x.view(torch.uint16).numpy().view(host_dtypes[dt.bfloat16])
    return x.numpy()


def cast(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if x.dtype is dtype:
        return x
    if x.dtype.is_complex and not dtype.is_complex and dtype is not torch.bool:
        raise TypeError(f"{x.dtype} cannot become {dtype}; take real() or imag() first")
    if x.dtype.is_floating_point and not dtype.is_floating_point and not dtype.is_complex and dtype is not torch.bool:
        return _saturate(x, dtype)
    return x.to(dtype)


def _saturate(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if x.dtype.itemsize < 4:
        x = x.to(torch.float32)
    info = torch.iinfo(dtype)
    if dtype is torch.uint64:  # through the signed half, since torch converts no float of 2**63 or more
        high = x >= 2.0**63
        low = torch.where(high, x - 2.0**63, x).clamp(min=0.0).nan_to_num(0.0).to(torch.int64)
        result = torch.where(high, low ^ torch.tensor(-(2**63), device=x.device), low)
        return torch.where(x >= 2.0**64, torch.tensor(-1, device=x.device), result).view(torch.uint64)
    wide = x.nan_to_num(0.0, posinf=float(info.max), neginf=float(info.min)).to(torch.int64)
    wide = torch.where(x >= float(info.max), info.max, wide)
    return torch.where(x <= float(info.min), info.min, wide).to(dtype)


def scalar(value: Any, dtype: torch.dtype, device: str | None) -> torch.Tensor:
    return torch.tensor(value, dtype=dtype, device=device)


def finish(result: Any) -> Any:
    return result


def translate(error: Exception) -> Exception | None:
    if isinstance(error, torch.linalg.LinAlgError):
        return LinAlgError(str(error))
    if isinstance(error, NotImplementedError):
        return TypeError(str(error))
    if type(error) is RuntimeError:
        text = str(error)
        return TypeError(text) if "dtype" in text or "not implemented for" in text else ValueError(text)
    return None


def to_dlpack(x: torch.Tensor, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    if x.requires_grad:
        x = x.detach()
    return x.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


def dlpack_device(x: torch.Tensor) -> tuple[Any, int]:
    return x.__dlpack_device__()


def to_device(x: torch.Tensor, device: str) -> torch.Tensor:
    return x.to(device)


def available_devices() -> tuple[str, ...]:
    found = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    if torch.backends.mps.is_available():
        found.append("mps")
    return tuple(found)


@cache
def initial_device() -> str:
    if torch.cuda.is_available():
        return "cuda:0"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def set_device(device: str) -> None:
    """Tensors are computed where they are, and made where the caller says."""


def device_scope(device: str) -> AbstractContextManager[Any]:
    return nullcontext()


def synchronize(device: str | None) -> None:
    kind = (device or "").partition(":")[0]
    if kind in ("cuda", "") and torch.cuda.is_available():
        torch.cuda.synchronize(device)
    if kind in ("mps", "") and torch.backends.mps.is_available():
        torch.mps.synchronize()


def memory_info(device: str) -> dict[str, int | None]:
    if device.startswith("cuda"):
        return {
            "allocated": torch.cuda.memory_allocated(device),
            "peak": torch.cuda.max_memory_allocated(device),
            "total": torch.cuda.get_device_properties(device).total_memory,
        }
    if device.startswith("mps"):
        return {
            "allocated": torch.mps.current_allocated_memory(),
            "peak": None,
            "total": torch.mps.recommended_max_memory(),
        }
    return host_memory()


def is_traced(x: torch.Tensor) -> bool:
    return torch.compiler.is_compiling() or torch._C._functorch.is_functorch_wrapped_tensor(x)
