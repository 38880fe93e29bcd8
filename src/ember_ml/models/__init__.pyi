# Written by utils/make_tables.py: the public names, for editors and type checkers.

from ember_ml.models.loading import from_config as from_config
from ember_ml.models.loading import load as load
from ember_ml.models.pretrained import PretrainedModel as PretrainedModel

__all__ = ["PretrainedModel", "from_config", "load"]
