# Written by utils/make_tables.py: the public names, for editors and type checkers.

from ember_ml.distributed import collectives as collectives
from ember_ml.distributed import strategy as strategy
from ember_ml.distributed.context import context_attention as context_attention
from ember_ml.distributed.groups import initialize as initialize
from ember_ml.distributed.groups import is_initialized as is_initialized
from ember_ml.distributed.groups import local_rank as local_rank
from ember_ml.distributed.groups import rank as rank
from ember_ml.distributed.groups import shutdown as shutdown
from ember_ml.distributed.groups import world_size as world_size
from ember_ml.distributed.mesh import Mesh as Mesh
from ember_ml.distributed.pipeline import PipelineStage as PipelineStage

__all__ = [
    "Mesh",
    "PipelineStage",
    "collectives",
    "context_attention",
    "initialize",
    "is_initialized",
    "local_rank",
    "rank",
    "shutdown",
    "strategy",
    "world_size",
]
