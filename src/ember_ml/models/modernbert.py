"""ModernBERT (Warner et al., 2024): BERT with rotary positions, gates, and layers that see only their neighbourhood.

For each layer ``x = x + attention(norm(x))``, then ``x = x + W2 (gelu(gate) * up)`` of ``gate, up = W1 norm(x)``. The
first layer has no norm before its attention, since the vectors of the tokens are normalized. One layer in three sees
all positions, the others those that are at most half a window away; the two kinds turn by different frequencies.
"""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.errors import ConfigError
from ember_ml.models.activations import ACTIVATIONS
from ember_ml.models.names import Names
from ember_ml.models.pooling import pool_tokens
from ember_ml.models.pretrained import PretrainedModel
from ember_ml.models.settings import Settings, count_labels
from ember_ml.nn.initializers import normal
from ember_ml.nn.layers.channel_mixing import Dropout, Embedding, LayerNorm, Linear
from ember_ml.nn.layers.sequence_mixing.grouped_query import GroupedQueryAttention
from ember_ml.nn.layers.sequence_mixing.rotary import RotaryPositions, Rotation
from ember_ml.nn.modules.module import Module
from ember_ml.typing import IndexLike, MaskLike, Tensor

__all__ = ["ModernBert", "ModernBertSequence", "ModernBertTokens", "ModernBertWords"]

FULL, SLIDING = "full_attention", "sliding_attention"
_BASES = {FULL: ("global_rope_theta", 160_000.0), SLIDING: ("local_rope_theta", 10_000.0)}
"""By the kind of a layer: the key of the base in older files, and its usual value."""
_TABLE = {
    "embedding": "model.embeddings.tok_embeddings",
    "embedding_norm": "model.embeddings.norm",
    "layers.{}.attention_norm": "model.layers.{}.attn_norm",
    "layers.{}.attention.qkv": "model.layers.{}.attn.Wqkv",
    "layers.{}.attention.output": "model.layers.{}.attn.Wo",
    "layers.{}.mlp_norm": "model.layers.{}.mlp_norm",
    "layers.{}.gate_up": "model.layers.{}.mlp.Wi",
    "layers.{}.down": "model.layers.{}.mlp.Wo",
    "norm": "model.final_norm",
    "head.dense": "head.dense",
    "head.norm": "head.norm",
    "output": "decoder",
    "classifier": "classifier",
}


def _norm(settings: Settings) -> LayerNorm:
    hidden = settings.integer("hidden_size", 768)
    return LayerNorm(hidden, settings.number("norm_eps", 1e-5), bias=settings.flag("norm_bias", False))


class _Block(Module):
    attention_norm: LayerNorm

    def __init__(self, settings: Settings, kind: str, is_first: bool) -> None:
        hidden, inner = settings.integer("hidden_size", 768), settings.integer("intermediate_size", 1152)
        has_bias, dropout = settings.flag("attention_bias", False), settings.number("attention_dropout", 0.0)
        self.kind, self._is_first = kind, is_first
        if not is_first:
            self.attention_norm = _norm(settings)
        self.attention = GroupedQueryAttention(
            hidden, settings.integer("num_attention_heads", 12), bias=has_bias, is_fused=True, dropout=dropout
        )
        self.mlp_norm, has_bias = _norm(settings), settings.flag("mlp_bias", False)
        self.gate_up, self.down = Linear(hidden, 2 * inner, has_bias), Linear(inner, hidden, has_bias)
        self.drop, self.inner_drop = Dropout(dropout), Dropout(settings.number("mlp_dropout", 0.0))
        self._activation = settings.choice("hidden_activation", ACTIVATIONS, "gelu")

    def forward(self, x: Tensor, masks: dict[str, Tensor | None], rotations: dict[str, Rotation]) -> Tensor:
        y = x if self._is_first else self.attention_norm(x)
        x = ops.add(x, self.drop(self.attention(y, masks[self.kind], rotation=rotations[self.kind])))
        gate, up = ops.split(self.gate_up(self.mlp_norm(x)), 2, axis=-1)
        return ops.add(x, self.down(self.inner_drop(ops.multiply(self._activation(gate), up))))


class _Head(Module):
    """``norm(act(dense(x)))``"""

    def __init__(self, settings: Settings) -> None:
        hidden = settings.integer("hidden_size", 768)
        self.dense = Linear(hidden, hidden, settings.flag("classifier_bias", False))
        self.norm = _norm(settings)
        self._activation = settings.choice("classifier_activation", ACTIVATIONS, "gelu")

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self._activation(self.dense(x)))


