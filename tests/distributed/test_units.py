"""Which parameters are gathered together where a strategy splits them."""

from __future__ import annotations

import pytest

from ember_ml import nn, ops
from ember_ml.distributed.strategy import units
from ember_ml.distributed.strategy.units import find_uses, plan_units


def names_of(model: nn.Module) -> list[list[str]]:
    return [[use.name for use in unit] for unit in plan_units(find_uses(model))]


def test_neighbours_are_together_until_a_unit_is_full(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "UNIT_BYTES", 4 * 30)
    model = nn.Sequential(nn.Linear(4, 5), ops.tanh, nn.Linear(5, 2), nn.Linear(2, 1), nn.Linear(1, 1))
    # 25 and 12 elements, then 3 and 2
    assert names_of(model) == [
        ["0.weight", "0.bias", "2.weight", "2.bias"],
        ["3.weight", "3.bias", "4.weight", "4.bias"],
    ]


def test_the_parameters_of_a_module_are_together(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "UNIT_BYTES", 1)
    assert names_of(nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 2))) == [
        ["0.weight", "0.bias"],
        ["1.weight", "1.bias"],
    ]


def test_what_is_not_trained_is_apart_and_what_is_shared_is_there_once(backend: str) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].freeze()
    model[2].weight = model[0].variable("weight")
    assert names_of(model) == [["0.weight", "0.bias", "2.bias"], ["1.weight", "1.bias"]]
    shared = find_uses(model)[0]
    assert [(path, key) for path, _, key in shared.places] == [("0", "weight"), ("2", "weight")]
