"""Every public op has a test of its properties: in the contract test, or in a file that is named here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ember_ml.dispatch.declare import OPS
from tests.reference.table import SPECS

TESTS = Path(__file__).parents[1]
ELSEWHERE = {
    "choices": "ops/test_random.py",
    "compilation": "autodiff/test_compile.py",
    "control": "ops/test_control.py",
    "conversion": "autodiff",
    "device": "ops/test_creation.py",
    "dtypes": "ops/test_facts.py",
    "properties": "ops/test_facts.py",
    "short_time": "ops/test_signal.py",
    "gradients": "autodiff",
    "odes": "ops/test_odes.py",
    "sampling": "ops/test_random.py",
    "scans": "ops/test_scans.py",
    "shape": "ops/test_facts.py",
    "solvers": "ops/test_solvers.py",
    "files": "ops/test_storage.py",
    "windows": "ops/test_windows.py",
}


def _text(place: str) -> str:
    path = TESTS / place
    return "\n".join(file.read_text() for file in ([path] if path.is_file() else sorted(path.glob("*.py"))))


@pytest.mark.parametrize("name", sorted(OPS.keys() - SPECS.keys()))
def test_op_without_a_reference_is_tested_elsewhere(name: str) -> None:
    family = OPS[name].family
    assert family in ELSEWHERE, f"ops.{name} has no reference in tests/reference"
    stem = name.removesuffix("_window")
    assert re.search(rf"\b({name}|{stem})\b", _text(ELSEWHERE[family])), f"{ELSEWHERE[family]} does not test ops.{name}"


def test_every_reference_is_of_an_op() -> None:
    assert SPECS.keys() - OPS.keys() == set()