class ModernBert(PretrainedModel):
    """ModernBERT without a head: (batch, length, hidden) vectors for (batch, length) tokens.

    ``mask`` is false, or 0, at padding.
    """

    has_head: bool = False
    names: Names
    embedding: Embedding
    embedding_norm: LayerNorm
    layers: list[Any]
    norm: LayerNorm
    drop: Dropout

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        names = Names(_TABLE, "model.", ignored=() if self.has_head else (r"^(head|decoder|classifier)\.",))
        self.names = names if self.has_head else names.without_prefix()
        hidden = settings.integer("hidden_size", 768)
        kinds = _layer_kinds(settings)
        self.embedding = Embedding(settings.integer("vocab_size", 50368), hidden, normal(0.02))
        self.embedding_norm, self.norm = _norm(settings), _norm(settings)
        self.layers = [_Block(settings, kind, i == 0) for i, kind in enumerate(kinds)]
        self.drop = Dropout(settings.number("embedding_dropout", 0.0))
        self._reach = settings.integer("local_attention", 128, least=0) // 2
        width = hidden // settings.integer("num_attention_heads", 12)
        self._rotary = {kind: _read_rotary(settings, kind, width) for kind in dict.fromkeys(kinds)}

    def forward(self, tokens: IndexLike, mask: MaskLike | None = None) -> Tensor:
        return self.hidden_states(tokens, mask)

    def hidden_states(self, tokens: IndexLike, mask: MaskLike | None = None) -> Tensor:
        """The normalized vectors that the last layer makes of the tokens."""
        tokens = ops.asarray(tokens)
        if tokens.ndim != 2 or not tokens.shape[1]:
            raise ValueError(f"{type(self).__name__} takes tokens of shape (batch, length), not {ops.shape(tokens)}")
        count, device = tokens.shape[1], ops.get_device(tokens)
        x = self.drop(self.embedding_norm(self.embedding(tokens)))
        places = ops.expand_dims(ops.arange(count, device=device), 0)
        rotations = {kind: rotary(places, count, x.dtype) for kind, rotary in self._rotary.items()}
        full = None if mask is None else ops.expand_dims(ops.asarray(mask, dtype="bool", device=device), (1, 2))
        masks = {FULL: full, SLIDING: self._neighbours(full, count, device)}
        for layer in self.layers:
            x = layer(x, masks, rotations)
        return self.norm(x)

    def _neighbours(self, full: Tensor | None, count: int, device: str) -> Tensor | None:
        """Return the mask of layers that see the positions at most half a window away."""
        if count <= self._reach + 1:
            return full
        places = ops.arange(count, device=device)
        near = ops.less_equal(ops.abs(ops.subtract(ops.expand_dims(places, 1), places)), self._reach)
        return near if full is None else ops.logical_and(full, near)

    def embed(self, tokens: IndexLike, mask: MaskLike | None = None, pooling: str = "mean") -> Tensor:
        """Return one vector for each text; ``pooling`` is "mean", "first" or another of :func:`pool_tokens`."""
        return pool_tokens(self.hidden_states(tokens, mask), mask, pooling)


class ModernBertWords(ModernBert):
    """ModernBERT with logits of the token at each position, (batch, length, vocabulary)."""

    has_head = True
    head: Any
    output: Linear

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.head = _Head(settings)
        self.output = Linear(self.embedding.width, self.embedding.count, settings.flag("decoder_bias", True))
        if settings.flag("tie_word_embeddings", True):
            self.output.weight = self.embedding.variable("weight")

    def forward(self, tokens: IndexLike, mask: MaskLike | None = None) -> Tensor:
        return self.output(self.head(self.hidden_states(tokens, mask)))


class ModernBertTokens(ModernBert):
    """ModernBERT with logits for each token, (batch, length, labels)."""

    has_head = True
    head: Any
    head_drop: Dropout
    classifier: Linear

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.head, self.head_drop = _Head(settings), Dropout(settings.number("classifier_dropout", 0.0))
        self.classifier = Linear(self.embedding.width, count_labels(settings))

    def forward(self, tokens: IndexLike, mask: MaskLike | None = None) -> Tensor:
        return self.classifier(self.head_drop(self.head(self.hidden_states(tokens, mask))))


class ModernBertSequence(ModernBertTokens):
    """ModernBERT with logits for the whole text, (batch, labels)."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._is_mean = settings.choice("classifier_pooling", {"cls": False, "mean": True}, "cls")

    def forward(self, tokens: IndexLike, mask: MaskLike | None = None) -> Tensor:
        x = self.hidden_states(tokens, mask)
        x = pool_tokens(x, mask) if self._is_mean else ops.get_item(x, (slice(None), 0))
        return self.classifier(self.head_drop(self.head(x)))


def _layer_kinds(settings: Settings) -> list[str]:
    count = settings.integer("num_hidden_layers", 22, most=1000)
    named = settings.words("layer_types", (FULL, SLIDING), count)
    every = settings.integer("global_attn_every_n_layers", 3)
    return [SLIDING if i % every else FULL for i in range(count)] if named is None else named


def _read_rotary(settings: Settings, kind: str, width: int) -> RotaryPositions:
    key, usual = _BASES[kind]
    found = settings.table("rope_parameters").get(kind) or settings.table("rope_scaling")
    try:
        base = found.get("rope_theta", settings.number(key, usual))
        return RotaryPositions(width, base, found, settings.integer("max_position_embeddings", 8192))
    except (AttributeError, TypeError, ValueError, ArithmeticError) as error:
        raise ConfigError(f"{settings.where} describes rotary positions that cannot be used: {error}") from error
