"""Open a model: read its settings, make it without values, and fill it from the weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

from ember_ml.errors import ConfigError
from ember_ml.models.architectures import find_class
from ember_ml.models.folder import Folder
from ember_ml.models.hub import open_folder
from ember_ml.models.pretrained import PretrainedModel
from ember_ml.models.quantization import prepare_quantized
from ember_ml.models.quantization import quantize as quantize_weights
from ember_ml.models.settings import Settings
from ember_ml.nn.layers.base import empty
from ember_ml.typing import DeviceLike, DTypeLike

__all__ = ["from_config", "load", "load_from"]

_BITS = {"int4": 4, "int8": 8}


def load(
    folder: str | PathLike[str],
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    revision: str | None = None,
    on_progress: Callable[[int, int], Any] | None = None,
    quantize: str | None = None,
) -> PretrainedModel:
    """Return the model in a folder as Transformers writes it, for the active backend and in the mode of use.

    ``config.json`` says what the model is, the ``*.safetensors`` files hold its weights. They are mapped and brought to
    ``device`` one after the other, in the dtype that they are stored in, or in ``dtype``. Where they are stored in
    several, which seldom compute with each other, they get the one that ``config.json`` names. What does not fit
    together raises ``ConfigError``, which names the tensor or the key. Nothing in the folder is executed: no pickle is
    opened, and settings that ask for code of the folder are refused.

    Args:
        folder: The path of a folder, or the id of a model on the Hub, as ``"organization/name"``. Such a model is
            taken from the cache of huggingface_hub, or downloaded to it; ``HF_HUB_OFFLINE=1`` forbids that.
        dtype: The dtype of all parameters; None: that in which they are stored.
        device: Where the parameters are; None: the default device.
        revision: The branch, tag or commit of a model on the Hub; None: the newest.
        on_progress: Called after each parameter with the number of parameters that are there, and of all.
        quantize: "int4" or "int8": weights are rounded to that in groups of 64, as :func:`quantize` does; None: they
            stay as they are, also those of 4 or 8 bits that mlx-lm wrote.

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
    if quantize is not None and quantize not in _BITS:
        raise ValueError(f"quantize is one of {', '.join(_BITS)}, or None, not {quantize!r}")
    model = load_from(open_folder(folder, revision), dtype, device, on_progress)
    return model if quantize is None else quantize_weights(model, _BITS[quantize]).eval()


def load_from(
    files: Folder,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    on_progress: Callable[[int, int], Any] | None = None,
) -> PretrainedModel:
    """Return the model in a folder, as :func:`load` does."""
    settings = Settings(files.read_json("config.json"), str(files.path / "config.json"))
    with empty():
        model = _make(settings)
    if settings.get("quantization") is not None:
        prepare_quantized(model, files)
    return model.fill(files, dtype, device, on_progress).remember(files).eval()


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
    except (ArithmeticError, MemoryError, ValueError) as error:  # a layer cannot have these sizes
        sizes = ", ".join(f"{key}={value}" for key, value in settings.sizes.items())
        raise ConfigError(f"{settings.where} describes a model that cannot be made: {error}; it has {sizes}") from error
