"""Write several texts side by side, each of which joins and leaves at any step: continuous batching over the caches.

The prompts of new texts are read in one call, apart from the texts that are being written. Their caches then become
further rows of the batch: shorter rows are padded before their first token, where the mask of the decoder hides it.
A text that ends takes its row with it, and padding that no row needs any more is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.models.causal import CausalModel, DecoderState
from ember_ml.nn.generation import arrange_weights, choose_token
from ember_ml.nn.layers.sequence_mixing.heads import KeyValueCache
from ember_ml.typing import Tensor

__all__ = ["Batch", "Row", "join_states", "keep_rows"]


class Row:
    """A text in a batch: its prompt, and how its tokens are chosen, as in ``model.generate``."""

    prompt: list[int]
    length: int
    """The number of tokens in the cache."""
    last: int | None
    """The newest token, which is not in the cache yet."""
    temperature: float
    top_k: int | None
    top_p: float | None
    seed: int | None

    def __init__(
        self,
        prompt: Sequence[int],
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> None:
        self.prompt, self.length, self.last = list(prompt), 0, None
        self.temperature, self.top_k, self.top_p, self.seed = temperature, top_k, top_p, seed
        self._stream: Any = None

    def choose(self, logits: Tensor) -> Tensor:
        """Return the next token, (1,), drawn from the row's own random numbers."""
        if self._stream is None:  # made where it is used: by the thread and on the backend that compute
            self._stream = ops.random.Generator(self.seed)
        return choose_token(logits, self.temperature, self.top_k, self.top_p, self._stream)


class Batch:
    """Texts that one decoder writes side by side; none changes another, up to rounding.

    >>> from ember_ml import models
    >>> from ember_ml.models.serving.batch import Batch, Row
    >>> model = models.from_config({"model_type": "gpt2", "vocab_size": 9, "n_embd": 8, "n_layer": 1, "n_head": 2})
    >>> batch, first, second = Batch(model), Row([1, 2, 3]), Row([4])
    >>> tokens = [[], []]
    >>> for step in range(4):
    ...     batch.add([first] if step == 0 else [second] if step == 2 else [])
    ...     batch.step()
    ...     tokens[0].append(first.last)
    ...     tokens[1].append(second.last)
    >>> tokens[0] == model.generate([1, 2, 3], 4, stop=[])
    True
    >>> tokens[1] == [None, None, *model.generate([4], 2, stop=[])]
    True
    """

    rows: list[Row]

    def __init__(self, model: CausalModel) -> None:
        self._model = model
        self.rows = []
        self._state: DecoderState | None = None
        self._new: list[Row] = []

    def add(self, rows: Sequence[Row]) -> None:
        """Let texts take part from the next step on."""
        self._new.extend(rows)

    def step(self) -> None:
        """Give each text its next token, in ``row.last``."""
        states = []
        if self.rows:
            states.append(self._advance(self.rows, [[row.last] for row in self.rows], self._state))
        if self._new:
            arrange_weights(self._model)  # which another program may have replaced
            states.append(self._advance(self._new, [row.prompt for row in self._new], None))
        self.rows, self._new = [*self.rows, *self._new], []
        if states:
            self._state = join_states(states)

    def reset(self) -> None:
        """Remove all texts, also after a step that failed."""
        self.rows, self._state, self._new = [], None, []

    def keep(self, rows: Sequence[Row]) -> None:
        """Remove all texts but those."""
        self._new = [row for row in self._new if row in rows]
        kept = [number for number, row in enumerate(self.rows) if row in rows]
        if len(kept) == len(self.rows):
            return
        self.rows = [self.rows[number] for number in kept]
        if not self.rows:
            self._state = None
        elif self._state is not None:
            self._state = keep_rows(self._state, kept, [row.length for row in self.rows])

    def _advance(self, rows: list[Row], tokens: list[list[Any]], state: DecoderState | None) -> DecoderState:
        """Read the tokens of each row, and choose the next; return the state after them."""
        width = max(map(len, tokens))
        mask = None
        if any(len(part) < width for part in tokens):
            mask = ops.array([[False] * (width - len(part)) + [True] * len(part) for part in tokens])
        padded = ops.array([[0] * (width - len(part)) + part for part in tokens], dtype="int64")
        before = self._model.initial_state(len(rows)) if state is None else state
        hidden, after = self._model.hidden_states(padded, mask, before)
        logits = self._model.logits(ops.get_item(hidden, (slice(None), -1)))
        for row, part, token in zip(rows, tokens, self._choose(rows, logits), strict=True):
            row.length += len(part)
            row.last = token
        assert after is not None
        return after

    def _choose(self, rows: list[Row], logits: Tensor) -> list[int]:
        likeliest = ops.argmax(logits, -1)
        if all(row.temperature == 0 for row in rows):
            return ops.to_numpy(likeliest).tolist()
        chosen = [
            ops.get_item(likeliest, slice(i, i + 1))
            if row.temperature == 0
            else row.choose(ops.get_item(logits, slice(i, i + 1)))
            for i, row in enumerate(rows)
        ]
        return ops.to_numpy(ops.concatenate([ops.cast(token, "int64") for token in chosen])).tolist()


def join_states(states: Sequence[DecoderState]) -> DecoderState:
    """Return one state with the rows of all, padded before their first token to the longest."""
    if len(states) == 1:
        return states[0]
    length = max(state.length for state in states)
    caches = [
        KeyValueCache(_stack([cache.key for cache in layer]), _stack([cache.value for cache in layer]))
        for layer in zip(*(state.caches for state in states), strict=True)
    ]
    if all(state.is_real is None and state.length == length for state in states):
        return DecoderState(tuple(caches), None, length)
    return DecoderState(tuple(caches), _stack([_mask_of(state) for state in states]), length)


def keep_rows(state: DecoderState, rows: Sequence[int], lengths: Sequence[int]) -> DecoderState:
    """Return the state of some rows, whose texts have ``lengths``, without the padding that none of them needs."""
    length = max(lengths)
    caches = tuple(KeyValueCache(_take(x.key, rows, length), _take(x.value, rows, length)) for x in state.caches)
    is_padded = min(lengths) < length
    return DecoderState(caches, _take(_mask_of(state), rows, length) if is_padded else None, length)


def _mask_of(state: DecoderState) -> Tensor:
    if state.is_real is not None:
        return state.is_real
    key = state.caches[0].key
    return ops.ones((key.shape[0], state.length), dtype="bool", device=ops.get_device(key))


def _take(x: Tensor, rows: Sequence[int], length: int) -> Tensor:
    """Return some rows of (batch, positions, ...), with the last ``length`` positions at most."""
    found = ops.take(x, ops.array(list(rows), dtype="int64", device=ops.get_device(x)), axis=0)
    return ops.get_item(found, (slice(None), slice(max(found.shape[1] - length, 0), None)))


def _stack(parts: Sequence[Tensor]) -> Tensor:
    """Join tensors (batch, positions, ...) along their batches, with zeros before the positions of shorter ones."""
    longest = max(part.shape[1] for part in parts)
    padded = [
        part
        if part.shape[1] == longest
        else ops.concatenate(
            [
                ops.zeros(
                    (part.shape[0], longest - part.shape[1], *part.shape[2:]),
                    dtype=part.dtype,
                    device=ops.get_device(part),
                ),
                part,
            ],
            1,
        )
        for part in parts
    ]
    return ops.concatenate(padded, 0)
