"""A number has no axes: every op that takes an axis raises for it, on every backend."""

from __future__ import annotations

from typing import Any

import pytest

from ember_ml import ops
from ember_ml.dispatch.declare import OPS

TAKEN = {"expand_dims", "concatenate", "stack", "sort", "argsort", "random_choice", "random_permutation"}
"""Ops to which a number is something else: it gets an axis, is sorted already, or stands for a range."""
OTHERS: dict[str, Any] = {"y": 2.0, "values": 2.0, "indices": 0, "repeats": 2, "k": 1, "kth": 0, "q": 0.5, "n": 1}


def _required(name: str) -> list[str]:
    declaration = OPS[name].declaration
    optional = len(declaration.__defaults__ or ()) + len(declaration.__kwdefaults__ or ())
    parameters = OPS[name].parameters
    return [parameter for parameter in parameters[1 : len(parameters) - optional] if parameter != "axis"]


NAMES = sorted(
    name
    for name, op in OPS.items()
    if op.parameters[:1] == ("x",) and "axis" in op.parameters and name not in TAKEN and {*_required(name)} <= {*OTHERS}
)


def test_most_ops_with_an_axis_are_here() -> None:
    assert len(NAMES) > 60


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", NAMES)
def test_a_number_has_no_axis(backend: str, name: str, axis: int) -> None:
    given = {parameter: OTHERS[parameter] for parameter in _required(name)}
    with pytest.raises(IndexError, match=r"on \w+: .*(axis|[Aa]xes|[Dd]imension)"):
        getattr(ops, name)(ops.array(3.0), **given, axis=axis)
