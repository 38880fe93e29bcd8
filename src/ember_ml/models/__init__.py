"""Models that people already have: folders in the format of Hugging Face, opened on every backend and written back."""

from ember_ml import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "ARCHITECTURES": "ember_ml.models.architectures:ARCHITECTURES",
        "PretrainedModel": "ember_ml.models.pretrained:PretrainedModel",
        "Tokenizer": "ember_ml.models.tokenizers:Tokenizer",
        "from_config": "ember_ml.models.loading:from_config",
        "load": "ember_ml.models.loading:load",
        "tokenizer": "ember_ml.models.tokenizers:tokenizer",
    },
)
