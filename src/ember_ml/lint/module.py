"""One file: its text, its syntax tree, its place in the project."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from ember_ml.lint.natives import CONVENTIONAL_NAMES
from ember_ml.lint.profiles import Profile


class Module:
    """A parsed file and what the walker asks about it."""

    def __init__(
        self,
        path: str,
        name: str,
        source: str,
        tree: ast.Module,
        profile: Profile,
        *,
        strict: bool = False,
        allowed: frozenset[str] = frozenset(),
    ) -> None:
        self.path = path
        self.name = name
        self.source = source
        self.tree = tree
        self.profile = profile
        self.strict = strict
        self.allowed = allowed  # tensor libraries that this folder may use
        self.is_package = Path(path).name == "__init__.py"
        self.is_test = Path(path).name.startswith("test_") or Path(path).stem.endswith("_test")
        self.star_import = "import *" in source
        self._lines: list[bytes] | None = None
        self._parents: dict[int, ast.AST] | None = None

    def absolute(self, module: str | None, level: int) -> str:
        """Return the absolute name behind ``from <dots><module> import``."""
        if level == 0:
            return module or ""
        parts = self.name.split(".")
        drop = level - 1 if self.is_package else level
        base = parts[: len(parts) - drop] if drop <= len(parts) else []
        return ".".join([*base, module] if module else base)

    def conventional(self, name: str) -> str | None:
        """Return what an unbound name usually stands for: ``np``, ``torch``, ``mx``, the profile's own prefix."""
        if name in CONVENTIONAL_NAMES:
            return CONVENTIONAL_NAMES[name]
        profile = self.profile
        if name == profile.prefix and profile.namespaces:
            return profile.namespaces[0]
        if name == "tensor" and profile.prefix == "ops" and "ember_ml.nn.tensor" in profile.namespaces:
            return "ember_ml.nn.tensor"
        if name == "get_backend":
            return "ember_ml.backend.get_backend"
        return None

    # --- text

    @property
    def lines(self) -> list[bytes]:
        """The lines as UTF-8 bytes, because columns of ``ast`` count bytes."""
        if self._lines is None:
            self._lines = self.source.encode("utf-8", "surrogatepass").split(b"\n")
        return self._lines

    def column(self, line: int, byte_column: int) -> int:
        """Return a byte column as a character column."""
        if line - 1 >= len(self.lines):
            return byte_column
        if self.source.isascii():  # cheap to test; decoding the text before a column is slow in long lines
            return min(byte_column, len(self.lines[line - 1]))
        return len(self.lines[line - 1][:byte_column].decode("utf-8", "replace"))

    def text(self, node: Any) -> str:
        """Return the source text of a node."""
        lines = self.lines
        first, last = node.lineno - 1, node.end_lineno - 1
        start, end = node.col_offset, node.end_col_offset
        if first == last:
            raw = lines[first][start:end]
        else:
            raw = b"\n".join([lines[first][start:], *lines[first + 1 : last], lines[last][:end]])
        return raw.decode("utf-8", "surrogatepass")

    def parent(self, node: Any) -> Any:
        """Return the node around a node."""
        if self._parents is None:
            parents: dict[int, ast.AST] = {}
            for outer in ast.walk(self.tree):
                for inner in ast.iter_child_nodes(outer):
                    parents[id(inner)] = outer
            self._parents = parents
        return self._parents.get(id(node))

    def around(self, node: Any, *types: type) -> Any:
        """Return the nearest node around a node that is of one of the types."""
        current = self.parent(node)
        while current is not None and not isinstance(current, types):
            current = self.parent(current)
        return current
