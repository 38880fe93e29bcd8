"""The reference pages, made from the declarations when the documentation is built: one page per op."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any

from mkdocs.structure.files import File, Files

import ember_ml.ops  # the import declares every op
from ember_ml import dtypes as dt
from ember_ml.backend import installed_backends, load
from ember_ml.backend.contract import ByDType
from ember_ml.core.dtypes import EmberDType
from ember_ml.dispatch.declare import DATA, OPS, SEQUENCE, TENSOR, VALUE, Op
from ember_ml.dispatch.dtype_rules import CREATION, Rule
from ember_ml.dispatch.inventory import Entry, Gap, gaps, inventory

assert ember_ml.ops


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages to those in docs/."""
    for path, content in pages().items():
        files.append(File.generated(config, path, content=content))
    return files


def pages() -> dict[str, str]:
    """The text of every generated page, by its path."""
    backends = [load(name) for name in installed_backends()]
    entries = inventory(backends)
    lacking = [gap for backend in backends for gap in gaps(backend)]
    made = {f"reference/{entry.op}.md": _op_page(entry, backends, lacking) for entry in entries}
    return made | {"reference/index.md": _index_page(entries, backends, lacking)}


def _index_page(entries: list[Entry], backends: list[Any], lacking: list[Gap]) -> str:
    families = sorted({entry.family for entry in entries})
    lines = [
        "# Reference",
        "",
        f"{len(entries)} functions, each with one meaning on {_listed([backend.name for backend in backends])}. "
        "`ember-ml ops` prints how each backend computes them.",
        "",
        "*The library's own function* costs the native call and one Python frame; *a body written for it* "
        "the few native calls that give what the op means; *other ops* what those cost.",
        "",
    ]
    for family in families:
        links = ", ".join(f"[{entry.op}]({entry.op}.md)" for entry in entries if entry.family == family)
        lines += [f"## {family}", "", _about(family), "", links, ""]
    lines += ["## What a backend cannot do", "", "| backend | op | dtype | why |", "|---|---|---|---|"]
    lines += [f"| {gap.backend} | {_cell(gap.op)} | {_cell(gap.dtype)} | {gap.reason} |" for gap in lacking]
    return "\n".join(lines) + "\n"


def _about(family: str) -> str:
    """What the file that declares the family says of it."""
    module = sys.modules.get(f"ember_ml.ops.{family}")
    return _as_markdown((inspect.getdoc(module) or "").split("\n\n")[0].replace("\n", " "))


def _cell(name: str) -> str:
    return "every" if name == "*" else f"`{name}`"


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def _op_page(entry: Entry, backends: list[Any], lacking: list[Gap]) -> str:
    op = OPS[entry.op]
    parts = [f"# {entry.op}", f"```python\nops.{entry.op}{_signature(op)}\n```", _documentation(op)]
    if entry.aliases:
        parts.append(f"Also: {', '.join(f'`{alias}`' for alias in entry.aliases)}.")
    if not op.is_plain:
        parts += ["## Dtypes", _dtypes(op), "## Gradient", _gradient(op)]
        rows = [_backend_row(entry, backend, lacking) for backend in backends]
        parts += ["## Backends", "\n".join(["| backend | computed by | notes |", "|---|---|---|", *rows])]
    parts.append(f"Family: [{entry.family}](index.md#{entry.family}).")
    return "\n\n".join(parts) + "\n"


