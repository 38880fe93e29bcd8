"""BERT (Devlin et al., 2018) and the encoders that differ from it in settings: RoBERTa, XLM-RoBERTa, DistilBERT.

The vectors of tokens, positions and types are added and normalized. For each layer ``x = norm(x + attention(x))``, then
``x = norm(x + W2 gelu(W1 x))``; every position sees every other. ``bert_families.py`` has the keys and names.
"""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.errors import ConfigError
from ember_ml.models.activations import ACTIVATIONS
from ember_ml.models.bert_families import DECODER_BIASES, EMBEDDINGS, FAMILIES, IGNORED, Family
from ember_ml.models.names import Names
from ember_ml.models.pooling import pool_tokens
from ember_ml.models.pretrained import PretrainedModel
from ember_ml.models.settings import Settings, count_labels
from ember_ml.nn.initializers import normal
from ember_ml.nn.layers.channel_mixing import MLP, Dropout, Embedding, LayerNorm, Linear
from ember_ml.nn.layers.sequence_mixing.grouped_query import GroupedQueryAttention
from ember_ml.nn.modules.module import Module
from ember_ml.typing import IndexLike, MaskLike, Tensor

__all__ = ["Encoder", "MaskedWords", "SequenceClassifier", "TokenClassifier"]


class _Block(Module):
    def __init__(self, settings: Settings, family: Family) -> None:
        keys = family.keys
        hidden, epsilon = settings.integer(keys["hidden"], 768), settings.number("layer_norm_eps", 1e-12)
        self.attention = GroupedQueryAttention(
            hidden,
            settings.integer(keys["heads"], 12),
            bias=True,
            dropout=settings.number(keys["attention_dropout"], 0.1),
        )
        self.attention_norm, self.mlp_norm = LayerNorm(hidden, epsilon), LayerNorm(hidden, epsilon)
        activation = settings.choice(keys["activation"], ACTIVATIONS, "gelu")
        self.mlp = MLP(settings.integer(keys["inner"], 4 * hidden), inputs=hidden, activation=activation)
        self.drop = Dropout(settings.number(keys["dropout"], 0.1))

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = self.attention_norm(ops.add(x, self.drop(self.attention(x, mask))))
        return self.mlp_norm(ops.add(x, self.drop(self.mlp(x))))


class Encoder(PretrainedModel):
    """An encoder without a head: (batch, length, hidden) vectors for (batch, length) tokens.

    ``mask`` is false, or 0, at padding. ``types`` are those of the tokens, 0 or 1, for models that know two texts.
    """

    head: str = "model"
    family: Family
    names: Names
    longest: int
    embedding: Embedding
    places: Embedding
    types: Embedding
    norm: LayerNorm
    drop: Dropout
    layers: list[Any]
    pooler: Linear

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        if settings.flag("is_decoder", False):
            raise ConfigError(
                f"{settings.where} has is_decoder: its positions would see those before them alone; Ember ML has such "
                "models as encoders, whose positions see all"
            )
        self.family = settings.choice("model_type", FAMILIES)
        self.names = self._names()
        hidden, vocabulary = settings.integer(self.family.keys["hidden"], 768), settings.integer("vocab_size", 30522)
        self.longest = settings.integer("max_position_embeddings", 512)
        self.embedding = Embedding(vocabulary, hidden, normal(0.02))
        self.places = Embedding(self.longest, hidden, normal(0.02))
        if self.family.has_types:
            self.types = Embedding(settings.integer("type_vocab_size", 2), hidden, normal(0.02))
        self.norm = LayerNorm(hidden, settings.number("layer_norm_eps", 1e-12))
        self.drop = Dropout(settings.number(self.family.keys["dropout"], 0.1))
        count = settings.integer(self.family.keys["layers"], 12, most=1000)
        self.layers = [_Block(settings, self.family) for _ in range(count)]
        if self.head in self.family.pools:
            self.pooler = Linear(hidden, hidden)

    def _names(self) -> Names:
        family, ignored = self.family, list(IGNORED)
        if self.head not in family.pools:
            ignored.append(r"(^|\.)pooler\.dense\.")
        table = {key: family.prefix + name for key, name in {**EMBEDDINGS, **family.layer}.items()}
        heads = dict(family.heads)
        bias = heads.get("words.output.bias")
        if bias in DECODER_BIASES:
            is_tied = self.settings.flag("tie_word_embeddings", True)
            used, unused = (bias, DECODER_BIASES[bias]) if is_tied else (DECODER_BIASES[bias], bias)
            heads["words.output.bias"] = used
            ignored.append(f"^{unused}$")
        names = Names(
            {**table, **heads},
            family.prefix,
            ignored=ignored,
            old={"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"},
        )
        return names.without_prefix() if self.head == "model" else names

    def forward(self, tokens: IndexLike, mask: MaskLike | None = None, types: IndexLike | None = None) -> Tensor:
        return self.hidden_states(tokens, mask, types)

    def hidden_states(self, tokens: IndexLike, mask: MaskLike | None = None, types: IndexLike | None = None) -> Tensor:
        """The vectors that the last layer makes of the tokens."""
        tokens = ops.asarray(tokens)
        if tokens.ndim != 2 or not tokens.shape[1]:
            raise ValueError(f"{type(self).__name__} takes tokens of shape (batch, length), not {ops.shape(tokens)}")
        x = ops.add(self.embedding(tokens), self.places(self._positions(tokens)))
        if self.family.has_types:
            x = ops.add(x, self.types(ops.zeros_like(tokens) if types is None else types))
        elif types is not None:
            raise ValueError("this model knows no types of tokens")
        x = self.drop(self.norm(x))
        seen = None
        if mask is not None:
            seen = ops.expand_dims(ops.asarray(mask, dtype="bool", device=ops.get_device(tokens)), (1, 2))
        for layer in self.layers:
            x = layer(x, seen)
        return x

    def _positions(self, tokens: Tensor) -> Tensor:
        count, device = tokens.shape[1], ops.get_device(tokens)
        padding = self.settings.integer("pad_token_id", 1, least=0) if self.family.counts_tokens else 0
        if count + (padding + 1) * self.family.counts_tokens > self.longest:
            raise ValueError(
                f"this model has {self.longest} positions (max_position_embeddings), too few for {count} tokens"
            )
        if not self.family.counts_tokens:
            return ops.expand_dims(ops.arange(count, device=device), 0)
        is_token = ops.cast(ops.not_equal(tokens, padding), "int64")
        return ops.add(ops.multiply(ops.cumsum(is_token, 1), is_token), padding)

    def embed(self, tokens: IndexLike, mask: MaskLike | None = None, pooling: str = "mean") -> Tensor:
        """Return one vector for each text: the "mean" of its tokens, its "first" token, another pooling of
        :func:`pool_tokens`, or of models that have one the "pooler".
        """
        x = self.hidden_states(tokens, mask)
        if pooling == "pooler" and self.head in self.family.pools:
            return self.pool(x)
        return pool_tokens(x, mask, pooling)

    def pool(self, x: Tensor) -> Tensor:
        """Return tanh of a linear map of the first position."""
        return ops.tanh(self.pooler(ops.get_item(x, (slice(None), 0))))


