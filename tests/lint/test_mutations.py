"""One impurity at a time is put into clean files: it is found, and safe repairs give the original back."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from ember_ml.lint import Settings, lint_source
from ember_ml.lint.apply_fixes import fix_text
from ember_ml.lint.project import Project
from tests.lint.mutations import Mutant, mutants

FOLDER = Path(__file__).parent / "samples"
NAMES = ("clean_layers.py.txt", "clean_training.py.txt", "impure.py.txt")


def clean(name: str) -> str:
    text = (FOLDER / name).read_text()
    return repair(text) if name == "impure.py.txt" else text


def repair(text: str) -> str:
    project = Project()
    project.add("file.py", "file", text, Settings())
    project.run()
    return fix_text(project, "file.py")[0]


def found(mutant: Mutant) -> bool:
    return any(f.code == mutant.code and f.line == mutant.line for f in lint_source(mutant.text))


@pytest.mark.parametrize("name", NAMES)
def test_the_files_are_clean(name: str) -> None:
    assert [f"{f.line}: {f.code}" for f in lint_source(clean(name))] == []


@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.long)], ids=["every third", "all"])
def test_mutants_are_found_and_undone(stride: int) -> None:
    total, missed, wrong = 0, [], []
    undone = 0
    for name in NAMES:
        source = clean(name)
        tree = ast.dump(ast.parse(source))
        for mutant in list(mutants(source))[::stride]:
            ast.parse(mutant.text)
            total += 1
            if not found(mutant):
                missed.append(
                    f"{name}:{mutant.line} {mutant.kind} {mutant.code}: "
                    f"{mutant.text.splitlines()[mutant.line - 1].strip()}"
                )
            elif mutant.undone:
                undone += 1
                if ast.dump(ast.parse(repair(mutant.text))) != tree:
                    wrong.append(
                        f"{name}:{mutant.line} {mutant.kind}: {mutant.text.splitlines()[mutant.line - 1].strip()}"
                    )
    print(
        f"{total} mutants, {total - len(missed)} found, {undone} repaired, {undone - len(wrong)} give the original back"
    )
    assert total >= 500
    assert len(missed) <= 0.03 * total, "\n".join(missed) + f"\n{Counter(line.split()[1] for line in missed)}"
    assert wrong == []
