"""A decoder-only language model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Unpack

from ember_ml import ops
from ember_ml.nn.blocks.transformer import BlockOptions, Transformer
from ember_ml.nn.generation import generate
from ember_ml.nn.initializers import normal
from ember_ml.nn.layers.channel_mixing import Embedding, Linear
from ember_ml.nn.layers.sequence_mixing.heads import KeyValueCache
from ember_ml.nn.layers.sequence_mixing.sequence_parts import current_part
from ember_ml.nn.model import Model
from ember_ml.typing import DeviceLike, DTypeLike, IndexLike, Tensor

__all__ = ["LanguageModel"]


class LanguageModel(Model):
    """A decoder-only transformer: logits of the next token for each position of (batch, length) integers.

    With ``length``, the longest sequence, each place has a learned vector; without, attention is rotary. The logits are
    products with the vectors of the tokens, or with others where not ``tied``. The other arguments are those of
    :class:`nn.blocks.TransformerBlock`, its keyword arguments included.

    Args:
        vocabulary: The number of tokens.
        hidden: The width of the blocks.
        layers: The number of blocks.
        length: The longest sequence, for learned positions; None: rotary attention.
        tied: Whether the logits use the vectors of the tokens.
        logit_cap: Logits become ``cap * tanh(logit / cap)``; None: they stay.
        block: Keyword arguments of :class:`nn.blocks.TransformerBlock` besides those that are named here.

    >>> from ember_ml import nn, ops
    >>> model = nn.blocks.LanguageModel(vocabulary=50, hidden=32, layers=2, heads=4)
    >>> ops.shape(model([[7, 3, 9]]))
    (1, 3, 50)
    >>> ops.shape(model.generate([[7, 3, 9]], count=5, seed=0))
    (1, 8)
    """

    vocabulary: int
    hidden: int
    length: int | None
    tied: bool
    logit_cap: float | None
    embedding: Embedding
    places: Embedding
    transformer: Transformer
    output: Linear

    def __init__(
        self,
        vocabulary: int,
        hidden: int,
        layers: int,
        heads: int | None = None,
        groups: int | None = None,
        length: int | None = None,
        expansion: float = 4.0,
        activation: str | Callable[[Any], Any] | None = None,
        gated: bool = False,
        norm: str = "layer",
        dropout: float = 0.0,
        bias: bool = True,
        tied: bool = True,
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
        *,
        logit_cap: float | None = None,
        **block: Unpack[BlockOptions],
    ) -> None:
        self.vocabulary, self.hidden, self.length, self.tied = vocabulary, hidden, length, tied
        self.logit_cap = logit_cap
        self.embedding = Embedding(vocabulary, hidden, normal(0.02), dtype, device)
        if length is not None:
            self.places = Embedding(length, hidden, normal(0.02), dtype, device)
        self.transformer = Transformer(
            hidden,
            layers,
            heads,
            groups,
            expansion,
            activation,
            gated,
            norm,
            causal=True,
            rotary=length is None,
            dropout=dropout,
            bias=bias,
            dtype=dtype,
            device=device,
            **block,
        )
        if not tied:
            self.output = Linear(hidden, vocabulary, bias=False, dtype=dtype, device=device)

    def initial_state(self, batch: int) -> list[KeyValueCache]:
        """Empty caches."""
        return self.transformer.initial_state(batch)

    def forward(self, tokens: IndexLike, state: Sequence[KeyValueCache] | None = None) -> Any:
        x = self.embedding(tokens)
        if x.ndim != 3:
            raise ValueError(f"LanguageModel takes tokens of shape (batch, length), not {tuple(ops.shape(tokens))}")
        if self.length is not None:
            part = current_part()
            seen = x.shape[1] * part.index if part is not None else 0 if state is None else state[0].seen
            x = ops.add(x, self._embed_positions(seen, x.shape[1]))
        if state is not None:
            x, state = self.transformer(x, state=state)
        else:
            x = self.transformer(x)
        logits = ops.linear(x, self.embedding.weight) if self.tied else self.output(x)
        if self.logit_cap is not None:
            logits = ops.multiply(ops.tanh(ops.divide(logits, self.logit_cap)), self.logit_cap)
        return logits if state is None else (logits, state)

    def _embed_positions(self, first: int, count: int) -> Tensor:
        """Return the learned vectors of ``count`` positions, from position ``first``."""
        if self.length is not None and first + count > self.length:
            raise ValueError(f"this LanguageModel takes {self.length} tokens at most, not {first + count}")
        return self.places.weight[first : first + count]

    def generate(
        self,
        tokens: IndexLike,
        count: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        seed: Any = None,
        *,
        top_p: float | None = None,
        stop: int | Iterable[int] = (),
    ) -> Tensor:
        """Return ``tokens`` with ``count`` more, drawn one after another: :func:`nn.generate` of this model."""
        return generate(self, tokens, count, temperature, top_k, seed, top_p=top_p, stop=stop)
