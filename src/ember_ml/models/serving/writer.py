"""Write the texts of many requests with one model, in one thread: who asks, waits, is served and goes away."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Literal

from ember_ml.models.causal import CausalModel
from ember_ml.models.serving.batch import Batch, Row
from ember_ml.models.text_streams import TextStream

__all__ = ["Busy", "Ending", "Job", "Writer"]

Ending = Literal["stop", "length"]
"""Why a text ended: by a stop token or string, or because it is as long as was asked for."""
_MOST_NEW_POSITIONS = 4096
"""Positions of new prompts that one step reads: many of them must not hold up the texts that are being written."""


class Busy(RuntimeError):
    """So many texts wait already that no further one is taken."""


class Job:
    """A text that was asked for.

    ``on_piece`` gets each piece of the text with None, then the last piece with the reason of the end;
    ``on_failure`` gets the error that ended it otherwise. Both are called by the writer's thread.
    """

    row: Row
    count: int
    """The number of tokens that were written, one that ended the text included."""
    is_cancelled: bool
    on_failure: Callable[[Exception], object]

    def __init__(
        self,
        row: Row,
        most: int,
        ends: Collection[int],
        text: TextStream,
        on_piece: Callable[[str, Ending | None], object],
        on_failure: Callable[[Exception], object],
    ) -> None:
        self.row, self.count, self.is_cancelled = row, 0, False
        self.on_failure = on_failure
        self._most, self._ends, self._text, self._on_piece = most, ends, text, on_piece

    def cancel(self) -> None:
        """Say that nobody waits for the text any more."""
        self.is_cancelled = True

    def take(self, token: int) -> bool:
        """Take the next token; return whether the text goes on."""
        self.count += 1
        ending: Ending | None = None
        piece = "" if token in self._ends else self._text.push(token)
        if token in self._ends or self._text.is_stopped:
            ending = "stop"
        elif self.count >= self._most:
            ending = "length"
        if ending is not None:
            piece += self._text.finish()
            if self._text.is_stopped:
                ending = "stop"
        if piece or ending is not None:
            self._on_piece(piece, ending)
        return ending is None


class Writer:
    """A thread that writes the texts of jobs, up to ``slots`` of them side by side; the others wait for their turn.

    Args:
        model: The decoder.
        slots: The most texts that are written at the same time; each has its place in the cache.
        most_waiting: The most texts that wait; further ones are refused.
    """

    def __init__(self, model: CausalModel, slots: int = 16, most_waiting: int = 1000) -> None:
        self._batch, self._slots, self._most_waiting = Batch(model), slots, most_waiting
        self._waiting: deque[Job] = deque()
        self._jobs: list[Job] = []
        self._changed = threading.Condition()
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="ember-ml-writer", daemon=True)
        self._thread.start()

    def submit(self, jobs: Sequence[Job]) -> None:
        """Take texts to write, all of them or none; raise ``Busy`` where too many wait."""
        with self._changed:
            if self._is_closing:
                raise Busy("the server is stopping")
            if len(self._waiting) + len(jobs) > self._most_waiting:
                raise Busy(f"{len(self._waiting)} texts wait already; ask again later")
            self._waiting.extend(jobs)
            self._changed.notify()

    @property
    def load(self) -> tuple[int, int]:
        """The number of texts that are being written, and of those that wait."""
        with self._changed:
            return len(self._jobs), len(self._waiting)

    def close(self) -> None:
        """End the thread after its step; the texts that are not finished fail."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while self._wait_for_work():
            try:
                self._batch.step()
            except Exception as error:  # whatever it is, the next requests can be served
                self._fail(error)
                continue
            self._deliver()
        self._fail(RuntimeError("the server was stopped"))

    def _wait_for_work(self) -> bool:
        """Wait until there is a text to write, let in those that there is room for; return whether to go on."""
        with self._changed:
            while True:
                if self._is_closing:
                    return False
                kept = [job for job in self._jobs if not job.is_cancelled]
                new = self._let_in(self._slots - len(kept))
                self._jobs = [*kept, *new]
                if self._jobs:
                    break
                self._batch.reset()  # its cache is of no use while nobody asks
                self._changed.wait()
        self._batch.keep([job.row for job in kept])
        self._batch.add([job.row for job in new])
        return True

    def _let_in(self, room: int) -> list[Job]:
        """Return the waiting texts that are next, at least one where there is room."""
        new: list[Job] = []
        width = 0
        while self._waiting and len(new) < room:
            job = self._waiting[0]
            longest = max(width, len(job.row.prompt))
            if not job.is_cancelled:
                if new and longest * (len(new) + 1) > _MOST_NEW_POSITIONS:  # the shorter ones are padded
                    break
                new.append(job)
                width = longest
            self._waiting.popleft()
        return new

    def _deliver(self) -> None:
        """Hand the new tokens on; drop the texts that end with them."""
        kept = []
        for job in self._jobs:
            assert job.row.last is not None
            try:
                goes_on = not job.is_cancelled and job.take(job.row.last)
            except Exception as error:  # one text cannot be decoded or handed on; the others can
                goes_on = False
                job.on_failure(error)
            if goes_on:
                kept.append(job)
        with self._changed:
            self._jobs = kept

    def _fail(self, error: Exception) -> None:
        with self._changed:
            failed = [*self._jobs, *(self._waiting if self._is_closing else ())]
            self._jobs = []
            if self._is_closing:
                self._waiting.clear()
        self._batch.reset()
        for job in failed:
            job.on_failure(error)
