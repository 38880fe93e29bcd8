"""A decoder-only language model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ember_ml import ops
from ember_ml.nn.blocks.transformer import Transformer
from ember_ml.nn.initializers import normal
from ember_ml.nn.layers.channel_mixing import Embedding, Linear
from ember_ml.nn.layers.sequence_mixing.attention import KeyValueCache
from ember_ml.nn.model import Model
from ember_ml.typing import DTypeLike, IndexLike, Tensor

__all__ = ["LanguageModel"]


class LanguageModel(Model):
    """A decoder-only transformer: logits of the next token for each position of (batch, length) integers.

    With ``length``, the longest sequence, each place has a learned vector; without, attention is rotary. The logits are
    products with the vectors of the tokens, or with others where not ``tied``. The other arguments are those of
    :class:`nn.blocks.TransformerBlock`.

    Args:
        vocabulary: The number of tokens.
        hidden: The width of the blocks.
        layers: The number of blocks.
        length: The longest sequence, for learned positions; None: rotary attention.
        tied: Whether the logits use the vectors of the tokens.

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
    ) -> None:
        self.vocabulary, self.hidden, self.length, self.tied = vocabulary, hidden, length, tied
        self.embedding = Embedding(vocabulary, hidden, normal(0.02), dtype)
        if length is not None:
            self.places = Embedding(length, hidden, normal(0.02), dtype)
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
        )
        if not tied:
            self.output = Linear(hidden, vocabulary, bias=False, dtype=dtype)

    def initial_state(self, batch: int) -> list[KeyValueCache]:
        """Empty caches."""
        return self.transformer.initial_state(batch)

    def forward(self, tokens: IndexLike, state: Sequence[KeyValueCache] | None = None) -> Any:
        x = self.embedding(tokens)
        if x.ndim != 3:
            raise ValueError(f"LanguageModel takes tokens of shape (batch, length), not {tuple(ops.shape(tokens))}")
        if self.length is not None:
            seen = 0 if state is None else state[0].key.shape[1]
            x = ops.add(x, self._embed_positions(seen, x.shape[1]))
        if state is not None:
            x, state = self.transformer(x, state=state)
        else:
            x = self.transformer(x)
        logits = ops.linear(x, self.embedding.weight) if self.tied else self.output(x)
        return logits if state is None else (logits, state)

    def _embed_positions(self, first: int, count: int) -> Tensor:
        """Return the learned vectors of ``count`` positions, from position ``first``."""
        if self.length is not None and first + count > self.length:
            raise ValueError(f"this LanguageModel takes {self.length} tokens at most, not {first + count}")
        return ops.get_item(self.places.weight, slice(first, first + count))

    def generate(
        self,
        tokens: IndexLike,
        count: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        seed: Any = None,
    ) -> Tensor:
        """Return ``tokens`` (batch, length), or of one text (length,), with ``count`` more, drawn one after another.

        The logits are divided by ``temperature``; 0 takes the likeliest token. ``top_k`` leaves all but so many of the
        likeliest out. One ``seed`` gives the same tokens again, on every backend up to rounding of the logits.
        """
        given = ops.convert_to_tensor(tokens)
        if given.ndim not in (1, 2) or not given.shape[-1]:
            raise ValueError(f"generate begins with tokens of shape (batch, length), not {tuple(given.shape)}")
        if temperature < 0:
            raise ValueError(f"the temperature is a number from 0 up, not {temperature!r}")
        rows = ops.reshape(given, (-1, given.shape[-1]))
        stream = ops.random.Generator(seed) if isinstance(seed, int) else seed
        modes = [(module, module.training) for _, module in self.named_modules()]
        self.eval()
        try:
            found, state = [rows], self.initial_state(rows.shape[0])
            for _ in range(count):
                logits, state = self(found[-1], state)
                drawn = _draw(ops.get_item(logits, (slice(None), -1)), temperature, top_k, stream)
                found.append(ops.cast(ops.reshape(drawn, (-1, 1)), rows.dtype))
        finally:
            for module, mode in modes:
                module.training = mode
        whole = ops.concatenate(found, axis=1)
        return ops.reshape(whole, (-1,)) if given.ndim == 1 else whole


def _draw(logits: Tensor, temperature: float, top_k: int | None, seed: Any) -> Tensor:
    """Draw one token for each row of logits."""
    if temperature == 0:
        return ops.argmax(logits, -1)
    if top_k is not None and top_k < logits.shape[-1]:
        least = ops.top_k(logits, top_k)[0][:, -1:]
        logits = ops.where(ops.less(logits, least), float("-inf"), logits)
    return ops.random_categorical(ops.divide(logits, temperature), seed=seed)
