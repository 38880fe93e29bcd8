"""Statistics: the ops of that kind under one name, ``ops.stats``; they are the same functions as in ``ops``."""

from __future__ import annotations

from types import ModuleType

from ember_ml.backend.selection import get_backend_module
from ember_ml.ops.arrays import sorting
from ember_ml.ops.arrays.sorting import *  # noqa: F403
from ember_ml.ops.stats import cumulative, nan_statistics, reductions
from ember_ml.ops.stats.cumulative import *  # noqa: F403
from ember_ml.ops.stats.nan_statistics import *  # noqa: F403
from ember_ml.ops.stats.reductions import *  # noqa: F403


def get_stats_module() -> ModuleType:
    """Return the module of the active backend, which has the functions of this one for that backend.

    >>> from ember_ml import ops
    >>> ops.item(ops.stats.get_stats_module().mean([1.0, 3.0]))
    2.0
    """
    return get_backend_module()


__all__: list[str] = []
__all__ += cumulative.__all__
__all__ += nan_statistics.__all__
__all__ += reductions.__all__
__all__ += sorting.__all__
