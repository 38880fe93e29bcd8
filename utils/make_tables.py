"""Write the files that only repeat the names of public things: run it after adding, renaming or removing one.

The type stubs of the packages that load their names on first use. With ``--check`` nothing is written: the exit code
says whether a file is out of date.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["files", "main"]

ROOT: Path = Path(__file__).parents[1]
FACES = (
    *("ember_ml", "ember_ml.ops", "ember_ml.nn", "ember_ml.nn.tensor", "ember_ml.nn.tensor.common"),
    *("ember_ml.training", "ember_ml.distributed"),
)
_NOTE = "# Written by utils/make_tables.py: the public names, for editors and type checkers.\n"


def files() -> dict[Path, str]:
    """Return the text of every generated file, by its path."""
    return {_path_of(face).with_name("__init__.pyi"): _format(_stub(face), "__init__.pyi") for face in FACES}


def _path_of(package: str) -> Path:
    return Path(import_module(package).__file__ or "")


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
    return next(module.__name__ for module in _modules() if vars(module).get(name) is value)


def _modules() -> Iterator[ModuleType]:
    """Yield the loaded modules that list public names, those deepest in the tree first."""
    names = [name for name in sys.modules if name.startswith("ember_ml.") and name not in FACES]
    for name in sorted(names, key=lambda name: (-name.count("."), name)):
        if "__all__" in vars(sys.modules[name]):
            yield sys.modules[name]


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
