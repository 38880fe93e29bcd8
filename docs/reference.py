"""The reference pages, made from the declarations when the documentation is built: one page per family of ops."""

from __future__ import annotations

import inspect
import re
from typing import Any

from mkdocs.structure.files import File, Files

import ember_ml.ops  # the import declares every op
from ember_ml.backend import installed_backends, load
from ember_ml.ops.declare import OPS
from ember_ml.ops.inventory import Entry, gaps, inventory

assert ember_ml.ops


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages to those in docs/."""
    backends = [load(name) for name in installed_backends()]
    entries = inventory(backends)
    families = sorted({entry.family for entry in entries})
    pages = {f"reference/{family}.md": _family_page(family, entries) for family in families}
    pages["reference/index.md"] = _index_page(families, entries, backends)
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def _index_page(families: list[str], entries: list[Entry], backends: list[Any]) -> str:
    names = [backend.name for backend in backends]
    lines = [
        "# Reference",
        "",
        f"{len(entries)} functions, each with one meaning on every backend. A page for each family:",
        "",
        *(
            f"- [{family}]({family}.md): {', '.join(e.op for e in entries if e.family == family)}"
            for family in families
        ),
        "",
        "## How each backend computes",
        "",
        "*native*: the library's own function; *own*: a body written for this backend; *derived*: a body written on "
        "other ops; *plain*: a function that needs no backend. `ember-ml ops` prints this table for what is installed.",
        "",
        f"| op | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
        *(f"| [`{e.op}`]({e.family}.md#{e.op.lower()}) | {' | '.join(e.status[n] for n in names)} |" for e in entries),
        "",
        "## What a backend cannot do",
        "",
        "| backend | op | dtype | why |",
        "|---|---|---|---|",
        *(f"| {g.backend} | {_cell(g.op)} | {_cell(g.dtype)} | {g.reason} |" for b in backends for g in gaps(b)),
    ]
    return "\n".join(lines) + "\n"


def _cell(name: str) -> str:
    return "every" if name == "*" else f"`{name}`"


def _family_page(family: str, entries: list[Entry]) -> str:
    ours = [entry for entry in entries if entry.family == family]
    return f"# {family}\n\n" + "\n".join(_section(entry) for entry in ours)


def _section(entry: Entry) -> str:
    op = OPS[entry.op]
    aliases = f"Also: {', '.join(f'`{alias}`' for alias in entry.aliases)}.\n\n" if entry.aliases else ""
    rule = f"Dtype rule: *{entry.rule}*, result {op.rule.result}.\n\n" if not op.is_plain else ""
    signature = f"```python\nops.{entry.op}{_readable(entry.signature)}\n```\n\n"
    return f"## {entry.op}\n\n{signature}{_documentation(op)}\n\n{aliases}{rule}"


def _readable(signature: str) -> str:
    return signature.replace("'", "")


def _documentation(op: Any) -> str:
    """The docstring as Markdown: examples become code blocks, double backquotes single ones."""
    parts = []
    for paragraph in re.split(r"\n\n+", inspect.getdoc(op.declaration) or ""):
        if paragraph.lstrip().startswith(">>>"):
            parts.append(f"```pycon\n{inspect.cleandoc(paragraph)}\n```")
        else:
            parts.append(paragraph.replace("``", "`"))
    return "\n\n".join(parts)
