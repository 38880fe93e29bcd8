"""Whisper (Radford et al., 2022): an encoder of log-mel spectrograms and a decoder that writes what was said.

Two convolutions, the second with stride 2, make vectors of the frames, to which sines and cosines of the positions are
added. For each layer ``x = x + attention(norm(x))``, in the decoder ``x = x + attention(norm(x), encoded)`` too, then
``x = x + W2 gelu(W1 norm(x))``. Keys have no bias. The first tokens of the decoder say language and task.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.models.activations import ACTIVATIONS
from ember_ml.models.names import Names
from ember_ml.models.pretrained import PretrainedModel
from ember_ml.models.settings import Settings
from ember_ml.models.whisper_writing import Segment, Wish, write_segments, write_texts
from ember_ml.nn.initializers import normal
from ember_ml.nn.layers.channel_mixing import MLP, Conv1d, Dropout, Embedding, LayerNorm, Linear
from ember_ml.nn.layers.sequence_mixing.grouped_query import GroupedQueryAttention
from ember_ml.nn.layers.sequence_mixing.heads import KeyValueCache, causal_mask
from ember_ml.nn.modules.module import Module
from ember_ml.typing import IndexLike, MaskLike, Tensor, TensorLike

__all__ = ["Whisper", "WhisperState"]

_PARTS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}


def _names() -> Names:
    table = {"output": "proj_out", "encoder.first": "model.encoder.conv1", "encoder.second": "model.encoder.conv2"}
    table["decoder.embedding"] = "model.decoder.embed_tokens"
    for stack in ("encoder", "decoder"):
        layer = f"model.{stack}.layers.{{}}"
        table[f"{stack}.places"] = f"model.{stack}.embed_positions"
        table[f"{stack}.norm"] = f"model.{stack}.layer_norm"
        table[f"{stack}.layers.{{}}.attention_norm"] = f"{layer}.self_attn_layer_norm"
        table[f"{stack}.layers.{{}}.context_norm"] = f"{layer}.encoder_attn_layer_norm"
        table[f"{stack}.layers.{{}}.mlp_norm"] = f"{layer}.final_layer_norm"
        table[f"{stack}.layers.{{}}.mlp.up"] = f"{layer}.fc1"
        table[f"{stack}.layers.{{}}.mlp.down"] = f"{layer}.fc2"
        for ours, theirs in _PARTS.items():
            table[f"{stack}.layers.{{}}.attention.{ours}"] = f"{layer}.self_attn.{theirs}"
            table[f"{stack}.layers.{{}}.context.{ours}"] = f"{layer}.encoder_attn.{theirs}"
    return Names(table, prefix="model.")


class WhisperState(NamedTuple):
    """What the decoder keeps from one call to the next."""

    caches: tuple[KeyValueCache, ...]
    """Keys and values of the decoder's own tokens, of each layer."""
    contexts: tuple[KeyValueCache, ...]
    """Keys and values of the encoded sound, of each layer."""
    length: int
    """The number of the decoder's tokens so far."""


class _Block(Module):
    context_norm: LayerNorm
    context: GroupedQueryAttention

    def __init__(self, settings: Settings, stack: str) -> None:
        hidden, heads = settings.integer("d_model", 384), settings.integer(f"{stack}_attention_heads", 6)

        def attention() -> GroupedQueryAttention:
            made = GroupedQueryAttention(hidden, heads, bias=True, dropout=settings.number("attention_dropout", 0.0))
            made.key = Linear(hidden, hidden, bias=False)
            return made

        self.attention_norm, self.attention = LayerNorm(hidden), attention()
        if stack == "decoder":
            self.context_norm, self.context = LayerNorm(hidden), attention()
        self.mlp_norm = LayerNorm(hidden)
        self.mlp = MLP(
            settings.integer(f"{stack}_ffn_dim", 1536),
            inputs=hidden,
            activation=settings.choice("activation_function", ACTIVATIONS, "gelu"),
            dropout=settings.number("activation_dropout", 0.0),
        )
        self.drop = Dropout(settings.number("dropout", 0.0))

    def forward(
        self,
        x: Tensor,
        mask: tuple[Tensor | None, bool] = (None, False),
        context: KeyValueCache | None = None,
        cache: KeyValueCache | None = None,
    ) -> tuple[Tensor, Any]:
        found = self.attention(self.attention_norm(x), mask[0], is_causal=mask[1], state=cache)
        found, cache = found if cache is not None else (found, None)
        x = ops.add(x, self.drop(found))
        if context is not None:
            x = ops.add(x, self.drop(self.context(self.context_norm(x), memory=context)))
        return ops.add(x, self.drop(self.mlp(self.mlp_norm(x)))), cache