class _Words(Module):
    """``output(norm(activation(dense(x))))``, where output has the vectors of the tokens."""

    def __init__(self, hidden: int, vocabulary: int, epsilon: float, activation: Any) -> None:
        self.dense, self.norm = Linear(hidden, hidden), LayerNorm(hidden, epsilon)
        self.output = Linear(hidden, vocabulary)
        self._activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.norm(self._activation(self.dense(x))))


class MaskedWords(Encoder):
    """An encoder with logits of the token at each position, (batch, length, vocabulary)."""

    head = "words"
    words: Any

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        key = self.family.keys["activation"]
        activation = settings.choice(key, ACTIVATIONS, "gelu")
        if self.family.activation is not None:
            activation = ACTIVATIONS[self.family.activation]
        vocabulary, hidden = self.embedding.count, self.embedding.width
        self.words = _Words(hidden, vocabulary, settings.number("layer_norm_eps", 1e-12), activation)
        if settings.flag("tie_word_embeddings", True):
            self.words.output.weight = self.embedding.variable("weight")

    def forward(self, tokens: IndexLike, mask: MaskLike | None = None, types: IndexLike | None = None) -> Tensor:
        return self.words(self.hidden_states(tokens, mask, types))


def _head_dropout(settings: Settings, family: Family) -> Dropout:
    usual = settings.number(family.keys["dropout"], 0.1) if "classifier" in family.keys["head_dropout"] else 0.2
    return Dropout(settings.number(family.keys["head_dropout"], usual))


class SequenceClassifier(Encoder):
    """An encoder with logits for the whole text, (batch, labels)."""

    head = "sequence"
    dense: Linear
    classifier: Linear
    classifier_of_dense: Linear
    head_drop: Dropout

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        hidden, labels = self.embedding.width, count_labels(settings)
        if self.head not in self.family.pools:
            self.dense = Linear(hidden, hidden)
        if "classifier_of_dense" in self.family.heads:
            self.classifier_of_dense = Linear(hidden, labels)
        else:
            self.classifier = Linear(hidden, labels)
        self.head_drop = _head_dropout(settings, self.family)

    def forward(self, tokens: IndexLike, mask: MaskLike | None = None, types: IndexLike | None = None) -> Tensor:
        x = self.hidden_states(tokens, mask, types)
        if self.head in self.family.pools:
            return self.classifier(self.head_drop(self.pool(x)))
        first = ops.get_item(x, (slice(None), 0))
        if "classifier_of_dense" in self.family.heads:
            return self.classifier_of_dense(self.head_drop(ops.tanh(self.dense(self.head_drop(first)))))
        return self.classifier(self.head_drop(ops.relu(self.dense(first))))


class TokenClassifier(Encoder):
    """An encoder with logits for each token, (batch, length, labels)."""

    head = "tokens"
    classifier: Linear
    head_drop: Dropout

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.classifier = Linear(self.embedding.width, count_labels(settings))
        self.head_drop = _head_dropout(settings, self.family)

    def forward(self, tokens: IndexLike, mask: MaskLike | None = None, types: IndexLike | None = None) -> Tensor:
        return self.classifier(self.head_drop(self.hidden_states(tokens, mask, types)))
