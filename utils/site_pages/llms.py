"""The files for language models: ``llms.txt``, a list of the pages, and ``llms-full.txt``, their text."""

from __future__ import annotations

from typing import Any

__all__ = ["collect", "write_files"]


def write_files(description: str, pages: list[tuple[str, str, str]], url: str) -> dict[str, str]:
    """Return both files; a page is its title, its address below ``url``, and its Markdown."""
    lines = ["# Ember ML", "", f"> {description}", "", "## Pages", ""]
    lines += [f"- [{title}]({url}{address})" for title, address, _ in pages]
    whole = "\n\n".join(f"<!-- {address} -->\n\n{text.strip()}" for _, address, text in pages)
    return {"llms.txt": "\n".join([*lines, ""]), "llms-full.txt": f"{whole}\n"}


def collect(page: Any, markdown: str) -> tuple[str, str, str]:
    """Return the entry of a page of MkDocs."""
    return page.title or page.file.src_uri, page.file.url.removeprefix("./"), markdown
