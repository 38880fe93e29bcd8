"""Llama and the decoders that differ from it in settings: Mistral, Qwen 2 and 3, Gemma 2 and 3, Phi-3, SmolLM.

For each layer ``x = x + attention(norm(x))`` with rotary positions, then ``x = x + down(act(gate(y)) * up(y))`` of
``y = norm(x)``; after the last one a norm, and the logits (Touvron et al., 2023). ``_VARIANTS`` has the differences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

from ember_ml import ops
from ember_ml.errors import ConfigError
from ember_ml.models.activations import ACTIVATIONS
from ember_ml.models.causal import CausalModel, Positions
from ember_ml.models.names import Names
from ember_ml.models.settings import Settings
from ember_ml.nn.initializers import normal
from ember_ml.nn.layers.channel_mixing import Embedding, GatedMLP, Linear, RMSNorm
from ember_ml.nn.layers.sequence_mixing.attention import KeyValueCache
from ember_ml.nn.layers.sequence_mixing.grouped_query import GroupedQueryAttention
from ember_ml.nn.layers.sequence_mixing.rotary import RotaryPositions, Rotation
from ember_ml.nn.modules.module import Module
from ember_ml.typing import Tensor

__all__ = ["CausalDecoder"]

FULL, SLIDING = "full_attention", "sliding_attention"


@dataclass(frozen=True)
class Variant:
    """What a decoder has that Llama has not."""

    has_qkv_bias: bool | None = None
    """Whether queries, keys and values have biases, and the result none; None: attention_bias says it of all."""
    has_head_norms: bool = False
    """Whether queries and keys are normalized in each head."""
    is_fused: bool = False
    """Whether queries, keys and values are one tensor, and gates and hidden neurons another."""
    is_gemma: bool = False
    """Norms with weights around 0, norms behind both parts of a layer, scaled embeddings, capped logits."""
    slides: str = "never"
    """Which layers have a window where layer_types does not say it: "never", "always", "late" or "between"."""
    pattern: int = 1
    """With "between": every so many-th layer has no window."""
    is_tied: bool = False
    activation: str = "hidden_act"
    """The key of the activation."""
    scale: float | None = None
    """The number in place of the width of a head under the root, by default."""


_VARIANTS = {
    "llama": Variant(),
    "mistral": Variant(has_qkv_bias=False, slides="always"),
    "qwen2": Variant(has_qkv_bias=True, slides="late"),
    "qwen3": Variant(has_head_norms=True, slides="late"),
    "gemma2": Variant(
        is_gemma=True, slides="between", pattern=2, is_tied=True, activation="hidden_activation", scale=256
    ),
    "gemma3_text": Variant(
        has_head_norms=True,
        is_gemma=True,
        slides="between",
        pattern=6,
        is_tied=True,
        activation="hidden_activation",
        scale=256,
    ),
    "phi3": Variant(has_qkv_bias=False, is_fused=True, slides="always"),
    "smollm3": Variant(slides="late", is_tied=True),
}
_LAYER = {
    "attention_norm": "input_layernorm",
    "attention.query": "self_attn.q_proj",
    "attention.key": "self_attn.k_proj",
    "attention.value": "self_attn.v_proj",
    "attention.qkv": "self_attn.qkv_proj",
    "attention.query_norm": "self_attn.q_norm",
    "attention.key_norm": "self_attn.k_norm",
    "attention.output": "self_attn.o_proj",
    "mlp_norm": "post_attention_layernorm",
    "mlp.gate": "mlp.gate_proj",
    "mlp.up": "mlp.up_proj",
    "mlp.gate_up": "mlp.gate_up_proj",
    "mlp.down": "mlp.down_proj",
}
_GEMMA = {
    "attention_post_norm": "post_attention_layernorm",
    "mlp_norm": "pre_feedforward_layernorm",
    "mlp_post_norm": "post_feedforward_layernorm",
}


def _names(variant: Variant) -> Names:
    layer = {**_LAYER, **_GEMMA} if variant.is_gemma else _LAYER
    table = {
        "embedding": "model.embed_tokens",
        **{f"layers.{{}}.{ours}": f"model.layers.{{}}.{theirs}" for ours, theirs in layer.items()},
        "norm": "model.norm",
        "output": "lm_head",
    }
    return Names(table, prefix="model.", ignored=[r"rotary_emb\.inv_freq$"])


class _FusedMLP(Module):
    """``down(act(gate(x)) * up(x))`` with one linear map for gate and up."""

    def __init__(self, hidden: int, inner: int, activation: Any) -> None:
        self.gate_up = Linear(hidden, 2 * inner, bias=False)
        self.down = Linear(inner, hidden, bias=False)
        self._activation = activation

    def forward(self, x: Tensor) -> Tensor:
        gate, up = ops.split(self.gate_up(x), 2, axis=-1)
        return self.down(ops.multiply(self._activation(gate), up))


class _Block(Module):
    attention: GroupedQueryAttention

    def __init__(self, settings: Settings, variant: Variant, kind: str, is_rotary: bool) -> None:
        hidden, epsilon = settings.integer("hidden_size"), settings.number("rms_norm_eps", 1e-6)
        offset = 1.0 if variant.is_gemma else 0.0
        self.kind, self.is_rotary = kind, is_rotary

        def norm(width: int) -> RMSNorm:
            return RMSNorm(width, epsilon, offset=offset)

        self.attention_norm, self.mlp_norm = norm(hidden), norm(hidden)
        if variant.is_gemma:
            self.attention_post_norm, self.mlp_post_norm = norm(hidden), norm(hidden)
        has_bias = settings.flag("attention_bias", False) if variant.has_qkv_bias is None else variant.has_qkv_bias
        heads = settings.integer("num_attention_heads")
        cap = settings.get("attn_logit_softcapping") if variant.is_gemma else None
        under_root = None
        if variant.scale is not None:
            under_root = settings.number("query_pre_attn_scalar", variant.scale)
        self.attention = GroupedQueryAttention(
            hidden,
            heads,
            settings.integer("num_key_value_heads", heads),
            _head_width(settings),
            has_bias,
            has_bias if variant.has_qkv_bias is None else False,
            variant.is_fused,
            norm if variant.has_head_norms else None,
            None if under_root is None else under_root**-0.5,
            None if cap is None else settings.number("attn_logit_softcapping"),
            settings.integer("sliding_window") if kind == SLIDING else None,
            settings.number("attention_dropout", 0.0),
        )
        inner = settings.integer("intermediate_size")
        usual = "gelu_pytorch_tanh" if variant.is_gemma else "silu"
        activation = settings.choice(variant.activation, ACTIVATIONS, usual)
        has_bias = settings.flag("mlp_bias", False)
        if variant.is_fused:
            self.mlp = _FusedMLP(hidden, inner, activation)
        else:
            self.mlp = GatedMLP(inner, inputs=hidden, activation=activation, bias=has_bias)
        self._is_gemma = variant.is_gemma

    def forward(
        self, x: Tensor, positions: Positions, rotations: dict[str, Rotation], cache: KeyValueCache | None
    ) -> tuple[Tensor, Any]:
        mask, is_causal = positions.mask(self.attention.window)
        rotation = rotations[self.kind] if self.is_rotary else None
        found = self.attention(self.attention_norm(x), mask, None, rotation, is_causal, cache)
        found, cache = found if cache is not None else (found, None)
        if self._is_gemma:
            x = ops.add(x, self.attention_post_norm(found))
            return ops.add(x, self.mlp_post_norm(self.mlp(self.mlp_norm(x)))), cache
        x = ops.add(x, found)
        return ops.add(x, self.mlp(self.mlp_norm(x))), cache


class CausalDecoder(CausalModel):
    """A decoder of the Llama family with its head for the next token."""

    names: Names
    embedding: Embedding
    layers: list[Any]
    norm: Any
    output: Linear

    def __init__(self, settings: Settings) -> None:
        variant = settings.choice("model_type", _VARIANTS)
        super().__init__(settings)
        self.names = _names(variant)
        hidden, vocabulary = settings.integer("hidden_size"), settings.integer("vocab_size")
        kinds = _layer_kinds(settings, variant)
        is_rotary = _rotary_layers(settings, len(kinds))
        self.embedding = Embedding(vocabulary, hidden, normal(0.02))
        self.layers = [_Block(settings, variant, *pair) for pair in zip(kinds, is_rotary, strict=True)]
        self.norm = RMSNorm(hidden, settings.number("rms_norm_eps", 1e-6), offset=1.0 if variant.is_gemma else 0.0)
        self.output = Linear(hidden, vocabulary, bias=False)
        if settings.flag("tie_word_embeddings", variant.is_tied):
            self.output.weight = self.embedding.variable("weight")
        self._rotary = _Rotary(settings, kinds)
        self._scale = math.sqrt(hidden) if variant.is_gemma else None
        cap = settings.get("final_logit_softcapping") if variant.is_gemma else None
        self._cap = None if cap is None else settings.number("final_logit_softcapping")

    def embed(self, tokens: Tensor, positions: Positions) -> Tensor:
        x = self.embedding(tokens)
        # the root is rounded to the dtype of the model, as it was in training
        return x if self._scale is None else ops.multiply(x, ops.cast(self._scale, x.dtype))

    def share(self, positions: Positions, x: Tensor) -> dict[str, Rotation]:
        return self._rotary.rotations(positions, x)

    def logits(self, hidden: Tensor) -> Tensor:
        found = self.output(hidden)
        return found if self._cap is None else ops.multiply(ops.tanh(ops.divide(found, self._cap)), self._cap)


class _Rotary:
    """The rotary positions of each kind of layer."""

    def __init__(self, settings: Settings, kinds: list[str]) -> None:
        self._by_kind = {kind: _rotary_positions(settings, kind) for kind in dict.fromkeys(kinds)}

    def rotations(self, positions: Positions, x: Tensor) -> dict[str, Rotation]:
        found: dict[RotaryPositions, Rotation] = {}
        for rotary in self._by_kind.values():
            if rotary not in found:
                found[rotary] = rotary(positions.numbers, positions.count, x.dtype)
        return {kind: found[rotary] for kind, rotary in self._by_kind.items()}


def _rotary_positions(settings: Settings, kind: str) -> RotaryPositions:
    """Return the rotary positions of the layers of a kind, from today's key rope_parameters or from the older ones."""
    longest = settings.integer("max_position_embeddings", 2048)
    base, scaling = settings.get("rope_theta", 10000.0), settings.table("rope_scaling")
    if kind == SLIDING and settings.get("rope_local_base_freq") is not None:
        base, scaling = settings.number("rope_local_base_freq"), {}
    today = settings.table("rope_parameters")
    today = today.get(kind, today)
    if today:
        base, scaling = today.get("rope_theta", base), today
    share = scaling.get("partial_rotary_factor", settings.get("partial_rotary_factor", 1.0))
    trained = scaling.get("original_max_position_embeddings", settings.get("original_max_position_embeddings"))
    try:
        width = int(_head_width(settings) * share)
        return RotaryPositions(width, base, {**scaling, "original_max_position_embeddings": trained}, longest)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ConfigError(f"{settings.where} describes rotary positions that cannot be used: {error}") from error


