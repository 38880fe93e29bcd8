"""Notebooks of programs and pages: their prose and code in cells, as JSON."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

__all__ = ["read_page", "read_program", "split_docstring"]


def split_docstring(source: str) -> tuple[str, str, str, str]:
    """Return the title of a program, the rest of its first sentence, its further description, and how it is called."""
    document = ast.get_docstring(ast.parse(source)) or ""
    call = re.search(r"python examples/[^\n]*", document)
    assert call is not None, document
    prose = document.replace(call[0], "").strip().rstrip(":").strip()
    first, _, rest = prose.partition("\n\n")
    title, _, summary = first.replace("\n", " ").partition(": ")
    return title.rstrip("."), summary, rest.strip(), call[0].rstrip(".")


def read_program(path: Path) -> str:
    """Return a program as a notebook: its description, its imports, a cell for each definition, and the call."""
    source = path.read_text(encoding="utf-8")
    title, summary, rest, _ = split_docstring(source)
    lines = source.splitlines(keepends=True)
    first, *statements = ast.parse(source).body
    last = first.end_lineno or 0
    cells, gathered = [], ""
    if "__file__" in source:  # which notebooks have not; these programs look for files of the clone beside themselves
        gathered = f'__file__ = "examples/{path.name}"  # this notebook runs in the folder of a clone\n'
    for node in statements:
        if isinstance(node, ast.If):  # the call of main
            break
        text = "".join(lines[last : node.end_lineno]).strip("\n")
        last = node.end_lineno or 0
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            cells += [gathered.strip("\n"), text]
            gathered = ""
        else:
            gathered += f"{text}\n"
    cells += [gathered.strip("\n"), "main([])"]
    about = f"# {title}\n\n{summary}\n\n{rest}".replace("``", "`")
    return _write([("markdown", about), *(("code", text) for text in cells if text)])


def read_page(path: Path) -> str:
    """Return a page of the documentation as a notebook: its Python fences are the cells with code."""
    cells, text = [], path.read_text(encoding="utf-8")
    fence = re.compile(r"^```python\n(.*?)^```(?:\n\n```text\n.*?^```)?\n", re.DOTALL | re.MULTILINE)
    for number, part in enumerate(fence.split(text)):
        if part.strip():
            cells.append(("code" if number % 2 else "markdown", part.strip()))
    return _write(cells)


def _write(cells: list[tuple[str, str]]) -> str:
    """Return the notebook of cells, each "markdown" or "code" and its text."""
    made: list[dict[str, Any]] = []
    for number, (kind, text) in enumerate(cells):
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text}
        made.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1)
