"""T5 (Raffel et al., 2020): an encoder and a decoder whose attention has a learned bias for each distance.

For each layer ``x = x + attention(norm(x))``, in the decoder ``x = x + attention(norm(x), encoded)`` too, then
``x = x + W2 act(W1 norm(x))``, or with gates in version 1.1. Products of queries and keys are not scaled; norms have no
mean. Distances share a bias in buckets that grow with the distance, and all layers of a stack share the biases.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.models.activations import ACTIVATIONS
from ember_ml.models.generation import TextGenerator
from ember_ml.models.names import Names
from ember_ml.models.settings import Settings
from ember_ml.nn.initializers import normal
from ember_ml.nn.layers.channel_mixing import MLP, Dropout, Embedding, GatedMLP, Linear, RMSNorm
from ember_ml.nn.layers.sequence_mixing.grouped_query import GroupedQueryAttention
from ember_ml.nn.layers.sequence_mixing.heads import KeyValueCache
from ember_ml.nn.modules.module import Module
from ember_ml.typing import IndexLike, MaskLike, Tensor

__all__ = ["T5", "T5State"]

_PARTS = {"query": "q", "key": "k", "value": "v", "output": "o"}
_FORWARD = {
    "relu": ("relu", False),
    "gated-gelu": ("gelu_new", True),
    "gated-silu": ("silu", True),
    "gelu": ("gelu", False),
}
"""By feed_forward_proj: the activation, and whether it is of gates."""


def _forward_part(settings: Settings) -> tuple[Any, bool]:
    """Return the activation of the network of a layer, and whether it is of gates; two keys may say it as well."""
    name, is_gated = settings.choice("feed_forward_proj", _FORWARD, "relu")
    return settings.choice("dense_act_fn", ACTIVATIONS, name), settings.flag("is_gated_act", is_gated)


def _names(is_gated: bool) -> Names:
    table = {"embedding": "shared", "output": "lm_head"}
    for stack, last in (("encoder", 1), ("decoder", 2)):
        block = f"{stack}.block.{{}}.layer"
        table[f"{stack}.distances"] = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias"
        table[f"{stack}.norm"] = f"{stack}.final_layer_norm"
        table[f"{stack}.layers.{{}}.attention_norm"] = f"{block}.0.layer_norm"
        table[f"{stack}.layers.{{}}.context_norm"] = f"{block}.1.layer_norm"
        table[f"{stack}.layers.{{}}.mlp_norm"] = f"{block}.{last}.layer_norm"
        for ours, theirs in _PARTS.items():
            table[f"{stack}.layers.{{}}.attention.{ours}"] = f"{block}.0.SelfAttention.{theirs}"
            table[f"{stack}.layers.{{}}.context.{ours}"] = f"{block}.1.EncDecAttention.{theirs}"
        inner = f"{block}.{last}.DenseReluDense"
        table[f"{stack}.layers.{{}}.mlp.gate"] = f"{inner}.wi_0"
        table[f"{stack}.layers.{{}}.mlp.up"] = f"{inner}.wi_1" if is_gated else f"{inner}.wi"
        table[f"{stack}.layers.{{}}.mlp.down"] = f"{inner}.wo"
    old = [r"^(en|de)coder\.embed_tokens\.weight$", r"EncDecAttention\.relative_attention_bias\.weight$"]
    return Names(table, ignored=old)


class T5State(NamedTuple):
    """What the decoder keeps from one call to the next."""

    caches: tuple[KeyValueCache, ...]
    """Keys and values of the decoder's own tokens, of each layer."""
    contexts: tuple[KeyValueCache, ...]
    """Keys and values of the encoded text, of each layer."""
    seen: Tensor | None
    """(batch, 1, 1, length of the text): false at its padding; None: there is none."""
    length: int
    """The number of the decoder's tokens so far."""


