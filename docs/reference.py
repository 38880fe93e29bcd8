"""The reference pages, made from the declarations when the documentation is built: one page per op."""

from __future__ import annotations

import inspect
import re
from typing import Any

from mkdocs.structure.files import File, Files

import ember_ml.ops  # the import declares every op
from ember_ml.backend import installed_backends, load
from ember_ml.ops.declare import OPS, Op
from ember_ml.ops.inventory import Entry, Gap, gaps, inventory
from ember_ml.ops.rules import Rule

assert ember_ml.ops


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages to those in docs/."""
    backends = [load(name) for name in installed_backends()]
    entries = inventory(backends)
    lacking = [gap for backend in backends for gap in gaps(backend)]
    pages = {f"reference/{entry.op}.md": _op_page(entry, backends, lacking) for entry in entries}
    pages["reference/index.md"] = _index_page(entries, backends, lacking)
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def _index_page(entries: list[Entry], backends: list[Any], lacking: list[Gap]) -> str:
    families = sorted({entry.family for entry in entries})
    lines = [
        "# Reference",
        "",
        f"{len(entries)} functions, each with one meaning on {', '.join(backend.name for backend in backends)}.",
        "",
    ]
    for family in families:
        links = ", ".join(f"[{entry.op}]({entry.op}.md)" for entry in entries if entry.family == family)
        lines += [f"## {family}", "", links, ""]
    lines += ["## What a backend cannot do", "", "| backend | op | dtype | why |", "|---|---|---|---|"]
    lines += [f"| {gap.backend} | {_cell(gap.op)} | {_cell(gap.dtype)} | {gap.reason} |" for gap in lacking]
    return "\n".join(lines) + "\n"


def _cell(name: str) -> str:
    return "every" if name == "*" else f"`{name}`"


def _op_page(entry: Entry, backends: list[Any], lacking: list[Gap]) -> str:
    op = OPS[entry.op]
    parts = [f"# {entry.op}", f"```python\nops.{entry.op}{_readable(entry.signature)}\n```", _documentation(op)]
    if entry.aliases:
        parts.append(f"Also: {', '.join(f'`{alias}`' for alias in entry.aliases)}.")
    if not op.is_plain:
        parts += ["## Dtypes", _dtypes(op.rule), "## Gradient", _gradient(op)]
        rows = [_backend_row(entry, backend, lacking) for backend in backends]
        parts += ["## Backends", "\n".join(["| backend | how | otherwise |", "|---|---|---|", *rows])]
    parts.append(f"Family: [{entry.family}](index.md#{entry.family}).")
    return "\n\n".join(parts) + "\n"


_RESULTS = {
    "same": "the dtype in which it computes",
    "real": "that of the parts, for complex numbers; else the dtype in which it computes",
    "complex": "complex",
    "wide": "the dtype in which it computes; integers in 64 bits",
    "own": "as said above",
}


def _dtypes(rule: Rule) -> str:
    """Which dtypes the op takes, how they are promoted, and the dtype of the result."""
    accepted = ", ".join(f"`{dtype}`" for dtype in sorted(str(dtype) for dtype in rule.domain))
    said = [f"Rule *{rule.name}*: it computes {accepted}."]
    if rule.lift:
        said.append(f"Integers{' and bools' if rule.lift_bool else ''} are computed in float32.")
    if rule.promotes:
        said.append("Several tensors are promoted to one dtype; Python numbers take that of the tensors.")
    if rule.contraction:
        said.append("Half precision does not mix with wider floats: `TypeError`.")
    said.append(f"Result: {_RESULTS.get(rule.result, f'`{rule.result}`')}.")
    return " ".join(said)


def _gradient(op: Op) -> str:
    """By which parameters the op is differentiable."""
    if op.rule.result in ("bool", "int64"):
        return "None: the result is not a float."
    known = [f"`{name}`" for name, rule in op.gradients.items() if rule is not None]
    flat = [f"`{name}`" for name, rule in op.gradients.items() if rule is None]
    said = [f"Differentiable with respect to {', '.join(known)}." if known else ""]
    if flat:
        said.append(f"The gradient with respect to {', '.join(flat)} is zero.")
    if not op.gradients:
        said.append("Through the ops that it is made of." if op.derived else "Not differentiable.")
    return " ".join(part for part in said if part)


_HOW = {
    "native": "the library's own function",
    "own": "a body of its own",
    "derived": "on other ops",
    "missing": "not there",
}


def _backend_row(entry: Entry, backend: Any, lacking: list[Gap]) -> str:
    otherwise = [f"{gap.dtype}: {gap.reason}" for gap in lacking if gap.backend == backend.name and gap.op == entry.op]
    corrected = entry.corrected.get(backend.name)
    if corrected:
        otherwise.insert(0, f"corrected for {', '.join(corrected)}")
    how = _HOW.get(entry.status[backend.name], entry.status[backend.name])
    return f"| {backend.name} | {how} | {'; '.join(otherwise)} |"


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
