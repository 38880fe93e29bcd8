"""Training: losses, optimizers, schedules, metrics, data loaders, and the trainer that puts them together."""

from ember_ml import _lazy

_PARTS = (
    *("callbacks", "checkpoints", "collation", "data", "losses", "metrics", "optimizers", "samplers", "schedules"),
    "trainer",
)

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "DataLoader": "ember_ml.training.data:DataLoader",
        "Trainer": "ember_ml.training.trainer:Trainer",
        **{part: f"ember_ml.training.{part}" for part in _PARTS},
    },
)
