"""Adapters of low rank: small trained parts beside the frozen linear maps of a model.

LoRA (Hu et al., 2021) computes ``x W.T + scale * x A.T B.T`` with ``A`` of a few rows and ``B`` of as many columns,
zero at first. DoRA (Liu et al., 2024) scales each row of ``W + scale * B A`` to a length that is learned.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ember_ml import ops
from ember_ml.models.pretrained import PretrainedModel
from ember_ml.models.quantization import QuantizedLinear, dense_weight
from ember_ml.nn.layers.channel_mixing import Dropout, Linear
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.parameter import Parameter
from ember_ml.typing import Tensor

__all__ = [
    "ALL_LINEAR",
    "AdaptedLinear",
    "AdapterSettings",
    "LowRank",
    "adapt",
    "add_lora",
    "find_adapted",
    "find_linear",
    "merge_adapter",
    "remove_adapter",
    "unmerge_adapter",
]

ALL_LINEAR: str = "all-linear"
_HEADS = ("output", "words.output", "classifier", "classifier_of_dense")
"""The modules that compute the logits, which ALL_LINEAR leaves out."""


@dataclass(frozen=True)
class AdapterSettings:
    """What the adapters of a model have in common."""

    rank: int
    alpha: float
    targets: tuple[str, ...] | str
    """The last parts of the stored names of the adapted modules; of an adapter that was opened, what its file says."""
    dropout: float = 0.0
    is_dora: bool = False
    is_rank_stabilized: bool = False

    @property
    def scale(self) -> float:
        """The factor of what an adapter adds."""
        return self.alpha / (math.sqrt(self.rank) if self.is_rank_stabilized else self.rank)


class LowRank(Module):
    """The trained part of one linear map."""

    down: Linear
    up: Linear
    magnitude: Any
    """The length of each row of the weight, where it is learned."""

    def __init__(self, base: Linear | QuantizedLinear, settings: AdapterSettings) -> None:
        inputs, outputs = base.inputs or 0, base.outputs
        dtype = "float64" if base.variable("weight").dtype.name == "float64" else "float32"
        self.down = Linear(inputs, settings.rank, bias=False, dtype=dtype)
        self.up = Linear(settings.rank, outputs, bias=False, initializer="zeros", dtype=dtype)
        self.to_device(ops.get_device(base.weight))
        if settings.is_dora:
            self.magnitude = Parameter(_row_lengths(ops.cast(dense_weight(base), dtype)))

    def delta(self, scale: float) -> Tensor:
        """Return what is added to the weight."""
        return ops.multiply(ops.matmul(self.up.weight, self.down.weight), scale)


class AdaptedLinear(Module):
    """A linear map whose weight is frozen, with an adapter."""

    base: Linear | QuantizedLinear
    lora: LowRank
    drop: Dropout
    is_dora: bool
    is_merged: bool

    def __init__(self, base: Linear | QuantizedLinear, settings: AdapterSettings) -> None:
        self.base, self.lora, self.drop = base, LowRank(base, settings), Dropout(settings.dropout)
        self.is_dora, self.is_merged, self._scale = settings.is_dora, False, settings.scale

    def forward(self, x: Tensor) -> Tensor:
        result = self.base(x)
        if self.is_merged:
            return result
        given = self.drop(x)
        added = self.lora.up(self.lora.down(ops.cast(given, self.lora.down.weight.dtype)))
        added = ops.multiply(added, self._scale)
        if self.is_dora:
            factor = self._factor()
            plain = self.base(given) if self.training and self.drop.rate else result
            plain = plain if self.base.bias is None else ops.subtract(plain, self.base.bias)
            added = ops.add(ops.multiply(ops.subtract(factor, 1.0), plain), ops.multiply(factor, added))
        return ops.add(result, ops.cast(added, result.dtype))

    def _factor(self) -> Tensor:
        """Return the factor of each output; no gradient goes through the length of a row (section 4.3 of the paper)."""
        weight = ops.add(dense_weight(self.base), self.lora.delta(self._scale))
        return ops.divide(self.lora.magnitude, ops.stop_gradient(_row_lengths(weight)))

    def merge(self) -> None:
        """Put what the adapter adds into the weight; the weight before is kept."""
        if isinstance(self.base, QuantizedLinear):
            raise ValueError("an adapter is not merged into quantized weights; give it to models.dequantize(model)")
        before = self.base.variable("weight")
        wide = ops.add(before.value, self.lora.delta(self._scale))
        if self.is_dora:
            wide = ops.multiply(wide, ops.expand_dims(self._factor(), 1))
        self.base.weight = Parameter(ops.cast(wide, before.dtype), is_trainable=False)
        self.__dict__["_before"] = before  # not an attribute: it is no parameter of the merged model
        self._set_merged(True)

    def unmerge(self) -> None:
        """Put the weight back that was there before."""
        self.base.weight = self.__dict__.pop("_before")
        self._set_merged(False)

    def _set_merged(self, is_merged: bool) -> None:
        self.is_merged = is_merged
        for parameter in self.lora.parameters():
            parameter.is_trainable = not is_merged  # it has no effect while it is merged


def _row_lengths(weight: Tensor) -> Tensor:
    return ops.sqrt(ops.sum(ops.square(weight), 1))


def add_lora(
    model: PretrainedModel,
    rank: int = 8,
    alpha: float = 16,
    targets: Sequence[str] | str = ALL_LINEAR,
    dropout: float = 0.0,
    is_dora: bool = False,
) -> PretrainedModel:
    """Give linear maps of a model adapters of low rank, which training changes alone; return the model itself.

    All other parameters are frozen. What an adapter adds is zero at first. Its parameters are float32, or float64
    beside such weights, and start as those of PEFT do. Quantized weights may have adapters (QLoRA).

    Args:
        model: A model without an adapter.
        rank: The number of rows of A, and of columns of B.
        alpha: ``alpha / rank`` is the factor of what is added.
        targets: The names of the modules as files have them, or their last parts: ``("q_proj", "v_proj")``;
            "all-linear": all linear maps but that of the logits.
        dropout: The share of inputs of the adapters that become 0 in training.
        is_dora: Whether the lengths of the rows of the weights are learned on their own.

    >>> from ember_ml import models
    >>> model = models.from_config({"model_type": "gpt2", "vocab_size": 50, "n_embd": 8, "n_layer": 1, "n_head": 2})
    >>> model = models.add_lora(model, rank=2, targets=("c_attn",))
    >>> list(model.trainable())
    ['layers.0.attention.qkv.lora.down.weight', 'layers.0.attention.qkv.lora.up.weight']
    """
    if not isinstance(rank, int) or rank < 1:
        raise ValueError(f"the rank of an adapter is a positive whole number, not {rank!r}")
    linear = find_linear(model)
    if targets == ALL_LINEAR:
        chosen = {path: name for path, name in linear.items() if name not in _HEADS}
        last = {path.rpartition(".")[2] for path in chosen}
        others = [path for path in linear if path not in chosen]
        is_clear = not any(_matches(path, last) for path in others)
        targets = tuple(sorted(last if is_clear else chosen))
    else:
        targets = (targets,) if isinstance(targets, str) else tuple(targets)
        chosen = {path: name for path, name in linear.items() if _matches(path, targets)}
        unknown = [target for target in targets if not any(_matches(path, [target]) for path in linear)]
        if unknown or not targets:
            ends = ", ".join(sorted({path.rpartition(".")[2] for path in linear}))
            raise ValueError(f"targets are linear maps of the model ({ends}), not {(unknown or [()])[0]!r}")
    return adapt(model, chosen.values(), AdapterSettings(rank, alpha, targets, dropout, is_dora))


def adapt(model: PretrainedModel, names: Iterable[str], settings: AdapterSettings) -> PretrainedModel:
    """Freeze a model and give the named linear maps adapters."""
    if model.adapter is not None:
        raise ValueError("the model has an adapter already; models.remove_adapter(model) first, merged or not")
    modules = dict(model.named_modules())
    model.freeze()
    for name in names:
        parent, _, last = name.rpartition(".")
        base = cast("Linear | QuantizedLinear", modules[name])
        setattr(modules[parent], last, AdaptedLinear(base, settings).train(model.training))
    model.adapter = settings
    return model


def find_linear(model: PretrainedModel) -> dict[str, str]:
    """Return the linear maps of a model that may have adapters: names in the model, by names in files."""
    return {
        model.names.find(f"{name}.weight").names[0].removesuffix(".weight"): name
        for name, module in model.named_modules()
        if isinstance(module, Linear | QuantizedLinear) and ".lora." not in name
    }


def find_adapted(model: PretrainedModel) -> Iterator[tuple[str, AdaptedLinear]]:
    """Yield the adapted modules with their names in files."""
    for name, module in model.named_modules():
        if isinstance(module, AdaptedLinear):
            yield model.names.find(f"{name}.weight").names[0].removesuffix(".weight"), module


def _matches(path: str, targets: Sequence[str] | set[str]) -> bool:
    return any(path == target or path.endswith(f".{target}") for target in targets)


def merge_adapter(model: PretrainedModel) -> PretrainedModel:
    """Put what the adapter adds into the weights, so that it costs nothing in use; return the model itself.

    The weights before are kept for :func:`unmerge_adapter`, until :func:`remove_adapter` lets go of them.

    >>> from ember_ml import models, ops
    >>> model = models.from_config({"model_type": "gpt2", "vocab_size": 50, "n_embd": 8, "n_layer": 1, "n_head": 2})
    >>> before = model([[1, 2]])
    >>> same = models.merge_adapter(models.add_lora(model))([[1, 2]])
    >>> float(ops.max(ops.abs(ops.subtract(same, before))))
    0.0
    """
    _check(model, is_merged=False)
    uses = Counter(id(variable) for variable in model._all_names().values())
    for path, module in find_adapted(model):
        if uses[id(module.base.variable("weight"))] > 1:
            raise ValueError(f"the weight of {path} is that of the embedding too, so its adapter cannot be merged")
    for _, module in find_adapted(model):
        module.merge()
    return model


def unmerge_adapter(model: PretrainedModel) -> PretrainedModel:
    """Put the weights back that were there before :func:`merge_adapter`, to the last bit; return the model itself."""
    _check(model, is_merged=True)
    for _, module in find_adapted(model):
        module.unmerge()
    return model


def remove_adapter(model: PretrainedModel) -> PretrainedModel:
    """Remove the adapter of a model; return the model itself.

    Merged, the weights keep what the adapter added, and :meth:`save` writes them; otherwise they are as before it. They
    stay frozen until :meth:`unfreeze`.

    >>> from ember_ml import models
    >>> model = models.from_config({"model_type": "gpt2", "vocab_size": 50, "n_embd": 8, "n_layer": 1, "n_head": 2})
    >>> names = list(model.named_parameters())
    >>> model = models.remove_adapter(models.merge_adapter(models.add_lora(model)))
    >>> list(model.named_parameters()) == names
    True
    """
    _check(model)
    modules = dict(model.named_modules())
    for name, module in modules.items():
        if isinstance(module, AdaptedLinear):
            parent, _, last = name.rpartition(".")
            setattr(modules[parent], last, module.base)
    model.adapter = None
    return model


def _check(model: PretrainedModel, is_merged: bool | None = None) -> None:
    """Raise where a model has no adapter, or is merged with it and should not be, or the other way round."""
    if model.adapter is None:
        raise ValueError("the model has no adapter; models.add_lora and models.load_adapter give it one")
    found = any(module.is_merged for _, module in find_adapted(model))
    if is_merged is not None and found is not is_merged:
        raise ValueError(f"the adapter is {'merged already' if found else 'not merged'}")