def _signature(op: Op) -> str:
    """The signature as it is written in the declaration, one parameter a line where it is long."""
    written, kinds = [], inspect.Parameter
    for parameter in op.signature.parameters.values():
        if parameter.kind is kinds.KEYWORD_ONLY and not any(text.startswith("*") for text in written):
            written.append("*")
        star = {kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        annotation = "" if parameter.annotation is kinds.empty else f": {_type(parameter.annotation)}"
        default = "" if parameter.default is kinds.empty else f" = {parameter.default!r}"
        written.append(f"{star}{parameter.name}{annotation}{default}")
    result = op.signature.return_annotation
    after = "" if result is inspect.Signature.empty else f" -> {_type(result)}"
    line = f"({', '.join(written)}){after}"
    return line if len(line) < 90 else "(\n" + "".join(f"    {text},\n" for text in written) + f"){after}"


def _type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


# Dtypes

_KINDS = (("bool", dt.BOOL), ("integers", dt.INTEGERS), ("floats", dt.FLOATS), ("complex numbers", dt.COMPLEX))
_RESULTS = {
    "same": "has the dtype in which it computes",
    "real": "is real: of complex numbers it has the dtype of their parts, else the dtype in which it computes",
    "complex": "is complex, of the same precision",
    "wide": "has the dtype in which it computes; integers are 64 bits wide",
}


def _dtypes(op: Op) -> str:
    """Which dtypes the op takes, how they are promoted, and the dtype of the result."""
    rule, tensors = op.rule, [role for _, role in op.roles if role in (TENSOR, SEQUENCE, VALUE)]
    said = []
    if rule is CREATION:
        return "As said above, unless `dtype` says otherwise." if "dtype" in op.parameters else "As said above."
    if tensors:
        said.append(f"It takes {_described(rule)}.")
        if rule.lift:
            said.append(f"Integers{' and bools' if rule.lift_bool else ''} are computed in float32.")
        if rule.promotes and (len(tensors) > 1 or SEQUENCE in tensors):
            said.append("Tensors are promoted to one dtype; Python numbers take that of the tensors.")
        if rule.contraction and len(tensors) > 1:
            said.append("Half precision does not mix with wider floats: `TypeError`.")
    if not rule.promotes and rule.result == "same":
        said.append("It keeps the dtype.")
    elif rule.result != "own":
        said.append(f"The result {_RESULTS.get(rule.result, f'is `{rule.result}`')}.")
    return " ".join(said) or "As said above."


def _described(rule: Rule) -> str:
    """The dtypes of a rule, by kind where it takes all of a kind."""
    if rule.domain >= dt.ALL:
        return "every dtype"
    whole = [name for name, dtypes in _KINDS if dtypes <= rule.domain]
    covered: frozenset[EmberDType] = frozenset().union(*(dtypes for _, dtypes in _KINDS if dtypes <= rule.domain))
    return _listed(whole + [f"`{dtype}`" for dtype in sorted(map(str, rule.domain - covered))])


# Gradients


def _gradient(op: Op) -> str:
    """By which parameters the op is differentiable."""
    if op.rule.result in ("bool", "int64"):
        return "None: the result is constant to every gradient."
    if not any(role in (TENSOR, SEQUENCE, DATA, VALUE) for _, role in op.roles):
        return "None: it takes no tensors."
    known = [f"`{name}`" for name, rule in op.gradients.items() if rule is not None]
    flat = [f"`{name}`" for name, rule in op.gradients.items() if rule is None]
    said = [f"Differentiable with respect to {_listed(known)}." if known else ""]
    if flat:
        said.append(f"The gradient with respect to {_listed(flat)} is zero.")
    if not op.gradients:
        said.append("Through the ops that it is made of." if op.derived else "Not differentiable: `TypeError`.")
    return " ".join(part for part in said if part)


# Backends

_HOW = {"native": "the library's own function", "own": "a body written for it", "missing": "nothing"}


def _backend_row(entry: Entry, backend: Any, lacking: list[Gap]) -> str:
    op, status = OPS[entry.op], entry.status[backend.name]
    how = _HOW.get(status) or _made_of(op)
    corrected = entry.corrected.get(backend.name, ())
    missing = {gap.dtype: gap.reason for gap in lacking if gap.backend == backend.name and gap.op == entry.op}
    rest = [dtype for dtype in corrected if dtype not in missing]
    if status == "native" and rest:
        how += f"; a body written for it in {_listed(rest)}"
    said = [f"{dtype}: {reason}" for dtype, reason in missing.items()]
    if status in ("native", "own"):
        said += _notes(op, backend)
    if backend.gradients is not None and op.name in backend.gradients.without_gradient:
        said.append("differentiated by the rules of Ember ML, since the library has no gradient or NaN")
    return f"| {backend.name} | {how} | {'; '.join(said)} |"


def _made_of(op: Op) -> str:
    names = [name for name in dict.fromkeys(op.declaration.__code__.co_names) if name in OPS and name != op.name]
    links = ", ".join(f"[{name}]({name}.md)" for name in names if not OPS[name].is_plain)
    return f"other ops: {links}" if links else "other ops"


_LIBRARY = re.compile(r"\b(NumPy|np\.|torch|PyTorch|MLX|mx\.)")
_COMMENT = re.compile(r"^(?:[^\"#\n]|\"[^\"\n]*\")*#\s*(?!pyright|noqa|type:|emberlint)(\S.*)$", re.MULTILINE)


def _notes(op: Op, backend: Any) -> list[str]:
    """What the comments in a backend's bodies say of its library: where it deviates from the meaning of the op."""
    notes = []
    for function in _bodies(op, backend):
        lines = [*_COMMENT.findall(inspect.getsource(function)), (inspect.getdoc(function) or "").split("\n\n")[0]]
        notes += [line.replace("\n", " ").rstrip(".") for line in lines if _LIBRARY.search(line)]
    return [_as_markdown(note).replace("|", "\\|") for note in dict.fromkeys(notes)]


def _bodies(op: Op, backend: Any) -> Iterator[Any]:
    """The functions that the backend's package itself defines for the op."""
    body = op.body(backend)
    found = (body.native, body.general, *body.others.values()) if isinstance(body, ByDType) else (body,)
    for function in dict.fromkeys(inspect.unwrap(getattr(f, "func", f)) for f in found if f is not None):
        if inspect.isfunction(function) and function.__module__.startswith(f"{backend.__name__}."):
            yield function


# Text


def _documentation(op: Op) -> str:
    """The docstring as Markdown: examples become code blocks, the names of other ops links."""
    parts = []
    for paragraph in re.split(r"\n\n+", inspect.getdoc(op.declaration) or ""):
        if paragraph.lstrip().startswith(">>>"):
            parts.append(f"```pycon\n{inspect.cleandoc(paragraph)}\n```")
        else:
            parts.append(_as_markdown(paragraph))
    return "\n\n".join(parts)


def _as_markdown(text: str) -> str:
    text = re.sub(
        r":\w+:`(\w+)`", lambda name: f"[`{name[1]}`]({name[1]}.md)" if name[1] in OPS else f"`{name[1]}`", text
    )
    return text.replace("``", "`")
