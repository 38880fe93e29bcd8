"""Transfer between NumPy arrays and JAX arrays, casts, and the names of devices."""

from __future__ import annotations

import math
from functools import cache, lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import array as arrays
from jax.core import ShapedArray, Tracer
from jax.sharding import SingleDeviceSharding
from jaxlib import xla_client  # JAX 0.10: no public way to copy an array to a device without compiling a program

from ember_ml.backend.host_arrays import host_dtypes
from ember_ml.backend.jax.tracing import is_top_level
from ember_ml.core import dtypes as dt

# JAX 0.10: without this an int64 or float64 that was asked for becomes one of 32 bits, with a warning at most.
# The switch for a block, jax.enable_x64, makes calls longer by a fifth to a third, and outside of it JAX narrows what
# was made inside: 2**40 + 1 is 1.
jax.config.update("jax_enable_x64", True)

ArrayImpl = arrays.ArrayImpl  # JAX 0.10: no public name for the class of arrays
dtypes = {dtype: host_dtypes[dtype] for dtype in dt.ALL}
_LONG = 2**31
_PLATFORMS = {"gpu": "cuda", "rocm": "cuda"}
_WIDE = frozenset(dtypes[wide] for wide in (dt.int64, dt.uint64, dt.float64, dt.complex128))
_on = cache(SingleDeviceSharding)
_outline = lru_cache(maxsize=256)(ShapedArray)
_Semantics = xla_client.HostBufferSemantics
_copy_to = partial(xla_client.batched_device_put, host_buffer_semantics=_Semantics.IMMUTABLE_ONLY_DURING_CALL)
_share_with = partial(xla_client.batched_device_put, host_buffer_semantics=_Semantics.ZERO_COPY)


@cache
def devices() -> dict[str, Any]:
    """Return the devices of this process by name: ``cpu``, then as many as there are of ``cuda:0`` or ``tpu:0``."""
    found = {
        f"cpu:{number}" if number else "cpu": device for number, device in enumerate(jax.local_devices(backend="cpu"))
    }
    for device in jax.local_devices():
        if device.platform != "cpu":
            kind = _PLATFORMS.get(device.platform, device.platform)
            found[f"{kind}:{device.local_hardware_id or 0}"] = device
    return found


@cache
def _names() -> dict[Any, str]:
    return {device: name for name, device in devices().items()}


def device_named(device: str | None) -> Any:
    return None if device is None else devices()[device]


@cache
def _first() -> Any:
    return jax.local_devices()[0]


def default_device() -> Any:
    """Return the device on which JAX makes new arrays."""
    chosen: Any = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    # JAX 0.10: it may be the name of a platform; None is tested first, since isinstance takes longer
    return _first() if chosen is None or not isinstance(chosen, jax.Device) else chosen


def placement(device: str | None) -> Any:
    """Return the device for a new array: None for the default one, since naming it takes JAX ten times as long."""
    found = device_named(device)
    return None if found is default_device() else found


def name_of(device: Any) -> str:
    """Return the name of a device; of an array over several, that of the first."""
    found = _names().get(device)
    return _names()[min(device.device_set, key=lambda one: one.id)] if found is None else found


def known(x: jax.Array) -> jax.Array:
    """Return the value of an array that is differentiated eagerly; any other as it is."""
    if type(x) is ArrayImpl:  # which is found sooner than that it is no Tracer
        return x
    value = x.to_concrete_value() if isinstance(x, Tracer) else None
    return x if value is None else value


def device_of(x: jax.Array) -> str:
    x = known(x)
    if isinstance(x, Tracer):  # which is nowhere: the program that it is part of will run where we are
        return initial_device()
    try:
        return name_of(x.device)
    except RuntimeError as error:  # of an array whose memory was used again
        raise translate_failure(error) from error


def initial_device() -> str:
    return name_of(default_device())


def like(x: jax.Array, array: np.ndarray) -> jax.Array:
    """Return an array that was computed on the host where ``x`` is."""
    return from_host(array, device_of(x))


