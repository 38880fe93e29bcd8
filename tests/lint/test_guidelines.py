"""The coding guidelines' own examples: bad patterns are found at their lines and repaired, good ones are clean."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ember_ml.lint import Settings, lint_source
from ember_ml.lint.apply_fixes import fix_text
from ember_ml.lint.project import Project

FOLDER = Path(__file__).parent / "guidelines"


def blocks(name: str) -> list[str]:
    return re.split(r"^# ---.*\n", (FOLDER / name).read_text(encoding="utf-8"), flags=re.MULTILINE)


def cases(name: str) -> list:
    return [pytest.param(text, id=f"{name.split('.')[0]}-{number}") for number, text in enumerate(blocks(name))]


@pytest.mark.parametrize("text", [*cases("purification_bad.py.txt"), *cases("architecture_bad.py.txt")])
def test_bad_patterns_are_found_at_their_lines(text: str) -> None:
    expected = {
        (number, code)
        for number, line in enumerate(text.split("\n"), 1)
        if "#!" in line
        for code in line.split("#!")[1].split()
    }
    found = {(finding.line, finding.code) for finding in lint_source(text)}
    assert found == expected


@pytest.mark.parametrize("text", [*cases("purification_good.py.txt"), *cases("architecture_good.py.txt")])
def test_good_patterns_are_clean(text: str) -> None:
    assert [f"{f.line}: {f.code} {f.message}" for f in lint_source(text)] == []


@pytest.mark.parametrize("text", cases("purification_bad.py.txt"))
def test_bad_patterns_are_repaired(text: str) -> None:
    project = Project()
    project.add("bad.py", "bad", re.sub(r"  #! .*", "", text), Settings())
    project.run()
    repaired, count = fix_text(project, "bad.py", unsafe="calculate_distances" in text)
    assert count > 0
    assert [f"{f.line}: {f.code} {f.message}" for f in lint_source(repaired)] == [], repaired
