"""The functions that need no fitting; they are the ops of these names."""

from __future__ import annotations

from ember_ml.ops.arrays.scatter import one_hot, scatter

__all__ = ["one_hot", "scatter"]
