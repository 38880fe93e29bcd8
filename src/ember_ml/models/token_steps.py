"""The steps of writing: one call of a model for each new token, until every text has ended."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, nullcontext
from itertools import count, islice
from typing import Any

from ember_ml import ops
from ember_ml.backend.capabilities import Laziness
from ember_ml.backend.contract import Backend
from ember_ml.backend.selection import active
from ember_ml.nn.generation import unrecorded
from ember_ml.tensor.ember_tensor import to_native
from ember_ml.typing import Tensor

__all__ = ["NewTokens", "Start", "Texts", "collect", "write_tokens"]

Start = tuple[Tensor, Tensor | None, Any]
"""Tokens, (batch, length), their mask, and the state before them."""
NewTokens = list[int | None]
"""One token for each text, None where it has ended."""


class Texts:
    """Which of several texts have ended while they are written."""

    def __init__(self, batch: int, ends: set[int]) -> None:
        self._is_open, self._ends = [True] * batch, ends

    @property
    def are_done(self) -> bool:
        return not any(self._is_open)

    def add(self, new: list[int]) -> NewTokens:
        """Take the next token of each row; return those of the rows that had not ended."""
        shown = [token if is_there else None for token, is_there in zip(new, self._is_open, strict=True)]
        self._is_open = [token is not None and token not in self._ends for token in shown]
        return shown

    def read(self, steps: Iterator[Tensor]) -> Iterator[NewTokens]:
        """Yield the numbers of each step, (batch,), until all rows have ended."""
        for chosen in steps:
            yield self.add(ops.to_numpy(chosen).tolist())
            if self.are_done:
                return


def collect(
    steps: Generator[NewTokens], batch: int, on_tokens: Callable[[NewTokens], Any] | None = None
) -> list[list[int]]:
    """Return the tokens of each text; ``on_tokens`` gets those of each step, and ends all texts where it is True."""
    found: list[list[int]] = [[] for _ in range(batch)]
    with closing(steps):
        for new in steps:
            for row, token in zip(found, new, strict=True):
                if token is not None:
                    row.append(token)
            if on_tokens is not None and on_tokens(new) is True:
                break
    return found


def write_tokens(
    model: Any, start: Start, most: int, ends: set[int], choose: Callable[[Tensor, int], Tensor]
) -> Generator[NewTokens]:
    """Yield what a model with ``hidden_states`` and ``logits`` writes after ``start``: the new token of each text.

    ``choose`` gets the logits of the next tokens, and how many tokens are there with them; it returns one for each row.
    """
    steps, backend = islice(_compute_tokens(model, start, choose), most), active()
    ready = steps if backend.laziness is None else _begin_ahead(steps, backend, backend.laziness)
    yield from Texts(ops.shape(start[0])[0], ends).read(ready)


def _compute_tokens(model: Any, start: Start, choose: Callable[[Tensor, int], Tensor]) -> Iterator[Tensor]:
    """Yield one token for each row, (batch,), then those after them, without an end."""
    step, mask, state = start
    batch, laziness = ops.shape(step)[0], active().laziness
    for number in count(1):
        # the range of chosen tokens is known, and to check it would be to wait for them
        with unrecorded(), nullcontext() if laziness is None or number == 1 else laziness.unchecked():
            hidden, state = model.hidden_states(step, mask, state)
            chosen = choose(model.logits(ops.get_item(hidden, (slice(None), -1))), number)
        yield chosen
        step, mask = ops.reshape(chosen, (batch, 1)), None


def _begin_ahead(steps: Iterator[Tensor], backend: Backend, laziness: Laziness) -> Iterator[Tensor]:
    """Yield each step after the next one has been begun, so that the library computes while the caller reads.

    A next step that fails does so when it is asked for: the text may end before it.
    """
    ahead = _begin_next(steps, backend, laziness)
    while ahead is not None:
        current, failure = ahead, None
        try:
            ahead = _begin_next(steps, backend, laziness)
        except Exception as error:
            ahead, failure = None, error
        yield current
        if failure is not None:
            raise failure


def _begin_next(steps: Iterator[Tensor], backend: Backend, laziness: Laziness) -> Tensor | None:
    step = next(steps, None)
    if step is not None:
        laziness.start(to_native(step, backend, None, None))
    return step
