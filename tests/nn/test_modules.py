"""Modules: the tree of parameters, modes, freezing, state, and how it follows a switch of the backend."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import installed_backends
from ember_ml.nn import initializers
from ember_ml.tensor import EmberTensor
from ember_ml.training import Trainer, optimizers


def network() -> nn.Sequential:
    ops.random.seed(3)
    return nn.Sequential(nn.Linear(3, 4), ops.tanh, nn.Linear(4, 2))


def values(model: nn.Module) -> dict[str, Any]:
    return {name: ops.to_numpy(x).tolist() for name, x in model.state_dict().items()}


def other_than(backend: str) -> str:
    return next((name for name in installed_backends() if name != backend), backend)


def test_layers_made_empty_draw_no_numbers_and_are_filled_by_loading(backend: str) -> None:
    source = network()
    ops.random.seed(5)
    wanted = ops.to_numpy(ops.random_normal((3,))).tolist()
    ops.random.seed(5)
    with nn.empty():
        made = nn.Sequential(nn.Linear(3, 4), ops.tanh, nn.Linear(4, 2))
    assert ops.to_numpy(ops.random_normal((3,))).tolist() == wanted
    assert {*ops.to_numpy(made[0].weight).ravel().tolist()} == {0.0}
    made.load_state_dict(source.state_dict())
    assert values(made) == values(source)
    Trainer(made, "adam", progress=False).step((ops.ones((5, 3)), ops.zeros((5, 2))))
    assert values(made) != values(source)
    assert any(ops.to_numpy(nn.Linear(3, 4).weight).ravel().tolist())  # outside of the block


def test_layers_made_empty_take_no_memory(backend: str) -> None:
    with nn.empty():
        made = nn.Linear(10_000_000, 10_000_000, dtype="bfloat16")  # of 200 terabytes
    assert made.num_parameters == 10**14 + 10**7
    assert {x.dtype.name for x in made.named_parameters().values()} == {"bfloat16"}


def test_layers_made_empty_stay_where_they_were_made(backend: str) -> None:
    for device in ops.get_available_devices():
        with nn.empty(), ops.use_device(device):
            scoped = nn.Linear(2, 2)
        with nn.empty():
            named = nn.Linear(2, 2, device=device)
        for made in (scoped, named):
            made.load_state_dict(nn.Linear(2, 2).state_dict())
            assert ops.get_device(made.weight) == device


class Nested(nn.Module):
    def __init__(self) -> None:
        self.stack = [nn.Linear(2, 2), nn.Linear(2, 2)]
        self.by_name = {"a": nn.Linear(2, 1)}
        self.scale = nn.Parameter([1.0])
        self.count = nn.Buffer([0])

    def forward(self, x: Any) -> Any:
        for layer in self.stack:
            x = layer(x)
        self.count = ops.add(self.count, 1)
        return ops.multiply(self.by_name["a"](x), self.scale)


def test_tensors_have_the_names_of_their_attributes(backend: str) -> None:
    names = list(Nested().named_variables())
    layers = [f"{layer}.{name}" for layer in ("stack.0", "stack.1", "by_name.a") for name in ("weight", "bias")]
    assert names == ["scale", "count", *layers]
    assert list(network().named_parameters()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert network().num_parameters == 3 * 4 + 4 + 4 * 2 + 2


def test_an_attribute_is_the_native_tensor(backend: str) -> None:
    layer = nn.Linear(3, 2)
    assert type(layer.weight) is ember_ml.backend.load(backend).tensor_type
    layer.weight = [[1.0, 2.0, 3.0]] * 2
    assert ops.to_numpy(layer.weight).tolist() == [[1.0, 2.0, 3.0]] * 2
    with pytest.raises(ValueError, match=r"Linear\.weight has shape \(2, 3\), not \(3, 2\)"):
        layer.weight = ops.ones((3, 2))
    with pytest.raises(AttributeError, match="Linear has no attribute 'wait'"):
        _ = layer.wait


def test_one_seed_gives_the_same_parameters_everywhere(backend: str) -> None:
    found = values(network())
    with ember_ml.use_backend("numpy"):
        assert values(network()) == found


def test_a_module_follows_a_switch(backend: str) -> None:
    model, x = network(), [[0.1, -0.2, 0.3]]
    before, held = ops.to_numpy(model(x)).tolist(), values(model)
    ember_ml.set_backend(other_than(backend))
    try:
        assert values(model) == held
        assert ops.to_numpy(model(x)).tolist() == [pytest.approx(row, abs=1e-6) for row in before]
        assert type(model[0].weight) is ember_ml.backend.load(other_than(backend)).tensor_type
    finally:
        ember_ml.set_backend(backend)
    assert values(model) == held


def test_a_module_is_copied_inside_a_scope(backend: str) -> None:
    model, x = network(), [[0.1, -0.2, 0.3]]
    before = ops.to_numpy(model(x)).tolist()
    weight = model[0].weight
    with ember_ml.use_backend(other_than(backend)):
        assert ops.to_numpy(model(x)).tolist() == [pytest.approx(row, abs=1e-6) for row in before]
        loss = nn.value_and_grad(model, lambda x: ops.mean(model(x)))
        _, gradients = loss(ops.asarray(x))
        _, others = ember_ml.value_and_grad(lambda model, x: ops.mean(model(x)))(model, ops.asarray(x))
        compiled = ember_ml.compile(model)(ops.asarray(x))
    assert model[0].weight is weight
    assert ops.to_numpy(compiled).tolist() == [pytest.approx(row, abs=1e-6) for row in before]
    assert ops.to_numpy(gradients["0.bias"]) == pytest.approx(ops.to_numpy(others["0.bias"]), abs=1e-7)
    assert ops.to_numpy(model(x)).tolist() == before


@pytest.mark.parametrize("kind", ["native", "portable", "list"])
def test_layers_take_anything_tensor_like(backend: str, kind: str) -> None:
    model = network()
    x: Any = [[1.0, 2.0, 3.0]]
    given = {"native": ops.array(x), "portable": nn.tensor.array(x), "list": x}[kind]
    assert (type(model(given)) is EmberTensor) == (kind == "portable")


def test_sizes_are_inferred_at_the_first_call(backend: str) -> None:
    layer = nn.Linear(4)
    assert "sizes unknown" in repr(layer)
    assert layer.num_parameters == 0
    assert ops.shape(layer([[1.0, 2.0]])) == (1, 4)
    assert layer.num_parameters == 12
    model = nn.Sequential(nn.Linear(4), nn.Dropout(0.5), nn.Linear(1))
    value, gradients = nn.value_and_grad(model, lambda x: ops.sum(model(x)))(ops.ones((5, 3)))
    assert list(gradients) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert model.training
    assert ops.shape(value) == ()


def test_modes(backend: str) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    assert model.training
    assert not any(module.training for _, module in model.eval().named_modules())
    assert all(module.training for _, module in model.train().named_modules())


def test_buffers_change_in_forward_and_are_not_differentiated(backend: str) -> None:
    model = Nested()
    step = nn.value_and_grad(model, lambda x: ops.sum(model(x)))
    for _ in range(2):
        _, gradients = step(ops.ones((3, 2)))
    assert ops.to_numpy(model.count).tolist() == [2]
    assert "count" not in gradients


class Mean(nn.Module):
    def __init__(self) -> None:
        self.mean = nn.Buffer([0.0])
        self.scale = nn.Parameter([2.0])

    def forward(self, x: Any) -> Any:
        y = ops.multiply(x, self.scale)
        self.mean = ops.mean(y, axis=0)
        return y


def test_a_buffer_that_depends_on_parameters_keeps_no_graph(backend: str) -> None:
    model = Mean()
    step = nn.value_and_grad(model, lambda x: ops.sum(ops.add(model(x), model.mean)))
    for _ in range(3):
        value, gradients = step(ops.ones((4, 1)))
    assert ops.to_numpy(model.mean).tolist() == [2.0]
    assert type(model.mean) is ember_ml.backend.load(backend).tensor_type
    assert ops.item(value) == 16.0
    assert ops.to_numpy(gradients["scale"]).tolist() == [4.0]  # the buffer is a constant


def test_frozen_parameters_have_no_gradient(backend: str) -> None:
    model = network().freeze("0")
    _, gradients = nn.value_and_grad(model, lambda x: ops.sum(model(x)))(ops.ones((1, 3)))
    assert list(gradients) == ["2.weight", "2.bias"]
    assert list(model.unfreeze("0.bias").trainable()) == ["0.bias", "2.weight", "2.bias"]
    with pytest.raises(ValueError, match="no parameter 'encoder'"):
        model.freeze("encoder")


def test_gradients_agree_with_the_closed_form(backend: str) -> None:
    layer = nn.Linear(2, 1).load_state_dict({"weight": [[1.0, -1.0]], "bias": [0.5]})
    x = ops.array([[1.0, 2.0], [3.0, 5.0]])
    (value, aux), gradients = nn.value_and_grad(
        layer, lambda x: (ops.mean(ops.square(layer(x))), "kept"), has_aux=True
    )(x)
    residuals = [1 - 2 + 0.5, 3 - 5 + 0.5]
    assert aux == "kept"
    assert ops.item(value) == pytest.approx(sum(r * r for r in residuals) / 2)
    assert ops.to_numpy(gradients["weight"]).tolist() == [
        [residuals[0] + 3 * residuals[1], 2 * residuals[0] + 5 * residuals[1]]
    ]
    assert ops.to_numpy(gradients["bias"]).tolist() == [sum(residuals)]


def test_a_module_may_be_what_is_differentiated(backend: str) -> None:
    model, x = network(), ops.random_normal((5, 3), seed=6)
    loss = lambda model, x: ops.mean(ops.square(model(x)))  # noqa: E731
    value, wanted = nn.value_and_grad(model, loss)(model, x)
    before = values(model)
    found, gradients = ember_ml.value_and_grad(loss)(model, x)
    assert ops.item(found) == ops.item(value)
    assert list(gradients) == list(wanted)
    by_both = ember_ml.grad(loss, (0, 1))(model, x)
    for name in wanted:
        assert ops.to_numpy(gradients[name]) == pytest.approx(ops.to_numpy(wanted[name]), abs=1e-7)
        assert ops.to_numpy(by_both[0][name]) == pytest.approx(ops.to_numpy(wanted[name]), abs=1e-7)
    assert ops.shape(by_both[1]) == (5, 3)
    assert values(model) == before
    assert list(ember_ml.grad(loss)(network().freeze("0"), x)) == ["2.weight", "2.bias"]
    with pytest.raises(ValueError, match="sizes are unknown"):
        ember_ml.grad(loss)(nn.Linear(2), x)


def test_state_goes_to_another_module_and_to_a_file(backend: str, tmp_path: Path) -> None:
    first, second = network(), network()
    second[0].weight = ops.zeros((4, 3))
    assert values(second) != values(first)
    assert values(second.load_state_dict(first.state_dict())) == values(first)
    first.save(tmp_path / "weights.safetensors")
    ember_ml.set_backend(other_than(backend))
    assert values(network().load(tmp_path / "weights.safetensors")) == values(first)
    ember_ml.set_backend(backend)


def test_a_wrong_state_changes_nothing(backend: str) -> None:
    model = network()
    before, state = values(model), model.state_dict()
    with pytest.raises(ValueError, match=r"2\.bias has shape \(2,\), and the state has \(3,\)"):
        model.load_state_dict(state | {"0.bias": ops.zeros(4), "2.bias": ops.zeros(3)})
    with pytest.raises(ValueError, match=r"lacks 0\.weight and has unknown other"):
        model.load_state_dict({name: x for name, x in state.items() if name != "0.weight"} | {"other": ops.zeros(1)})
    assert values(model) == before


def test_copies_are_independent(backend: str) -> None:
    model = network()
    for made in (copy.deepcopy(model), pickle.loads(pickle.dumps(nn.Linear(3, 4)))):
        assert list(made.named_parameters())
    made = copy.deepcopy(model)
    made[0].weight = ops.zeros((4, 3))
    assert values(made)["0.weight"] != values(model)["0.weight"]


def test_a_shared_parameter_counts_once(backend: str) -> None:
    one, two = nn.Linear(2, 2), nn.Linear(2, 2)
    two.weight = one.variable("weight")
    model = nn.Sequential(one, two)
    assert list(model.named_parameters()) == ["0.weight", "0.bias", "1.bias"]
    _, gradients = nn.value_and_grad(model, lambda x: ops.sum(model(x)))(ops.ones((1, 2)))
    assert list(gradients) == ["0.weight", "0.bias", "1.bias"]


def test_dtypes_and_devices(backend: str) -> None:
    model = network().to_dtype("float16")
    assert {x.dtype.name for x in model.parameters()} == {"float16"}
    assert model.to_device("cpu")(ops.ones((1, 3), dtype="float16", device="cpu")) is not None


def test_parameters_are_floats(backend: str) -> None:
    with pytest.raises(TypeError, match="a Parameter is a floating-point tensor, not int64"):
        nn.Parameter([1, 2])


class Listed(nn.Module):
    def __init__(self) -> None:
        self.first = nn.Linear(2, 2)
        self.layers: list[Any] = [nn.Dropout(0.5)]
        self.nested: list[Any] = [[nn.Dropout(0.1)]]


def test_modes_reach_modules_that_came_into_lists_later() -> None:
    model, one, two = Listed(), nn.Dropout(0.5), nn.Dropout(0.5)
    model.eval()
    model.layers[0] = one
    model.nested[0].append(two)
    model.eval()
    assert not one.training
    assert not two.training


def test_a_shallow_copy_has_modules_of_its_own() -> None:
    model = Listed()
    other = copy.copy(model)
    other.first = nn.Linear(3, 3)
    assert [x.size for x in model.parameters()] == [4, 2]
    assert [x.size for x in other.parameters()] == [9, 3]


class Renamed(nn.Module):
    """A module whose property stores what it is given under another name."""

    def __init__(self) -> None:
        self.head = nn.Linear(4, 3)

    @property
    def head(self) -> Any:
        return self._head

    @head.setter
    def head(self, module: nn.Module) -> None:
        self._head = module


def test_what_a_property_stores_is_found_once() -> None:
    model = Renamed()
    model.head = nn.Linear(4, 2)
    assert list(model.named_parameters()) == ["_head.weight", "_head.bias"]


def test_buffers_that_stay_stay_where_they_are(backend: str) -> None:
    layer = nn.BatchNorm(2).eval()
    home = layer.variable("running_mean").home
    with ember_ml.use_backend(other_than(backend)):
        nn.value_and_grad(layer, lambda x: ops.sum(layer(x)))(ops.ones((1, 2)))
        with pytest.raises(ValueError, match="more than one number"):
            nn.value_and_grad(layer.train(), lambda x: ops.sum(layer(x)))(ops.ones((1, 2)))
    assert layer.variable("running_mean").home is home


@pytest.mark.parametrize("is_portable", [False, True])
@pytest.mark.parametrize("how", ["attribute", "assign", "value"])
def test_a_parameter_assigned_inside_a_gradient_keeps_it(how: str, is_portable: bool, backend: str) -> None:
    """A cast, a mask, a normalization of weights: the value is another one, the gradient goes on to the parameter."""
    model = nn.Linear(2, 1, bias=False).load_state_dict({"weight": [[1.0, 2.0]]})
    three = EmberTensor(3.0) if is_portable else 3.0

    def loss() -> Any:
        new = ops.multiply(model.weight, three)
        if how == "attribute":
            model.weight = new
        elif how == "assign":
            model.variable("weight").assign(new)
        else:
            model.variable("weight").value = new
        return ops.sum(model(ops.ones((1, 2))))

    value, gradients = nn.value_and_grad(model, loss)()
    assert ops.item(value) == 9.0
    assert ops.to_numpy(gradients["weight"]).tolist() == [[3.0, 3.0]]
    assert ops.to_numpy(model.weight).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("way", ["ops.grad", "nn.value_and_grad"])
def test_a_frozen_parameter_assigned_inside_a_gradient_holds_a_plain_tensor(way: str, backend: str) -> None:
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    eye = [[1.0, 0.0], [0.0, 1.0]]
    model.load_state_dict({"0.weight": eye, "1.weight": eye})
    model[1].freeze()

    def loss(model: Any) -> Any:
        model[1].weight = ops.multiply(model[0].weight, 2.0)
        return ops.sum(ops.multiply(model[1].weight, model[0].weight))

    for _ in range(2):  # a recorded tensor that stayed would fail the second time
        by_module = nn.value_and_grad(model, lambda: loss(model))
        gradients = ops.grad(loss)(model) if way == "ops.grad" else by_module()[1]
        assert ops.to_numpy(gradients["0.weight"]).tolist() == [[4.0, 0.0], [0.0, 4.0]]
        assert type(model[1].weight) is ember_ml.backend.load(backend).tensor_type
        assert ops.to_numpy(model[1].weight).tolist() == [[2.0, 0.0], [0.0, 2.0]]

    def fails(model: Any) -> Any:
        model[1].weight = ops.multiply(model[0].weight, 5.0)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ops.grad(fails)(model)
    assert ops.to_numpy(model[1].weight).tolist() == [[2.0, 0.0], [0.0, 2.0]]


@pytest.mark.parametrize(
    "made", [initializers.constant(2.0), initializers.uniform(), initializers.orthogonal(), initializers.he_normal]
)
def test_initializers_survive_pickle(made: Any, backend: str) -> None:
    drawn = []
    for initializer in (made, pickle.loads(pickle.dumps(made))):
        ops.random.seed(3)
        drawn.append(ops.to_numpy(initializer((4, 3), "float32")).tolist())
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("way", ["attribute", "value", "assign", "state"])
def test_training_does_not_change_what_a_parameter_was_given(backend: str, way: str) -> None:
    """Optimizers change parameters in place on NumPy and PyTorch, and JAX uses their memory again."""
    given = ops.ones((1, 3))
    layer = nn.Linear(3, 1)
    if way == "attribute":
        layer.weight = given
    elif way == "value":
        layer.variable("weight").value = given
    elif way == "assign":
        layer.variable("weight").assign(given)
    else:
        layer.load_state_dict({"weight": given, "bias": ops.zeros((1,))})
    trainer = Trainer(layer, optimizers.SGD(0.1), progress=False)
    trainer.fit(ops.ones((4, 3)), ops.zeros((4, 1)), epochs=1)
    assert ops.to_numpy(given).tolist() == [[1.0, 1.0, 1.0]]
    assert ops.to_numpy(layer.weight).tolist() != [[1.0, 1.0, 1.0]]
