"""Every op of floats that gives floats has a gradient case, or says that it has no gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import ember_ml
from ember_ml import ops
from ember_ml.dispatch.declare import DATA, OPS, SEQUENCE, TENSOR, VALUE, Op
from ember_ml.errors import LostGradient
from tests.autodiff import test_ops  # noqa: F401  (it collects the cases)
from tests.autodiff.case import CASES, NOT_DIFFERENTIABLE

CONSTANT = {
    "empty_like": "its values are arbitrary",
    "stop_gradient": "that is what it is for",
    "random_bernoulli": "whole numbers are no smooth function of a probability",
    "random_categorical": "whole numbers are no smooth function of a probability",
}
"""Ops that pass no gradient on."""

ON_THE_HOST: dict[str, Callable[[Any], Any]] = {
    "random_beta": lambda x: ops.random_beta(2, x, 1.0),
    "random_binomial": lambda x: ops.random_binomial(2, 3, ops.multiply(x, 0.3), "float32"),
    "random_choice": lambda x: ops.random_choice(ops.array([1.0, 2.0]), 2, p=ops.divide(x, 3.0)),
    "random_gamma": lambda x: ops.random_gamma(2, x),
    "random_poisson": lambda x: ops.random_poisson(2, x, "float32"),
}
"""Calls of ops that read a parameter on the host, where its gradient would be lost."""

CALLS: dict[str, Callable[[Any], Any]] = {
    "random_bernoulli": lambda x: ops.random_bernoulli(2, ops.multiply(x, 0.3), "float32"),
    "random_categorical": lambda x: ops.random_categorical(x, 3, "float32"),
}
"""How those are called whose tensor does not come first."""

ARGUMENTS: dict[str, dict[str, Any]] = {"nextafter": {"y": 2.0}, "view": {"dtype": "float32"}}
"""What the ops without a gradient take besides a vector."""


def _is_of_floats(op: Op) -> bool:
    """Whether the op takes floats and may give floats; those that give several tensors or their own dtype count."""
    takes = any(role in (TENSOR, SEQUENCE, VALUE, DATA) for _, role in op.roles)
    return takes and op.rule.result not in ("bool", "int64") and any(dtype.kind == "float" for dtype in op.rule.domain)


def _names() -> list[str]:
    return [op.name for op in OPS.values() if not op.is_plain and _is_of_floats(op)]


def test_every_op_has_a_case_or_a_reason() -> None:
    known = {case.op for case in CASES} | NOT_DIFFERENTIABLE.keys() | CONSTANT.keys() | ON_THE_HOST.keys()
    assert sorted(set(_names()) - known) == []


def test_no_reason_outlives_its_op() -> None:
    assert sorted((NOT_DIFFERENTIABLE.keys() | CONSTANT.keys() | ON_THE_HOST.keys()) - set(_names())) == []


def test_every_parameter_of_floats_is_differentiated() -> None:
    """An op with rules has one for each tensor that it takes; without one, asking for it raises."""
    missing = {
        f"{op.name}({op.parameters[index]})"
        for op in OPS.values()
        if op.gradients and not op.is_plain
        for index, role in op.roles
        if role in (TENSOR, SEQUENCE, VALUE) and op.parameters[index] not in op.gradients
    }
    assert missing == {"histogram(x)"}


@pytest.mark.parametrize("name", sorted(NOT_DIFFERENTIABLE))
def test_ops_without_a_gradient_say_so(name: str, backend: str) -> None:
    def function(x: Any) -> Any:
        result = getattr(ops, name)(x, **ARGUMENTS.get(name, {}))
        return ops.sum(result[0] if isinstance(result, tuple) else result)

    with pytest.raises((TypeError, LostGradient), match=r"not differentiable|lose its gradient"):
        ops.grad(function)(ops.array([1.5, 2.5, 1.0, 4.0]))
    assert ops.to_numpy(ops.grad(lambda x: ops.sum(x) + function(ops.stop_gradient(x)))(ops.ones(2))).tolist() == [1, 1]


@pytest.mark.parametrize("name", sorted(CONSTANT))
def test_constants_have_gradient_0(backend: str, name: str) -> None:
    call = CALLS.get(name, getattr(ops, name))
    weight = 0.0 if name == "empty_like" else 1.0
    gradient = ops.grad(lambda x: ops.sum(ops.multiply(call(x), weight)))(ops.array([1.0, 2.0]))
    assert ops.to_numpy(gradient).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", sorted(ON_THE_HOST))
def test_no_gradient_is_lost_on_the_host(backend: str, name: str) -> None:
    with pytest.raises(LostGradient):
        ops.grad(lambda x: ops.sum(ON_THE_HOST[name](x)))(ops.array([1.0, 2.0]))
    cut = ops.grad(lambda x: ops.sum(ops.add(x, ON_THE_HOST[name](ops.stop_gradient(x)))))(ops.array([1.0, 2.0]))
    assert ops.to_numpy(cut).tolist() == [1.0, 1.0]


def test_a_histogram_is_differentiated_by_its_weights_alone() -> None:
    ember_ml.set_backend("numpy")
    with pytest.raises(TypeError):
        ops.grad(lambda x: ops.sum(ops.histogram(x)[1]))(ops.array([1.0, 2.0, 4.0]))
