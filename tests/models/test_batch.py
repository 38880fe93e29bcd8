"""Continuous batching: texts that join and leave at any step are those that the model writes alone."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ember_ml import models
from ember_ml.models.serving.batch import Batch, Row
from ember_ml.models.serving.writer import Busy, Job, Writer
from ember_ml.models.text_streams import TextStream
from tests.reference.pretrained import Written

Writing = Callable[[str], Written]
DRAWN = {"temperature": 0.9, "top_k": 20, "top_p": 0.95}


@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral-window", "gemma3", "qwen3-moe"])
def test_texts_that_join_and_leave_are_those_of_single_runs(name: str, backend: str, written: Writing) -> None:
    model = models.load(written(name).folder)
    stream = random.Random(3)
    prompts = [[stream.randrange(3, 60) for _ in range(stream.randint(1, 9))] for _ in range(8)]
    counts = [stream.randint(1, 10) for _ in prompts]
    starts = [0, 0, 1, 1, 4, 6, 7, 14]  # the batch is empty in between
    choices: list[dict[str, Any]] = [{} if i % 2 else {**DRAWN, "seed": i} for i in range(len(prompts))]
    rows = [Row(prompt, **choice) for prompt, choice in zip(prompts, choices, strict=True)]
    found: list[list[int | None]] = [[] for _ in rows]
    batch = Batch(model)
    for step in range(30):
        batch.add([row for row, start in zip(rows, starts, strict=True) if start == step])
        batch.step()
        for i, row in enumerate(rows):
            if row in batch.rows:
                found[i].append(row.last)
        batch.keep([row for i, row in enumerate(rows) if row in batch.rows and len(found[i]) < counts[i]])
    assert not batch.rows
    for prompt, count, choice, tokens in zip(prompts, counts, choices, found, strict=True):
        assert tokens == model.generate(prompt, count, stop=[], **choice)


class Letters:
    """Stands for a tokenizer: a token is a letter."""

    def decode(self, tokens: list[int]) -> str:
        return "".join(chr(64 + token) for token in tokens)


class Asked:
    """A job, and what came of it."""

    def __init__(self, prompt: list[int], most: int, ends: set[int], stop: list[str] | None = None) -> None:
        self.pieces: list[str] = []
        self.ending: str | None = None
        self.error: Exception | None = None
        self.is_over, self.has_begun = threading.Event(), threading.Event()
        text = TextStream(Letters(), stop or [])  # type: ignore[arg-type]
        self.job = Job(Row(prompt), most, ends, text, self._take, self._fail)

    def _take(self, piece: str, ending: str | None) -> None:
        self.pieces.append(piece)
        self.ending = ending
        self.has_begun.set()
        if ending is not None:
            self.is_over.set()

    def _fail(self, error: Exception) -> None:
        self.error = error
        self.is_over.set()

    @property
    def text(self) -> str:
        assert self.is_over.wait(60)
        return "".join(self.pieces)


@pytest.fixture
def writer(backend: str, written: Writing):
    made = []

    def make(**settings: int) -> tuple[Any, Writer]:
        model = models.load(written("llama").folder)
        made.append(Writer(model, **settings))
        return model, made[-1]

    yield make
    for each in made:
        each.close()


def test_more_texts_than_slots_are_all_written(writer: Any) -> None:
    model, thread = writer(slots=3)
    prompts = [[i + 3, 2 * i + 4] for i in range(10)]
    asked = [Asked(prompt, 3 + i % 4, set()) for i, prompt in enumerate(prompts)]
    for each in asked:
        thread.submit([each.job])
    for i, (prompt, each) in enumerate(zip(prompts, asked, strict=True)):
        assert each.text == Letters().decode(model.generate(prompt, 3 + i % 4, stop=[]))
        assert (each.ending, each.job.count) == ("length", 3 + i % 4)
    assert _settles(thread, (0, 0))


def test_texts_end_at_stop_tokens_and_strings(writer: Any) -> None:
    model, thread = writer(slots=2)
    tokens = model.generate([5, 6, 7], 16, stop=[])
    whole = Letters().decode(tokens)
    by_token = Asked([5, 6, 7], 16, {tokens[4]})
    by_text = Asked([5, 6, 7], 16, set(), [whole[3:6]])
    thread.submit([by_token.job, by_text.job])
    assert (by_token.text, by_token.ending) == (whole[: tokens.index(tokens[4])], "stop")
    assert (by_text.text, by_text.ending) == (whole[: whole.index(whole[3:6])], "stop")


def test_a_text_that_nobody_waits_for_frees_its_slot(writer: Any) -> None:
    _, thread = writer(slots=1)
    endless, next_one, gone = Asked([5], 10**6, set()), Asked([6], 2, set()), Asked([7], 10**6, set())
    thread.submit([endless.job, gone.job, next_one.job])
    assert endless.has_begun.wait(60)
    assert thread.load == (1, 2)
    gone.job.cancel()
    endless.job.cancel()
    assert len(next_one.text) == 2
    assert not gone.pieces
    assert _settles(thread, (0, 0))


def test_too_many_are_refused_and_errors_reach_who_asked(writer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, thread = writer(slots=1, most_waiting=2)
    with pytest.raises(Busy, match="ask again later"):
        thread.submit([Asked([5], 1, set()).job for _ in range(3)])
    with monkeypatch.context() as changed:
        changed.setattr(type(model), "logits", lambda self, hidden: 1 / 0)
        broken = Asked([5], 3, set())
        thread.submit([broken.job])
        assert broken.text == ""
        assert isinstance(broken.error, ZeroDivisionError)
    after = Asked([5], 3, set())
    thread.submit([after.job])
    assert len(after.text) == 3
    unfinished = Asked([5], 10**6, set())
    thread.submit([unfinished.job])
    thread.close()
    assert unfinished.is_over.wait(60)
    assert "stopped" in str(unfinished.error)
    with pytest.raises(Busy, match="stopping"):
        thread.submit([after.job])


def _settles(writer: Writer, load: tuple[int, int]) -> bool:
    """Wait until the writer has that load: it hands the last piece on before it drops the text."""
    waiting = threading.Event()
    return any(writer.load == load or waiting.wait(0.01) for _ in range(1000))
