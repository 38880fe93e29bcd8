"""GPT-2 (Radford et al., 2019): a decoder with learned positions and norms before each part.

For each layer ``x = x + attention(norm(x))``, then ``x = x + W2 gelu(W1 norm(x))``; after the last one a norm. The
logits are products with the vectors of the tokens.
"""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.models.activations import ACTIVATIONS
from ember_ml.models.causal import CausalModel, Positions
from ember_ml.models.names import Names
from ember_ml.models.settings import Settings
from ember_ml.nn.initializers import normal
from ember_ml.nn.layers.channel_mixing import MLP, Dropout, Embedding, LayerNorm, Linear
from ember_ml.nn.layers.sequence_mixing.grouped_query import GroupedQueryAttention
from ember_ml.nn.layers.sequence_mixing.heads import KeyValueCache
from ember_ml.nn.modules.module import Module
from ember_ml.typing import Tensor

__all__ = ["GPT2"]

_TABLE = {
    "embedding": "transformer.wte",
    "places": "transformer.wpe",
    "layers.{}.attention_norm": "transformer.h.{}.ln_1",
    "layers.{}.attention.qkv": "transformer.h.{}.attn.c_attn",
    "layers.{}.attention.output": "transformer.h.{}.attn.c_proj",
    "layers.{}.mlp_norm": "transformer.h.{}.ln_2",
    "layers.{}.mlp.up": "transformer.h.{}.mlp.c_fc",
    "layers.{}.mlp.down": "transformer.h.{}.mlp.c_proj",
    "norm": "transformer.ln_f",
    "output": "lm_head",
}
NAMES: Names = Names(
    _TABLE,
    prefix="transformer.",
    # stored as (inputs, outputs)
    transposed=[key for key in _TABLE if key.startswith(("layers.{}.attention.", "layers.{}.mlp."))],
    ignored=[r"h\.\d+\.attn\.(masked_)?bias$"],  # masks, in old files
)


class _Block(Module):
    def __init__(self, settings: Settings, number: int) -> None:
        hidden, heads = settings.integer("n_embd", 768), settings.integer("n_head", 12)
        epsilon = settings.number("layer_norm_epsilon", 1e-5)
        scale = (hidden // heads) ** -0.5 if settings.flag("scale_attn_weights", True) else 1.0
        if settings.flag("scale_attn_by_inverse_layer_idx", False):
            scale /= number + 1
        self.attention_norm = LayerNorm(hidden, epsilon)
        self.attention = GroupedQueryAttention(
            hidden, heads, bias=True, is_fused=True, scale=scale, dropout=settings.number("attn_pdrop", 0.1)
        )
        self.mlp_norm = LayerNorm(hidden, epsilon)
        activation = settings.choice("activation_function", ACTIVATIONS, "gelu_new")
        self.mlp = MLP(settings.integer("n_inner", 4 * hidden), inputs=hidden, activation=activation)
        self.drop = Dropout(settings.number("resid_pdrop", 0.1))

    def forward(self, x: Tensor, positions: Positions, shared: None, cache: KeyValueCache | None) -> tuple[Tensor, Any]:
        mask, is_causal = positions.mask()
        found = self.attention(self.attention_norm(x), mask, is_causal=is_causal, state=cache)
        found, cache = found if cache is not None else (found, None)
        x = ops.add(x, self.drop(found))
        return ops.add(x, self.drop(self.mlp(self.mlp_norm(x)))), cache


class GPT2(CausalModel):
    """GPT-2 with its head for the next token."""

    longest: int
    embedding: Embedding
    places: Embedding
    drop: Dropout
    layers: list[Any]
    norm: Any
    output: Linear

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.names = NAMES
        hidden, vocabulary = settings.integer("n_embd", 768), settings.integer("vocab_size", 50257)
        self.longest = settings.integer("n_positions", 1024)
        self.embedding = Embedding(vocabulary, hidden, normal(0.02))
        self.places = Embedding(self.longest, hidden, normal(0.02))
        self.drop = Dropout(settings.number("embd_pdrop", 0.1))
        self.layers = [_Block(settings, i) for i in range(settings.integer("n_layer", 12, most=1000))]
        self.norm = LayerNorm(hidden, settings.number("layer_norm_epsilon", 1e-5))
        self.output = Linear(hidden, vocabulary, bias=False)
        if settings.flag("tie_word_embeddings", True):
            self.output.weight = self.embedding.variable("weight")

    def embed(self, tokens: Tensor, positions: Positions) -> Tensor:
        if positions.count > self.longest:
            raise ValueError(f"this GPT-2 takes {self.longest} tokens at most (n_positions), not {positions.count}")
        return self.drop(ops.add(self.embedding(tokens), self.places(positions.numbers)))

    def logits(self, hidden: Tensor) -> Tensor:
        return self.output(hidden)
