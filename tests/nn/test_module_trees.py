"""Modules as users change them: parts replaced in lists, parameters in containers, parts of other libraries, names."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict, deque
from pathlib import Path
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.training import Trainer, optimizers


class Stack(nn.Module):
    """Layers in a list, in a dict, or in a list inside a dict."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        layers = [nn.Linear(3, 3), nn.Linear(3, 1)]
        self.layers: Any = {
            "list": layers,
            "dict": dict(zip("ab", layers, strict=True)),
            "nested": {"inner": layers},
        }[kind]

    def table(self) -> Any:
        return self.layers["inner"] if self.kind == "nested" else self.layers

    def forward(self, x: Any) -> Any:
        table = self.table()
        for layer in table.values() if self.kind == "dict" else table:
            x = layer(x)
        return x


class Table(dict[str, Any]):
    """A dict of a program's own class."""


class Holding(nn.Module):
    """Parts in a collection."""

    def __init__(self, parts: Any) -> None:
        self.parts = parts

    def forward(self, x: Any) -> Any:
        for part in self.parts.values():
            x = part(x)
        return x


def largest(x: Any) -> float:
    return float(abs(ops.to_numpy(x)).max())


@pytest.mark.parametrize(
    ("kind", "compiled"), [("list", False), ("list", True), ("dict", False), ("dict", True), ("nested", False)]
)
def test_a_replaced_element_is_trained(backend: str, kind: str, compiled: bool) -> None:
    ops.random.seed(0)
    model, spare = Stack(kind), nn.Linear(3, 3)  # made before the first step, so that no later change tells of it
    x, y = ops.ones((8, 3)), ops.zeros((8, 1))
    trainer = Trainer(model, optimizers.SGD(0.1), compile=compiled, progress=False)
    trainer.fit(x, y, epochs=1)
    first = "a" if kind == "dict" else 0
    old = model.table()[first]
    model.table()[first] = spare
    before, unchanged = ops.to_numpy(spare.weight).copy(), ops.to_numpy(old.weight).copy()
    trainer.fit(x, y, epochs=2)
    assert largest(ops.subtract(spare.weight, before)) > 1e-4
    assert (ops.to_numpy(old.weight) == unchanged).all()
    gradients = nn.value_and_grad(model, lambda: ops.mean(ops.square(model(x))))()[1]
    assert all(largest(gradient) > 0 for gradient in gradients.values())


def test_a_compiled_function_follows_settings_and_functions(backend: str) -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            self.scale, self.activations, self.weight = 2.0, [ops.relu], nn.Parameter([1.0, -1.0])

        def forward(self, x: Any) -> Any:
            return ops.multiply(self.activations[0](ops.multiply(x, self.weight)), self.scale)

    model, x = Scaled(), ops.array([3.0, 3.0])
    run = ember_ml.compile(lambda x: model(x))
    assert ops.to_numpy(run(x)).tolist() == [6.0, 0.0]
    model.scale = 10.0
    assert ops.to_numpy(run(x)).tolist() == [30.0, 0.0]
    model.activations[0] = ops.negative
    assert ops.to_numpy(run(x)).tolist() == [-30.0, 30.0]


class Bag(nn.Module):
    def __init__(self) -> None:
        self.weights = [nn.Parameter([2.0]), nn.Parameter([3.0])]
        self.named: dict[str, Any] = {"shift": nn.Parameter([1.0]), "deep": (nn.Buffer([5.0]),)}

    def forward(self, x: Any) -> Any:
        for weight in self.weights:
            x = ops.multiply(x, weight)
        return ops.add(x, self.named["shift"])


def test_parameters_in_containers_belong_to_the_module(backend: str) -> None:
    bag = Bag()
    assert list(bag.named_parameters()) == ["weights.0", "weights.1", "named.shift"]
    assert list(bag.named_buffers()) == ["named.deep.0"]
    value, gradients = nn.value_and_grad(bag, lambda: ops.sum(bag([7.0])))()
    assert ops.item(value) == 43.0
    assert [ops.item(g) for g in gradients.values()] == [21.0, 14.0, 1.0]
    other = Bag().load_state_dict({name: ops.multiply(x, 0.0) for name, x in bag.state_dict().items()})
    assert ops.to_numpy(other([7.0])).tolist() == [0.0]
    assert list(bag.freeze("weights").trainable()) == ["named.shift"]
    assert [x.size for x in pickle.loads(pickle.dumps(bag)).parameters()] == [1, 1, 1]
    bag.weights[0] = nn.Parameter([10.0])
    assert ops.item(nn.value_and_grad(bag.unfreeze(), lambda: ops.sum(bag([1.0])))()[1]["weights.1"]) == 10.0


