"""Resolve device names, which mean the same on every backend; keep the default device."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from ember_ml.backend.contract import Backend
from ember_ml.backend.selection import active
from ember_ml.errors import DeviceError

__all__ = [
    "default_device",
    "host_memory",
    "lasting_device",
    "nearest_device",
    "resolve_device",
    "set_default",
    "use_device",
]

try:
    import resource
except ImportError:  # Windows
    resource = None

_defaults: dict[str, str] = {}
_scope: ContextVar[str | None] = ContextVar("ember_ml_device", default=None)
_open_scopes = 0  # torch 2.13: torch.compile cannot trace a context variable
_lock = threading.Lock()
_warned: set[tuple[str, str]] = set()
# Names for one accelerator, whichever library speaks of it.
_ACCELERATORS = ("cuda", "mps", "gpu", "metal")


def nearest_device(backend: Backend, device: str) -> str | None:
    """Return the backend's own name for ``device`` on this machine, or None where it has nothing like it."""
    available = backend.available_devices()
    if device in available:
        return device
    kind, _, number = device.partition(":")
    matching = [name for name in available if name.partition(":")[0] == kind]
    if matching and not number:
        return matching[0]
    if kind in _ACCELERATORS and not number:
        others = [name for name in available if name.partition(":")[0] in _ACCELERATORS]
        return others[0] if others else None
    return None


def resolve_device(backend: Backend, device: str | None, strict: bool = False) -> str:
    """Return the device that ``device`` means on ``backend``; the nearest one, with one warning, where it is not there.

    None means the default device. With ``strict`` a device that this machine lacks raises ``DeviceError``.
    """
    if device is None:
        return default_device(backend)
    if not isinstance(device, str):
        device = str(device)
    found = nearest_device(backend, device)
    if found is not None:
        return found
    message = f"{backend.name} has no device {device!r} here; it has {', '.join(backend.available_devices())}"
    if strict or device.partition(":")[0] not in (*_ACCELERATORS, "cpu"):
        raise DeviceError(message)
    nearest = nearest_device(backend, device.partition(":")[0]) or "cpu"
    if (backend.name, device) not in _warned:
        _warned.add((backend.name, device))
        warnings.warn(f"{message}; using {nearest!r} instead", stacklevel=3)
    return nearest


def default_device(backend: Backend) -> str:
    """Return where the backend creates tensors: the scope's device, or the default that was set, or its own choice."""
    scoped = _scope.get() if _open_scopes else None
    if scoped is not None:
        return resolve_device(backend, scoped)
    return lasting_device(backend)


def lasting_device(backend: Backend) -> str:
    """Return where the backend creates tensors outside of scopes."""
    return _defaults.get(backend.name) or backend.initial_device()


def set_default(backend: Backend, device: str, strict: bool = False) -> None:
    """Make ``device`` the one on which ``backend`` creates tensors outside of scopes."""
    found = resolve_device(backend, device, strict)
    backend.set_device(found)
    _defaults[backend.name] = found


@contextmanager
def use_device(device: str) -> Iterator[None]:
    """Create tensors on ``device`` inside the ``with`` block, for this thread or task.

    >>> from ember_ml import ops
    >>> with ops.use_device("cpu"):
    ...     ops.get_device(ops.zeros(2))
    'cpu'
    """
    global _open_scopes
    backend = active()
    found = resolve_device(backend, device)
    token = _scope.set(device)
    with _lock:
        _open_scopes += 1
    try:
        with backend.device_scope(found):
            yield
    finally:
        with _lock:
            _open_scopes -= 1
        _scope.reset(token)


def host_memory() -> dict[str, int | None]:
    """Return the memory of this process and this machine, as far as the operating system tells."""
    peak = total = allocated = None
    if resource is not None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError, IndexError), open("/proc/self/statm", encoding="ascii") as file:
        allocated = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return {"allocated": allocated, "peak": peak, "total": total}
