"""Decoding by one compiled program: caches of a fixed length, and a position that is a tensor.

The prompt is read as always. Its keys and values are then copied into caches that have room for the new tokens too, in
steps of :data:`ROOM`, and a program computes from one token the next: its state is the token, the position, the tokens
written so far and the caches. Nothing of it is read on the host but the tokens, and those a few steps late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ember_ml import ops
from ember_ml.backend.selection import active
from ember_ml.core import trees
from ember_ml.models.causal import CausalModel, DecoderState, Positions
from ember_ml.models.generation import Request
from ember_ml.models.token_choice import Choice, add_seen, find_seen, penalize
from ember_ml.models.token_steps import NewTokens, Start, Texts
from ember_ml.nn.layers.sequence_mixing.heads import FixedCache
from ember_ml.transforms.compilation import Compiled
from ember_ml.transforms.repetition import Repetition
from ember_ml.typing import Tensor

__all__ = ["FixedDecoding", "FixedPositions", "write_compiled"]

ROOM: int = 256
"""The lengths of caches are multiples of it, so that a program serves texts of many lengths."""
_MOST_PROGRAMS = 4
_MOST_UNREAD = 16
"""So many tokens are written before it is looked whether one of them ends a text."""


class FixedPositions(Positions):
    """Where one new token of each row stands, as tensors that a program computes with."""

    numbers: Tensor

    def __init__(self, position: Tensor, padding: Tensor | None, size: int) -> None:
        self.new = self.count = 1  # how many there are is known when the program runs, and is checked before
        self._place, self._padding, self._size = position, padding, size
        self.numbers = ops.reshape(position if padding is None else ops.subtract(position, padding), (-1, 1))
        self._masks = {}

    def mask(self, window: int | None = None) -> tuple[Tensor | None, bool]:
        if window not in self._masks:
            keys = ops.arange(self._size, device=ops.get_device(self._place))
            seen = ops.less_equal(keys, self._place)
            if window is not None and window < self._size:
                seen = ops.logical_and(seen, ops.greater(keys, ops.subtract(self._place, window)))
            if self._padding is not None:
                seen = ops.logical_and(seen, ops.greater_equal(keys, ops.expand_dims(self._padding, 1)))
            self._masks[window] = (ops.reshape(seen, (-1, 1, 1, self._size)), False)
        return self._masks[window]


class FixedDecoding:
    """The program of a decoder for one batch, length of the caches and choice of tokens."""

    size: int

    def __init__(self, model: CausalModel, size: int, choice: Choice, has_padding: bool) -> None:
        self.size = size
        self._model, self._choice, self._has_padding = model, choice, has_padding
        self._are_joined: list[bool] = []
        self._repetition = Repetition(self._step, model)

    def begin(
        self, token: Tensor, state: DecoderState, count: int, draws: Tensor | None, seen: Tensor | None
    ) -> Callable[[], Tensor]:
        """Return a function that writes one token at each call, and returns all that were written, (batch, size).

        ``token``, (batch,), is the first one, and ``state`` what was computed before it; ``count`` positions will be
        used. ``draws`` are the random numbers of each step, (size, batch, 1); ``seen`` is as in ``find_seen``.
        """
        self._are_joined = []
        device, batch = ops.get_device(token), ops.shape(token)[0]
        token = ops.reshape(ops.cast(token, "int64"), (batch, 1))
        place = ops.array([state.length, 1], dtype="int64", device=device)
        texts = ops.concatenate([token, ops.zeros((batch, self.size - 1), dtype="int64", device=device)], 1)
        tensors = [ops.copy(token), place, texts]
        if seen is not None:
            tensors.append(seen)
        if self._has_padding:
            tensors.append(ops.subtract(state.length, ops.sum(ops.cast(state.is_real, "int64"), 1)))
        if draws is not None:
            tensors.append(draws)
        tensors += self._share(count, device)
        for cache, layer in zip(state.caches, self._model.layers, strict=True):
            before = cache.dropped or 0
            behind = self.size - before - cache.key.shape[1]
            tensors += [ops.pad(x, ((0, 0), (before, behind), (0, 0), (0, 0))) for x in cache[:2]]
            joined = layer.attention.join_weights()
            self._are_joined.append(joined is not None)
            tensors += [] if joined is None else [joined]
        advance = self._repetition.begin(tensors)
        return lambda: advance()[2]

    def _share(self, count: int, device: str) -> list[Tensor]:
        """Return what the layers share, such as rotations, at all positions of a text of ``count``; (1, size, ...)."""
        tokens = ops.zeros((1, self.size), dtype="int64", device=device)
        everywhere, last = Positions(tokens, None, None), Positions(ops.get_item(tokens, (..., slice(1))), None, None)
        everywhere.count = last.count = count
        shared = self._model.share(everywhere, self._model.embed(ops.get_item(tokens, (..., slice(1))), last))
        leaves, self._shared = trees.flatten(shared)
        self._shared_count = len(leaves)
        return leaves

    def _step(self, state: list[Tensor]) -> list[Tensor]:
        """Return the state one token later."""
        model, choice = self._model, self._choice
        token, place, texts = state[:3]
        rest = iter(state[3:])
        seen = next(rest) if choice.has_penalty else None
        padding = next(rest) if self._has_padding else None
        draws = next(rest) if choice.temperature else None
        shared = [next(rest) for _ in range(self._shared_count)]
        last = ops.minimum(place, self.size - 1)  # which a run that only warms up may pass
        position, count = ops.get_item(last, slice(1)), ops.get_item(last, slice(1, 2))
        positions = FixedPositions(position, padding, self.size)
        x = model.embed(token, positions)
        numbers = ops.reshape(positions.numbers, (-1,))
        here = self._shared([ops.swapaxes(ops.take(leaf, numbers, 1), 0, 1) for leaf in shared])
        new: list[Tensor] = []
        for layer, is_joined in zip(model.layers, self._are_joined, strict=True):
            before = FixedCache(next(rest), next(rest), position, next(rest) if is_joined else None)
            x, cache = layer(x, positions, here, before)
            new += cache[:2] if before.joined is None else [*cache[:2], before.joined]
        logits = model.logits(ops.get_item(model.norm(x), (slice(None), -1)))
        drawn = None if draws is None else ops.squeeze(ops.take(draws, count, 0), 0)
        if seen is not None:
            logits = penalize(logits, seen, choice.repetition_penalty)
        token = ops.reshape(ops.cast(choice.find(logits, drawn), "int64"), (-1, 1))
        engine = active().compilation
        assert engine is not None
        texts = engine.replace_rows(texts, 1, count, token)
        known = [] if seen is None else [add_seen(seen, token)]
        return [token, ops.add(place, 1), texts, *known, *state[3 + len(known) : len(state) - len(new)], *new]


class _Programs:
    """The compiled programs of a model; a copy of it starts without."""

    def __init__(self) -> None:
        self.decodings: dict[Any, FixedDecoding] = {}
        self.read: Compiled | None = None

    def __reduce__(self) -> Any:
        return (_Programs, ())

    def find(self, model: CausalModel, batch: int, size: int, choice: Choice, has_padding: bool) -> FixedDecoding:
        """Return the program for such texts, the last few of which are kept."""
        key = (batch, size, choice, has_padding)
        found = self.decodings.pop(key, None) or FixedDecoding(model, size, choice, has_padding)
        while len(self.decodings) >= _MOST_PROGRAMS:
            del self.decodings[next(iter(self.decodings))]
        self.decodings[key] = found
        return found


def write_compiled(model: CausalModel, request: Request, start: Start) -> Iterator[NewTokens]:
    """Yield what ``write_tokens`` does, by a compiled program."""
    most, ends, choice, stream = request.most, request.ends, request.choice, request.stream
    engine = active().compilation
    assert engine is not None
    programs = model.__dict__.setdefault("_programs", _Programs())
    read: Callable[..., Any] = model.hidden_states
    if engine.compiles_steps:
        programs.read = read = programs.read or Compiled(model.hidden_states)
    tokens, mask, state = start
    hidden, state = read(tokens, mask, state)
    batch, count = ops.shape(tokens)[0], state.length + most - 1
    if model.changes_with_length(state.length, count):
        raise ValueError(
            f"the rotary positions of this model change while a text grows from {state.length} to {count} tokens, "
            "which one program cannot do: generate it without compile=True"
        )
    size = -(-count // ROOM) * ROOM
    logits = model.logits(ops.get_item(hidden, (slice(None), -1)))
    device, draws, seen = ops.get_device(logits), None, None
    first: Tensor | None = None
    if choice.temperature:  # the same numbers as without a program, one draw for each token
        first = ops.random_uniform((batch, 1), device=device, seed=stream)
        rest = [ops.random_uniform((batch, 1), device=device, seed=stream) for _ in range(most - 1)]
        draws = ops.stack([first, *rest, *[first] * (size - most)])
    if choice.has_penalty:
        seen = find_seen(tokens, mask, logits)
        logits = penalize(logits, seen, choice.repetition_penalty)
    token = choice.find(logits, first)
    texts = Texts(batch, ends)
    yield texts.add(ops.to_numpy(token).tolist())
    if texts.are_done or most == 1:
        return
    seen = None if seen is None else add_seen(seen, token)
    decoding = programs.find(model, batch, size, choice, state.is_real is not None)
    advance = decoding.begin(token, state, count, draws, seen)
    done, unread = 1, 1
    while done < most:
        unread = min(
            1 if request.is_streamed else 2 * unread if ends else most, _MOST_UNREAD if ends else most, most - done
        )
        for _ in range(unread - 1):
            advance()
        written = advance()
        new = ops.to_numpy(ops.get_item(written, (slice(None), slice(done, done + unread))))
        done += unread
        for column in new.T.tolist():
            yield texts.add(column)
            if texts.are_done:
                return
