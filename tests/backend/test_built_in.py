"""A built-in backend is its folder and a line of one table: nothing else in the package counts them by name."""

from __future__ import annotations

import ast
from pathlib import Path

from ember_ml.backend.built_in import BUILT_IN, HOST
from ember_ml.backend.loading import is_installed

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ember_ml"

# What speaks of one library for a reason of its own, and needs no change when a backend is added.
PECULIAR = {
    "tensor/ember_tensor.py": {"mlx"},  # __mlx_array__, which MLX asks for
    "distributed/start_agents.py": {"torch"},  # NumPy's ranks meet over PyTorch's gloo
    "core/other_names.py": {*BUILT_IN},  # what people call the backends and their functions
    "bench/calls.py": {"numpy", "torch", "jax"},  # the backends of Keras
}
# What a new backend adds to, beside its folder and pyproject.toml; docs/new-backend.md says so.
PLACES = {"backend/built_in.py": {*BUILT_IN, "mlx.core"}, **{f"array_api/{name}.py": {name} for name in BUILT_IN}}


def _named_in(path: Path) -> set[str]:
    names = {*BUILT_IN, *(entry.library for entry in BUILT_IN.values())}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in names}


def test_backends_are_named_in_the_table_alone() -> None:
    own = tuple(f"backend/{name}/" for name in BUILT_IN)
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        relative = path.relative_to(SOURCE).as_posix()
        if not relative.startswith(("lint/", *own)) and (names := _named_in(path)):
            found[relative] = names
    assert found == PECULIAR | PLACES


def test_the_guide_lists_the_places() -> None:
    guide = (ROOT / "docs" / "new-backend.md").read_text(encoding="utf-8")
    for place in ("src/ember_ml/backend/built_in.py", "src/ember_ml/array_api/", "pyproject.toml"):
        assert f"`{place}" in guide


def test_each_has_a_folder_a_namespace_and_an_extra() -> None:
    extras = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for name in BUILT_IN:
        assert (SOURCE / "backend" / name / "__init__.py").is_file()
        assert (SOURCE / "array_api" / f"{name}.py").is_file()
        assert name == HOST or f"\n{name} = [" in extras


def test_the_host_is_always_installed_and_the_last_choice() -> None:
    assert is_installed(HOST)
    assert BUILT_IN[HOST].suits()
    assert min(BUILT_IN.values(), key=lambda entry: entry.preference).name == HOST
