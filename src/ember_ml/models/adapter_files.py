"""Adapters in the format of PEFT: ``adapter_config.json`` and ``adapter_model.safetensors``."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from ember_ml import ops
from ember_ml.backend.host_arrays import as_host
from ember_ml.backend.safetensors import Contents, MappedTensors, write_to
from ember_ml.backend.selection import active
from ember_ml.core.atomic_files import Replacements
from ember_ml.core.dtypes import EmberDType
from ember_ml.errors import ConfigError
from ember_ml.models.folder import Folder, holds, json_bytes
from ember_ml.models.lora import AdaptedLinear, AdapterSettings, adapt, find_adapted, find_linear
from ember_ml.models.pretrained import PretrainedModel
from ember_ml.models.quantization import dense_weight
from ember_ml.models.settings import Settings
from ember_ml.nn.modules.parameter import Parameter
from ember_ml.typing import Tensor

__all__ = ["load_adapter", "save_adapter"]

_CONFIG, _WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_PREFIX = "base_model.model."
_DOWN, _UP, _MAGNITUDE = ".lora_A.weight", ".lora_B.weight", ".lora_magnitude_vector"
_COPY = ".base_layer.weight"
"""PEFT stores the frozen weight of the logits beside an adapter of them."""
_NEUTRAL = {
    *("auto_mapping", "base_model_name_or_path", "inference_mode", "init_lora_weights", "peft_version", "revision"),
    *("task_type", "fan_in_fan_out", "megatron_core", "qalora_group_size", "runtime_config"),
    *("exclude_modules", "layers_pattern", "layers_to_transform", "target_modules"),  # the tensors say it
    *("lora_alpha", "lora_dropout", "peft_type", "r", "use_dora", "use_rslora"),  # read one by one
}
"""Settings of an adapter that change nothing of what it computes, or that are read; others must be empty."""


def save_adapter(model: PretrainedModel, folder: str | PathLike[str]) -> None:
    """Write the adapter of a model to a folder that PEFT, and every program that reads its format, opens.

    The weights of the model itself are not in it.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from ember_ml import models
    >>> model = models.from_config({"model_type": "gpt2", "vocab_size": 50, "n_embd": 8, "n_layer": 1, "n_head": 2})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     models.save_adapter(models.add_lora(model), folder)
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['adapter_config.json', 'adapter_model.safetensors']
    """
    settings = model.adapter
    if settings is None:
        raise ValueError("the model has no adapter; models.add_lora gives it one")
    parameters: dict[str, Parameter] = {}
    for path, module in find_adapted(model):
        parameters.update(_parameters(path, module))
    hosts = {name: as_host(x.value, detach=True) for name, x in parameters.items()}
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    is_transposed = any(
        model.names.find(f"{name}.weight").is_transposed
        for name, module in model.named_modules()
        if isinstance(module, AdaptedLinear)
    )
    config = {
        "base_model_name_or_path": None if model.source is None else str(model.source.path),
        "bias": "none",
        "fan_in_fan_out": is_transposed,  # PEFT's word for weights that are stored as (inputs, outputs)
        "inference_mode": True,
        "lora_alpha": settings.alpha,
        "lora_dropout": settings.dropout,
        "peft_type": "LORA",
        "r": settings.rank,
        "target_modules": list(settings.targets) if isinstance(settings.targets, tuple) else settings.targets,
        "task_type": None,
        "use_dora": settings.is_dora,
        "use_rslora": settings.is_rank_stabilized,
    }
    contents = json_bytes(config)
    with Replacements() as new:
        with new.open(target / _WEIGHTS, follow_links=False) as file:
            write_to(file, Contents(hosts, {"format": "pt"}, False))
        with new.open(target / _CONFIG, follow_links=False) as file:
            file.write(contents)
        if not holds(target / _CONFIG, contents):  # which would describe other weights for a moment
            (target / _CONFIG).unlink(missing_ok=True)
        new.make()


def _parameters(path: str, module: AdaptedLinear) -> dict[str, Parameter]:
    """Return the trained parameters of an adapted module by the names that PEFT stores them under."""
    lora = module.lora
    found = {_PREFIX + path + _DOWN: lora.down.variable("weight"), _PREFIX + path + _UP: lora.up.variable("weight")}
    return {**found, _PREFIX + path + _MAGNITUDE: lora.variable("magnitude")} if module.is_dora else found


def load_adapter(model: PretrainedModel, folder: str | PathLike[str]) -> PretrainedModel:
    """Give a model the adapter in a folder, as :func:`save_adapter` and PEFT write it; return the model itself.

    LoRA and DoRA of linear maps are read, also with rank-stabilized scales. What else an adapter may have raises
    ``ConfigError``, as do tensors that are missing, unknown or of another shape; the model is then as before. Its own
    parameters are frozen and the adapter can be trained on, as after :func:`add_lora`.

    >>> import tempfile
    >>> from ember_ml import models, ops
    >>> config = {"model_type": "gpt2", "vocab_size": 50, "n_embd": 8, "n_layer": 1, "n_head": 2}
    >>> model = models.add_lora(models.from_config(config), rank=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     models.save_adapter(model, folder)
    ...     other = models.load_adapter(models.from_config(config), folder)
    >>> list(other.trainable()) == list(model.trainable())
    True
    """
    files = Folder(folder)
    settings = _read_settings(Settings(files.read_json(_CONFIG), str(files.path / _CONFIG)))
    if files.has("adapter_model.bin") and not files.has(_WEIGHTS):
        raise ConfigError(
            f"{files.path} has its adapter only in adapter_model.bin, a pickle. Opening a pickle can run any program, "
            "so Ember ML opens none; save the adapter with PEFT as safetensors"
        )
    with MappedTensors(files.find(_WEIGHTS)) as tensors:
        shapes = tensors.shapes()
        linear, modules = find_linear(model), dict[str, Any](model.named_modules())
        names = _find_adapted_names(files, shapes, linear)
        for path in names:
            module = modules[linear[path]]
            _check_shapes(files, (module.outputs, module.inputs), path, shapes, settings)
            copy = _PREFIX + path + _COPY
            if copy in shapes and not _equals(tensors.read(copy), dense_weight(module)):
                raise ConfigError(f"{files.path / _WEIGHTS} is the adapter of a model with another {path}.weight")
        adapt(model, [linear[path] for path in names], settings)
        backend = active()
        for path, module in find_adapted(model):
            for name, parameter in _parameters(path, module).items():
                value = backend.from_host(tensors.read(name), backend.device_of(parameter.value))
                parameter.value = ops.cast(value, parameter.dtype)
    return model


def _equals(host: Any, native: Tensor) -> bool:
    if tuple(host.shape) != tuple(native.shape):
        return False
    found = active().from_host(host, active().device_of(native))
    return ops.item(ops.all(ops.equal(ops.cast(found, native.dtype), native)))


def _read_settings(settings: Settings) -> AdapterSettings:
    settings.choice("peft_type", {"LORA": None})
    for key, value in settings.values.items():
        if key not in _NEUTRAL and value and not (key == "bias" and value == "none"):
            raise ConfigError(f"{settings.where} has {key} = {value!r:.80}, which Ember ML does not read")
    targets: Any = settings.get("target_modules", [])
    if not isinstance(targets, str):
        if not isinstance(targets, list) or not all(isinstance(target, str) for target in targets):
            raise ConfigError(f"{settings.where} has target_modules = {targets!r:.80}; it must be a list of names")
        targets = tuple(sorted(targets))
    dropout = settings.number("lora_dropout", 0.0)
    if not 0.0 <= dropout < 1.0:
        raise ConfigError(f"{settings.where} has lora_dropout = {dropout!r}; it must be from 0 to below 1")
    return AdapterSettings(
        settings.integer("r", most=100_000),
        settings.number("lora_alpha", 8),
        targets,
        dropout,
        settings.flag("use_dora", False),
        settings.flag("use_rslora", False),
    )


def _find_adapted_names(files: Folder, shapes: dict[str, Any], linear: dict[str, str]) -> list[str]:
    """Return the linear maps that an adapter has tensors for; raise where it has tensors for anything else."""
    found: dict[str, None] = {}
    for name in shapes:
        end = next((end for end in (_DOWN, _UP, _MAGNITUDE, _COPY) if name.endswith(end)), "")
        path = name.removesuffix(end).removeprefix(_PREFIX)
        if not end or not name.startswith(_PREFIX) or path not in linear:
            raise ConfigError(
                f"the tensor {name!r:.200} in {files.path / _WEIGHTS} belongs to no linear map of this model, which "
                f"has {', '.join(sorted({known.rpartition('.')[2] for known in linear}))}"
            )
        found[path] = None
    if not found:
        raise ConfigError(f"{files.path / _WEIGHTS} holds no tensors")
    return list(found)


def _check_shapes(
    files: Folder,
    weight: tuple[int, ...],
    path: str,
    shapes: dict[str, tuple[EmberDType, tuple[int, ...]]],
    settings: AdapterSettings,
) -> None:
    outputs, inputs = weight
    wanted: dict[str, tuple[int, ...]] = {_DOWN: (settings.rank, inputs), _UP: (outputs, settings.rank)}
    if settings.is_dora:
        wanted[_MAGNITUDE] = (outputs,)
    for end, shape in wanted.items():
        if _PREFIX + path + end not in shapes:
            raise ConfigError(f"{files.path / _WEIGHTS} lacks the tensor {_PREFIX + path + end!r}")
        dtype, found = shapes[_PREFIX + path + end]
        if found != shape or dtype.kind != "float":
            raise ConfigError(
                f"the tensor {_PREFIX + path + end!r} in {files.path / _WEIGHTS} is {dtype} of shape {found}; with "
                f"this model and r = {settings.rank} it must be floating-point of shape {shape}"
            )
    if not settings.is_dora and _PREFIX + path + _MAGNITUDE in shapes:
        raise ConfigError(f"{files.path / _WEIGHTS} has {_MAGNITUDE[1:]} of {path}, and {_CONFIG} says no use_dora")
