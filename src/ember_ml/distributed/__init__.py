"""Training on several processes and hosts: strategies, collectives, the launcher, and its ranks' signs of life."""

from ember_ml import _lazy

_GROUPS = ("initialize", "is_initialized", "local_rank", "rank", "shutdown", "world_size")

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "Mesh": "ember_ml.distributed.mesh:Mesh",
        "PipelineStage": "ember_ml.distributed.pipeline:PipelineStage",
        "collectives": "ember_ml.distributed.collectives",
        "context_attention": "ember_ml.distributed.context:context_attention",
        "strategy": "ember_ml.distributed.strategy",
        **{name: f"ember_ml.distributed.groups:{name}" for name in _GROUPS},
    },
)
