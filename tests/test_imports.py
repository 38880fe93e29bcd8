"""The check of knots finds them, in whatever form modules import each other; the packages show their public names."""

from __future__ import annotations

import importlib
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

UTILITIES = Path(__file__).parents[1] / "utils"
check_imports = SimpleNamespace(**runpy.run_path(str(UTILITIES / "check_imports.py")))
make_tables = SimpleNamespace(**runpy.run_path(str(UTILITIES / "make_tables.py")))


def _write(folder: Path, **sources: str) -> None:
    (folder / "house").mkdir()
    (folder / "house" / "__init__.py").write_text("")
    for name, source in sources.items():
        (folder / "house" / f"{name}.py").write_text(source)


@pytest.mark.parametrize(
    "statement",
    [
        "from house import a",
        "import house.a",
        "from house.a import name",
        "def f():\n    from house import a",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import house.a",
        "from . import a",
        "from .a import name",
    ],
)
def test_every_form_of_import_ties_a_knot(tmp_path: Path, statement: str) -> None:
    _write(tmp_path, a="from house import b", b="import house.c", c=statement, d="from house import a")
    assert check_imports.find_knots(check_imports.read_graph(tmp_path, "house")) == [["house.a", "house.b", "house.c"]]


def test_imports_that_lead_one_way_are_no_knot(tmp_path: Path) -> None:
    _write(tmp_path, a="from house import b, c", b="import house.c, json", c="from os import path")
    graph = check_imports.read_graph(tmp_path, "house")
    assert graph == {"house": set(), "house.a": {"house.b", "house.c"}, "house.b": {"house.c"}, "house.c": set()}
    assert check_imports.find_knots(graph) == []


def test_floor_of_a_module_is_that_of_its_package() -> None:
    floors = [["house.roof"], ["house.walls", "house.stairs"], ["house.cellar.wine"]]
    modules = (
        "house.roof",
        "house.roof.tiles",
        "house.stairs.step",
        "house.cellar.wine",
        "house.cellar",
        "house.roofs",
    )
    assert [check_imports.floor_of(module, floors) for module in modules] == [0, 0, 1, 2, None, None]


def test_there_is_no_knot_across_floors() -> None:
    assert check_imports.main() == 0


FACES = {
    "ember_ml": {"EmberTensor", "dtypes", "nn", "ops", "registry", "set_backend", "training"},
    "ember_ml.ops": {"add", "grad", "image", "linearalg", "random", "scatter", "shape", "signal", "stats", "float32"},
    "ember_ml.nn": {"Linear", "Module", "Parameter", "ReLU", "layers", "tensor"},
    "ember_ml.training": {"DataLoader", "Trainer", "losses", "optimizers"},
    "ember_ml.distributed": {"collectives", "initialize", "rank", "strategy"},
}


@pytest.mark.parametrize("package", FACES)
def test_package_lists_its_public_names_and_nothing_else(package: str) -> None:
    face = importlib.import_module(package)
    assert dir(face) == sorted(face.__all__)
    assert set(dir(face)) >= FACES[package]
    inner = {"core", "config", "dispatch", "arrays", "elementwise", "neural", "model", "trainer_state", "groups"}
    assert not {name for name in dir(face) if name.startswith("_")} | (inner & set(dir(face)))
    namespace: dict[str, object] = {}
    exec(f"from {package} import *", namespace)
    assert namespace.keys() - {"__builtins__"} == set(face.__all__)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'absent'"):
        _ = face.absent


def test_shape_and_scatter_are_functions_alone() -> None:
    ops = importlib.import_module("ember_ml.ops")
    assert callable(ops.shape)
    assert callable(ops.scatter)
    for name in ("shape", "scatter"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(f"ember_ml.ops.{name}")


def test_generated_files_are_up_to_date() -> None:
    stale = [path for path, text in make_tables.files().items() if path.read_text(encoding="utf-8") != text]
    assert not stale, "run utils/make_tables.py"
