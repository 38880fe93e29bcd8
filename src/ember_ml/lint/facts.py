"""Facts across files: results of functions, arguments they are called with, attributes, aliases.

Keys are short strings, which can be cached and sent between processes:

``ret:f``      what function ``f`` returns            ``par:f:0``, ``par:f:name``   what it is called with
``attr:C:a``   what attribute ``a`` of class ``C`` holds   ``var:m.x``   what a module's variable holds
``def:n``      ``("func", form)`` or ``("class", bases)``  ``alias:m.x``  the dotted name that ``m.x`` stands for
``mod:m``      whether module ``m`` of the project can hold tensors
"""

from __future__ import annotations

from typing import Any

from ember_ml.lint.values import Value, join


class Facts:
    """A table that only grows; it notes its readers, to walk them again when it does."""

    def __init__(self) -> None:
        self.table: dict[str, Any] = {}
        self.produced: dict[str, Any] = {}
        self.reads: dict[str, Any] = {}

    def read(self, key: str) -> Any:
        """Return the fact, or ``None``; the reader is noted."""
        value = self.table.get(key)
        self.reads[key] = value
        return value

    def put(self, key: str, value: Any) -> None:
        """Add to a fact: values are joined, anything else is replaced."""
        for table in (self.table, self.produced):
            old = table.get(key)
            if old is None or not isinstance(value, Value):
                table[key] = value
            elif old is not value:
                table[key] = join(old, value)

    def merge(self, others: dict[str, Any]) -> None:
        """Take over facts that other files produced."""
        table = self.table
        for key, value in others.items():
            old = table.get(key)
            if old is None or not isinstance(value, Value):
                table[key] = value
            elif old is not value:
                table[key] = join(old, value)

    def changed_since(self, reads: dict[str, Any]) -> bool:
        """Return whether any of these readings would now be another."""
        get = self.table.get
        for key, seen in reads.items():
            now = get(key)
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
