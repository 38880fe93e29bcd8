"""Gradient checkpointing and memory statistics, the same on every backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.backend.selection import get_backend
from ember_ml.typing import DeviceLike

__all__ = ["GradientCheckpointing", "MemoryStatistics", "checkpoint_function", "statistics"]


class MemoryStatistics(NamedTuple):
    """Bytes on one device; None where the library or the operating system does not tell.

    On PyTorch's CUDA devices and on MLX ``allocated`` and ``peak`` count the library's own tensors; on the CPU of NumPy
    and PyTorch, which do not track allocations, they are those of the whole process.
    """

    backend: str
    device: str
    allocated: int | None
    peak: int | None
    total: int | None

    def __str__(self) -> str:
        parts = [f"{name} {_readable(getattr(self, name))}" for name in ("allocated", "peak", "total")]
        return f"{self.backend} on {self.device}: {', '.join(parts)}"


def _readable(count: int | None) -> str:
    if count is None:
        return "unknown"
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def statistics(device: DeviceLike | None = None) -> MemoryStatistics:
    """Return the memory of ``device`` on the active backend, of the default device without one.

    >>> import ember_ml
    >>> from ember_ml import memory
    >>> memory.statistics().backend == ember_ml.get_backend()
    True
    """
    found = ops.memory_info(device)
    name = ops.get_default_device() if device is None else str(device)
    return MemoryStatistics(get_backend(), name, found["allocated"], found["peak"], found["total"])


def checkpoint_function(fn: Callable[..., Any], *args: Any) -> Any:
    """Return ``fn(*args)``, whose inner values are not kept for the gradient but computed again when it is taken.

    >>> from ember_ml import ops
    >>> from ember_ml.memory import manager
    >>> ops.item(ops.grad(lambda x: manager.checkpoint_function(lambda y: ops.exp(y) * y, x))(0.0))
    1.0
    """
    return ops.checkpoint(fn)(*args)


class GradientCheckpointing:
    """Checkpoints functions, or a chain of them in segments; with ``enabled=False`` it runs them as they are.

    >>> from ember_ml import ops
    >>> from ember_ml.memory import GradientCheckpointing
    >>> memory = GradientCheckpointing()
    >>> ops.item(memory.checkpoint(ops.square, 3.0)), ops.item(memory.chain([ops.square, ops.sqrt], 3.0, segments=1))
    (9.0, 3.0)
    """

    def __init__(self, enabled: bool = True) -> None:
        self.enabled = enabled

    def checkpoint(self, fn: Callable[..., Any], *args: Any) -> Any:
        """Return ``fn(*args)``, checkpointed."""
        return checkpoint_function(fn, *args) if self.enabled else fn(*args)

    def chain(self, functions: list[Callable[[Any], Any]], x: Any, segments: int | None = None) -> Any:
        """Apply each function to the result of the one before, in ``segments`` that are each checkpointed as a whole.

        Without ``segments`` there are as many as the square root of the number of functions, which needs least memory.
        """
        count = max(1, round(len(functions) ** 0.5)) if segments is None else segments
        length = -(-len(functions) // count) or 1
        for start in range(0, len(functions), length):
            x = self.checkpoint(_joined(functions[start : start + length]), x)
        return x


def _joined(functions: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Return several functions as one."""

    def run(x: Any) -> Any:
        for function in functions:
            x = function(x)
        return x

    return run
