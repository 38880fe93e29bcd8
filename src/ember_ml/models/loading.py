"""Open a model: read its settings, make it without values, and fill it from the weights."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from ember_ml.errors import ConfigError
from ember_ml.models.architectures import find_class
from ember_ml.models.folder import Folder
from ember_ml.models.pretrained import PretrainedModel
from ember_ml.models.settings import Settings
from ember_ml.nn.layers.base import empty
from ember_ml.typing import DeviceLike, DTypeLike

__all__ = ["from_config", "load"]


def load(
    folder: str | PathLike[str], *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> PretrainedModel:
    """Return the model in a folder as Transformers writes it, for the active backend and in the mode of use.

    ``config.json`` says what the model is, the ``*.safetensors`` files hold its weights. They are mapped and brought to
    ``device`` one after the other, in the dtype that they are stored in, or in ``dtype``. What does not fit
    together raises ``ConfigError``, which names the tensor or the key. Nothing in the folder is executed: no pickle is
    opened, and settings that ask for code of the folder are refused.

    >>> import tempfile
    >>> from ember_ml import models, ops
    >>> model = models.from_config({
    ...     "model_type": "llama", "vocab_size": 50, "hidden_size": 16, "intermediate_size": 32,
    ...     "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    ... })
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(folder)
    ...     same = models.load(folder)
    >>> bool(ops.all(ops.equal(model([[7, 3]]), same([[7, 3]]))))
    True
    """
    files = Folder(folder)
    settings = Settings(files.read_json("config.json"), str(files.path / "config.json"))
    with empty():
        model = _make(settings)
    return model.fill(files, dtype, device).remember(files).eval()


def from_config(config: Mapping[str, Any]) -> PretrainedModel:
    """Return a new model with the settings of a ``config.json`` and random weights, in the mode of use.

    >>> from ember_ml import models
    >>> model = models.from_config({"model_type": "gpt2", "vocab_size": 50, "n_embd": 8, "n_layer": 1, "n_head": 2})
    >>> model.num_parameters
    9480
    """
    return _make(Settings(config)).eval()


def _make(settings: Settings) -> PretrainedModel:
    try:
        return find_class(settings)(settings)
    except ConfigError:
        raise
    except (ArithmeticError, ValueError) as error:  # a layer cannot have these sizes
        sizes = ", ".join(f"{key}={value}" for key, value in settings.sizes.items())
        raise ConfigError(f"{settings.where} describes a model that cannot be made: {error}; it has {sizes}") from error
