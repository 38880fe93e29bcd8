"""The linter's table of ops, which is plain data, says what the declarations say."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from ember_ml import dtypes, ops
from ember_ml.dispatch.declare import OPS, Op
from ember_ml.lint import opnames, replacements
from tests.reference.matrices import numpy

KNOWN = opnames.RETURNS_TENSOR | opnames.RETURNS_TENSORS | opnames.RETURNS_OTHER | opnames.RETURNS_UNKNOWN
ALIASES = {alias for op in OPS.values() for alias in op.aliases}
SHORT = {name.removeprefix("random_") for name in OPS if name.startswith("random_")}
SWITCHES = {"get_backend", "set_backend", "use_backend", "use_device"}


def table_of(op: Op) -> frozenset[str]:
    """Where the result's annotation puts an op; ``Any`` says nothing."""
    if inspect.isclass(op.declaration):
        return opnames.RETURNS_OTHER
    result = op.declaration.__annotations__["return"]
    if result == "Any":
        return KNOWN
    if result == "Tensor":
        return opnames.RETURNS_TENSOR
    if result.startswith(("tuple[Tensor", "list[Tensor")):
        return opnames.RETURNS_TENSORS
    kind = op.declaration.__globals__.get(result)
    return opnames.RETURNS_TENSORS if hasattr(kind, "_fields") else opnames.RETURNS_OTHER


@pytest.mark.parametrize("op", OPS.values(), ids=lambda op: op.name)
def test_declared_op_stands_in_the_right_table(op: Op) -> None:
    assert {op.name, *op.aliases} <= table_of(op)


def test_no_op_stands_in_two_tables() -> None:
    tables = (opnames.RETURNS_TENSOR, opnames.RETURNS_TENSORS, opnames.RETURNS_OTHER, opnames.RETURNS_UNKNOWN)
    assert sum(map(len, tables)) == len(KNOWN)


def test_no_name_is_out_of_date() -> None:
    there = {*OPS, *ALIASES, *SHORT, *SWITCHES, *(dtype.name for dtype in dtypes.ALL)}
    assert sorted(KNOWN - there) == []


def test_other_tables_name_known_ops() -> None:
    hints = opnames.CONTRACTIONS | opnames.CREATION | opnames.STRONG_FIRST | opnames.STRONG_SECOND | opnames.BINARY
    assert sorted(hints - KNOWN) == []
    assert {dtype.name for dtype in dtypes.ALL} == opnames.DTYPES


def test_repairs_call_ops_that_are_there() -> None:
    targets = {
        *replacements.SAME,
        *replacements.RENAMED.values(),
        *replacements.METHODS.values(),
        *replacements.OPERATORS.values(),
    }
    assert sorted(targets - OPS.keys() - ALIASES) == []


SYNONYMS = {"x2": "y", "b": "y", "v": "y", "a_min": "min", "a_max": "max"}


def native_function(native: str) -> Any:
    found = numpy
    for part in native.split("."):
        found = getattr(found, part, None)
    return found


@pytest.mark.parametrize("native", sorted({*replacements.SAME, *replacements.RENAMED}))
def test_arguments_keep_their_meaning(native: str) -> None:
    op = replacements.op_for(f"numpy.{native}") or ""
    function = native_function(native)
    if function is None or not hasattr(ops, op):
        return  # of another library, or announced for later
    ours = list(inspect.signature(getattr(ops, op)).parameters)
    theirs = list(inspect.signature(function).parameters.values())
    placed = [p.name for p in theirs if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    placed = placed[1 : replacements.positional_limit(native)]  # the first is the tensor, whatever its name
    assert [SYNONYMS.get(name, name) for name in placed] == [SYNONYMS.get(name, name) for name in ours[1:]][
        : len(placed)
    ]
    named = [p.name for p in theirs if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    assert {replacements.keyword_for(op, name) for name in named} <= {None, *ours}


@pytest.mark.parametrize(
    "op", sorted({*replacements.SAME, *replacements.RENAMED.values(), *replacements.METHODS.values()})
)
def test_repairs_write_keywords_that_the_op_has(op: str) -> None:
    written = {replacements.keyword_for(op, native) for native in replacements.KEYWORDS}
    possible = set(inspect.signature(getattr(ops, op)).parameters) & set(replacements.KEYWORDS.values())
    assert written - {None, "y"} == possible - {"y"}
