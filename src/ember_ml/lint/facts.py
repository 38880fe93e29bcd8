"""Facts across files: results of functions, arguments they are called with, attributes, aliases.

Keys are short strings, which can be cached and sent between processes:

``ret:f``      what function ``f`` returns            ``par:f:0``, ``par:f:name``   what it is called with
``attr:C:a``   what attribute ``a`` of class ``C`` holds   ``var:m.x``   what a module's variable holds
``def:n``      ``("func", form)`` or ``("class", bases)``  ``alias:m.x``  the dotted name that ``m.x`` stands for
``mod:m``      True if module ``m`` of the project can hold tensors

Each file has its own ``Facts``: what it found itself, at once, and what all files had found by the end of the round
before. So the walk of a file depends on its text and on the rounds before, and neither on the order of the files nor
on which process walks them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ember_ml.lint.values import Value, join, portable

News = dict[str, dict[str, Any]]
"""The facts that are new, by the path of the file that found them."""

_ROUNDS = 20  # at most: a function that returns a list of its own results never settles


class Facts:
    """The facts that one file sees; it notes its readings, to walk again the units whose readings have changed."""

    def __init__(self, shared: dict[str, Any]) -> None:
        self.shared = shared
        self.own: dict[str, Any] = {}
        self.reads: dict[str, Any] = {}
        self._news: set[str] = set()
        self._said: set[str] = set()  # in the walk of the present unit

    def begin(self) -> dict[str, Any]:
        """Begin the walk of a unit; return the table of its readings."""
        self._said.clear()
        self.reads = {}
        return self.reads

    def read(self, key: str) -> Any:
        """Return the fact, or ``None``; the reader is noted."""
        value = self.reads[key] = self._look_up(key)
        return value

    def _look_up(self, key: str) -> Any:
        value = self.shared.get(key)
        own = self.own.get(key)
        if own is None:
            return value
        return own if value is None or not isinstance(own, Value) else join(value, own)

    def put(self, key: str, value: Any) -> None:
        """Add to a fact: values are joined, of anything else the first in a walk counts.

        A name has several definitions where one is for want of another, or where a property has a setter.
        """
        old = self.own.get(key)
        if isinstance(value, Value):
            value = portable(value)
            if old is not None:
                value = join(old, value)
        elif key in self._said:
            return
        else:
            self._said.add(key)
        if value is not old and value != old:
            self.own[key] = value
            self._news.add(key)

    def take_news(self) -> dict[str, Any]:
        """Return the facts of this file that have changed since the last call."""
        news = {key: self.own[key] for key in self._news}
        self._news.clear()
        return news

    def changed_since(self, reads: dict[str, Any]) -> bool:
        """Return whether any of these readings would now be another."""
        look_up = self._look_up
        for key, seen in reads.items():
            now = look_up(key)
            if now is not seen and now != seen:
                return True
        return False

    def canonical(self, name: str) -> str:
        """Return the dotted name behind re-exports."""
        for _ in range(6):
            target = self.read("alias:" + name)
            if target is None:
                head, _, last = name.rpartition(".")
                if not head:
                    return name
                target_head = self.read("alias:" + head)
                if target_head is None:
                    return name
                target = f"{target_head}.{last}"
            if target == name:
                return name
            name = target
        return name


def exchange(step: Callable[[dict[str, Any]], tuple[News, bool]]) -> list[dict[str, Any]]:
    """Walk files round after round until nothing changes any more; return what each round changed.

    Args:
        step: walks one round, with the facts that the round before changed. It returns the news of each file, and
            whether no file would go on without news of others.
    """
    table = _Table()
    rounds: list[dict[str, Any]] = []
    changed: dict[str, Any] = {}
    while len(rounds) < _ROUNDS:
        news, is_done = step(changed)
        changed = table.merge(news)
        rounds.append(changed)
        if is_done and not changed:
            break
    return rounds


class _Table:
    """What the files of a run have found, put together."""

    def __init__(self) -> None:
        self._facts: dict[str, Any] = {}
        self._given: dict[str, dict[str, Any]] = {}

    def merge(self, news: News) -> dict[str, Any]:
        """Add the news of files, by path; return the facts that they change.

        What several files say is joined in the order of their paths: joins of three values depend on their order.
        """
        for path, facts in news.items():
            for key, value in facts.items():
                self._given.setdefault(key, {})[path] = value
        changed: dict[str, Any] = {}
        for key in {key for facts in news.values() for key in facts}:
            given = self._given[key]
            value = _join_in_order(given[path] for path in (sorted(given) if len(given) > 1 else given))
            if self._facts.get(key) != value:
                self._facts[key] = changed[key] = value
        return changed


def _join_in_order(values: Iterable[Any]) -> Any:
    """Return the join of values; of anything else, of two modules with one name, the first."""
    result = None
    for value in values:
        if result is None:
            result = value
        elif isinstance(result, Value):
            result = join(result, value)
    return result
