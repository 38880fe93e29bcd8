"""Modules of a program's own classes: with an equality of their own, with properties, with slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.training import optimizers


class Scale(nn.Module):
    """A factor for each column, which starts at 1."""

    size: int

    def __post_init__(self) -> None:
        self.factor = nn.Parameter(ops.ones((self.size,)))

    def forward(self, x: Any) -> Any:
        return ops.multiply(x, self.factor)


@dataclass
class Unhashable(Scale):
    size: int


@dataclass(unsafe_hash=True)
class Hashable(Scale):
    size: int


class Equal(Scale):
    def __init__(self, size: int) -> None:
        self.size = size
        self.__post_init__()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal) and self.size == other.size


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", [Unhashable, Hashable, Equal])
def test_modules_that_are_equal_are_two_modules(backend: str, kind: Any, compiled: bool) -> None:
    model = nn.Sequential(kind(2), kind(2))
    assert list(model.trained_state().named) == list(model.trainable()) == ["0.factor", "1.factor"]
    step = nn.value_and_grad(model, lambda x: ops.sum(model(x)))
    optimizer = optimizers.SGD(0.5)
    loss, gradients = (ember_ml.compile(step) if compiled else step)(ops.array([[1.0, 2.0]]))
    optimizer.update(model, gradients)
    assert ops.item(loss) == 3.0
    for part in model:  # of x a b by a and by b, at 1
        assert ops.to_numpy(part.factor).tolist() == [0.5, 0.0]


def test_a_group_follows_to_a_module_that_is_equal(backend: str) -> None:
    model = nn.Sequential(Unhashable(2), Unhashable(2))
    optimizer = optimizers.SGD(0.5, groups=[{"match": model[0], "frozen": True}])
    gradients = {name: ops.ones((2,)) for name in ("0.factor", "1.factor")}
    optimizer.update(model, gradients)
    optimizer.groups[0]["match"] = model[1]
    optimizer.update(model, gradients)
    assert [ops.to_numpy(part.factor).tolist() for part in model] == [[0.5, 0.5], [0.5, 0.5]]


class Positive(nn.Module):
    """Keeps the logarithm of its weight."""

    def __init__(self) -> None:
        self.weight = nn.Parameter([1.0, 4.0])

    @property
    def weight(self) -> Any:
        return ops.exp(self.log_weight)

    @weight.setter
    def weight(self, value: Any) -> None:
        self.log_weight = nn.Parameter(ops.log(value.value if isinstance(value, nn.Parameter) else value))

    @property
    def size(self) -> int:
        return self.no_such_thing


def test_the_setter_of_a_property_gets_a_parameter(backend: str) -> None:
    model = Positive()
    assert list(model.named_parameters()) == ["log_weight"]
    assert ops.to_numpy(model.weight).tolist() == pytest.approx([1.0, 4.0])
    model.weight = ops.array([2.0, 3.0])
    assert ops.to_numpy(model.weight).tolist() == pytest.approx([2.0, 3.0])


def test_a_property_that_fails_raises_its_own_error(backend: str) -> None:
    with pytest.raises(AttributeError, match="Positive has no attribute 'no_such_thing'"):
        print(Positive().size)
    assert not hasattr(Positive(), "size")
    assert not hasattr(Positive(), "elsewhere")


def test_slots_in_which_parts_would_not_be_found_are_refused() -> None:
    with pytest.raises(TypeError, match="Slotted has __slots__, in which modules and settings are not found"):
        type("Slotted", (nn.Module,), {"__slots__": ("inner",)})
    assert type("Empty", (nn.Module,), {"__slots__": ()})()
