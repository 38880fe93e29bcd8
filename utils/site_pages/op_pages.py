"""The pages of the ops: one for each, and the index by family."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any

import ember_ml.ops  # the import declares every op
from ember_ml.backend import installed_backends, load
from ember_ml.backend.contract import ByDType
from ember_ml.dispatch.declare import OPS, Op
from ember_ml.dispatch.describe import describe_dtypes, describe_gradient, join_words, write_signature
from ember_ml.dispatch.inventory import Entry, Gap, gaps, inventory
from site_pages import elsewhere
from site_pages.meanings import show_parameters
from site_pages.related import list_relatives
from site_pages.text import (
    documentation_to_markdown,
    first_sentence,
    link,
    link_source,
    link_types,
    list_search_words,
    read,
    table,
    to_markdown,
)

__all__ = ["INDEX", "list_pages", "make_navigation", "write_pages"]

INDEX = "reference/ops.md"
_GROUPS = {
    "elementwise": "Elementwise",
    "arrays": "Arrays",
    "stats": "Statistics",
    "linearalg": "Linear algebra (ops.linearalg)",
    "random": "Random numbers (ops.random)",
    "signal": "Signals (ops.signal)",
    "image": "Images (ops.image)",
    "neural": "Neural networks",
    "transforms": "Gradients, control flow, solvers",
}

assert ember_ml.ops


def list_pages() -> dict[str, str]:
    """Return the path of the page of each op, by its name and by its other names."""
    paths = {op.name: _path(op.name) for op in OPS.values()}
    return {alias: paths[op.name] for op in OPS.values() for alias in op.aliases} | paths


def _path(name: str) -> str:
    return f"reference/{name}.md"


def write_pages() -> dict[str, str]:
    """Return the text of the page of every op and of the index, by its path."""
    backends = [load(name) for name in installed_backends()]
    entries = inventory(backends)
    lacking = [gap for backend in backends for gap in gaps(backend)]
    made = {_path(entry.op): _write_page(entry, backends, lacking) for entry in entries}
    return made | {INDEX: _write_index(entries, backends, lacking)}


def _group_of(op: Op) -> str:
    module = op.declaration.__module__
    return "random" if module.startswith("ember_ml.backend.random") else module.split(".")[-2]


def _families() -> dict[str, dict[str, list[Op]]]:
    """Return the ops by group and by the module that declares them."""
    found: dict[str, dict[str, list[Op]]] = {group: {} for group in _GROUPS}
    for name in sorted(OPS):
        op = OPS[name]
        found[_group_of(op)].setdefault(op.declaration.__module__, []).append(op)
    return found


def make_navigation() -> list[Any]:
    """Return the menu of the ops: groups, families, ops."""
    menu: list[Any] = [INDEX]
    for group, families in _families().items():
        inner = [
            {_title(module): [{op.name: _path(op.name)} for op in ops]} for module, ops in sorted(families.items())
        ]
        menu.append({_GROUPS[group].partition(" (")[0]: inner})
    return menu


def _title(module: str) -> str:
    return module.rpartition(".")[2].replace("_", " ").capitalize()


def _write_index(entries: list[Entry], backends: list[Any], lacking: list[Gap]) -> str:
    by_name = {entry.op: entry for entry in entries}
    lines = [
        "# Ops",
        "",
        f"{len(entries)} names, each with one meaning on {join_words([backend.name for backend in backends])}. "
        "`ember-ml ops` prints how each backend computes them, `ember-ml ops conv` describes one.",
        "",
    ]
    for group, families in _families().items():
        lines += [f"## {_GROUPS[group]}", ""]
        for module, ops in sorted(families.items()):
            rows = [(_link_names(by_name[op.name]), first_sentence(op.declaration, INDEX)) for op in ops]
            about = to_markdown((inspect.getdoc(sys.modules[module]) or "").split("\n\n")[0].replace("\n", " "), INDEX)
            lines += [f"### {_title(module)}", "", about, "", table(("op", "meaning"), rows), ""]
    lines += ["## What a backend cannot do", ""]
    rows = [(gap.backend, _cell(gap.op), _cell(gap.dtype), gap.reason) for gap in lacking]
    return "\n".join([*lines, table(("backend", "op", "dtype", "why"), rows), ""])


def _link_names(entry: Entry) -> str:
    others = "".join(f", `{alias}`" for alias in entry.aliases)
    return f"[`{entry.op}`]({link(INDEX, _path(entry.op))}){others}"


def _cell(name: str) -> str:
    return "every" if name == "*" else f"`{name}`"


def _write_page(entry: Entry, backends: list[Any], lacking: list[Gap]) -> str:
    op, path = OPS[entry.op], _path(entry.op)
    documentation = read(op.declaration)
    parts = [f"# {entry.op}", f"```python\nops.{entry.op}{write_signature(op.signature, 84 - len(entry.op))}\n```"]
    parts.append(documentation_to_markdown(documentation.body, path))
    names = [f"`ops.{alias}`" for alias in entry.aliases]
    view = _group_of(op)
    if view in ("image", "linearalg", "random", "signal", "stats"):
        names.append(f"`ops.{view}.{entry.op.removeprefix('random_') if view == 'random' else entry.op}`")
    if names:
        parts.append(f"Also: {', '.join(names)}.")
    parameters = show_parameters(op.declaration, op.signature, path)
    if parameters:
        parts += ["## Parameters", parameters]
    if op.signature.return_annotation is not inspect.Signature.empty:
        parts.append(f"Returns {link_types(op.signature.return_annotation, path)}.")
    if not op.is_plain:
        parts += ["## Dtypes", describe_dtypes(op), "## Gradient", describe_gradient(op)]
    others = elsewhere.find(f"ops.{entry.op}", entry.aliases)
    if others:
        parts += ["## In other libraries", others]
    if not op.is_plain:
        rows = [_describe_backend(entry, backend, lacking, path) for backend in backends]
        parts += ["## Backends", table(("backend", "computed by", "notes"), rows)]
    home = op.declaration.__module__
    siblings = [other for other in OPS if other != op.name and OPS[other].declaration.__module__ == home]
    parts.append(list_relatives(op.name, siblings, path, home))
    source = inspect.unwrap(op.declaration).__module__
    parts.append(f"Family: [{_title(home)}]({link(path, INDEX)}). Source: {link_source(source)}.")
    parts.append(list_search_words(entry.op))
    return "\n\n".join(filter(None, parts)) + "\n"


_HOW = {"native": "the library's own function", "own": "a custom kernel", "missing": "nothing"}


def _describe_backend(entry: Entry, backend: Any, lacking: list[Gap], path: str) -> tuple[str, str, str]:
    op, status = OPS[entry.op], entry.status[backend.name]
    how = _HOW.get(status) or _list_parts(op, path)
    missing = {gap.dtype: gap.reason for gap in lacking if gap.backend == backend.name and gap.op == entry.op}
    others = [dtype for dtype in entry.corrected.get(backend.name, ()) if dtype not in missing]
    if status == "native" and others:
        how += f"; a custom kernel in {join_words(others)}"
    said = [f"{dtype}: {reason}" for dtype, reason in missing.items()]
    if status in ("native", "own"):
        said += _find_notes(op, backend)
    if backend.gradients is not None and op.name in backend.gradients.without_gradient:
        said.append("differentiated by the rules of Ember ML, since the library has no gradient or NaN")
    return backend.name, how, "; ".join(said)


def _list_parts(op: Op, path: str) -> str:
    names = [name for name in dict.fromkeys(op.declaration.__code__.co_names) if name in OPS and name != op.name]
    links = ", ".join(f"[{name}]({link(path, _path(name))})" for name in names if not OPS[name].is_plain)
    return f"composed of {links}" if links else "composed of other ops"


_LIBRARY = re.compile(r"\b(NumPy|np\.|torch|PyTorch|MLX|mx\.|JAX|jnp\.)")
_COMMENT = re.compile(r"^(?:[^\"#\n]|\"[^\"\n]*\")*#\s*(?!pyright|noqa|type:|emberlint)(\S.*)$", re.MULTILINE)


def _find_notes(op: Op, backend: Any) -> list[str]:
    """Return what the comments in a backend's bodies say of its library: where it deviates from the meaning."""
    notes = []
    for function in _find_bodies(op, backend):
        lines = [*_COMMENT.findall(inspect.getsource(function)), (inspect.getdoc(function) or "").split("\n\n")[0]]
        notes += [line.replace("\n", " ").rstrip(".") for line in lines if _LIBRARY.search(line)]
    return [to_markdown(note, "") for note in dict.fromkeys(notes)]


def _find_bodies(op: Op, backend: Any) -> Iterator[Any]:
    """Yield the functions that the backend's package itself defines for the op."""
    body = op.body(backend)
    found = (body.native, body.general, *body.others.values()) if isinstance(body, ByDType) else (body,)
    for function in dict.fromkeys(inspect.unwrap(getattr(f, "func", f)) for f in found if f is not None):
        if inspect.isfunction(function) and function.__module__.startswith(f"{backend.__name__}."):
            yield function
