"""A finding: what is wrong, where, and how to repair it."""

from __future__ import annotations

from dataclasses import dataclass

from ember_ml.lint.fix import Fix


@dataclass(frozen=True)
class Finding:
    """One finding. Lines and columns count from 1, columns in characters.

    Args:
        path: The file.
        line: The line where it begins.
        column: The column where it begins.
        end_line: The line where it ends.
        end_column: The column behind its last character.
        code: The code of the rule.
        message: What is wrong and what to write.
        fix: The repair, where there is one.
        cell: The cell, counted from 1, where the file is a notebook.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    code: str
    message: str
    fix: Fix | None = None
    cell: int | None = None

    def sort_key(self) -> tuple:
        """By place, then by code."""
        return (self.path, self.cell or 0, self.line, self.column, self.code)

    def as_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        fix = None
        if self.fix is not None:
            fix = {
                "title": self.fix.title,
                "safe": self.fix.safe,
                "edits": [{"start": e.start, "end": e.end, "text": e.text} for e in self.fix.edits],
            }
        result: dict[str, object] = {
            "path": self.path,
            "line": self.line,
            "column": self.column,
            "end_line": self.end_line,
            "end_column": self.end_column,
            "code": self.code,
            "message": self.message,
            "fix": fix,
        }
        if self.cell is not None:
            result["cell"] = self.cell
        return result
