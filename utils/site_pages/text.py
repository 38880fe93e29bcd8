"""Turn docstrings into Markdown: examples into code blocks, sections into tables, names into links."""

from __future__ import annotations

import inspect
import os
import posixpath
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import ember_ml

__all__ = [
    "PAGES",
    "Documentation",
    "documentation_to_markdown",
    "first_sentence",
    "link",
    "link_source",
    "link_types",
    "list_search_words",
    "read",
    "table",
    "to_markdown",
]

PAGES: dict[str, str] = {}
"""The path of the page of each public name, by its last part: "add", "Linear", "TensorLike"."""

_SECTION = re.compile(r"^(Args|Returns|Raises|Shape|Formula):[ \t]*\n((?:[ \t]+.*(?:\n|$)|\n)*)", re.MULTILINE)


class Documentation(NamedTuple):
    """A docstring in parts: prose and examples in their order, and what its sections say by name."""

    body: str
    arguments: dict[str, str]
    raises: dict[str, str]


def read(thing: Any) -> Documentation:
    """Read the docstring of an object."""
    text = inspect.getdoc(thing) or ""
    sections = {found[1]: found[2] for found in _SECTION.finditer(text)}
    body = _SECTION.sub("", text)
    return Documentation(
        body.strip(), _read_entries(sections.get("Args", "")), _read_entries(sections.get("Raises", ""))
    )


def _read_entries(text: str) -> dict[str, str]:
    """Return the entries of a section: "name: meaning", continued on deeper lines."""
    entries: dict[str, str] = {}
    last = ""
    for line in inspect.cleandoc(text).splitlines():
        found = re.match(r"(\*{0,2}\w+)(?: \([^)]*\))?: (.*)", line)
        if found:
            last = found[1].lstrip("*")
            entries[last] = found[2]
        elif last and line.strip():
            entries[last] += f" {line.strip()}"
    return entries


def first_sentence(thing: Any, path: str) -> str:
    """Return the first sentence of a docstring as Markdown, for tables."""
    prose = (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")
    found = re.match(r"(.*?[.:;])(?:\s+[A-Z`]|$)", prose)
    return to_markdown(found[1].rstrip(":;") if found else prose, path)


def to_markdown(text: str, path: str) -> str:
    """Return prose as Markdown for the page at ``path``: names with a role become links."""

    def refer(found: re.Match[str]) -> str:
        name = found[1].lstrip("~")
        target = PAGES.get(name.rpartition(".")[2])
        return f"[`{name}`]({link(path, target)})" if target and target != path else f"`{name}`"

    return re.sub(r":\w+:`([^`]+)`", refer, text).replace("``", "`")


def documentation_to_markdown(body: str, path: str) -> str:
    """Return prose and examples as Markdown."""
    parts = []
    for paragraph in re.split(r"\n\n+", body):
        if paragraph.lstrip().startswith(">>>"):
            parts.append(f"```pycon\n{inspect.cleandoc(paragraph)}\n```")
        else:
            parts.append(to_markdown(paragraph, path))
    return "\n\n".join(parts)


def link(path: str, target: str) -> str:
    """Return the relative link from one page to another."""
    return posixpath.relpath(target, posixpath.dirname(path))


def link_source(module: str) -> str:
    """Return the file of a module, as a link where the repository is published (``EMBER_ML_REPO_URL``)."""
    file = sys.modules[module].__file__
    assert file is not None, module
    path = f"src/{Path(file).relative_to(Path(ember_ml.__file__).parents[1]).as_posix()}"
    address = os.environ.get("EMBER_ML_REPO_URL", "").rstrip("/")
    return f"[`{path}`]({address}/blob/main/{path})" if address else f"`{path}`"


def link_types(annotation: Any, path: str) -> str:
    """Return an annotation in which the names that have a page are links."""
    if annotation is inspect.Parameter.empty:
        return ""
    written = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    parts = re.split(r"(\w+)", re.sub(r"\b(?:\w+\.)+(?=\w)", "", written))
    shown, plain = [], ""
    for part in parts:
        target = PAGES.get(part) if part[:1].isupper() else None
        if target and target != path:
            anchor = f"#{part.lower()}" if target.endswith("types.md") else ""
            shown += [plain, f"[`{part}`]({link(path, target)}{anchor})"]
            plain = ""
        else:
            plain += part
    shown = [text if text.startswith("[`") else f"`{text.strip()}`" for text in (*shown, plain) if text.strip()]
    return " ".join(shown)


_SYNONYMS = {
    "crossentropy": "cross entropy",
    "compile": "jit",
    "concatenate": "cat",
    "trainer": "fit, train loop",
    "schedule": "learning rate",
    "average_pool": "avg pool",
}


def list_search_words(name: str) -> str:
    """Return a line with the words in a name, which the search of the site finds only one by one; "" for one word."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").lower()
    others = [synonym for key, synonym in _SYNONYMS.items() if key in name.lower()]
    return f"<small>Search words: {', '.join([words, *others])}</small>" if others or " " in words else ""


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(map(_escape, row))} |" for row in (head, ("---",) * len(head), *rows)]
    return "\n".join(lines)


def _escape(cell: str) -> str:
    """Return a cell whose bars end no column; inside code they do not, and a backslash would be shown."""
    parts = re.split(r"(`[^`]*`)", cell)
    return "".join(part if part.startswith("`") else part.replace("|", "\\|") for part in parts)
