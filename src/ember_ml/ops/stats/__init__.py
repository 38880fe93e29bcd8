"""Statistics: the ops of that kind under one name, ``ops.stats``; they are the same functions as in ``ops``."""

from __future__ import annotations

from ember_ml.ops.arrays import sorting
from ember_ml.ops.arrays.sorting import *  # noqa: F403
from ember_ml.ops.stats import cumulative, nan_statistics, reductions
from ember_ml.ops.stats.cumulative import *  # noqa: F403
from ember_ml.ops.stats.nan_statistics import *  # noqa: F403
from ember_ml.ops.stats.reductions import *  # noqa: F403

__all__: list[str] = []
__all__ += cumulative.__all__
__all__ += nan_statistics.__all__
__all__ += reductions.__all__
__all__ += sorting.__all__
