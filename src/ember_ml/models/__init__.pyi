# Written by utils/make_tables.py: the public names, for editors and type checkers.

from ember_ml.models.architectures import ARCHITECTURES as ARCHITECTURES
from ember_ml.models.loading import from_config as from_config
from ember_ml.models.loading import load as load
from ember_ml.models.pretrained import PretrainedModel as PretrainedModel
from ember_ml.models.tokenizers import Tokenizer as Tokenizer
from ember_ml.models.tokenizers import tokenizer as tokenizer

__all__ = ["ARCHITECTURES", "PretrainedModel", "Tokenizer", "from_config", "load", "tokenizer"]
