"""Choose the next token of each text from its logits."""

from __future__ import annotations

from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.backend.random import distributions
from ember_ml.backend.random.draw import draw
from ember_ml.nn.generation import check_sampling, find_token
from ember_ml.typing import Tensor

__all__ = ["Choice", "Chooser", "add_seen", "find_seen", "penalize"]


class Choice(NamedTuple):
    """How tokens are chosen, as in ``model.generate``."""

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0

    def check(self) -> None:
        """Raise where tokens cannot be chosen so."""
        check_sampling(self.temperature, self.top_k, self.top_p, self.min_p)
        if not self.repetition_penalty > 0:
            raise ValueError(f"the repetition_penalty is a number above 0, not {self.repetition_penalty!r}")

    @property
    def has_penalty(self) -> bool:
        return self.repetition_penalty != 1

    def find(self, logits: Tensor, place: Tensor | None) -> Tensor:
        """Return one token for each row of logits; ``place`` is the random number of each, (batch, 1)."""
        return find_token(logits, self.temperature, self.top_k, self.top_p, place, self.min_p)


class Chooser:
    """Chooses token after token of several texts: with one random number for each, and with what was seen before.

    ``start`` has the tokens that the texts begin with, (batch, length), and their mask, None where all are real.
    """

    choice: Choice

    def __init__(self, choice: Choice, stream: Any, start: tuple[Tensor, Tensor | None]) -> None:
        self.choice, self._stream, self._start = choice, stream, start
        self._places: list[Tensor] = []
        self._seen: Tensor | None = None

    def choose(self, logits: Tensor, number: int) -> Tensor:
        """Return the ``number``-th new token of each text, the first of which is 1; they are chosen in turn."""
        choice = self.choice
        if choice.has_penalty:
            self._seen = find_seen(*self._start, logits) if self._seen is None else self._seen
            logits = penalize(logits, self._seen, choice.repetition_penalty)
        chosen = choice.find(logits, self.place(number, logits))
        if self._seen is not None:
            self._seen = add_seen(self._seen, chosen)
        return chosen

    def place(self, number: int, logits: Tensor) -> Tensor | None:
        """Return the random numbers with which the ``number``-th tokens are drawn; None where nothing is."""
        if self.choice.temperature == 0:
            return None
        while len(self._places) < number:
            shape = (self._start[0].shape[0], 1)
            self._places.append(draw(distributions.UNIFORM.float32, shape, ops.get_device(logits), self._stream))
        return self._places[number - 1]


def find_seen(tokens: Tensor, mask: Tensor | None, logits: Tensor) -> Tensor:
    """Return which tokens texts contain, (batch, vocabulary); those where the mask is false do not count."""
    count = logits.shape[-1]
    rows = ops.to_numpy(tokens).tolist()
    real = [[True] * len(row) for row in rows] if mask is None else ops.to_numpy(mask).tolist()
    kept = [[token for token, there in zip(*pair, strict=True) if there] for pair in zip(rows, real, strict=True)]
    found = [ops.greater(ops.bincount(ops.array(row, dtype="int64"), minlength=count), 0) for row in kept]
    return ops.to_device(ops.stack(found), ops.get_device(logits))


def add_seen(seen: Tensor, tokens: Tensor) -> Tensor:
    """Return ``seen`` with one more token of each text."""
    numbers = ops.arange(seen.shape[-1], device=ops.get_device(seen))
    return ops.logical_or(seen, ops.equal(numbers, ops.reshape(ops.cast(tokens, "int64"), (-1, 1))))


def penalize(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Return the logits in float32, those of tokens that were seen divided by the penalty, or times it below 0."""
    logits = ops.cast(logits, "float32")
    lower = ops.where(ops.less(logits, 0), ops.multiply(logits, penalty), ops.divide(logits, penalty))
    return ops.where(seen, lower, logits)