class _ForeignLayer:
    """What a layer of another library looks like."""

    def __call__(self, x: Any) -> Any:
        return x

    def parameters(self) -> list[Any]:
        return []

    def state_dict(self) -> dict[str, Any]:
        return {}


def test_a_layer_of_another_library_is_refused_where_it_stands() -> None:
    with pytest.raises(TypeError, match=r"Sequential\.parts\.1 is a .*_ForeignLayer, whose parameters would neither"):
        nn.Sequential(nn.Linear(2, 2), _ForeignLayer())
    stack = Stack("nested")
    with pytest.raises(TypeError, match=r"Stack\.head is a"):
        stack.head = _ForeignLayer()
    stack.table().append(_ForeignLayer())
    with pytest.raises(TypeError, match=r"Sequential\.0\.layers\.inner\.2 is a"):
        nn.value_and_grad(nn.Sequential(stack), lambda: ops.asarray(0.0))()


def test_names_of_methods_are_refused_and_others_are_free() -> None:
    class Named(nn.Module):
        def __init__(self, name: str, value: Any) -> None:
            setattr(self, name, value)
            self.layer = nn.Linear(2, 1)

    for name in ("settings", "shown", "config", "state"):
        assert "layer" in repr(Named(name, {"rate": 0.1}))
    for name in ("children", "parameters", "trainable", "held", "forward"):
        with pytest.raises(AttributeError, match=f"{name} is a method of nn.Module"):
            Named(name, {"rate": 0.1})
    patched = Named("forward", ops.negative)  # a function may take the place of a method
    assert ops.item(patched(2.0)) == -2.0


def test_the_text_of_a_module_with_settings_and_parts() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            self.heads, self.out = 4, nn.Linear(2, 1)

    assert repr(Block()).splitlines()[:2] == ["Block(  # 3 parameters", "  heads=4"]


@pytest.mark.parametrize("name", ["sgd", "adam", "lion"])
def test_a_state_is_a_snapshot(backend: str, name: str) -> None:
    model = nn.Linear(3, 1)
    trainer = Trainer(model, name, progress=False)
    trainer.fit(ops.ones((8, 3)), ops.zeros((8, 1)), epochs=1)
    state, slots = model.state_dict(), trainer.optimizer.state_dict()
    before = {key: ops.to_numpy(x).tolist() for key, x in {**state, **slots}.items()}
    trainer.fit(ops.ones((8, 3)), ops.zeros((8, 1)), epochs=3)
    assert {key: ops.to_numpy(x).tolist() for key, x in {**state, **slots}.items()} == before
    assert ops.to_numpy(model.weight).tolist() != before["weight"]


def test_a_copy_of_a_parameter_stays_and_a_tensor_that_is_gone_says_so(backend: str) -> None:
    model = nn.Linear(3, 1)
    weight = model.weight
    kept, before = ops.copy(weight), ops.to_numpy(weight).tolist()
    Trainer(model, "adam", progress=False).fit(ops.ones((8, 3)), ops.zeros((8, 1)), epochs=1)
    assert ops.to_numpy(kept).tolist() == before
    if backend == "jax":
        for read in (ops.to_numpy, ops.exp, lambda x: ops.add(x, 1.0)):
            with pytest.raises(ValueError, match="keep a copy"):
                read(weight)


class Tied(nn.Module):
    def __init__(self) -> None:
        self.embedding, self.head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
        self.head.weight = self.embedding.variable("weight")


def test_a_tied_parameter_has_all_its_names_in_a_state(backend: str) -> None:
    one, two = Tied(), Tied()
    state = one.state_dict()
    assert list(state) == ["embedding.weight", "head.weight"]
    assert list(one.named_parameters()) == ["embedding.weight"]
    two.load_state_dict(state)
    assert (ops.to_numpy(two.head.weight) == ops.to_numpy(one.head.weight)).all()
    for name in state:  # files of other programs have either name
        two.load_state_dict({name: ops.ones((5, 3))})
        assert ops.to_numpy(two.embedding.weight).tolist() == [[1.0] * 3] * 5
    with pytest.raises(ValueError, match=r"embedding\.weight and head\.weight are one parameter here, and differ"):
        two.load_state_dict({"embedding.weight": ops.ones((5, 3)), "head.weight": ops.zeros((5, 3))})


