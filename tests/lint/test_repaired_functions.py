"""Fifty functions written with NumPy are repaired and give, on every backend, what NumPy gave before."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from ember_ml import ops, use_backend
from ember_ml.lint import Settings, lint_source
from ember_ml.lint.apply_fixes import fix_text
from ember_ml.lint.project import Project
from tests.reference.matrices import definite, numpy, random

SOURCE = (Path(__file__).parent / "samples" / "impure.py.txt").read_text()
NAMES = [node.name for node in ast.parse(SOURCE).body if isinstance(node, ast.FunctionDef)]
BACKENDS = [
    name
    for name, module in (("numpy", "numpy"), ("torch", "torch"), ("mlx", "mlx.core"))
    if importlib.util.find_spec(module.split(".")[0])
]


def repaired() -> str:
    project = Project()
    project.add("impure.py", "impure", SOURCE, Settings())
    project.run()
    return fix_text(project, "impure.py")[0]


REPAIRED = repaired()


def inputs() -> dict[str, Any]:
    return {
        "x": random((3, 4), "float32", 1),
        "y": random((3, 4), "float32", 2),
        "w": random((4, 2), "float32", 3),
        "m": definite((3, 3), "float32", 4),
        "u": random((3,), "float32", 5),
        "t": random((3,), "float32", 6),
    }


def test_there_are_fifty() -> None:
    assert len(NAMES) == 50


def test_the_repaired_file_is_clean() -> None:
    assert [f"{f.line}: {f.code} {f.message}" for f in lint_source(REPAIRED)] == []
    assert "numpy" not in REPAIRED.split('"""')[2]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", NAMES)
def test_repaired_function_gives_the_same(name: str, backend: str) -> None:
    original: dict = {}
    exec(compile(SOURCE, "impure.py", "exec", dont_inherit=True), original)
    portable: dict = {}
    exec(compile(REPAIRED, "repaired.py", "exec", dont_inherit=True), portable)
    arguments = [
        inputs()[arg.arg]
        for node in ast.parse(SOURCE).body
        if isinstance(node, ast.FunctionDef) and node.name == name
        for arg in node.args.args
    ]
    expected = original[name](*[argument.copy() for argument in arguments])
    with use_backend(backend):
        result = ops.to_numpy(portable[name](*[ops.convert_to_tensor(argument) for argument in arguments]))
    numpy.testing.assert_allclose(result, expected, rtol=2e-4, atol=2e-5)
