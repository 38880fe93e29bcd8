"""List the comments that say where a library deviates from the contract, read from the source of the backends.

Such a comment names library and version, so that it can be checked again and removed with its workaround:
``# torch 2.13: returns 0 for NaN``, ``# torch 2.11 on CUDA: sorts by bits``. The comment lines below belong to it.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from ember_ml import backend as built_in

__all__ = ["Deviation", "deviations", "read_deviations"]

_HEAD = re.compile(
    r"(?:^|# )(?P<library>\w+) (?P<version>\d+(?:\.\d+)+)(?: (?:on|with) (?P<where>[^:]+))?: (?P<text>.+)"
)


@dataclass(frozen=True, slots=True)
class Deviation:
    """One comment on a library's deviation: where it stands, what it belongs to, and what it says."""

    backend: str
    version: str
    where: str
    """The device or package that it was seen with, if the comment names one."""
    ops: tuple[str, ...]
    """The public names of the module that use the commented code."""
    function: str
    """The top-level function or name that the comment is in or above; the file's name if it is above the imports."""
    file: str
    line: int
    text: str


def deviations(backend: ModuleType) -> list[Deviation]:
    """Return the deviations of the library of a backend, in the order of files and lines."""
    home = Path(built_in.__path__[0])
    own = Path(str(backend.__file__))
    folders = [home] if own.is_relative_to(home) else [home, own.parent if hasattr(backend, "__path__") else own]
    files = [file for folder in folders for file in ([folder] if folder.is_file() else sorted(folder.rglob("*.py")))]
    return [entry for file in files for entry in read_deviations(file, backend.name)]


def read_deviations(file: Path, backend: str) -> list[Deviation]:
    """Return the deviations of the library ``backend`` that the comments of one file name."""
    source = file.read_text(encoding="utf-8")
    if not re.search(rf"# {backend} \d", source, re.IGNORECASE):
        return []
    statements = [statement for statement in ast.parse(source).body if not isinstance(statement, ast.Expr)]
    uses = {name: _read_names(statement) for statement in statements for name in _bound_names(statement)}
    found: list[Deviation] = []
    for line, comment in _comments(source):
        head = _HEAD.search(comment)
        if head is None or head["library"].lower() != backend:
            continue
        statement = next((one for one in statements if (one.end_lineno or 0) >= line), None)
        names = _bound_names(statement) if statement is not None else []
        found.append(
            Deviation(
                backend=backend,
                version=head["version"],
                where=head["where"] or "",
                ops=_public_users(names, uses),
                function=names[0] if names else file.stem,
                file="/".join(file.parts[-3:] if file.parent.name == "bodies" else file.parts[-2:]),
                line=line,
                text=head["text"],
            )
        )
    return found


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the first line and the text of each comment; lines of comments alone, in one column, are one comment."""
    start = column = end = 0
    text = ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        body = token.string.lstrip("#").strip()
        is_alone = token.line.lstrip().startswith("#")
        if text and is_alone and token.start == (end + 1, column) and _HEAD.search(body) is None:
            text, end = f"{text} {body}", end + 1
            continue
        if text:
            yield start, text
        start, text = token.start[0], body
        end, column = (start, token.start[1]) if is_alone else (-1, -1)
    if text:
        yield start, text


def _bound_names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [ast.unparse(target) for target in targets if target is not None]


def _read_names(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _public_users(names: list[str], uses: dict[str, set[str]]) -> tuple[str, ...]:
    """Return the public names of a module whose code uses any of ``names``, directly or not; themselves if public."""
    if any(name[:1] != "_" for name in names):
        return tuple(name for name in names if name[:1] != "_")
    reached, size = set(names), 0
    while size < len(reached):
        size = len(reached)
        reached |= {name for name, read in uses.items() if read & reached}
    return tuple(sorted(name for name in reached if name[:1] != "_"))
