"""The walk of a set of files, and how to repeat one after a few files have changed.

A run is a sequence of rounds, and what a file finds in each depends on its text and on the facts that it reads alone.
So a file whose text is the same says what it said the last time, until a round gives it another fact than it had then.
Only then is it parsed, and walked through the rounds until there: the result is that of a run without a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ember_ml.lint.facts import News, exchange
from ember_ml.lint.project import Project


@dataclass
class Note:
    """What is kept of one file's walk: the facts that it asked for, and its news in each round until the last."""

    reads: list[str] = field(default_factory=list)
    news: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class History:
    """What is kept of a run: what each round changed, and a note on each file."""

    rounds: list[dict[str, Any]] = field(default_factory=list)
    notes: dict[str, Note] = field(default_factory=dict)


class Walk:
    """A project that notes the news of its files round by round."""

    def __init__(self) -> None:
        self.project = Project()
        self._news: dict[str, list[dict[str, Any]]] = {}

    def step(self, changed: dict[str, Any]) -> tuple[News, bool]:
        """Walk one round; see ``Project.step``."""
        news, is_done = self.project.step(changed)
        self._keep(self.project.files, news)
        return news, is_done

    def catch_up(self, paths: list[str], past: list[dict[str, Any]]) -> None:
        """Walk files that were added later through the rounds of the others until now."""
        files = [self.project.files[path] for path in paths if path in self.project.files]
        shared: dict[str, Any] = {}
        for file in files:
            if file.flow is not None:
                file.flow.facts.shared = shared
        for changed in past:
            shared.update(changed)
            self._keep([file.path for file in files], self.project.advance(files, changed)[0])
        for file in files:
            if file.flow is not None:
                file.flow.facts.shared = self.project.shared

    def _keep(self, paths: Iterable[str], news: News) -> None:
        for path in paths:
            self._news.setdefault(path, []).append(news.get(path, {}))

    def notes(self) -> dict[str, Note]:
        """Return a note on each file."""
        result = {}
        for path, file in self.project.files.items():
            news = self._news[path]
            while news and not news[-1]:
                news.pop()
            result[path] = Note([] if file.flow is None else list(file.flow.seen), news)
        return result


class Repetition:
    """A run of which some files are walked, and the others say what their notes say as long as those hold.

    ``asleep`` are the notes of the others; ``add`` gives files to the walk's project by their paths.
    """

    def __init__(self, walk: Walk, history: History, asleep: dict[str, Note], add: Callable[[list[str]], None]) -> None:
        self.walk = walk
        self.asleep = asleep
        self._add = add
        self._history = history
        self._past: list[dict[str, Any]] = []
        self._now: dict[str, Any] = {}
        self._then: dict[str, Any] = {}
        self._differing: set[str] = set()

    def run(self) -> History:
        """Walk until nothing changes any more; ``asleep`` has the files left that were not walked."""
        rounds = exchange(self._step)
        return History(rounds, {**self.asleep, **self.walk.notes()})

    def _step(self, changed: dict[str, Any]) -> tuple[News, bool]:
        number = len(self._past)
        self._compare(changed, number)
        woken = [path for path, note in self.asleep.items() if not self._differing.isdisjoint(note.reads)]
        if woken:
            self._add(woken)
            self.walk.catch_up(woken, self._past)
            for path in woken:
                del self.asleep[path]
        self._past.append(changed)
        news, is_done = self.walk.step(changed)
        for path, note in self.asleep.items():
            if number < len(note.news):
                news[path] = note.news[number]
                is_done = is_done and number + 1 == len(note.news)
        return news, is_done

    def _compare(self, changed: dict[str, Any], number: int) -> None:
        """Note which facts are others now than in this round of the run before."""
        before = self._history.rounds[number - 1] if 0 < number <= len(self._history.rounds) else {}
        self._now.update(changed)
        self._then.update(before)
        for key in {*changed, *before}:
            if self._now.get(key) == self._then.get(key):
                self._differing.discard(key)
            else:
                self._differing.add(key)
