"""Memory: what is used on each device, and how to use less of it for gradients."""

from __future__ import annotations

from ember_ml.memory import manager
from ember_ml.memory.manager import GradientCheckpointing, MemoryStatistics, checkpoint_function, statistics

__all__ = ["GradientCheckpointing", "MemoryStatistics", "checkpoint_function", "manager", "statistics"]
