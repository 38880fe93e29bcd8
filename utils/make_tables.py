"""Write the files that only repeat the names of public things: run it after adding, renaming or removing one.

They are the type stubs of the packages that load their names, the linter's table of what each op returns, and the table
of ops in the tests. With ``--check`` nothing is written: the exit code says whether a file is out of date.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["files", "main"]

ROOT: Path = Path(__file__).parents[1]
FACES = (
    *("ember_ml", "ember_ml.ops", "ember_ml.nn", "ember_ml.nn.tensor", "ember_ml.nn.tensor.common"),
    *("ember_ml.training", "ember_ml.distributed", "ember_ml.models"),
)
_LOOSE = {"average": "TENSOR", "unique": "TENSOR", "item": "OTHER", "to_numpy": "OTHER"}
"""Ops whose result is annotated as Any, though the linter can tell what it mostly is."""
_IS_FAMILY = re.compile(r"ember_ml\.(ops\.\w+|transforms)\.\w+").fullmatch
_NOTE = "# Written by utils/make_tables.py: the public names, for editors and type checkers.\n"


def files() -> dict[Path, str]:
    """Return the text of every generated file, by its path."""
    package = ROOT / "src"
    stubs = {package.joinpath(*face.split("."), "__init__.pyi"): _format(_stub(face), "__init__.pyi") for face in FACES}
    return {
        **stubs,
        package / "ember_ml" / "lint" / "op_results.py": _op_results(),
        ROOT / "tests" / "data" / "op_table.txt": _op_table(),
    }


def _stub(package: str) -> str:
    """Return the stub of a package: an explicit import of each public name from the module that defines it."""
    face = import_module(package)
    names = sorted(face.__all__)
    imports: dict[str, list[str]] = defaultdict(list)
    for name in names:
        value = getattr(face, name)
        if isinstance(value, ModuleType):
            parent, _, last = value.__name__.rpartition(".")
            imports[parent].append(f"{last} as {name}")
        else:
            imports[_find_owner(name, value)].append(f"{name} as {name}")
    lines = [f"from {module} import {', '.join(shown)}" for module, shown in sorted(imports.items())]
    if package == "ember_ml":
        lines.append("__version__: str")
    return "\n".join([_NOTE, *lines, f"__all__ = {names}", ""])


def _find_owner(name: str, value: Any) -> str:
    """Return the name of the module that defines a public name.

    Of an op that makes portable tensors in one package it is the module of the op, whose signature it has.
    """
    own = getattr(value, "__module__", "")
    if own.startswith("ember_ml.") and hasattr(sys.modules[own], name):
        return own
    holders = [module for module in _modules() if vars(module).get(name) is value]
    return next((module for module in holders if name in module.__all__), holders[0]).__name__


def _modules() -> Iterator[ModuleType]:
    """Yield the loaded modules that list public names, those deepest in the tree first."""
    names = [name for name in sys.modules if name.startswith("ember_ml.") and name not in FACES]
    for name in sorted(names, key=lambda name: (-name.count("."), name)):
        if "__all__" in vars(sys.modules[name]):
            yield sys.modules[name]


def _op_results() -> str:
    """Return the linter's module of the names of ops, by what they return; it is data: the linter imports no op."""
    from ember_ml import dtypes, ops
    from ember_ml.dispatch.declare import OPS

    groups: dict[str, list[str]] = {"TENSOR": [], "TENSORS": [], "OTHER": ["use_backend"], "UNKNOWN": []}
    for name in ops.__all__:
        value = getattr(ops, name)
        if not isinstance(value, ModuleType) and name not in ("FInfo", "IInfo"):
            groups[_result_of(value)].append(name)
    short = {name for name in ops.random.__all__ if f"random_{name}" in OPS}
    groups["TENSOR"] += short  # ops.random.normal is ops.random_normal
    lines = [
        '"""The names of the ops by what they return. Written by utils/make_tables.py."""',
        "from ember_ml.lint.tables import words",
    ]
    for group, names in groups.items():
        lines.append(f'RETURNS_{group} = words("""\n{_wrap(names)}\n""")')
    lines.append(f'DTYPES = words("""\n{_wrap(dtype.name for dtype in dtypes.ALL)}\n""")')
    return _format("\n\n".join(lines), "op_results.py")


def _result_of(value: Any) -> str:
    """Return the group of an op by the annotation of its result."""
    if not inspect.isfunction(value):
        return "OTHER"  # a dtype or a class
    name, result = value.__name__, value.__annotations__["return"]
    if result == "Any":
        return _LOOSE.get(name, "UNKNOWN")
    if result == "Tensor":
        return "TENSOR"
    kind = sys.modules[value.__module__].__dict__.get(result)
    return "TENSORS" if result.startswith(("tuple[Tensor", "list[Tensor")) or hasattr(kind, "_fields") else "OTHER"


def _op_table() -> str:
    """Return the table of the tests: every name of ``ops`` by folder, the views whole, aliases as ``alias=op``."""
    from ember_ml import dtypes, ops
    from ember_ml.dispatch.declare import OPS

    sections: dict[str, set[str]] = {"dtypes": {dtype.name for dtype in dtypes.ALL}}
    folders = {parts[-1]: parts[-2] for parts in (name.split(".") for name in sys.modules if _IS_FAMILY(name))}
    for op in OPS.values():
        names = [op.name, *(f"{alias}={op.name}" for alias in op.aliases)]
        sections.setdefault(folders[op.family], set()).update(names)
    aliases: dict[str, str] = {alias: f"{alias}={op.name}" for op in OPS.values() for alias in op.aliases}
    for view in ("image", "linearalg", "signal", "stats"):
        public: list[str] = getattr(ops, view).__all__
        sections[f"ops.{view}"] = {aliases.get(name, name) for name in public}
    lines = [
        '# Every name of `ember_ml.ops`, by folder. "alias=op": both are one function. Written by utils/make_tables.py.'
    ]
    for section, names in sorted(sections.items()):
        lines += ["", f"[{section}]", _wrap(names)]
    return "\n".join([*lines, ""])


def _wrap(names: Iterable[str]) -> str:
    return textwrap.fill(" ".join(sorted(names)), 116, break_long_words=False, break_on_hyphens=False)


def _format(text: str, name: str) -> str:
    for command in (["check", "--fix", "--quiet", "--select", "I,RUF022"], ["format"]):
        ruff = [str(Path(sys.executable).with_name("ruff")), *command, "--stdin-filename", name, "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


def main() -> int:
    """Write the files; with ``--check``, name those that are out of date and fail if there are any."""
    is_check = "--check" in sys.argv[1:]
    texts = files()
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        if not is_check:
            path.write_text(texts[path], encoding="utf-8")
        print(f"{path.relative_to(ROOT)} {'is out of date; run utils/make_tables.py' if is_check else 'is written'}")
    return int(is_check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