class _Encoder(Module):
    def __init__(self, settings: Settings) -> None:
        hidden, self.bins = settings.integer("d_model", 384), settings.integer("num_mel_bins", 80)
        self.frames: int = 2 * settings.integer("max_source_positions", 1500)
        self.first = Conv1d(self.bins, hidden, 3, padding=1)
        self.second = Conv1d(hidden, hidden, 3, strides=2, padding=1)
        self.places = Embedding(self.frames // 2, hidden, _draw_waves)
        self.places.freeze()
        self.layers = [_Block(settings, "encoder") for _ in range(settings.integer("encoder_layers", 4, most=1000))]
        self.norm, self.drop = LayerNorm(hidden), Dropout(settings.number("dropout", 0.0))

    def forward(self, features: TensorLike) -> Tensor:
        features = ops.asarray(features)
        if tuple(ops.shape(features))[1:] != (self.frames, self.bins):
            raise ValueError(
                f"Whisper takes log-mel spectrograms of shape (batch, {self.frames}, {self.bins}), as models.processor "
                f"makes them, not {ops.shape(features)}"
            )
        x = ops.cast(features, self.first.weight.dtype)
        for convolution in (self.first, self.second):
            x = ops.gelu(convolution(x), approximate=False)
        x = self.drop(ops.add(x, self.places.weight))
        for layer in self.layers:
            x, _ = layer(x)
        return self.norm(x)


class _Decoder(Module):
    def __init__(self, settings: Settings) -> None:
        hidden = settings.integer("d_model", 384)
        self.longest: int = settings.integer("max_target_positions", 448)
        self.embedding = Embedding(settings.integer("vocab_size", 51865), hidden, normal(0.02))
        self.places = Embedding(self.longest, hidden, normal(0.02))
        self.layers = [_Block(settings, "decoder") for _ in range(settings.integer("decoder_layers", 4, most=1000))]
        self.norm, self.drop = LayerNorm(hidden), Dropout(settings.number("dropout", 0.0))

    def forward(self, tokens: IndexLike, state: WhisperState) -> tuple[Tensor, WhisperState]:
        tokens = ops.asarray(tokens)
        if tokens.ndim != 2 or not tokens.shape[1]:
            raise ValueError(f"the decoder takes tokens of shape (batch, length), not {ops.shape(tokens)}")
        count, device = tokens.shape[1], ops.get_device(tokens)
        length = state.length + count
        if length > self.longest:
            raise ValueError(f"this Whisper writes {self.longest} tokens at most (max_target_positions), not {length}")
        places = self.places(ops.arange(state.length, length, device=device))
        x = self.drop(ops.add(self.embedding(tokens), places))
        mask, caches = causal_mask(count, length, device=device), []
        for layer, cache, context in zip(self.layers, state.caches, state.contexts, strict=True):
            x, cache = layer(x, mask, context, cache)
            caches.append(cache)
        return self.norm(x), state._replace(caches=tuple(caches), length=length)


class Whisper(PretrainedModel):
    """Whisper with its head: logits of the decoder's next tokens, given (batch, frames, bins) log-mel spectrograms.

    ``models.processor`` makes those of sounds; :meth:`transcribe` writes what was said.
    """

    names: Names
    encoder: Any
    decoder: Any
    output: Linear

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.names = _names()
        self.encoder, self.decoder = _Encoder(settings), _Decoder(settings)
        embedding = self.decoder.embedding
        self.output = Linear(embedding.width, embedding.count, bias=False)
        if settings.flag("tie_word_embeddings", True):
            self.output.weight = embedding.variable("weight")

    def encode(self, features: TensorLike) -> Tensor:
        """Return the vectors of a sound, (batch, frames / 2, hidden)."""
        return self.encoder(features)

    def begin(self, features: TensorLike) -> WhisperState:
        """Encode a sound; return the state before the decoder's first token."""
        encoded, layers = self.encode(features), self.decoder.layers
        caches = tuple(layer.attention.initial_state(encoded.shape[0]) for layer in layers)
        return WhisperState(caches, tuple(layer.context.remember(encoded) for layer in layers), 0)

    def forward(self, features: TensorLike, tokens: IndexLike) -> Tensor:
        return self.logits(self.hidden_states(tokens, None, self.begin(features))[0])

    def hidden_states(
        self, tokens: IndexLike, mask: MaskLike | None = None, state: WhisperState | None = None
    ) -> tuple[Tensor, WhisperState]:
        """What the decoder makes of its tokens after ``state``, which :meth:`begin` makes, and the state after them."""
        if state is None or mask is not None:
            raise ValueError(
                "the decoder of Whisper takes tokens without padding and a state: begin(features) makes one"
            )
        return self.decoder(tokens, state)

    def logits(self, hidden: Tensor) -> Tensor:
        return self.output(hidden)

    def transcribe(
        self,
        features: TensorLike,
        max_new_tokens: int | None = None,
        *,
        language: str | None = None,
        task: str = "transcribe",
        temperature: float = 0.0,
        seed: int | None = None,
        stop: int | Iterable[int] | None = None,
        on_tokens: Callable[[list[int | None]], Any] | None = None,
    ) -> list[list[int]]:
        """Return the tokens that the decoder writes for each spectrogram, without the first ones and without times.

        Args:
            features: (batch, frames, bins), as ``models.processor`` makes them.
            max_new_tokens: The most tokens of each; None: as many as the model has positions for.
            language: As "en"; None: the model chooses it for each sound, if it knows several.
            task: "transcribe" or "translate" (to English), of models that know several languages.
            temperature: As in :meth:`generate`, like ``seed``, ``stop`` and ``on_tokens``.
        """
        wish = Wish(max_new_tokens, language, task, temperature, seed)
        return write_texts(self, features, wish, stop, on_tokens)

    def transcribe_segments(
        self,
        features: TensorLike,
        max_new_tokens: int | None = None,
        *,
        language: str | None = None,
        task: str = "transcribe",
        temperature: float = 0.0,
        seed: int | None = None,
    ) -> list[list[Segment]]:
        """Return what is said in each spectrogram, and when: segments with ``start``, ``end`` and ``tokens``.

        The sounds may be of any length: the model hears 30 seconds, and goes on where the last whole segment ended.
        Times are seconds.

        Args:
            features: (batch, frames, bins), of any number of frames.
            max_new_tokens: The most tokens of each window, times included; None: as many as there is room for.
            language: As in :meth:`transcribe`, from the first window; like ``task``, ``temperature`` and ``seed``.
        """
        return write_segments(self, features, Wish(max_new_tokens, language, task, temperature, seed))


def _draw_waves(shape: Sequence[int], dtype: Any) -> Tensor:
    """Return the sines, then the cosines, of positions at wavelengths from 2 pi to 20,000 pi."""
    count, width = shape
    half = width // 2
    rates = ops.exp(ops.multiply(ops.arange(half, dtype="float32"), -math.log(10_000) / max(half - 1, 1)))
    angles = ops.multiply(ops.expand_dims(ops.arange(count, dtype="float32"), 1), rates)
    return ops.cast(ops.concatenate([ops.sin(angles), ops.cos(angles)], 1), dtype)
