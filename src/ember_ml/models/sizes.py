"""Read the sizes of a decoder from its ``config.json``, for planning: no weights are needed."""

from __future__ import annotations

from ember_ml.distributed.planning import Transformer
from ember_ml.errors import ConfigError
from ember_ml.models.llama_variants import VARIANTS, experts_of, head_width
from ember_ml.models.settings import Settings

__all__ = ["read_sizes"]


def read_sizes(settings: Settings) -> Transformer:
    """Return the sizes of GPT-2 or of a decoder of the Llama family.

    >>> from ember_ml.models.settings import Settings
    >>> from ember_ml.models.sizes import read_sizes
    >>> small = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257}
    >>> read_sizes(Settings(small)).layers
    12
    """
    kind = settings.get("model_type")
    if kind == "gpt2":
        width, heads = settings.integer("n_embd", 768), settings.integer("n_head", 12)
        return Transformer(
            layers=settings.integer("n_layer", 12),
            width=width,
            inner=settings.integer("n_inner", 4 * width),
            heads=heads,
            key_heads=heads,
            head_width=width // heads,
            vocabulary=settings.integer("vocab_size", 50257),
            is_gated=False,
            is_tied=settings.flag("tie_word_embeddings", True),
        )
    variant = VARIANTS.get(kind) if isinstance(kind, str) else None
    if variant is None:
        known = ", ".join(sorted(("gpt2", *VARIANTS)))
        raise ConfigError(f"{settings.where} is of a {kind!r:.80}; a plan is made for decoders: {known}")
    settings.assume(variant.defaults)
    heads = settings.integer("num_attention_heads")
    experts = experts_of(settings, variant, settings.integer("num_hidden_layers") - 1)
    inner = settings.integer("intermediate_size")
    return Transformer(
        layers=settings.integer("num_hidden_layers"),
        width=settings.integer("hidden_size"),
        inner=settings.integer("moe_intermediate_size", inner) if experts else inner,
        heads=heads,
        key_heads=settings.integer("num_key_value_heads", heads),
        head_width=head_width(settings),
        vocabulary=settings.integer("vocab_size"),
        is_tied=settings.flag("tie_word_embeddings", variant.is_tied),
        experts=experts or 1,
        chosen_experts=settings.integer("num_experts_per_tok") if experts else 1,
    )