def from_host(array: np.ndarray, device: str | None, copy: bool = False, put: Any = _copy_to) -> jax.Array:
    """Copy a NumPy array to JAX."""
    dtype = array.dtype
    if dtype in _WIDE and not jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        raise _narrowed(dtype)
    # JAX 0.10: jnp.array compiles a program for each new shape; device_put shares the memory of an aligned array
    default = default_device()
    there = default if device is None else devices()[device]
    return put(_outline(array.shape, dtype), _on(there), [array], [there], committed=there is not default)


def adopt(array: np.ndarray, device: str | None) -> jax.Array:
    """Return a JAX array in the memory of a NumPy array that nobody else has; if it cannot be, in memory of its own.

    A program to which it is given away does not write to that memory: it takes its own.
    """
    return from_host(array, device, put=_share_with)


def checked(x: jax.Array, dtype: np.dtype) -> jax.Array:
    """Return ``x``, or raise where it has another dtype than was asked for."""
    if x.dtype != dtype:
        raise _narrowed(dtype)
    return x


def _narrowed(dtype: np.dtype) -> TypeError:
    return TypeError(
        f"JAX would make a narrower dtype of {dtype}: the program has switched off its 64-bit dtypes, which this "
        "backend needs; remove jax.config.update('jax_enable_x64', False), or end jax.enable_x64(False) first"
    )


def to_host(x: jax.Array) -> np.ndarray:
    """Return a NumPy array that cannot be written to, in the same memory on the CPU."""
    x = known(x)
    try:
        if type(x) is ArrayImpl:
            x.block_until_ready()  # JAX 0.10: reading what failed to compute ends the process
    except jax.errors.JaxRuntimeError as error:
        raise translate_failure(error) from error
    return np.asarray(x)


def translate_failure(error: Exception) -> Exception:
    """Return the contract's exception for one that XLA raised while it computed."""
    text = str(error)
    if " has been deleted" in text or " deleted or donated" in text:
        text = (
            "the memory of this tensor was used again, as a step of training does with a parameter's: "
            "keep a copy, ops.copy(x), or the state_dict() of the module"
        )
    return MemoryError(text) if text.startswith("RESOURCE_EXHAUSTED") else ValueError(text)


def cast(x: jax.Array, dtype: np.dtype) -> jax.Array:
    if x.dtype == dtype:
        return x
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        raise TypeError(f"{x.dtype} cannot become {dtype}; take real() or imag() first")
    return checked(_cast(x, dtype), dtype)


@partial(jax.jit, static_argnums=1)
def _cast(x: jax.Array, dtype: np.dtype) -> jax.Array:
    if jnp.issubdtype(x.dtype, jnp.floating) and dtype.kind in "iu":
        return _saturate(x, dtype)
    return x.astype(dtype)


def _saturate(x: jax.Array, dtype: np.dtype) -> jax.Array:
    if x.dtype.itemsize < 4:
        x = x.astype(jnp.float32)
    low, high = (dtype.type(end) for end in (np.iinfo(dtype).min, np.iinfo(dtype).max))
    result = jnp.where(jnp.isfinite(x), x, 0).astype(dtype)
    result = jnp.where(x >= float(high), high, result)
    result = jnp.where(x <= float(low), low, result)
    return jnp.where(jnp.isnan(x), 0, result)


def scalar(value: Any, dtype: np.dtype, device: str | None) -> jax.Array:
    is_plain = type(value) is float or (type(value) is int and -_LONG < value < _LONG)
    if is_plain and is_top_level():  # 0.0 and -0.0 are equal, and have other signs
        found = _number(value, math.copysign(1.0, value), dtype, device or initial_device())
        if not found.is_deleted():  # by a program that took its memory
            return found
    return checked(jnp.array(value, dtype, device=placement(device)), dtype)


@lru_cache(maxsize=256)
def _number(value: float, sign: float, dtype: np.dtype, device: str) -> jax.Array:
    """Make a 0-d array, which takes several times as long as most ops, and keep it, since none can change."""
    return checked(jnp.array(value, dtype, device=placement(device)), dtype)
