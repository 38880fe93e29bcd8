"""Translate the names of parameters: from those of our modules to those in the files of models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

__all__ = ["Names", "Stored"]


class Stored(NamedTuple):
    """How a parameter is stored."""

    names: tuple[str, ...]
    """The names of its tensors: one, or where there are several, one for each slice along the first axis."""
    is_transposed: bool
    """Whether the two axes of the tensors are exchanged."""


class Names:
    """A table of names. A key stands for a parameter or for all parameters of a module, ``{}`` for a number.

    A name with one number more than its key says that each slice along the first axis is a tensor of its own.

    Args:
        table: The stored name of each parameter or module.
        prefix: What names begin with in models with a head, and not in models without; files may have either.
        transposed: The keys of modules whose weights are stored with their axes exchanged.
        ignored: Patterns of stored names that hold nothing to be learned, or that belong to another head.
        old: Endings of names in old files, with what they are called today.

    >>> from ember_ml.models.names import Names
    >>> names = Names({"layers.{}.attention.query": "h.{}.attn.q", "experts.{}.up": "h.{}.expert.{}.w"})
    >>> names.find("layers.3.attention.query.weight").names
    ('h.3.attn.q.weight',)
    >>> names.find("experts.1.up", count=2).names
    ('h.1.expert.0.w', 'h.1.expert.1.w')
    """

    def __init__(
        self,
        table: Mapping[str, str],
        prefix: str = "",
        transposed: Iterable[str] = (),
        ignored: Iterable[str] = (),
        old: Mapping[str, str] | None = None,
    ) -> None:
        self._table, self._prefix, self._transposed = dict(table), prefix, frozenset(transposed)
        self._ignored = re.compile("|".join(f"(?:{pattern})" for pattern in ignored) or r"(?!)")
        self._old = dict(old or {})
        self._known: dict[str, tuple[str, bool]] = {}

    def without_prefix(self) -> Names:
        """Return the names of a model without a head."""
        size = len(self._prefix)
        table = {key: name[size:] if name.startswith(self._prefix) else name for key, name in self._table.items()}
        return Names(table, self._prefix, self._transposed, (self._ignored.pattern,), self._old)

    def find(self, name: str, count: int = 0) -> Stored:
        """Return how the parameter ``name`` is stored, whose first axis has ``count`` elements."""
        parts = name.replace(".base.", ".").split(".")  # a linear map with an adapter has a base
        numbers = [part for part in parts[1:] if part.isdecimal()]
        key = ".".join([parts[0], *["{}" if part.isdecimal() else part for part in parts[1:]]])
        pattern, is_transposed = self._known.get(key) or self._look_up(key)
        if pattern.count("{}") == len(numbers):
            return Stored((pattern.format(*numbers),), is_transposed)
        return Stored(tuple(pattern.format(*numbers, i) for i in range(count)), is_transposed)

    def _look_up(self, key: str) -> tuple[str, bool]:
        """Return the stored name of all parameters that a key stands for, and whether they are transposed."""
        module, _, last = key.rpartition(".")
        if key in self._table:
            pattern = self._table[key]
        elif last in ("scales", "biases") and f"{module}.weight" in self._table:  # of quantized weights
            pattern = self._table[f"{module}.weight"].removesuffix("weight") + last
        elif module in self._table:
            pattern = f"{self._table[module]}.{last}"
        else:
            raise KeyError(f"the table of names has nothing for {key}")
        self._known[key] = pattern, last == "weight" and module in self._transposed
        return self._known[key]

    def is_ignored(self, stored: str) -> bool:
        """Whether a tensor of that name in a file is left out."""
        return self._ignored.search(stored) is not None

    def match(self, stored: Iterable[str], wanted: Iterable[str]) -> dict[str, str]:
        """Return the stored name for each wanted one that a file has, also by old names and with another prefix."""
        known = set(wanted)
        found: dict[str, str] = {}
        for name in stored:
            new = name
            for ending, today in self._old.items():
                if new.endswith(ending):
                    new = new.removesuffix(ending) + today
            spellings = (new, self._prefix + new, new.removeprefix(self._prefix))
            found.update({spelling: name for spelling in spellings if spelling in known and spelling not in found})
        return found
