"""Repairs as text edits: how rules write them and what they may ask about the code around a node."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ember_ml.lint import natives, replacements

if TYPE_CHECKING:
    from ember_ml.lint.flow import Flow


@dataclass(frozen=True)
class Edit:
    """Replace ``source[start:end]`` by ``text``."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Fix:
    """A repair: what it does, whether it can change results, its edits, and which imports it needs."""

    title: str
    edits: tuple[Edit, ...]
    safe: bool = True
    needs_ops: bool = True
    also_import: str = ""

    @property
    def span(self) -> tuple[int, int]:
        """The text that the repair depends on."""
        return min(e.start for e in self.edits), max(e.end for e in self.edits)


@dataclass
class FixContext:
    """The functions that a rule needs to write a repair for one file."""

    flow: Flow
    _starts: list[int] = field(default_factory=list)

    @property
    def module(self):
        """The file."""
        return self.flow.module

    def offset(self, line: int, column: int) -> int:
        """Return an ``ast`` position as an index into the text."""
        if not self._starts:
            total = 0
            for text in self.module.source.split("\n"):
                self._starts.append(total)
                total += len(text) + 1
        if self.module.source.isascii():
            return self._starts[line - 1] + min(column, len(self.module.lines[line - 1]))
        raw = self.module.lines[line - 1][:column]
        return self._starts[line - 1] + len(raw.decode("utf-8", "surrogatepass"))

    def start(self, node: Any) -> int:
        """Return where a node begins in the text."""
        return self.offset(node.lineno, node.col_offset)

    def end(self, node: Any) -> int:
        """Return where a node ends in the text."""
        return self.offset(node.end_lineno, node.end_col_offset)

    def replace(self, node: Any, text: str) -> Edit:
        """Replace a whole node."""
        return Edit(self.start(node), self.end(node), text)

    def text(self, node: Any) -> str:
        """Return the text of a node."""
        return self.module.text(node)

    def prefix(self) -> str | None:
        """Return how ops are spelled in this file; ``None`` if the name is taken by something else."""
        profile = self.module.profile
        if not profile.prefix:
            return None
        for name, value in self.flow.top.items():
            if value.detail == ("ref", profile.namespaces[0]):
                return name
        held = self.flow.top.get(profile.prefix)
        if held is not None:
            detail = held.detail
            if not (type(detail) is tuple and detail[0] == "ref" and self.module.profile.is_namespace(detail[1])):
                return None
        return profile.prefix

    # --- shapes of repair

    def call_op(self, node: Any, op: str, *arguments: str, safe: bool = True) -> Fix | None:
        """Replace an expression by a call of an op."""
        prefix = self.prefix()
        if prefix is None:
            return None
        text = f"{prefix}.{op}({', '.join(arguments)})"
        return Fix(f"use {prefix}.{op}", (self.replace(node, text),), safe)

    def operator(self, node: Any, left: Any, right: Any, op: str, *, safe: bool = True) -> Fix | None:
        """Replace ``left <op> right`` by ``ops.op(left, right)``; keep comments and line breaks in between."""
        prefix = self.prefix()
        if prefix is None:
            return None
        source = self.module.source
        start, end = self.start(node), self.end(node)
        left_start, left_end = self.start(left), self.end(left)
        right_start, right_end = self.start(right), self.end(right)
        before, after = source[start:left_start], source[right_end:end]
        gap = source[left_end:right_start]
        position = _operator_position(gap)
        if position is None:
            return None
        at, length = position
        closers, openers = gap[:at], gap[at + length :]
        edits = [
            Edit(
                start,
                left_start,
                f"{prefix}.{op}(" + before.replace("(", "", 1)
                if closers.strip() == ")" and before.strip() == "("
                else f"{prefix}.{op}(" + before,
            )
        ]
        if closers.strip() == ")" and before.strip() == "(":
            closers = closers.replace(")", "", 1)
        if openers.strip() == "(" and after.strip() == ")":
            openers, after = openers.replace("(", "", 1), after.replace(")", "", 1)
        middle = closers.rstrip(" \t") + "," + (openers if openers[:1] in (" ", "\n", "\t") else " " + openers)
        edits.append(Edit(left_end, right_start, middle))
        edits.append(Edit(right_end, end, after + ")"))
        return Fix(f"use {prefix}.{op}", tuple(edits), safe)

    def arguments(self, node: Any, op: str) -> list[str] | None:
        """Return the arguments of a native call with keywords renamed for an op; ``None`` if one has no counterpart."""
        result = [self.text(arg) for arg in node.args]
        for keyword in node.keywords:
            name = replacements.keyword_for(op, keyword.arg) if keyword.arg is not None else None
            if name is None:
                return None
            result.append(f"{name}={self.text(keyword.value)}")
        return result

    def has_comment(self, node: Any) -> bool:
        """Return whether replacing the node as a whole would lose a comment."""
        text = self.text(node)
        return "#" in text and "\n" in text

    # --- where a value goes

    def feeds_only_ops(self, node: Any, depth: int = 0) -> bool:
        """Return whether a value is used only by ops, by native calls that have an op, and by operators."""
        if depth > 8:
            return False
        parent = self.module.parent(node)
        if isinstance(parent, ast.keyword):
            parent = self.module.parent(parent)
        if isinstance(parent, ast.Call):
            if node is parent.func:
                return False
            dotted = self.flow.dotted(parent.func)
            if dotted is None:
                return False
            return self.flow.profile.op(dotted) is not None or (
                natives.library_of(dotted) is not None and replacements.op_for(dotted) is not None
            )
        if isinstance(parent, (ast.BinOp, ast.UnaryOp)) or (
            isinstance(parent, ast.Compare)
            and not isinstance(self.module.parent(parent), (ast.If, ast.While, ast.Assert, ast.BoolOp))
        ):
            return self.feeds_only_ops(parent, depth + 1)
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
            return self._variable_feeds_only_ops(parent, parent.targets[0].id, depth)
        return False

    def _variable_feeds_only_ops(self, assign: ast.Assign, name: str, depth: int) -> bool:
        scope = self.module.around(assign, ast.FunctionDef, ast.AsyncFunctionDef)
        if scope is None:
            return False
        used = False
        for other in ast.walk(scope):
            if isinstance(other, ast.Name) and other.id == name:
                if isinstance(other.ctx, ast.Load):
                    used = True
                    if not self.feeds_only_ops(other, depth + 1):
                        return False
                elif other is not assign.targets[0]:
                    return False
        return used


def _operator_position(gap: str) -> tuple[int, int] | None:
    """Return where the operator is in the text between two operands, comments skipped."""
    index = 0
    while index < len(gap):
        char = gap[index]
        if char == "#":
            newline = gap.find("\n", index)
            if newline < 0:
                return None
            index = newline
        elif char in "+-*/%@&|^<>=!":
            for symbol in ("**", "//", "<<", ">>", "==", "!=", "<=", ">="):
                if gap.startswith(symbol, index):
                    return index, 2
            return index, 1
        index += 1
    return None