def _head_width(settings: Settings) -> int:
    hidden, heads = settings.integer("hidden_size"), settings.integer("num_attention_heads")
    return settings.integer("head_dim", max(hidden // heads, 1))


def _layer_kinds(settings: Settings, variant: Variant) -> list[str]:
    """Return for each layer whether it sees all positions or a window."""
    count = settings.integer("num_hidden_layers", most=1000)
    named = settings.words("layer_types", (FULL, SLIDING), count)
    if named is not None:
        return named
    late = settings.integer("max_window_layers", 28, least=0)
    pattern = settings.integer("sliding_window_pattern", variant.pattern)
    slides = {
        "never": lambda i: False,
        "always": lambda i: settings.get("sliding_window") is not None,
        "late": lambda i: settings.flag("use_sliding_window", False) and i >= late,
        "between": lambda i: (i + 1) % pattern != 0,
    }[variant.slides]
    return [SLIDING if slides(i) else FULL for i in range(count)]


def _rotary_layers(settings: Settings, count: int) -> list[bool]:
    """Return for each layer whether it is rotary; SmolLM 3 has a few that are not."""
    marks = settings.get("no_rope_layers")
    if marks is None:
        every = settings.get("no_rope_layer_interval")
        return [every is None or (i + 1) % settings.integer("no_rope_layer_interval") != 0 for i in range(count)]
    if not isinstance(marks, list) or len(marks) != count or any(mark not in (0, 1) for mark in marks):
        raise ConfigError(
            f"{settings.where} has no_rope_layers = {marks!r:.80}; it must be a list of {count} 0s and 1s"
        )
    return [bool(mark) for mark in cast("list[int]", marks)]
