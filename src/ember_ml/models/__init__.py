"""Models that people already have: folders in the format of Hugging Face, opened on every backend and written back."""

from ember_ml import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "PretrainedModel": "ember_ml.models.pretrained:PretrainedModel",
        "from_config": "ember_ml.models.loading:from_config",
        "load": "ember_ml.models.loading:load",
    },
)
