"""Statistics: the ops of that kind under one name, ``ops.stats``; they are the same functions as in ``ops``."""

from __future__ import annotations

from ember_ml.ops import cumulative, nan_statistics, reductions, sorting
from ember_ml.ops.cumulative import *  # noqa: F403
from ember_ml.ops.nan_statistics import *  # noqa: F403
from ember_ml.ops.reductions import *  # noqa: F403
from ember_ml.ops.sorting import *  # noqa: F403

__all__: list[str] = []
__all__ += cumulative.__all__
__all__ += nan_statistics.__all__
__all__ += reductions.__all__
__all__ += sorting.__all__
