"""The PyTorch backend: eager, on the CPU, CUDA or Apple's MPS."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from textwrap import indent
from typing import TYPE_CHECKING, Any

import torch

from ember_ml.backend.capabilities import deferred
from ember_ml.backend.common.own_ops import op_on
from ember_ml.backend.common.shapes import LENGTHS
from ember_ml.backend.contract import ByDType, FastPath, load_bodies
from ember_ml.backend.devices import host_memory
from ember_ml.backend.torch import (  # noqa: F401
    compilation,
    control_flow,
    gradients,
    optimizer_kernels,
    random,
    recurrent,
    traceable_scopes,
)
from ember_ml.backend.torch.compilation import mark_constant
from ember_ml.backend.torch.host_transfer import cast, dtypes, from_host, scalar, to_host  # noqa: F401
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType
from ember_ml.errors import LinAlgError

name = key = "torch"
is_tape = False
tensor_type = torch.Tensor
weak_dtypes = frozenset({dt.float32, dt.float64})
families = load_bodies(f"{__name__}.bodies")
LENGTHS.add(torch.SymInt)  # of programs that torch.export traces with dynamic shapes
gaps: dict[tuple[str, str], str] = {}
notes: dict[str, str] = {}
processes = deferred(f"{__name__}.processes")
sharding = deferred(f"{__name__}.sharding")
bench_calls = deferred(f"{__name__}.bench_calls")
tape_kernels = device_mesh = laziness = weight_layout = None

_EMBER = {native: dtype for dtype, native in dtypes.items()}
_FAST = FastPath(
    binary=(
        "if type({x}) is _NATIVE:\n"
        "    _dtype = {x}.dtype\n"
        "    if type({y}) is _NATIVE:\n"
        "        if _dtype is {y}.dtype and _dtype in _OK:\n"
        "            return _BODY({args})\n"
        "    elif (type({y}) is float or type({y}) is int) and _dtype in _WEAK:\n"
        "        return _BODY({number_args})"
    ),
    # torch joins an empty vector to anything, so that the numbers of dimensions are compared here
    sequence=(
        "_dtype, _ndim = {x}[0].dtype, {x}[0].ndim\n"
        "if _dtype in _OK:\n"
        "    for _item in {x}:\n"
        "        if type(_item) is not _NATIVE or _item.dtype is not _dtype or _item.ndim != _ndim:\n"
        "            break\n"
        "    else:\n"
        "        return _BODY({args})"
    ),
    is_compiling="_BACKEND.compilation.follows_python()",
)
# Two tensors are what is mostly joined. torch.cat and torch.stack promote as the contract does, so that they need no
# test of dtypes; an axis that is not passed saves 80 ns. torch 2.11: no compiled function
# recovers from what torch.cat raises for the axis None.
_JOINING = (
    "if type(_first) is _NATIVE is type(_second) and _first.ndim == _second.ndim and axis is not None:\n"
    "    return _BODY({x}) if axis == 0 else _BODY({args})"
)
_JOINING_MANY = "if axis is not None:\n" + indent(_FAST.sequence, "    ")
# torch 2.13: these refuse Python numbers
_NEEDS_TENSORS = frozenset(
    (
        torch.maximum,
        torch.minimum,
        torch.fmax,
        torch.fmin,
        torch.hypot,
        torch.arctan2,
        torch.logaddexp,
        torch.logaddexp2,
        torch.matmul,
        torch.polar,
    )
)
_ANY_DTYPE = _FAST._replace(unary="if type({x}) is _NATIVE:\n    return _BODY({args})")


def fast_path(op: Any, body: Any) -> FastPath:
    takes_all = op.rule.domain >= dtypes.keys() and not (isinstance(body, ByDType) and body.others)
    path = _ANY_DTYPE if takes_all else _FAST
    native = body.native if isinstance(body, ByDType) else body
    if native in _NEEDS_TENSORS:
        return path._replace(takes_numbers=False)
    return path._replace(pair=_JOINING, sequence=_JOINING_MANY) if native in (torch.cat, torch.stack) else path


def is_native(x: Any) -> bool:
    return isinstance(x, torch.Tensor)


def dtype_of(x: torch.Tensor) -> EmberDType:
    found = _EMBER.get(x.dtype)
    if found is None:
        raise TypeError(f"Ember ML has no dtype for {x.dtype}; cast the tensor first")
    return found


def device_of(x: torch.Tensor) -> str:
    return str(x.device)


def finish(result: Any) -> Any:
    return result


def translate(error: Exception) -> Exception | None:
    if isinstance(error, torch.linalg.LinAlgError):  # pyright: ignore[reportPrivateImportUsage]
        return LinAlgError(str(error))
    if isinstance(error, torch.OutOfMemoryError):
        return MemoryError(str(error))
    if isinstance(error, NotImplementedError):
        return TypeError(str(error))
    if type(error) is RuntimeError:
        text = str(error)
        if "allocate memory" in text or ("alloc" in text and "out of memory" in text):
            return MemoryError(text.partition("Error code")[0])
        if "out of bounds" in text:
            return IndexError(text)
        return TypeError(text) if "dtype" in text or "not implemented for" in text else ValueError(text)
    return None


def to_dlpack(x: torch.Tensor, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    return x.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


def dlpack_device(x: torch.Tensor) -> tuple[Any, int]:
    return x.__dlpack_device__()


def to_device(x: torch.Tensor, device: str) -> torch.Tensor:
    return x.to(device)


@mark_constant
def available_devices() -> tuple[str, ...]:
    found = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    if torch.backends.mps.is_available():
        found.append("mps")
    return tuple(found)


@mark_constant  # torch.compile traces neither a cache nor such questions
def initial_device() -> str:
    return _accelerator() or "cpu"


@cache
def _accelerator() -> str | None:
    if torch.cuda.is_available():
        return "cuda:0"
    return "mps" if torch.backends.mps.is_available() else None


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


is_tracing = torch.compiler.is_compiling


_is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor  # pyright: ignore[reportAttributeAccessIssue]
_unwrap = torch._C._functorch.get_unwrapped  # pyright: ignore[reportAttributeAccessIssue]


def is_traced(x: torch.Tensor) -> bool:
    return torch.compiler.is_compiling() or _is_wrapped(x)


def is_recorded(x: torch.Tensor) -> bool:
    # torch 2.13: torch.compile breaks its program in two where it meets _is_wrapped
    return x.requires_grad or (not torch.compiler.is_compiling() and _is_wrapped(x) and _is_followed(x))


def _is_followed(x: torch.Tensor) -> bool:
    """Whether any of the transforms of torch.func around us differentiates ``x``."""
    if not (x.is_floating_point() or x.is_complex()):
        return False
    while _is_wrapped(x):
        if x.requires_grad or torch.autograd.forward_ad.unpack_dual(x).tangent is not None:
            return True
        x = _unwrap(x)
    return x.requires_grad


def __getattr__(name: str) -> Any:
    """Find the ops, which are declared above all backends, as functions of this one."""
    return op_on("torch", name)


if TYPE_CHECKING:  # the type checker compares this module with the contract
    from ember_ml.backend import torch as _this
    from ember_ml.backend.contract import Backend

    _checked: Backend = _this
