"""Models whose weights have 4 or 8 bits: the layers, and how a model gets them and is given its numbers back.

The layout is that of MLX and mlx-lm: each group of numbers of a row has a scale and an offset.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml import ops
from ember_ml.core.dtypes import uint32
from ember_ml.errors import ConfigError
from ember_ml.models.folder import Folder, StoredTensors
from ember_ml.models.pretrained import PretrainedModel
from ember_ml.models.settings import Settings
from ember_ml.nn.layers.base import empty
from ember_ml.nn.layers.channel_mixing import Embedding, Linear, MixtureOfExperts
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.parameter import Buffer, Parameter
from ember_ml.typing import IndexLike, Tensor, TensorLike

__all__ = [
    "QuantizedEmbedding",
    "QuantizedLinear",
    "dense_weight",
    "dequantize",
    "prepare_quantized",
    "quantize",
]

_SMALLEST = 1e-7
"""The least scale of a group, as MLX has it."""
_Packed = tuple[Buffer, Buffer, Buffer]


class _Quantized(Module):
    """What quantized layers share: a weight in three buffers."""

    weight: Any
    scales: Any
    biases: Any
    bits: int
    group_size: int

    def __init__(self, packed: _Packed, bits: int, group_size: int) -> None:
        self.weight, self.scales, self.biases = packed
        self.bits, self.group_size = bits, group_size

    def dense_weight(self) -> Tensor:
        """Return the numbers of the weight."""
        return ops.dequantize(self.weight, self.scales, self.biases, self.bits, self.group_size)


class QuantizedLinear(_Quantized):
    """``x @ weight.T + bias`` with a weight of few bits."""

    inputs: int
    outputs: int
    bias: Any

    def __init__(self, packed: _Packed, bits: int, group_size: int, bias: Parameter | None) -> None:
        super().__init__(packed, bits, group_size)
        self.bias = bias
        self.outputs, self.inputs = packed[1].shape[0], packed[1].shape[1] * group_size

    def forward(self, x: TensorLike) -> Tensor:
        found = ops.quantized_linear(x, self.weight, self.scales, self.biases, self.bits, self.group_size)
        return found if self.bias is None else ops.add(found, self.bias)


class QuantizedEmbedding(_Quantized):
    """``weight[indices]`` with vectors of few bits."""

    def forward(self, indices: IndexLike) -> Tensor:
        weight, scales, biases = (ops.take(x, indices, 0) for x in (self.weight, self.scales, self.biases))
        return ops.dequantize(weight, scales, biases, self.bits, self.group_size)


def dense_weight(layer: Linear | QuantizedLinear) -> Tensor:
    """Return the weight of a linear map as numbers."""
    return layer.dense_weight() if isinstance(layer, QuantizedLinear) else layer.weight


def _pack(weight: Tensor, bits: int, group_size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the words, scales and offsets of a weight, rounded as MLX rounds them.

    The end of a group that is farther from 0 is exact: the scale is such that 0 is a whole number of steps from it.
    """
    highest, shape = 2**bits - 1, tuple(ops.shape(weight))
    numbers = ops.reshape(ops.cast(weight, "float32"), (*shape[:-1], -1, group_size))
    low, high = ops.min(numbers, -1, keepdims=True), ops.max(numbers, -1, keepdims=True)
    is_low = ops.greater(ops.abs(low), ops.abs(high))
    scale = ops.maximum(ops.divide(ops.subtract(high, low), float(highest)), _SMALLEST)
    scale = ops.where(is_low, scale, ops.negative(scale))
    edge = ops.where(is_low, low, high)
    steps = ops.round(ops.divide(edge, scale))
    has_steps = ops.not_equal(steps, 0.0)
    scale = ops.where(has_steps, ops.divide(edge, ops.where(has_steps, steps, 1.0)), scale)
    bias = ops.where(has_steps, edge, 0.0)
    whole = ops.clip(ops.round(ops.divide(ops.subtract(numbers, bias), scale)), 0.0, float(highest))
    octets = ops.reshape(ops.cast(whole, "uint8"), (*shape[:-1], -1))
    if bits == 4:
        pairs = ops.reshape(octets, (*shape[:-1], -1, 2))
        first, second = ops.get_item(pairs, (..., 0)), ops.get_item(pairs, (..., 1))
        octets = ops.bitwise_or(first, ops.bitwise_left_shift(second, 4))
    scales, biases = (ops.cast(ops.squeeze(x, -1), weight.dtype) for x in (scale, bias))
    return ops.view(octets, "uint32"), scales, biases


def _replace_layers(model: PretrainedModel, pack: Callable[[str, Module], tuple[_Packed, int, int] | None]) -> int:
    """Put quantized layers in the place of those for which ``pack`` returns something; return how many."""
    modules, known, count = dict(model.named_modules()), {}, 0
    for name, module in modules.items():
        if not isinstance(module, Linear | Embedding):
            continue
        weight = module.variable("weight")
        if id(weight) not in known:  # the weight of the logits may be that of the embedding
            known[id(weight)] = pack(name, module)
        found = known[id(weight)]
        if found is None:
            continue
        if isinstance(module, Linear):
            bias = None if module.bias is None else module.variable("bias")
            made: Module = QuantizedLinear(*found, bias=bias)
        else:
            made = QuantizedEmbedding(*found)
        parent, _, last = name.rpartition(".")
        setattr(modules[parent], last, made.train(model.training))
        count += 1
    return count


