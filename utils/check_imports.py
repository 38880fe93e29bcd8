"""Fail where modules import each other in knots: many at once, or modules of different floors.

Every import statement counts, also one inside a function or under ``if TYPE_CHECKING``. The floors are the layers of
the import-linter contract ``floors`` in pyproject.toml; an import that it ignores is ignored here too.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

__all__ = ["find_knots", "floor_of", "main", "read_graph"]

ROOT: Path = Path(__file__).parents[1]
MOST_MODULES = 8


def read_graph(source: Path, package: str) -> dict[str, set[str]]:
    """Return the modules of a package below the folder ``source``, each with the modules of it that it imports."""
    files = {_module_name(path, source): path for path in sorted((source / package).rglob("*.py"))}
    return {name: {found for found in _imports(path, name, files) if found != name} for name, path in files.items()}


def _module_name(path: Path, source: Path) -> str:
    return ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


def _imports(path: Path, name: str, modules: Mapping[str, Path]) -> Iterator[str]:
    """Yield what a file imports; ``from a import b`` means ``a.b`` where that is a module, and ``a`` otherwise."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
                base = f"{parent}.{base}".rstrip(".")
            found = [f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules else base for alias in node.names]
        else:
            continue
        yield from (module for module in found if module in modules)


def find_knots(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one module, the largest first."""
    reachable = {module: _reach(module, graph) for module in graph}
    knots = {
        tuple(sorted(other for other in found if module in reachable[other])) for module, found in reachable.items()
    }
    return sorted((list(knot) for knot in knots if len(knot) > 1), key=lambda knot: (-len(knot), knot))


def _reach(start: str, graph: Mapping[str, set[str]]) -> set[str]:
    """Return the modules that are imported from ``start`` on, by however many steps."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def floor_of(module: str, floors: list[list[str]]) -> int | None:
    """Return the number of the floor that a module is on, counted from the top; None for one on no floor."""
    for number, packages in enumerate(floors):
        if any(module == package or module.startswith(f"{package}.") for package in packages):
            return number
    return None


def _read_contract(file: Path) -> tuple[list[list[str]], list[tuple[str, ...]]]:
    contracts = tomllib.loads(file.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    contract = next(contract for contract in contracts if contract["id"] == "floors")
    floors = [[package.strip(" ()") for package in layer.split(":")] for layer in contract["layers"]]
    ignored = [tuple(line.split(" -> ")) for line in contract.get("ignore_imports", [])]
    return floors, ignored


def main() -> int:
    """Print the knots that are too large or cross floors; return 1 if there are any."""
    floors, ignored = _read_contract(ROOT / "pyproject.toml")
    graph = read_graph(ROOT / "src", "ember_ml")
    for before, after in ignored:
        graph.get(before, set()).discard(after)
    knots = find_knots(graph)
    bad = [knot for knot in knots if len(knot) > MOST_MODULES or len({floor_of(module, floors) for module in knot}) > 1]
    for knot in bad:
        print(f"{len(knot)} modules import each other: {', '.join(knot)}")
    largest = max(map(len, knots), default=1)
    print(f"import knots: {len(bad)} bad of {len(knots)} in {len(graph)} modules; the largest has {largest}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
