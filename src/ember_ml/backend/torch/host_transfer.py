"""Transfer between NumPy arrays and PyTorch tensors, and casts."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from ember_ml.backend.host_arrays import host_dtypes
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType

__all__ = ["as_shared_array", "cast", "dtypes", "from_host", "scalar", "to_host"]

dtypes: dict[EmberDType, torch.dtype] = {dtype: getattr(torch, dtype.name) for dtype in dt.ALL}


def from_host(array: np.ndarray, device: str | None, copy: bool = False) -> torch.Tensor:
    # torch 2.13: refuses negative strides, and ignores that an array is read-only
    if copy or not array.flags.writeable or min(array.strides, default=0) < 0:
        array = array.copy()
    if array.dtype == host_dtypes[dt.bfloat16]:
        tensor = torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    elif isinstance(array, np.ndarray):
        tensor = torch.from_numpy(array)
    else:  # torch 2.13: in a compiled function that it has left, an array without axes is a number of NumPy's
        tensor = torch.as_tensor(array)
    return tensor if device is None or device == "cpu" else _send(tensor, device)


_MOST_PINNED = 2**26
"""Bytes that are sent from pinned memory, which PyTorch keeps for the next ones: batches are, whole models are not."""


def _send(tensor: torch.Tensor, device: str) -> torch.Tensor:
    """Copy a tensor to a device; to CUDA through pinned memory, so that the program need not wait for the device.

    PyTorch uses the pinned memory again only after the copy, and whatever reads the copy comes after it.
    """
    # torch 2.11 on CUDA: a copy from other memory waits for everything that the device has to do before it; no compiled
    # function pins memory, or knows how many bytes a tensor of any length has
    if device.startswith("cuda") and not torch.compiler.is_compiling() and tensor.nbytes <= _MOST_PINNED:
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


_is_tracking = torch._C._functorch.is_gradtrackingtensor  # pyright: ignore[reportAttributeAccessIssue]
_unwrap = torch._C._functorch.get_unwrapped  # pyright: ignore[reportAttributeAccessIssue]


def to_host(x: torch.Tensor) -> np.ndarray:
    if _is_tracking(x):  # computed inside a derivative by torch.func
        from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack  # slow to import

        with temporarily_clear_interpreter_stack():
            return to_host(_unwrap(x))
    if x.requires_grad:
        x = x.detach()
    x = x.cpu().resolve_conj().resolve_neg()
    if x.dtype is torch.bfloat16:
        return x.view(torch.uint16).numpy().view(host_dtypes[dt.bfloat16])
    return x.numpy(force=True)  # force: also for lazily negated or zero tensors


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
    if dtype is torch.uint64:  # torch 2.6: no cast of floats of 2**63 and more
        high = x >= 2.0**63
        low = torch.where(high, x - 2.0**63, x).clamp(min=0.0).nan_to_num(0.0).to(torch.int64)
        result = torch.where(high, low ^ torch.tensor(-(2**63), device=x.device), low)
        return torch.where(x >= 2.0**64, torch.tensor(-1, device=x.device), result).view(torch.uint64)
    wide = x.nan_to_num(0.0, posinf=float(info.max), neginf=float(info.min)).to(torch.int64)
    wide = torch.where(x >= float(info.max), info.max, wide)
    return torch.where(x <= float(info.min), info.min, wide).to(dtype)


def scalar(value: Any, dtype: torch.dtype, device: str | None) -> torch.Tensor:
    if device is None or device == "cpu" or torch.compiler.is_compiling():
        return torch.tensor(value, dtype=dtype, device=device)
    # torch 2.11 on CUDA: a tensor that is made there waits for everything that the device has to do before it
    return torch.tensor(value, dtype=dtype, device="cpu").to(device, non_blocking=True)


def as_shared_array(x: torch.Tensor) -> np.ndarray | None:
    """Return the tensor's memory as a NumPy array where NumPy may compute instead of torch, otherwise None."""
    if type(x) is not torch.Tensor or x.requires_grad or x.device.type != "cpu" or torch.compiler.is_compiling():
        return None
    if x.dtype is torch.bfloat16 or forward_ad.unpack_dual(x).tangent is not None:
        return None
    try:
        return x.numpy()
    except RuntimeError:  # inside vmap, grad and the like, tensors have no memory of their own
        return None
