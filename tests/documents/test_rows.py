"""Every requirement of the five documents, by number: what shows that it holds, or why not and what serves instead."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ember_ml.lint.rules import ALL

ROOT = Path(__file__).parents[2]
COUNTS = {"000": 71, "001": 35, "002": 89, "003": 143, "004": 77}
"""How many requirements each document has."""


class Row(NamedTuple):
    number: int
    document: str
    lines: str
    requirement: str
    kind: str
    """``test``, ``rule`` or ``name``: what shows that the requirement holds."""
    cover: str
    reason: str
    """Why it was decided otherwise; ``kind`` and ``cover`` are then of what takes its place. Empty where it holds."""


def read_rows() -> Iterator[Row]:
    header, *lines = (Path(__file__).with_name("rows.tsv")).read_text(encoding="utf-8").splitlines()
    assert header.split("\t") == ["number", "document", "lines", "requirement", "cover"]
    for line in lines:
        number, document, where, requirement, cover = line.split("\t")
        reason, arrow, place = cover.partition(" -> ")
        if arrow:
            assert reason.startswith("decided: "), number
        kind, _, rest = (place if arrow else cover).partition(": ")
        yield Row(
            int(number), document, where, requirement, kind, rest, reason.removeprefix("decided: ") if arrow else ""
        )


ROWS = list(read_rows())


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(row, id=f"{row.number}") for row in ROWS if row.kind == kind]


def test_every_requirement_is_there() -> None:
    assert [row.number for row in ROWS] == list(range(1, sum(COUNTS.values()) + 1))
    assert {document: sum(row.document == document for row in ROWS) for document in COUNTS} == COUNTS
    assert {row.kind for row in ROWS} == {"test", "rule", "name"}


@cache
def functions_in(path: Path) -> frozenset[str]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("row", of_kind("test"))
def test_the_test_of_a_requirement_exists(row: Row) -> None:
    file, _, name = row.cover.partition("::")
    path = ROOT / file
    assert path.exists(), row
    assert not name or name in functions_in(path), row


@pytest.mark.parametrize("row", of_kind("rule"))
def test_the_rule_of_a_requirement_exists(row: Row) -> None:
    assert ALL[row.cover].bad  # tests/lint finds each of them


@pytest.mark.parametrize("row", of_kind("name"))
def test_the_name_of_a_requirement_exists(row: Row, backend: str) -> None:
    first, *others = row.cover.split(".")
    found: Any = importlib.import_module(f"ember_ml.{'nn.tensor' if first == 'tensor' else first}")
    for name in others:
        found = getattr(found, name)
    assert found is not None
    assert callable(found) or not others or isinstance(found, type(importlib))


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{row.number}") for row in ROWS if row.reason])
def test_a_decision_has_a_reason(row: Row) -> None:
    assert len(row.reason.split()) >= 4, row
    assert row.cover, "what takes its place is tested"
