"""A unit: the smallest piece of code that is walked by itself."""

from __future__ import annotations

from typing import Any

from ember_ml.lint.values import Value


class Unit:
    """One function, or the top level of a file, with what the last walk over it found."""

    __slots__ = (
        "class_name",
        "demanded",
        "env",
        "evidence",
        "name",
        "node",
        "parent",
        "reads",
        "reports",
        "returns",
        "walked",
    )

    def __init__(self, name: str, node: Any, parent: Unit | None, class_name: str | None) -> None:
        self.name = name
        self.node = node
        self.parent = parent
        self.env: dict[str, Value] = {}
        self.class_name = class_name
        self.reads: dict[str, Any] = {}
        self.reports: dict[tuple[str, int], tuple[Any, ...]] = {}
        self.evidence: set[str] = set()
        self.demanded: set[int] = set()
        self.returns: list[Value] = []
        self.walked = False
