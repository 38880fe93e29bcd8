"""Help for repairs that replace a whole if/elif chain."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ember_ml.lint.fix import FixContext


def same_bodies(branches: list[list[ast.stmt]]) -> bool:
    """Return whether all branches have the same syntax tree."""
    dumps = {"".join(ast.dump(statement) for statement in body) for body in branches}
    return len(dumps) == 1


def statement_span(statement: ast.stmt, context: FixContext) -> tuple[int, int]:
    """Return a statement with the comments that trail inside its block."""
    return context.start(statement), context.end(statement)


def dedent(text: str, by: int) -> str:
    """Move a block to the left."""
    lines = text.split("\n")
    return "\n".join([lines[0], *(line[by:] if not line[:by].strip() else line for line in lines[1:])])
