"""The Llama family as data: differences, names of tensors, and settings that have several spellings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ember_ml.errors import ConfigError
from ember_ml.models.names import Names
from ember_ml.models.settings import Settings
from ember_ml.nn.layers.sequence_mixing.rotary import RotaryPositions

__all__ = [
    "FULL",
    "SLIDING",
    "VARIANTS",
    "Variant",
    "decoder_names",
    "experts_of",
    "head_width",
    "layer_kinds",
    "read_rotary",
    "rotary_layers",
]

FULL: str = "full_attention"
SLIDING: str = "sliding_attention"


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
    """Which layers have a window where layer_types is not there: a key of the table in :func:`layer_kinds`."""
    pattern: int = 1
    """With "between": every so many-th layer has no window."""
    is_tied: bool = False
    activation: str = "hidden_act"
    """The key of the activation."""
    mixture: str | None = None
    """What the experts of a layer are stored as, where it has some: "mixtral" or "qwen"."""
    scale: float | None = None
    """The number in place of the width of a head under the root, by default."""
    caps_scores: bool = False
    """Whether attn_logit_softcapping bounds the scores of the attention."""
    turns_in_part: bool = False
    """Whether partial_rotary_factor says how much of a head has rotary positions."""
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What keys mean that are not there, where that differs from Llama."""


VARIANTS: dict[str, Variant] = {
    "llama": Variant(),
    "mistral": Variant(
        has_qkv_bias=False,
        slides="always",
        defaults={"num_key_value_heads": 8, "sliding_window": 4096, "max_position_embeddings": 131072},
    ),
    "mixtral": Variant(
        has_qkv_bias=False,
        slides="always",
        mixture="mixtral",
        defaults={
            **{"num_key_value_heads": 8, "rms_norm_eps": 1e-5, "rope_theta": 1e6, "max_position_embeddings": 131072},
            **{"num_local_experts": 8, "num_experts_per_tok": 2},
        },
    ),
    "qwen2": Variant(
        has_qkv_bias=True,
        slides="late",
        defaults={"num_key_value_heads": 32, "sliding_window": 4096, "max_position_embeddings": 32768},
    ),
    "qwen3": Variant(
        has_head_norms=True,
        slides="late",
        defaults={
            **{"num_key_value_heads": 32, "head_dim": 128, "sliding_window": 4096},
            "max_position_embeddings": 32768,
        },
    ),
    "qwen3_moe": Variant(
        has_head_norms=True,
        slides="sometimes",
        mixture="qwen",
        defaults={
            **{"num_key_value_heads": 4, "sliding_window": 4096, "max_position_embeddings": 32768},
            **{"num_experts_per_tok": 8, "moe_intermediate_size": 768},
        },
    ),
    "gemma2": Variant(
        is_gemma=True,
        slides="between",
        pattern=2,
        is_tied=True,
        activation="hidden_activation",
        scale=256,
        caps_scores=True,
        defaults={
            **{"num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096, "max_position_embeddings": 8192},
            **{"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
        },
    ),
    "gemma3_text": Variant(
        has_head_norms=True,
        is_gemma=True,
        slides="between",
        pattern=6,
        is_tied=True,
        activation="hidden_activation",
        scale=256,
        defaults={
            **{"num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096, "max_position_embeddings": 131072},
            **{"rope_theta": 1e6, "rope_local_base_freq": 1e4},
        },
    ),
    "phi3": Variant(
        has_qkv_bias=False,
        is_fused=True,
        slides="always",
        turns_in_part=True,
        defaults={
            **{"rms_norm_eps": 1e-5, "max_position_embeddings": 4096},
            "original_max_position_embeddings": 4096,
        },
    ),
    "smollm3": Variant(
        slides="late",
        is_tied=True,
        defaults={
            **{"num_key_value_heads": 4, "rope_theta": 2e6, "max_position_embeddings": 32768},
            "no_rope_layer_interval": 4,
        },
    ),
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
_EXPERTS = {
    "mixtral": {
        "experts.router": "block_sparse_moe.gate.weight",
        "experts.gate": "block_sparse_moe.experts.{}.w1.weight",
        "experts.up": "block_sparse_moe.experts.{}.w3.weight",
        "experts.down": "block_sparse_moe.experts.{}.w2.weight",
    },
    "qwen": {
        "experts.router": "mlp.gate.weight",
        "experts.gate": "mlp.experts.{}.gate_proj.weight",
        "experts.up": "mlp.experts.{}.up_proj.weight",
        "experts.down": "mlp.experts.{}.down_proj.weight",
    },
}
_GEMMA = {
    "attention_post_norm": "post_attention_layernorm",
    "mlp_norm": "pre_feedforward_layernorm",
    "mlp_post_norm": "post_feedforward_layernorm",
}


def decoder_names(variant: Variant) -> Names:
    """Return the names of the tensors of a decoder."""
    layer = {**_LAYER, **_GEMMA} if variant.is_gemma else _LAYER
    layer = {**layer, **_EXPERTS[variant.mixture]} if variant.mixture else layer
    table = {
        "embedding": "model.embed_tokens",
        **{f"layers.{{}}.{ours}": f"model.layers.{{}}.{theirs}" for ours, theirs in layer.items()},
        "norm": "model.norm",
        "output": "lm_head",
    }
    return Names(table, prefix="model.", ignored=[r"rotary_emb\.inv_freq$"])


def read_rotary(settings: Settings, variant: Variant, kind: str) -> RotaryPositions:
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
    if share != 1 and not variant.turns_in_part:
        raise ConfigError(
            f"{settings.where} has partial_rotary_factor = {share!r:.80}, which not all programs take notice of in a "
            f"{settings.get('model_type')}; Ember ML has it in phi3, and elsewhere 1"
        )
    if variant.turns_in_part and scaling.get("rope_type", scaling.get("type")) == "yarn":
        scaling = {**scaling, "rope_type": "longrope"}  # so the first files of Phi-3 call it
    trained = settings.get("original_max_position_embeddings", scaling.get("original_max_position_embeddings"))
    try:
        width = int(head_width(settings) * share)
        return RotaryPositions(width, base, {**scaling, "original_max_position_embeddings": trained}, longest)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ConfigError(f"{settings.where} describes rotary positions that cannot be used: {error}") from error


def head_width(settings: Settings) -> int:
    """Return the width of a head."""
    hidden, heads = settings.integer("hidden_size"), settings.integer("num_attention_heads")
    return settings.integer("head_dim", max(hidden // heads, 1))


def layer_kinds(settings: Settings, variant: Variant) -> list[str]:
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
        "sometimes": lambda i: settings.flag("use_sliding_window", False),
        "late": lambda i: settings.flag("use_sliding_window", False) and i >= late,
        "between": lambda i: (i + 1) % pattern != 0,
    }[variant.slides]
    return [SLIDING if slides(i) else FULL for i in range(count)]


def rotary_layers(settings: Settings, count: int) -> list[bool]:
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


def experts_of(settings: Settings, variant: Variant, number: int) -> int:
    """Return how many experts layer ``number`` has, 0 where it has one network."""
    if variant.mixture is None:
        return 0
    if variant.mixture == "qwen":
        dense, step = settings.get("mlp_only_layers", []), settings.integer("decoder_sparse_step", 1)
        if not isinstance(dense, list) or number in dense or (number + 1) % step:
            return 0
    key = "num_experts" if settings.get("num_experts") is not None else "num_local_experts"
    return settings.integer(key, most=10_000)
