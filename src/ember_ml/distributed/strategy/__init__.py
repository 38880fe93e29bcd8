"""Strategies: how several processes train one model together."""

from __future__ import annotations

from ember_ml.distributed.strategy.base import DataParallelStrategy, SingleProcess, Strategy
from ember_ml.distributed.strategy.full_shard import FullShardStrategy
from ember_ml.distributed.strategy.zero import ZeroStrategy

__all__ = ["DataParallelStrategy", "FullShardStrategy", "SingleProcess", "Strategy", "ZeroStrategy"]
