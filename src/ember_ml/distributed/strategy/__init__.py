"""Strategies: how several processes train one model together."""

from __future__ import annotations

from ember_ml.distributed.strategy.base import DataParallelStrategy, SingleProcess, Strategy

__all__ = ["DataParallelStrategy", "SingleProcess", "Strategy"]
