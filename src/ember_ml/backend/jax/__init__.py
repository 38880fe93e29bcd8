"""The JAX backend: XLA on the CPU, CUDA or TPUs; immutable arrays, functions that are traced and compiled."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from ember_ml.backend.capabilities import deferred
from ember_ml.backend.common.own_ops import op_on
from ember_ml.backend.contract import FastPath, load_bodies
from ember_ml.backend.devices import host_memory
from ember_ml.backend.jax import compilation, control_flow, gradients, optimizer_kernels, random, recurrent  # noqa: F401
from ember_ml.backend.jax.gaps import gaps  # noqa: F401
from ember_ml.backend.jax.host_transfer import (  # noqa: F401
    ArrayImpl,
    cast,
    device_named,
    device_of,
    devices,
    dtypes,
    from_host,
    initial_device,
    scalar,
    to_host,
    translate_failure,
)
from ember_ml.backend.jax.tracing import is_recorded, is_traced, is_tracing  # noqa: F401
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType, find_dtype

name = key = "jax"
is_tape = False
tensor_type = ArrayImpl
weak_dtypes = frozenset({dt.float32, dt.float64})
families = load_bodies(f"{__name__}.bodies")
notes = {"subnormal numbers": "XLA takes them for 0 on the CPU"}
processes = deferred(f"{__name__}.processes")
device_mesh = deferred(f"{__name__}.device_mesh")
bench_calls = deferred(f"{__name__}.bench_calls")
sharding = deferred(f"{__name__}.sharding")
tape_kernels = laziness = weight_layout = None

_EMBER = {native: dtype for dtype, native in dtypes.items()}
# JAX 0.10: the dtype of an array is a property in Python around that of its abstract value
_FAST = FastPath()._replace(
    **{name: x.replace(".dtype", ".aval.dtype") for name, x in FastPath()._asdict().items() if type(x) is str}
)


def fast_path(op: Any, body: Any) -> FastPath:
    return _FAST


def is_native(x: Any) -> bool:
    """Arrays, and what stands for them while a function is traced."""
    return isinstance(x, jax.Array) and x.dtype in _EMBER


def dtype_of(x: jax.Array) -> EmberDType:
    found = _EMBER.get(x.dtype) or find_dtype(x.dtype)
    if found is None:
        raise TypeError(f"Ember ML has no dtype for {x.dtype}; cast the array first")
    return found


def finish(result: Any) -> Any:
    return result


# JAX 0.10: raises TypeError for shapes that do not fit
_WRONG_SHAPES = re.compile("incompatible shapes|annot (reshape|concatenate|broadcast|stack)|requires|isn't a perm")


def translate(error: Exception) -> Exception | None:
    # JAX 0.10: for memory that was used again, one of three, depending on who notices it
    if type(error) in (jax.errors.JaxRuntimeError, RuntimeError, ValueError):
        return translate_failure(error)
    if isinstance(error, jax.errors.JAXTypeError | jax.errors.JAXIndexError):
        return None
    if type(error) is TypeError and _WRONG_SHAPES.search(str(error)):
        return ValueError(str(error))
    return None


def to_dlpack(x: jax.Array, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    if copy is not False and device_of(x) == "cpu":
        return to_host(x).copy().__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)
    array: Any = x
    return array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


def dlpack_device(x: jax.Array) -> tuple[Any, int]:
    array: Any = x
    return array.__dlpack_device__()


def to_device(x: jax.Array, device: str) -> jax.Array:
    return jax.device_put(x, device_named(device))


def available_devices() -> tuple[str, ...]:
    return tuple(devices())


def set_device(device: str) -> None:
    jax.config.update("jax_default_device", device_named(device))


def device_scope(device: str) -> AbstractContextManager[Any]:
    return jax.default_device(device_named(device))


def synchronize(device: str | None) -> None:
    jax.effects_barrier()
    for one in devices().values() if device is None else (devices()[device],):
        jnp.zeros((), device=one).block_until_ready()  # a device computes one thing after the other


def memory_info(device: str) -> dict[str, int | None]:
    found = devices()[device].memory_stats()
    if not found:  # as on the CPU
        return host_memory()
    return {
        "allocated": found.get("bytes_in_use"),
        "peak": found.get("peak_bytes_in_use"),
        "total": found.get("bytes_limit"),
    }


def __getattr__(name: str) -> Any:
    """Find the ops, which are declared above all backends, as functions of this one."""
    return op_on("jax", name)


if TYPE_CHECKING:  # the type checker compares this module with the contract
    from ember_ml.backend import jax as _this
    from ember_ml.backend.contract import Backend

    _checked: Backend = _this
