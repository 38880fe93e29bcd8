"""Hooks of modules: what they see, what they may replace, when they are gone, on every backend, eager and compiled."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.tensor import EmberTensor


def listed(x: Any) -> Any:
    return ops.to_numpy(x).tolist()


def network() -> nn.Sequential:
    """y = 3 * tanh(2 * x) for one number."""
    model = nn.Sequential(nn.Linear(1, 1, bias=False), ops.tanh, nn.Linear(1, 1, bias=False))
    return model.load_state_dict({"0.weight": [[2.0]], "2.weight": [[3.0]]})


def test_forward_hooks_see_and_replace_arguments_and_results(backend: str) -> None:
    layer, seen = nn.Linear(2, 1, bias=False).load_state_dict({"weight": [[1.0, 2.0]]}), []
    before = layer.register_forward_pre_hook(lambda module, args: ops.multiply(args[0], 10.0))
    looking = layer.register_forward_hook(lambda module, args, result: seen.append((module, args, result)))
    after = layer.register_forward_hook(lambda module, args, result: ops.add(result, 1.0))
    assert listed(layer(ops.array([[1.0, 1.0]]))) == [[31.0]]
    ((module, args, result),) = seen
    assert module is layer
    assert listed(args[0]) == [[10.0, 10.0]]
    assert listed(result) == [[30.0]]
    before.remove()
    assert listed(layer(ops.array([[1.0, 1.0]]))) == [[4.0]]
    after.remove()
    after.remove()  # a second time does nothing
    looking.remove()
    assert listed(layer(ops.array([[1.0, 1.0]]))) == [[3.0]]
    assert len(seen) == 2


def test_hooks_run_in_the_order_of_their_registration(backend: str) -> None:
    layer, order = nn.Identity(), []
    for number in range(3):
        layer.register_forward_pre_hook(lambda module, args, number=number: order.append(f"before {number}"))
        layer.register_forward_hook(lambda module, args, result, number=number: order.append(f"after {number}"))
    layer(ops.ones(2))
    assert order == ["before 0", "before 1", "before 2", "after 0", "after 1", "after 2"]


def test_a_module_without_hooks_is_as_it_was() -> None:
    layer = nn.Linear(2, 1)
    attributes, text = set(vars(layer)), repr(layer)
    handle = layer.register_forward_hook(lambda module, args, result: None)
    assert repr(layer) == text
    handle.remove()
    assert set(vars(layer)) == attributes


def test_a_forward_that_the_program_has_put_there_is_kept(backend: str) -> None:
    layer = nn.Identity()
    layer.forward = lambda x: ops.multiply(x, 2.0)
    with layer.register_forward_hook(lambda module, args, result: ops.add(result, 1.0)):
        assert ops.item(layer(ops.array(3.0))) == 7.0
        assert ops.item(copy.copy(layer)(ops.array(3.0))) == 6.0
    assert ops.item(layer(ops.array(3.0))) == 6.0


def test_copies_have_no_hooks(backend: str) -> None:
    model = network()
    model[0].register_forward_hook(lambda module, args, result: ops.zeros_like(result))
    x = ops.ones((1, 1))
    assert listed(model(x)) == [[0.0]]
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert listed(other(x)) != [[0.0]]


def test_a_hook_must_be_a_function() -> None:
    with pytest.raises(TypeError, match="a hook is a function, not int"):
        nn.Identity().register_forward_hook(3)


def test_backward_hooks_get_the_gradients_by_the_chain_rule(backend: str) -> None:
    model, seen = network(), []
    model[2].register_full_backward_hook(lambda module, inner, outer: seen.append(("2", inner, outer)))
    model[0].register_full_backward_hook(lambda module, inner, outer: seen.append(("0", inner, outer)))
    x = ops.array([[0.5]])
    gradient = ops.grad(lambda x: ops.sum(ops.square(model(x))))(x)
    slope = 1.0 - 0.7615941559557649**2  # of tanh at 1
    at_result = 2.0 * 3.0 * 0.7615941559557649
    assert [name for name, _, _ in seen] == ["2", "0"]
    expected = {"2": (3.0 * at_result, at_result), "0": (6.0 * at_result * slope, 3.0 * at_result * slope)}
    for name, inner, outer in seen:
        assert [ops.item(inner[0]), ops.item(outer[0])] == pytest.approx(expected[name], rel=1e-5)
    assert ops.item(gradient) == pytest.approx(expected["0"][0], rel=1e-5)


def test_backward_hooks_run_where_only_parameters_have_gradients(backend: str) -> None:
    model, seen = network(), []
    model[0].register_full_backward_hook(lambda module, inner, outer: seen.append((inner, len(outer))))
    nn.value_and_grad(model, lambda x: ops.sum(model(x)))(ops.array([[0.5]]))
    assert seen == [((None,), 1)]


def test_backward_hooks_replace_gradients(backend: str) -> None:
    model = network()
    step = nn.value_and_grad(model, lambda x: ops.sum(model(x)))
    x = ops.array([[0.5]])
    before = {name: ops.item(g) for name, g in step(x)[1].items()}
    with model[2].register_full_backward_hook(lambda module, inner, outer: (ops.multiply(inner[0], 10.0),)):
        found = {name: ops.item(g) for name, g in step(x)[1].items()}
    assert found == pytest.approx({"0.weight": before["0.weight"] * 10.0, "2.weight": before["2.weight"]})
    with model[2].register_full_backward_pre_hook(lambda module, outer: (ops.multiply(outer[0], 10.0),)):
        found = {name: ops.item(g) for name, g in step(x)[1].items()}
    assert found == pytest.approx({name: g * 10.0 for name, g in before.items()})
    with (
        model[2].register_full_backward_hook(lambda module, inner, outer: (None, None)),
        pytest.raises(Exception, match="returned 2 gradients, and there is one for each argument: 1"),
    ):
        step(x)
    with (
        model[2].register_full_backward_hook(lambda module, inner, outer: [ops.ones((2, 3))]),
        pytest.raises(
            ValueError,
            match=r"hook of Linear returned a gradient of shape \(2, 3\), and that of the argument has shape \(1, 1\)",
        ),
    ):
        step(x)


def test_backward_hooks_of_several_arguments_and_results(backend: str) -> None:
    class Both(nn.Module):
        def forward(self, x: Any, count: int, y: Any) -> Any:
            return {"sum": ops.add(x, y), "product": ops.multiply(ops.multiply(x, y), count)}

    module, seen = Both(), []
    module.register_full_backward_hook(lambda module, inner, outer: seen.append((inner, outer)))

    def f(x: Any, y: Any) -> Any:
        found = module(x, 2, y)
        return ops.add(ops.multiply(found["sum"], 5.0), found["product"])

    ops.grad(f, (0, 1))(ops.array(3.0), ops.array(7.0))
    ((inner, outer),) = seen
    assert inner[1] is None
    assert [ops.item(inner[0]), ops.item(inner[2])] == [19.0, 11.0]
    assert sorted(ops.item(g) for g in outer) == [1.0, 5.0]


def test_backward_hooks_of_portable_tensors(backend: str) -> None:
    model, seen = network(), []
    model[2].register_full_backward_hook(lambda module, inner, outer: seen.append((inner, outer)))
    x = EmberTensor([[0.5]], requires_grad=True)
    total: EmberTensor = model(x).sum()
    total.backward()
    ((inner, outer),) = seen
    assert inner[0].tolist() == [[3.0]]
    assert outer[0].tolist() == [[1.0]]
    assert x.grad is not None
    assert x.grad.item() == pytest.approx(6.0 * (1.0 - 0.7615941559557649**2), rel=1e-5)


# torch 2.13: torch.compile reads this attribute where it breaks a program in two, as at a gradient of one's own
@pytest.mark.parametrize("is_backward", [False, True])
def test_compiled_functions_follow_hooks(backend: str, is_backward: bool) -> None:
    model = network()
    loss = ember_ml.compile(lambda x: ops.sum(model(x)))
    step = nn.value_and_grad(model, loss)
    x = ops.array([[0.5]])
    before, gradients = step(x)
    if is_backward:
        handle = model[2].register_full_backward_hook(lambda module, inner, outer: (ops.multiply(inner[0], 10.0),))
    else:
        handle = model[2].register_forward_hook(lambda module, args, result: ops.multiply(result, 10.0))
    value, changed = step(x)
    assert ops.item(value) == pytest.approx(ops.item(before) * (1.0 if is_backward else 10.0), rel=1e-5)
    ratios = {name: ops.item(g) / ops.item(gradients[name]) for name, g in changed.items()}
    assert ratios == pytest.approx({"0.weight": 10.0, "2.weight": 1.0 if is_backward else 10.0}, rel=1e-5)
    handle.remove()
    assert ops.item(step(x)[0]) == pytest.approx(ops.item(before), rel=1e-6)