class _Block(Module):
    def __init__(self, settings: Settings, is_decoder: bool) -> None:
        hidden, epsilon = settings.integer("d_model", 512), settings.number("layer_norm_epsilon", 1e-6)
        dropout = settings.number("dropout_rate", 0.1)

        def attention() -> GroupedQueryAttention:
            heads, width = settings.integer("num_heads", 8), settings.integer("d_kv", 64)
            return GroupedQueryAttention(hidden, heads, width=width, scale=1.0, dropout=dropout)

        self.attention_norm, self.attention = RMSNorm(hidden, epsilon), attention()
        if is_decoder:
            self.context_norm, self.context = RMSNorm(hidden, epsilon), attention()
        self.mlp_norm = RMSNorm(hidden, epsilon)
        activation, is_gated = _forward_part(settings)
        kind, inner = GatedMLP if is_gated else MLP, settings.integer("d_ff", 2048)
        self.mlp = kind(inner, inputs=hidden, activation=activation, bias=False, dropout=dropout)
        self.drop = Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        bias: Tensor,
        mask: Tensor | None,
        context: KeyValueCache | None = None,
        cache: KeyValueCache | None = None,
    ) -> tuple[Tensor, Any]:
        """Of the encoder ``mask`` hides padding of the text itself, of the decoder that of the context."""
        is_decoder = context is not None
        found = self.attention(
            self.attention_norm(x), None if is_decoder else mask, bias, is_causal=is_decoder, state=cache
        )
        found, cache = found if cache is not None else (found, None)
        x = ops.add(x, self.drop(found))
        if is_decoder:
            x = ops.add(x, self.drop(self.context(self.context_norm(x), mask, memory=context)))
        return ops.add(x, self.drop(self.mlp(self.mlp_norm(x)))), cache


class _Stack(Module):
    """The layers of the encoder or of the decoder, the biases of distances, and the last norm."""

    def __init__(self, settings: Settings, is_decoder: bool) -> None:
        count = settings.integer("num_layers", 6, most=1000)
        if is_decoder:
            count = settings.integer("num_decoder_layers", count, most=1000)
        self._buckets = settings.integer("relative_attention_num_buckets", 32, least=4, most=100_000)
        self._farthest = settings.integer("relative_attention_max_distance", 128)
        self._is_decoder = is_decoder
        self.distances = Embedding(self._buckets, settings.integer("num_heads", 8), normal(0.02))
        self.layers = [_Block(settings, is_decoder) for _ in range(count)]
        self.norm = RMSNorm(settings.integer("d_model", 512), settings.number("layer_norm_epsilon", 1e-6))
        self.drop = Dropout(settings.number("dropout_rate", 0.1))

    def biases(self, queries: int, keys: int, device: str) -> Tensor:
        """Return the bias of each query and key, (1, heads, queries, keys), where the last query is at the last key."""
        buckets = ops.array([self._bucket(d) for d in range(1 - keys, keys)], device=device)  # of all key - query
        rows = ops.expand_dims(ops.arange(keys - queries, keys, device=device), 1)
        places = ops.add(ops.subtract(ops.arange(keys, device=device), rows), keys - 1)
        return ops.expand_dims(ops.transpose(self.distances(ops.take(buckets, places)), (2, 0, 1)), 0)

    def _bucket(self, distance: int) -> int:
        """Return the bucket of a distance: near ones have their own, far ones share those of a logarithmic scale."""
        count, first = self._buckets, 0
        if not self._is_decoder:  # a half for each direction
            count //= 2
            first = count if distance > 0 else 0
        distance = abs(distance) if not self._is_decoder else max(-distance, 0)
        near = count // 2
        if distance < near:
            return first + distance
        share = math.log(distance / near) / math.log(self._farthest / near)
        return first + min(near + int(share * (count - near)), count - 1)