def quantize(model: PretrainedModel, bits: int = 4, group_size: int = 64) -> PretrainedModel:
    """Give linear maps and embeddings of a model weights of ``bits``, 4 or 8; return the model itself.

    ``group_size`` numbers of a row, 32, 64 or 128, share a scale and an offset of the dtype that the weight had.
    Weights whose rows are no multiple of it stay as they are, as do norms and biases. The rounding is MLX's, to the
    last bit. ``model.save`` writes the result as mlx-lm does, and ``models.load`` opens it on every backend. Such
    weights are not trained; adapters of them are (QLoRA).

    >>> from ember_ml import models, ops
    >>> config = {"model_type": "gpt2", "vocab_size": 50, "n_embd": 64, "n_layer": 1, "n_head": 2}
    >>> model = models.quantize(models.from_config(config), bits=8)
    >>> ops.shape(model.layers[0].mlp.up.weight), ops.shape(model.layers[0].mlp.up.scales)
    ((256, 16), (256, 1))
    """
    if bits not in (4, 8) or group_size not in (32, 64, 128):
        raise ValueError(
            f"weights have 4 or 8 bits in groups of 32, 64 or 128, not {bits!r} in groups of {group_size!r}"
        )
    if model.adapter is not None or model.settings.get("quantization") is not None:
        raise ValueError("a model is quantized once, and before it has an adapter")
    if any(isinstance(module, MixtureOfExperts) for _, module in model.named_modules()):
        raise ValueError("mixtures of experts are not quantized")

    def pack(name: str, module: Module) -> tuple[_Packed, int, int] | None:
        weight = module.variable("weight")
        if weight.shape[-1] % group_size:
            return None
        words, scales, biases = _pack(weight.value, bits, group_size)
        return (Buffer(words), Buffer(scales), Buffer(biases)), bits, group_size

    if not _replace_layers(model, pack):
        raise ValueError(f"no weight of the model has rows that are a multiple of {group_size}")
    _describe(model.settings, {"bits": bits, "group_size": group_size, "mode": "affine"})
    return model


def _describe(settings: Settings, quantization: dict[str, Any]) -> None:
    settings.values["quantization"] = quantization
    settings.values["quantization_config"] = quantization  # which mlx-lm writes for others to see


def dequantize(model: PretrainedModel) -> PretrainedModel:
    """Give the weights of a quantized model back as numbers, in the dtype of their scales; return the model itself.

    >>> from ember_ml import models
    >>> config = {"model_type": "gpt2", "vocab_size": 50, "n_embd": 64, "n_layer": 1, "n_head": 2}
    >>> model = models.from_config(config)
    >>> count = model.num_parameters
    >>> models.dequantize(models.quantize(model)).num_parameters == count
    True
    """
    if model.adapter is not None:
        raise ValueError("the model has an adapter; save it and models.remove_adapter(model) first")
    modules, known = dict(model.named_modules()), {}
    for name, module in modules.items():
        if not isinstance(module, QuantizedLinear | QuantizedEmbedding):
            continue
        packed = id(module.variable("weight"))
        if packed not in known:
            known[packed] = Parameter(module.dense_weight(), is_trainable=True)
        parent, _, last = name.rpartition(".")
        setattr(modules[parent], last, _make_dense(module, known[packed]))
    for key in ("quantization", "quantization_config"):
        model.settings.values.pop(key, None)
    return model


def _make_dense(module: QuantizedLinear | QuantizedEmbedding, weight: Parameter) -> Linear | Embedding:
    with empty():
        if isinstance(module, QuantizedEmbedding):
            made = Embedding(weight.shape[0], weight.shape[1])
        else:
            made = Linear(module.inputs, module.outputs, module.bias is not None)
            if module.bias is not None:
                made.bias = module.variable("bias")
    made.weight = weight
    return made.train(module.training)


def prepare_quantized(model: PretrainedModel, folder: Folder) -> None:
    """Give a model, before it is filled, the layers that the weights of a folder are for, as config.json says."""
    settings = model.settings
    table = Settings(settings.table("quantization"), f"{settings.where} (quantization)")
    with StoredTensors(folder) as tensors:
        wanted = {
            name: model.names.find(f"{name}.scales").names[0]
            for name, module in model.named_modules()
            if isinstance(module, Linear | Embedding)
        }
        stored = model.names.match(tensors.shapes, wanted.values())
        dtypes = {name: tensors.shapes[stored[x]][0] for name, x in wanted.items() if x in stored}

    def pack(name: str, module: Module) -> tuple[_Packed, int, int] | None:
        if name not in dtypes:
            return None
        own = table.get(wanted[name].removesuffix(".scales"), {})
        here = Settings({**table.values, **(own if isinstance(own, dict) else {})}, table.where)
        here.choice("mode", {"affine": None}, "affine")
        bits, group_size = here.integer("bits"), here.integer("group_size")
        rows, width = module.variable("weight").shape
        if bits not in (4, 8) or group_size not in (32, 64, 128) or width % group_size:
            raise ConfigError(
                f"{table.where} has bits = {bits} and group_size = {group_size} for {wanted[name]}, whose rows have "
                f"{width} numbers; Ember ML has 4 and 8 bits in groups of 32, 64 and 128"
            )
        kinds = ((uint32, width * bits // 32), *[(dtypes[name], width // group_size)] * 2)
        words, scales, biases = (Buffer.holding_zeros(kind, (rows, size)) for kind, size in kinds)
        return (words, scales, biases), bits, group_size

    _replace_layers(model, pack)
