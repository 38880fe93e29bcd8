"""Load the public names of a package by the names of their modules: the one helper of every ``__init__`` that does so.

Modules below a package such as ``ember_ml.ops`` are written with the ops that it shows. No import statement leads from
the package to them, so they can import it, and every import statement leads to a lower floor.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = ["MissingName", "attach", "import_names", "list_modules", "show"]


def attach(
    package: str, places: Mapping[str, str], whole: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package whose public names are loaded on first use.

    ``places`` maps a public name to ``"module:attribute"``, or to ``"module"`` where it is the module itself. Every
    name in the ``__all__`` of the modules ``whole`` is public too. The package's ``__all__`` lists all of them.
    """
    namespace = vars(sys.modules[package])

    def find(name: str) -> Any:
        value: Any
        if name == "__all__":
            value = sorted({*places, *(public for module in whole for public in import_module(module).__all__)})
        elif name in places:
            module, _, attribute = places[name].partition(":")
            value = import_module(module)
            value = getattr(value, attribute) if attribute else value
        else:
            searched = () if name.startswith("_") else map(import_module, whole)
            owner = next((module for module in searched if name in module.__all__), None)
            if owner is None:
                raise MissingName(package, name)
            value = getattr(owner, name)
        namespace[name] = value
        return value

    return find, lambda: list(namespace.get("__all__") or find("__all__"))


class MissingName(AttributeError):
    """A package has no such name; the message says what to write where another library has it.

    The message is made when it is read: ``hasattr``, and every import of a module of the package, asks for names too.
    """

    def __str__(self) -> str:
        from ember_ml.core.other_names import explain

        package, name = self.args
        hint = explain(package, name)
        return f"module {package!r} has no attribute {name!r}" + (f": {hint}" if hint else "")


def show(package: str, names: Mapping[str, Any]) -> None:
    """Set these public names in a package; they are its ``__all__`` and all that ``dir`` lists."""

    def refuse(name: str) -> Any:
        raise MissingName(package, name)

    listed = sorted(names)
    vars(sys.modules[package]).update(names, __all__=listed, __dir__=lambda: listed, __getattr__=refuse)


def import_names(modules: Iterable[str]) -> dict[str, Any]:
    """Import the modules; return the names in their ``__all__`` with the values."""
    loaded = map(import_module, modules)
    return {name: getattr(module, name) for module in loaded for name in module.__all__}


def list_modules(package: str) -> list[str]:
    """Return the full names of the modules in the folder of a package, in alphabetic order."""
    folder = os.path.dirname(import_module(package).__file__ or "")
    files = sorted(file for file in os.listdir(folder) if file.endswith(".py") and file != "__init__.py")
    return [f"{package}.{file.removesuffix('.py')}" for file in files]