class T5(TextGenerator):
    """T5 with its head: logits of the decoder's next tokens, given a text for the encoder.

    ``mask`` is false, or 0, at padding of the text. :meth:`generate` takes texts for the encoder and returns what the
    decoder writes.
    """

    names: Names
    encoder: Any
    decoder: Any
    embedding: Embedding
    output: Linear

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        hidden, vocabulary = settings.integer("d_model", 512), settings.integer("vocab_size", 32128)
        self.names = _names(_forward_part(settings)[1])
        self.embedding = Embedding(vocabulary, hidden, normal(1.0))
        self.encoder, self.decoder = _Stack(settings, False), _Stack(settings, True)
        self.output = Linear(hidden, vocabulary, bias=False)
        is_tied = settings.flag("tie_word_embeddings", True)
        if is_tied:
            self.output.weight = self.embedding.variable("weight")
        self._scale = hidden**-0.5 if settings.flag("scale_decoder_outputs", is_tied) else 1.0

    def encode(self, tokens: IndexLike, mask: MaskLike | None = None) -> Tensor:
        """Return the vectors of a text, (batch, length, hidden)."""
        tokens = _check_tokens(tokens)
        x, stack = self.embedding(tokens), self.encoder
        bias, seen = stack.biases(x.shape[1], x.shape[1], ops.get_device(x)), _seen(mask, x)
        x = stack.drop(x)
        for layer in stack.layers:
            x, _ = layer(x, bias, seen)
        return stack.drop(stack.norm(x))

    def begin(self, tokens: IndexLike, mask: MaskLike | None = None) -> T5State:
        """Encode a text; return the state before the decoder's first token."""
        encoded = self.encode(tokens, mask)
        layers = self.decoder.layers
        caches = tuple(layer.attention.initial_state(encoded.shape[0]) for layer in layers)
        contexts = tuple(layer.context.remember(encoded) for layer in layers)
        return T5State(caches, contexts, _seen(mask, encoded), 0)

    def begin_generation(self, tokens: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None, T5State]:
        start = self.settings.get("decoder_start_token_id", self.settings.get("pad_token_id", 0))
        first = ops.full((ops.shape(tokens)[0], 1), start, dtype="int64", device=ops.get_device(tokens))
        return first, None, self.begin(tokens, mask)

    def forward(self, tokens: IndexLike, decoder_tokens: IndexLike, mask: MaskLike | None = None) -> Tensor:
        return self.logits(self.hidden_states(decoder_tokens, None, self.begin(tokens, mask))[0])

    def hidden_states(
        self, tokens: IndexLike, mask: MaskLike | None = None, state: T5State | None = None
    ) -> tuple[Tensor, T5State]:
        """What the decoder makes of its tokens after ``state``, which :meth:`begin` makes, and the state after them."""
        if state is None or mask is not None:
            raise ValueError("the decoder of T5 takes tokens without padding and a state: begin(text) makes one")
        tokens = _check_tokens(tokens)
        x, stack, caches = self.embedding(tokens), self.decoder, []
        length = state.length + x.shape[1]
        bias = stack.biases(x.shape[1], length, ops.get_device(x))
        x = stack.drop(x)
        for layer, cache, context in zip(stack.layers, state.caches, state.contexts, strict=True):
            x, cache = layer(x, bias, state.seen, context, cache)
            caches.append(cache)
        return stack.drop(stack.norm(x)), state._replace(caches=tuple(caches), length=length)

    def logits(self, hidden: Tensor) -> Tensor:
        return self.output(ops.multiply(hidden, self._scale))


def _check_tokens(tokens: IndexLike) -> Tensor:
    found = ops.asarray(tokens)
    if found.ndim != 2 or not found.shape[1]:
        raise ValueError(f"T5 takes tokens of shape (batch, length), not {ops.shape(found)}")
    return found


def _seen(mask: MaskLike | None, x: Tensor) -> Tensor | None:
    return None if mask is None else ops.expand_dims(ops.asarray(mask, dtype="bool", device=ops.get_device(x)), (1, 2))