def test_counts_of_batches_of_other_libraries_are_passed_over(backend: str) -> None:
    model = nn.Sequential(nn.BatchNorm(2))
    state = {**model.state_dict(), "0.num_batches_tracked": ops.array(7)}
    model.load_state_dict(state)
    with pytest.raises(ValueError, match=r"has unknown 1\.num_batches_tracked"):
        model.load_state_dict({**state, "1.num_batches_tracked": ops.array(7)})


def test_copies_are_modules_of_their_own(backend: str) -> None:
    model = Stack("list")
    run = ember_ml.compile(lambda module, x: module(x))
    x = ops.ones((1, 3))
    twin = copy.deepcopy(model)
    twin.layers[1].bias = ops.add(twin.layers[1].bias, 1.0)
    assert ops.item(run(twin, x)) == pytest.approx(ops.item(run(model, x)) + 1.0, abs=1e-5)


@pytest.mark.parametrize("kind", [OrderedDict, Table])
def test_parts_in_subclasses_of_containers_are_found(kind: type, backend: str) -> None:
    model = nn.Sequential(Holding(kind(one=nn.Linear(2, 3), two=nn.Linear(3, 1))))
    assert list(model.state_dict()) == [
        f"0.parts.{name}.{part}" for name in ("one", "two") for part in ("weight", "bias")
    ]
    _, gradients = nn.value_and_grad(model, lambda x: ops.sum(model(x)))(ops.ones((2, 2)))
    assert gradients.keys() == model.named_parameters().keys()


@pytest.mark.parametrize("kind", [set, frozenset, deque])
def test_collections_in_which_no_parts_are_found_are_refused(kind: type) -> None:
    with pytest.raises(TypeError, match=rf"Holding.parts is a {kind.__name__}, .* use a list, a tuple or a dict"):
        Holding(kind([nn.Linear(2, 2)]))
    assert Holding(kind(["a name"])).parts  # what holds no parts is a value as any other


def test_two_parameters_of_one_name_are_refused() -> None:
    """A state would hold one of them alone, and the optimizer change it alone."""
    model = Holding({0: nn.Linear(2, 2), "0": nn.Linear(2, 2)})
    for use in (model.state_dict, model.named_parameters):
        with pytest.raises(ValueError, match=r"two parameters or buffers of Holding have the name parts\.0\.weight"):
            use()


def test_a_subclass_of_sequential_has_its_other_parts_too(backend: str) -> None:
    class WithHead(nn.Sequential):
        def __init__(self) -> None:
            super().__init__(nn.Linear(2, 3))
            self.head = nn.Linear(3, 1)

        def forward(self, x: Any) -> Any:
            return self.head(super().forward(x))

    model = WithHead()
    assert list(model.named_parameters()) == ["0.weight", "0.bias", "head.weight", "head.bias"]


def test_layers_whose_sizes_are_unknown_are_not_passed_over(backend: str, tmp_path: Path) -> None:
    """What is done to all parameters would silently leave out those that are yet to come."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(3))
    full = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 3))
    uses = (
        model.freeze,
        model.state_dict,
        lambda: model.load_state_dict(full.state_dict(), strict=False),
        lambda: model.save(tmp_path / "model.safetensors"),
        lambda: model.to_dtype("float16"),
        lambda: model.to_device("cpu"),
    )
    for use in uses:
        with pytest.raises(
            ValueError, match=r"the sizes of 1 \(Linear\) are unknown: give them, or call Sequential once"
        ):
            use()
    model(ops.ones((1, 2)))
    assert not model.freeze().trainable()


def test_values_assigned_to_parameters_are_floats(backend: str) -> None:
    model = nn.Linear(2, 2)
    model.weight = [[1, 2], [3, 4.5]]
    assert (ops.dtype(model.weight), ops.to_numpy(model.weight).tolist()) == ("float32", [[1.0, 2.0], [3.0, 4.5]])
    for value in (ops.ones((2, 2), dtype="int32"), [[1, 2], [3, 4]]):
        with pytest.raises(TypeError, match=r"Linear.weight is a Parameter: a floating-point tensor"):
            model.weight = value
    with pytest.raises(ValueError, match=r"Linear.weight has shape \(2, 2\), not \(\)"):
        model.weight = 1.0
    with pytest.raises(TypeError, match="cannot become int8"):
        model.to_dtype("int8")


def test_layers_without_inputs_are_made(backend: str) -> None:
    assert ops.to_numpy(nn.Linear(0, 2)(ops.zeros((3, 0)))).shape == (3, 2)
