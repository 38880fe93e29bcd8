"""The gallery: a page for each program in examples/ with what it prints and shows, and a notebook of it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from site_pages import notebooks
from site_pages.text import to_markdown

__all__ = ["list_examples", "make_navigation", "write_notebooks", "write_pages"]

ROOT = Path(__file__).parents[2]
INDEX = "gallery/index.md"


def list_examples() -> dict[str, Path]:
    """Return the programs by name."""
    return {path.stem: path for path in sorted((ROOT / "examples").glob("*.py"))}


def make_navigation() -> dict[str, list[Any]]:
    """Return the menu of the gallery."""
    titles = {
        name: notebooks.split_docstring(path.read_text(encoding="utf-8"))[0] for name, path in list_examples().items()
    }
    return {"Gallery": [INDEX, *({title: f"gallery/{name}.md"} for name, title in titles.items())]}


def write_pages() -> dict[str, str]:
    """Return the text of every page, by its path."""
    pages = {f"gallery/{name}.md": _write_page(name, path) for name, path in list_examples().items()}
    return {INDEX: _write_index()} | pages


def _write_index() -> str:
    cards = []
    for name, path in list_examples().items():
        title, summary, _, _ = notebooks.split_docstring(path.read_text(encoding="utf-8"))
        said = f"<p>{summary[:1].upper()}{summary[1:]}</p>" if summary else ""
        picture = f'<img src="{name}.svg" alt="{title}">'
        cards.append(f'<a class="card" href="{name}/">{picture}<strong>{title}</strong>{said}</a>')
    about = (
        "Programs to start from: each runs on every backend, and each page shows what it prints and draws. They are in "
        "`examples/`, and every page has its program as a notebook."
    )
    return f'# Gallery\n\n{about}\n\n<div class="cards">\n{"".join(cards)}\n</div>\n'


def _write_page(name: str, path: Path) -> str:
    source = path.read_text(encoding="utf-8")
    title, summary, rest, call = notebooks.split_docstring(source)
    printed = (ROOT / "docs" / "gallery" / f"{name}.txt").read_text(encoding="utf-8")
    parts = [
        f"# {title}",
        to_markdown(f"{summary[:1].upper()}{summary[1:]}", INDEX),
        to_markdown(rest, INDEX),
        f"![{title}]({name}.svg)",
        f"```bash\n{call}\n```",
        f"```text\n{printed.strip()}\n```",
        f"[Download as a notebook]({name}.ipynb){{ .md-button download }}",
        "## The program",
        f"```python\n{_without_docstring(source)}\n```",
        f"Source: `examples/{name}.py`.",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _without_docstring(source: str) -> str:
    lines = source.splitlines()
    first = ast.parse(source).body[0]
    return "\n".join(lines[first.end_lineno or 0 :]).strip()


def write_notebooks() -> dict[str, str]:
    """Return the notebook of each program as JSON, by its path."""
    return {f"gallery/{name}.ipynb": notebooks.read_program(path) for name, path in list_examples().items()}
