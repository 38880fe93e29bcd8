"""Llama and the decoders that differ from it in settings: Mistral, Qwen 2 and 3, Gemma 2 and 3, Phi-3, SmolLM;
Mixtral and Qwen 3 MoE, whose layers have several networks, of which each position uses a few.

For each layer ``x = x + attention(norm(x))`` with rotary positions, then ``x = x + down(act(gate(y)) * up(y))`` of
``y = norm(x)``; after the last one a norm, and the logits (Touvron et al., 2023).
``llama_variants.py`` has the differences.
"""

from __future__ import annotations

import math
from typing import Any

from ember_ml import ops
from ember_ml.errors import ConfigError
from ember_ml.models.activations import ACTIVATIONS
from ember_ml.models.causal import CausalModel, Positions
from ember_ml.models.llama_variants import (
    SLIDING,
    VARIANTS,
    Variant,
    decoder_names,
    experts_of,
    head_width,
    layer_kinds,
    read_rotary,
    rotary_layers,
)
from ember_ml.models.names import Names
from ember_ml.models.settings import Settings
from ember_ml.nn.initializers import normal
from ember_ml.nn.layers.channel_mixing import Embedding, GatedMLP, Linear, MixtureOfExperts, RMSNorm
from ember_ml.nn.layers.sequence_mixing.grouped_query import GroupedQueryAttention
from ember_ml.nn.layers.sequence_mixing.heads import KeyValueCache
from ember_ml.nn.layers.sequence_mixing.rotary import RotaryPositions, Rotation
from ember_ml.nn.modules.module import Module
from ember_ml.typing import Tensor

__all__ = ["CausalDecoder"]


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

    def __init__(self, settings: Settings, variant: Variant, number: int, kind: str, is_rotary: bool) -> None:
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
        cap = settings.get("attn_logit_softcapping") if variant.caps_scores else None
        under_root = None
        if variant.scale is not None:
            under_root = settings.number("query_pre_attn_scalar", variant.scale)
        self.attention = GroupedQueryAttention(
            hidden,
            heads,
            settings.integer("num_key_value_heads", heads),
            head_width(settings),
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
        experts = experts_of(settings, variant, number)
        if experts:
            self.experts = MixtureOfExperts(
                experts,
                settings.integer("moe_intermediate_size") if variant.mixture == "qwen" else inner,
                settings.integer("num_experts_per_tok", most=experts),
                hidden,
                activation,
                is_normalized=variant.mixture == "mixtral" or settings.flag("norm_topk_prob", False),
            )
        elif variant.is_fused:
            self.mlp = _FusedMLP(hidden, inner, activation)
        else:
            self.mlp = GatedMLP(inner, inputs=hidden, activation=activation, bias=has_bias)
        self._is_gemma, self._has_experts = variant.is_gemma, experts > 0

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
        network = self.experts if self._has_experts else self.mlp
        return ops.add(x, network(self.mlp_norm(x))), cache


class CausalDecoder(CausalModel):
    """A decoder of the Llama family with its head for the next token."""

    names: Names
    embedding: Embedding
    layers: list[Any]
    norm: Any
    output: Linear

    def __init__(self, settings: Settings) -> None:
        variant = settings.choice("model_type", VARIANTS)
        super().__init__(settings)
        settings.assume(variant.defaults)
        if settings.flag("use_bidirectional_attention", False):
            raise ConfigError(
                f"{settings.where} has use_bidirectional_attention: each position would see those after it, and Ember "
                "ML has such models only as writers of texts, whose positions see those before them"
            )
        self.names = decoder_names(variant)
        hidden, vocabulary = settings.integer("hidden_size"), settings.integer("vocab_size")
        kinds = layer_kinds(settings, variant)
        is_rotary = rotary_layers(settings, len(kinds))
        self.embedding = Embedding(vocabulary, hidden, normal(0.02))
        pairs = enumerate(zip(kinds, is_rotary, strict=True))
        self.layers = [_Block(settings, variant, i, *pair) for i, pair in pairs]
        self.norm = RMSNorm(hidden, settings.number("rms_norm_eps", 1e-6), offset=1.0 if variant.is_gemma else 0.0)
        self.output = Linear(hidden, vocabulary, bias=False)
        if settings.flag("tie_word_embeddings", variant.is_tied):
            self.output.weight = self.embedding.variable("weight")
        self._rotary = _Rotary(settings, variant, kinds)
        self._scale = math.sqrt(hidden) if variant.is_gemma else None
        cap = settings.get("final_logit_softcapping") if variant.is_gemma else None
        self._cap = None if cap is None else settings.number("final_logit_softcapping")

    def embed(self, tokens: Tensor, positions: Positions) -> Tensor:
        x = self.embedding(tokens)
        # the root is rounded to the dtype of the model, as it was in training
        return x if self._scale is None else ops.multiply(x, ops.cast(self._scale, x.dtype))

    def share(self, positions: Positions, x: Tensor) -> dict[str, Rotation]:
        return self._rotary.rotations(positions, x)

    def changes_with_length(self, first: int, last: int) -> bool:
        return self._rotary.changes_with_length(first, last)

    def logits(self, hidden: Tensor) -> Tensor:
        found = self.output(hidden)
        return found if self._cap is None else ops.multiply(ops.tanh(ops.divide(found, self._cap)), self._cap)


class _Rotary:
    """The rotary positions of each kind of layer."""

    def __init__(self, settings: Settings, variant: Variant, kinds: list[str]) -> None:
        self._by_kind = {kind: read_rotary(settings, variant, kind) for kind in dict.fromkeys(kinds)}

    def rotations(self, positions: Positions, x: Tensor) -> dict[str, Rotation]:
        found: dict[RotaryPositions, Rotation] = {}
        for rotary in self._by_kind.values():
            if rotary not in found:
                found[rotary] = rotary(positions.numbers, positions.count, x.dtype)
        return {kind: found[rotary] for kind, rotary in self._by_kind.items()}

    def changes_with_length(self, first: int, last: int) -> bool:
        return any(rotary.frequencies(first) != rotary.frequencies(last) for rotary in self._by_kind.values())
