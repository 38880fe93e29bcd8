"""Strategies: how several processes or devices train one model together."""

from __future__ import annotations

from ember_ml.distributed.strategy.base import DataParallelStrategy, SingleProcess, Strategy
from ember_ml.distributed.strategy.full_shard import FullShardStrategy
from ember_ml.distributed.strategy.mesh import MeshStrategy
from ember_ml.distributed.strategy.zero import ZeroStrategy

__all__ = ["DataParallelStrategy", "FullShardStrategy", "MeshStrategy", "SingleProcess", "Strategy", "ZeroStrategy"]
