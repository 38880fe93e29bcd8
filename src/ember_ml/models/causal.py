"""Models that tell the next token: positions, masks and caches, which all decoders share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.models.generation import Request, TextGenerator
from ember_ml.models.token_steps import NewTokens, Start
from ember_ml.nn.layers.sequence_mixing.heads import KeyValueCache, causal_mask
from ember_ml.nn.layers.sequence_mixing.sequence_parts import current_part
from ember_ml.typing import IndexLike, MaskLike, Tensor

__all__ = ["CausalModel", "DecoderState", "Positions"]


class DecoderState(NamedTuple):
    """What a decoder keeps from one call to the next."""

    caches: tuple[KeyValueCache, ...]
    """Keys and values, of each layer."""
    is_real: Tensor | None
    """(batch, length): false at padding; None: there is none."""
    length: int
    """The number of positions so far, padding included."""


class Positions:
    """Where the tokens of a call stand: their positions, and which keys each of them sees."""

    new: int
    """The number of tokens of the call."""
    seen: int
    """The number of positions before them."""
    count: int
    """The number of positions in all."""
    is_real: Tensor | None
    numbers: Tensor
    """The position of each token, (batch or 1, new)."""

    def __init__(self, tokens: Tensor, mask: MaskLike | None, state: DecoderState | None) -> None:
        batch, self.new = ops.shape(tokens)
        self.seen = 0 if state is None else state.length
        self.count = self.seen + self.new
        self._device = ops.get_device(tokens)
        self.is_real = self._join(batch, mask, None if state is None else state.is_real)
        part = current_part()
        if part is not None:  # of texts that other processes have too
            self.seen, self.count = self.new * part.index, self.new * part.count
            self.is_real = None if self.is_real is None else part.join(self.is_real, 1)
        self._later = self.count - self.seen - self.new
        if self.is_real is None:
            self.numbers = ops.expand_dims(ops.arange(self.seen, self.seen + self.new, device=self._device), 0)
        else:  # a row counts its real tokens, so that padding before them moves none
            before = ops.subtract(ops.cumsum(ops.cast(self.is_real, "int64"), 1), 1)
            self.numbers = ops.get_item(ops.maximum(before, 0), (slice(None), slice(self.seen, self.seen + self.new)))
        self._masks: dict[int | None, tuple[Tensor | None, bool]] = {}

    def _join(self, batch: int, mask: MaskLike | None, before: Tensor | None) -> Tensor | None:
        if mask is None and before is None:
            return None
        if mask is not None:
            given = ops.asarray(mask, dtype="bool", device=self._device)
            if tuple(ops.shape(given)) != (batch, self.new):
                raise ValueError(f"the mask has the shape {ops.shape(given)}, and the tokens {(batch, self.new)}")
        else:
            given = ops.ones((batch, self.new), dtype="bool", device=self._device)
        if not self.seen:
            return given
        if before is None:
            before = ops.ones((batch, self.seen), dtype="bool", device=self._device)
        return ops.concatenate([before, given], 1)

    def mask(self, window: int | None = None) -> tuple[Tensor | None, bool]:
        """Return the mask of an attention with that window, and whether it is causal without one."""
        if window not in self._masks:
            is_cached = current_part() is None  # where a window leaves keys behind
            keys = self.new + min(self.seen, window - 1) if is_cached and window is not None else self.count
            is_real = self.is_real
            if is_real is not None and keys < self.count:
                is_real = ops.get_item(is_real, (slice(None), slice(self.count - keys, None)))
            self._masks[window] = causal_mask(self.new, keys, window, self._device, is_real, self._later)
        return self._masks[window]


class CausalModel(TextGenerator):
    """A decoder: logits of the next token for each position of (batch, length) integers.

    ``mask`` is false, or 0, at padding, before or behind the tokens of a row. With ``state``, which
    :meth:`initial_state` makes, the model goes on where the last call stopped, and returns the logits and the new
    state.
    """

    layers: list[Any]
    norm: Any
    """What is applied to the result of the last layer."""

    def initial_state(self, batch: int) -> DecoderState:
        """Empty caches for ``batch`` texts."""
        return DecoderState(tuple(layer.attention.initial_state(batch) for layer in self.layers), None, 0)

    def forward(self, tokens: IndexLike, mask: MaskLike | None = None, state: DecoderState | None = None) -> Any:
        hidden, state = self.hidden_states(tokens, mask, state)
        logits = self.logits(hidden)
        return logits if state is None else (logits, state)

    def hidden_states(
        self, tokens: IndexLike, mask: MaskLike | None = None, state: DecoderState | None = None
    ) -> tuple[Tensor, DecoderState | None]:
        """What the last layer makes of the tokens, normalized, and the state after them, None without one."""
        tokens = ops.asarray(tokens)
        if tokens.ndim != 2 or not tokens.shape[1]:
            raise ValueError(f"{type(self).__name__} takes tokens of shape (batch, length), not {ops.shape(tokens)}")
        positions = Positions(tokens, mask, state)
        x = self.embed(tokens, positions)
        shared = self.share(positions, x)
        caches: list[Any] = []
        for number, layer in enumerate(self.layers):
            x, cache = layer(x, positions, shared, None if state is None else state.caches[number])
            caches.append(cache)
        after = None if state is None else DecoderState(tuple(caches), positions.is_real, positions.count)
        return self.norm(x), after

    def write_compiled(self, request: Request, start: Start) -> Iterator[NewTokens]:
        from ember_ml.models.fixed_decoding import write_compiled  # which needs this class

        return write_compiled(self, request, start)

    def changes_with_length(self, first: int, last: int) -> bool:
        """Whether what :meth:`share` gives for a position differs in texts of ``first`` and of ``last`` tokens."""
        return False

    def embed(self, tokens: Tensor, positions: Positions) -> Tensor:
        """What the first layer gets."""
        raise NotImplementedError(f"{type(self).__name__} does not define embed")

    def share(self, positions: Positions, x: Tensor) -> Any:
        """What all layers get besides: nothing, unless a subclass says otherwise."""
        return None
