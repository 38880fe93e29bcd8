"""Files on disk: which ones to check, how to decode them, and notebooks as Python text."""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import stat
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

SUFFIXES = (".py", ".pyi", ".ipynb")
SKIPPED_FOLDERS = frozenset(
    {
        ".git",
        ".hg",
        ".venv",
        "venv",
        "__pycache__",
        "node_modules",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
        ".emberlint_cache",
        ".eggs",
    }
)
CELL_MARK = "# %% emberlint cell "
_MAGIC = "pass  # emberlint magic: "


class Undecodable(Exception):
    """The bytes of a file are not the text they claim to be."""


def find(paths: Iterable[str]) -> Iterator[str]:
    """Yield the files to check; a path that is given itself is checked whatever its suffix.

    Raises:
        FileNotFoundError: for a path that does not exist.
    """
    for given in paths:
        if os.path.isdir(given):
            for folder, folders, names in os.walk(given):
                folders[:] = sorted(f for f in folders if f not in SKIPPED_FOLDERS)
                for name in sorted(names):
                    path = os.path.join(folder, name)
                    # no dangling links, as the locks of editors are, and no devices, which may never end
                    if name.endswith(SUFFIXES) and os.path.isfile(path):
                        yield path
        elif os.path.exists(given) and not stat.S_ISCHR(os.stat(given).st_mode):
            yield given
        else:
            raise FileNotFoundError(given)


def decode(data: bytes) -> str:
    """Return the text of a Python file by its own encoding declaration; line ends become ``\\n``.

    Raises:
        Undecodable: with the reason.
    """
    try:
        if data.isascii() and b"coding" not in data[:400]:
            text = data.decode("ascii")
        else:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Undecodable(
            f"cannot be decoded: byte {data[error.start]:#04x} on line {line} is not {error.encoding}"
        ) from error
    except (SyntaxError, LookupError, UnicodeError) as error:  # the codec "undefined" raises the last
        raise Undecodable(f"cannot be decoded: {error}") from error
    if text.startswith(codecs.BOM_UTF8.decode()):
        text = text[1:]
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def notebook_text(data: bytes) -> str:
    """Return the code cells of a notebook as one Python text; magics become comments.

    Raises:
        Undecodable: if the file is not a notebook.
    """
    try:
        book = json.loads(data)
        cells = book["cells"]
        parts = []
        for number, cell in enumerate(cells, 1):
            if cell["cell_type"] != "code":
                continue
            code = cell["source"]
            code = code if isinstance(code, str) else "".join(code)
            parts.append(f"{CELL_MARK}{number}\n{_hide_magics(code)}\n")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Undecodable(f"is not a notebook: {type(error).__name__}: {error}") from error
    return "".join(parts)


def _hide_magics(code: str) -> str:
    if code.lstrip().startswith("%%"):
        return "\n".join(_MAGIC + line for line in code.split("\n"))
    lines = []
    for line in code.split("\n"):
        command = line.lstrip()
        is_magic = command.startswith(("%", "!", "?")) or (line.endswith("?") and not command.startswith("#"))
        lines.append(f"{line[: len(line) - len(command)]}{_MAGIC}{command}" if is_magic else line)
    return "\n".join(lines)


def notebook_bytes(data: bytes, text: str) -> bytes:
    """Return a notebook with its code cells replaced by what ``text`` says about them."""
    book = json.loads(data)
    for number, code in _cells(text):
        lines = [line.replace(_MAGIC, "", 1) if _MAGIC in line else line for line in code.split("\n")]
        source = "\n".join(lines)
        cell = book["cells"][number - 1]
        cell["source"] = source if isinstance(cell["source"], str) else source.splitlines(keepends=True)
    indent = 1 if b'\n "' in data else None
    return (json.dumps(book, indent=indent, ensure_ascii=False) + ("\n" if data.endswith(b"\n") else "")).encode()


def _cells(text: str) -> Iterator[tuple[int, str]]:
    pieces = re.split(rf"^{re.escape(CELL_MARK)}(\d+)\n", text, flags=re.MULTILINE)
    # an import that a repair put before the first mark belongs to the first code cell
    head = pieces[0]
    for index in range(1, len(pieces), 2):
        yield int(pieces[index]), (head + pieces[index + 1]).removesuffix("\n")
        head = ""


def cell_of(text: str, line: int) -> tuple[int, int]:
    """Return the cell and the line in it for a line of a notebook's text."""
    lines = text.split("\n")
    for at in range(min(line, len(lines)) - 1, -1, -1):
        if lines[at].startswith(CELL_MARK):
            return int(lines[at][len(CELL_MARK) :]), max(line - at - 1, 1)
    return 1, line


_NAMES: dict[str, tuple[str, ...]] = {}


def module_name(path: str) -> str:
    """Return the dotted name of a file, by the packages around it, or by the folders after ``src``."""
    folder, base = os.path.split(os.path.abspath(path))
    stem = Path(base).stem
    packages = _packages(folder)
    parts = packages if stem == "__init__" else (*packages, stem)
    return ".".join(parts) or stem


def _packages(folder: str) -> tuple[str, ...]:
    known = _NAMES.get(folder)
    if known is None:
        parent, name = os.path.split(folder)
        if os.path.exists(os.path.join(folder, "__init__.py")) and name:
            known = (*_packages(parent), name)
        else:
            parts = folder.split(os.sep)
            known = tuple(parts[len(parts) - parts[::-1].index("src") :]) if "src" in parts else ()
        _NAMES[folder] = known
    return known
