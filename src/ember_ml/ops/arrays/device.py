"""Devices: where tensors are, where new ones go, what there is."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.backend.devices import default_device, nearest_device, resolve_device, set_default, use_device
from ember_ml.backend.selection import active, backend_of
from ember_ml.dispatch.declare import derived, gradient, plain
from ember_ml.dispatch.dtype_rules import KEEP
from ember_ml.tensor.ember_tensor import EmberTensor
from ember_ml.tensor.var import Var
from ember_ml.tensor.variable import Variable
from ember_ml.typing import Tensor, TensorLike

__all__ = [
    "get_available_devices",
    "get_default_device",
    "get_device",
    "is_available",
    "memory_info",
    "set_default_device",
    "synchronize",
    "to_device",
    "use_device",
]


@derived(KEEP)
def to_device(x: TensorLike, device: str, strict: bool = False) -> Tensor:
    """``x`` on another device; ``x`` itself where it is there already.

    Where this machine lacks the device, the nearest one that it has, with one warning; with ``strict``,
    ``DeviceError``. "cuda", "mps", "gpu" and "metal" all mean the accelerator that there is.

    >>> from ember_ml import ops
    >>> ops.get_device(ops.to_device(ops.ones(2), "cpu"))
    'cpu'
    """
    backend = active()
    found = resolve_device(backend, device, strict)
    return x if backend.device_of(x) == found else backend.to_device(x, found)


gradient(to_device, x=lambda g, x: ops.to_device(g, get_device(x)))


@plain
def get_device(tensor: Any = None) -> str:
    """The device of a tensor; without one, and for Python data, the device on which new tensors are made.

    Of a tensor that no backend here knows, it is the text of its attribute ``device``.

    >>> from ember_ml import ops
    >>> ops.get_device() in ops.get_available_devices()
    True
    """
    if isinstance(tensor, Variable):
        tensor = tensor.value
    if type(tensor) is EmberTensor or type(tensor) is Var:
        return tensor.device
    owner = None if tensor is None else backend_of(tensor)
    if owner is not None:
        return owner.device_of(tensor)
    device = getattr(tensor, "device", None)
    return default_device(active()) if device is None else str(device)


@plain
def get_available_devices() -> tuple[str, ...]:
    """The devices that the active backend can use on this machine, the CPU first.

    >>> from ember_ml import ops
    >>> ops.get_available_devices()[0]
    'cpu'
    """
    return active().available_devices()


@plain
def set_default_device(device: str, strict: bool = False) -> None:
    """Make the active backend put new tensors on ``device`` from now on.

    Where this machine lacks it, the nearest one that it has; with ``strict``, ``DeviceError``.

    >>> from ember_ml import ops
    >>> before = ops.get_default_device()
    >>> ops.set_default_device("cpu")
    >>> ops.get_default_device()
    'cpu'
    >>> ops.set_default_device(before)
    """
    set_default(active(), device, strict)


@plain
def get_default_device() -> str:
    """The device on which the active backend makes new tensors: at first its accelerator, where there is one.

    >>> from ember_ml import ops
    >>> with ops.use_device("cpu"):
    ...     ops.get_default_device()
    'cpu'
    """
    return default_device(active())


@plain
def is_available(device: str) -> bool:
    """Whether the active backend can use ``device`` on this machine.

    >>> from ember_ml import ops
    >>> ops.is_available("cpu"), ops.is_available("cuda:99")
    (True, False)
    """
    return nearest_device(active(), str(device)) is not None


@plain
def synchronize(device: str | None = None) -> None:
    """Wait until everything asked of ``device``, or of all devices, has been computed.

    >>> from ember_ml import ops
    >>> ops.synchronize()
    """
    backend = active()
    backend.synchronize(None if device is None else resolve_device(backend, device))


@plain
def memory_info(device: str | None = None) -> dict[str, int | None]:
    """Bytes in use, the most that were in use, and what the device has, each None where nobody knows.

    NumPy, and PyTorch on the CPU, tell the figures of the whole process; all else those of the library's own allocator.

    >>> from ember_ml import ops
    >>> sorted(ops.memory_info("cpu"))
    ['allocated', 'peak', 'total']
    """
    backend = active()
    return backend.memory_info(resolve_device(backend, device))
