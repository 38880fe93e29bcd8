"""Only backend/ imports a tensor library: neither the rest of the library nor its tests do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIBRARIES = {"numpy", "torch", "mlx", "jax", "jaxlib", "ml_dtypes"}
# The tests of the backends themselves, and the independent references.
ALLOWED = (ROOT / "src/ember_ml/backend", ROOT / "tests/backend", ROOT / "tests/reference")


def _files() -> list[Path]:
    found = [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    return [path for path in sorted(found) if not any(path.is_relative_to(folder) for folder in ALLOWED)]


def imported_libraries(source: str) -> Iterator[tuple[int, str]]:
    """The tensor libraries that the source imports, by any statement or by name at run time, with the line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "__import__",
            "import_module",
            "importlib.import_module",
            "pytest.importorskip",
        ):
            names = [argument.value for argument in node.args[:1] if isinstance(argument, ast.Constant)]
        else:
            continue
        for name in names:
            if str(name).partition(".")[0] in LIBRARIES:
                yield node.lineno, str(name)


@pytest.mark.parametrize("path", _files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_tensor_library_is_imported(path: Path) -> None:
    assert list(imported_libraries(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np",
        "def f():\n    from torch.nn import functional",
        "import mlx.core as mx",
        "import importlib\nimportlib.import_module('jax.numpy')",
        "np = __import__('numpy')",
    ],
)
def test_every_form_of_import_is_seen(source: str) -> None:
    assert list(imported_libraries(source))


def test_other_imports_are_not_reported() -> None:
    assert list(imported_libraries("import numpydoc, torchless\nfrom ember_ml.backend import numpy")) == []
