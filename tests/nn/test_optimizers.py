"""Optimizers against the formulas, and against each other on every backend."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import installed_backends
from ember_ml.config import registry
from ember_ml.training import Trainer, optimizers

KINDS: dict[str, Callable[[], optimizers.Optimizer]] = {
    "sgd": lambda: optimizers.SGD(0.1),
    "momentum": lambda: optimizers.SGD(0.1, momentum=0.9, weight_decay=0.01),
    "nesterov": lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "adam": lambda: optimizers.Adam(0.05, weight_decay=0.01),
    "adamw": lambda: optimizers.AdamW(0.05, weight_decay=0.1),
    "rmsprop": lambda: optimizers.RMSprop(0.02),
    "rmsprop_momentum": lambda: optimizers.RMSprop(0.02, momentum=0.9, weight_decay=0.01),
    "adagrad": lambda: optimizers.Adagrad(0.1, weight_decay=0.01),
    "lion": lambda: optimizers.Lion(0.01, weight_decay=0.1),
    "adafactor": lambda: optimizers.Adafactor(0.05, weight_decay=0.01),
    "muon": lambda: optimizers.Muon(0.05, weight_decay=0.01),
    "clipped": lambda: optimizers.Adam(0.05, max_norm=0.5),
    "limited": lambda: optimizers.SGD(0.1, max_value=0.25),
}


def reference(kind: str, p: list[float], gradients: list[list[float]]) -> list[float]:
    """The elementwise rules in Python's double precision, number by number."""
    n = len(p)
    first, second = [0.0] * n, [0.0] * n
    for t, row in enumerate(gradients, start=1):
        for i, g in enumerate(row):
            if kind == "sgd":
                p[i] -= 0.1 * g
            elif kind == "limited":
                p[i] -= 0.1 * min(max(g, -0.25), 0.25)
            elif kind == "momentum":
                first[i] = 0.9 * first[i] + g + 0.01 * p[i]
                p[i] -= 0.1 * first[i]
            elif kind == "nesterov":
                first[i] = 0.9 * first[i] + g
                p[i] -= 0.1 * (g + 0.9 * first[i])
            elif kind in ("adam", "adamw", "clipped"):
                if kind == "adamw":
                    p[i] -= 0.05 * 0.1 * p[i]
                elif kind == "adam":
                    g += 0.01 * p[i]
                else:
                    g *= min(1.0, 0.5 / (math.sqrt(sum(x * x for x in row)) + 1e-6))
                first[i] = 0.9 * first[i] + 0.1 * g
                second[i] = 0.999 * second[i] + 0.001 * g * g
                m, v = first[i] / (1 - 0.9**t), second[i] / (1 - 0.999**t)
                p[i] -= 0.05 * m / (math.sqrt(v) + 1e-8)
            elif kind == "rmsprop":
                second[i] = 0.99 * second[i] + 0.01 * g * g
                p[i] -= 0.02 * g / (math.sqrt(second[i]) + 1e-8)
            elif kind == "rmsprop_momentum":
                g += 0.01 * p[i]
                second[i] = 0.99 * second[i] + 0.01 * g * g
                first[i] = 0.9 * first[i] + g / (math.sqrt(second[i]) + 1e-8)
                p[i] -= 0.02 * first[i]
            elif kind == "adagrad":
                g += 0.01 * p[i]
                second[i] += g * g
                p[i] -= 0.1 * g / (math.sqrt(second[i]) + 1e-10)
            elif kind == "lion":
                p[i] -= 0.01 * (math.copysign(1.0, 0.9 * first[i] + 0.1 * g) + 0.1 * p[i])
                first[i] = 0.99 * first[i] + 0.01 * g
    return p


class Vector(nn.Module):
    def __init__(self, dtype: str = "float64") -> None:
        self.x = nn.Parameter(ops.array([0.5, -1.0, 2.0, 0.25], dtype=dtype))


GRADIENTS = [[math.sin(3.7 * t + 1.3 * i + 0.2) for i in range(4)] for t in range(6)]


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("adafactor", "muon")])
def test_updates_follow_the_formula(backend: str, kind: str) -> None:
    model, optimizer = Vector(), KINDS[kind]()
    for row in GRADIENTS:
        optimizer.update(model, {"x": ops.array(row, dtype="float64")})
    want = reference(kind, [0.5, -1.0, 2.0, 0.25], GRADIENTS)
    assert ops.to_numpy(model.x).tolist() == pytest.approx(want, rel=1e-6, abs=1e-7)
    assert optimizer.step == len(GRADIENTS)


def test_every_optimizer_is_registered_tested_and_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
    tested = {type(make()) for make in KINDS.values()}
    for name in optimizers.__all__:
        thing = getattr(optimizers, name)
        if isinstance(thing, type) and thing is not optimizers.Optimizer:
            assert registry.lookup(f"optimizers/{name.lower()}") is thing
            assert thing in tested
            assert f"`{name}`" in page


class Shapes(nn.Module):
    def __init__(self) -> None:
        ops.random.seed(8)
        self.matrix = nn.Parameter(ops.random_normal((6, 4)))
        self.tall = nn.Parameter(ops.random_normal((2, 3, 5)))
        self.vector = nn.Parameter(ops.random_normal((7,)))
        self.number = nn.Parameter(ops.random_normal(()))


def gradients_of(model: Shapes, step: int) -> dict[str, Any]:
    return {name: ops.random_normal(x.shape, seed=100 * step + len(name)) for name, x in model.trainable().items()}


def run(kind: str, switching: bool = False) -> dict[str, Any]:
    model, optimizer = Shapes(), KINDS[kind]()
    for step in range(6):
        if switching:
            ember_ml.set_backend(installed_backends()[step % len(installed_backends())])
        optimizer.update(model, gradients_of(model, step))
    return {name: ops.to_numpy(x) for name, x in model.state_dict().items()}


@pytest.mark.parametrize("kind", list(KINDS))
def test_one_update_on_every_backend_and_across_switches(backend: str, kind: str) -> None:
    found = run(kind)
    mixed = run(kind, switching=True)
    ember_ml.set_backend("numpy")
    want = run(kind)
    for name in want:
        assert found[name] == pytest.approx(want[name], rel=1e-4, abs=1e-5), name
        assert mixed[name] == pytest.approx(want[name], rel=1e-4, abs=1e-5), name


def test_muon_makes_steps_of_singular_values_near_one(backend: str) -> None:
    from ember_ml.training.optimizers.matrix_wise import orthogonalize

    for shape in ((5, 3), (3, 5)):
        values = ops.to_numpy(ops.svdvals(orthogonalize(ops.random_normal(shape, seed=2), 10)))
        assert all(0.6 < x < 1.3 for x in values)


def test_state_goes_on_where_it_was(backend: str) -> None:
    first, second = KINDS["adam"](), KINDS["adam"]()
    one, two = Shapes(), Shapes()
    for step in range(3):
        first.update(one, gradients_of(one, step))
    second.load_state_dict(first.state_dict(), first.step)
    two.load_state_dict(one.state_dict())
    for model, optimizer in ((one, first), (two, second)):
        optimizer.update(model, gradients_of(model, 9))
    assert all(
        ops.to_numpy(x).tolist() == ops.to_numpy(y).tolist()
        for x, y in zip(one.state_dict().values(), two.state_dict().values(), strict=True)
    )
    with pytest.raises(ValueError, match="Adam keeps no 'third/x'"):
        second.load_state_dict({"third/x": ops.ones(1)}, 1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_updated_in_float32(backend: str, dtype: str) -> None:
    model, optimizer = Vector(dtype), optimizers.Adam(0.05)
    for row in GRADIENTS:
        optimizer.update(model, {"x": ops.array(row, dtype=dtype)})
    want = reference("clipped", [0.5, -1.0, 2.0, 0.25], [[2.0 * g for g in row] for row in GRADIENTS])
    assert model.variable("x").dtype == dtype
    assert ops.to_numpy(ops.cast(model.x, "float32")).tolist() == pytest.approx(want, abs=0.03)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("adafactor", "muon")])
def test_a_parameter_without_elements_is_let_be(backend: str, kind: str) -> None:
    """A process that has nothing of a parameter still updates the others."""
    full, empty = (nn.Parameter(x) for x in (ops.asarray([1.0, 2.0]), ops.zeros((0,))))
    alone = nn.Parameter(ops.asarray([1.0, 2.0]))
    gradient = ops.asarray([0.5, -0.25])
    both, one = KINDS[kind](), KINDS[kind]()
    for _ in range(2):
        both.apply({"empty": empty, "full": full}, [ops.zeros((0,)), gradient])
        one.apply({"full": alone}, [gradient])
    assert ops.to_numpy(full.value).tolist() == ops.to_numpy(alone.value).tolist()
    assert tuple(empty.shape) == (0,)


def test_a_schedule_gives_the_rate(backend: str) -> None:
    model, optimizer = Vector(), optimizers.SGD(lambda step: 1.0 if step == 0 else 0.0)
    for _ in range(2):
        optimizer.update(model, {"x": ops.ones(4, dtype="float64")})
    assert ops.to_numpy(model.x).tolist() == [-0.5, -2.0, 1.0, -0.75]


def test_mistakes_are_named(backend: str) -> None:
    with pytest.raises(ValueError, match="a learning rate is a number from 0 up"):
        optimizers.Adam(-1.0)
    with pytest.raises(ValueError, match="nesterov needs a momentum"):
        optimizers.SGD(0.1, nesterov=True)
    with pytest.raises(ValueError, match="there is no optimizer 'adm'"):
        optimizers.get("adm")
    with pytest.raises(ValueError, match="gradients of y, which"):
        optimizers.SGD(0.1).update(Vector(), {"y": ops.ones(4)})


class Numbers(nn.Module):
    """Parameters of several shapes, short ones, which a backend may update together."""

    def __init__(self, shapes: dict[str, tuple[int, ...]]) -> None:
        for place, (name, shape) in enumerate(shapes.items()):
            values = [math.sin(7 * place + k) for k in range(math.prod(shape))]
            setattr(self, name, nn.Parameter(ops.reshape(ops.array(values, "float32"), shape)))


SHAPES = {"matrix": (3, 5), "vector": (7,), "number": (), "other": (5, 3), "none": (0, 2)}


@pytest.mark.parametrize("kind", ["momentum", "adam"])
def test_parameters_change_together_as_each_alone(backend: str, kind: str) -> None:
    together, optimizer = Numbers(SHAPES), KINDS[kind]()
    alone = {name: (Numbers(SHAPES), KINDS[kind]()) for name in SHAPES}
    start = Numbers(SHAPES).state_dict()
    for step in range(3):
        gradients = {name: ops.cos(ops.add(ops.multiply(x, 3), step)) for name, x in start.items()}
        optimizer.update(together, gradients)
        for name, (model, own) in alone.items():
            own.update(model, {name: gradients[name]})
    tolerance = 0.0 if backend == "numpy" else 1e-6  # other libraries may fuse a product and a sum
    for name, (model, own) in alone.items():
        pairs = [(together.state_dict()[name], model.state_dict()[name])]
        pairs += [
            (x, own.state_dict()[slot]) for slot, x in optimizer.state_dict().items() if slot.endswith(f"/{name}")
        ]
        for found, wanted in pairs:
            assert ops.shape(found) == ops.shape(wanted)
            assert ops.allclose(found, wanted, rtol=tolerance, atol=tolerance)


def test_an_update_takes_the_tensors_that_parameters_hold_now(backend: str) -> None:
    model, optimizer = Numbers({"a": (2,), "b": (2,)}), optimizers.SGD(1.0, momentum=0.5)
    model.load_state_dict({"a": [1.0, 2.0], "b": [10.0, 20.0]})
    gradients = {"a": ops.array([1.0, 1.0]), "b": ops.array([2.0, 2.0])}
    optimizer.update(model, gradients)
    a, b = model.variable("a"), model.variable("b")
    first, second = a.value, b.value
    a.hold(second)
    b.hold(first)
    assert [ops.to_numpy(x).tolist() for x in (model.a, model.b)] == [[8.0, 18.0], [0.0, 1.0]]
    optimizer.update(model, gradients)
    assert [ops.to_numpy(x).tolist() for x in (model.a, model.b)] == [[6.5, 16.5], [-3.0, -2.0]]
    optimizer.update(model, {"b": gradients["b"]})  # one of them, then both in another order
    assert [ops.to_numpy(x).tolist() for x in (model.a, model.b)] == [[6.5, 16.5], [-6.5, -5.5]]
    model.a = ops.array([0.0, 0.0])
    optimizer.update(model, dict(reversed(gradients.items())))
    assert [ops.to_numpy(x).tolist() for x in (model.a, model.b)] == [[-1.75, -1.75], [-10.25, -9.25]]
    optimizer.load_state_dict({"velocity/a": [0.0, 0.0], "velocity/b": [4.0, 4.0]}, 3)
    optimizer.update(model, gradients)
    assert [ops.to_numpy(x).tolist() for x in (model.a, model.b)] == [[-2.75, -2.75], [-14.25, -13.25]]


def test_gradients_of_other_shapes_are_not_mixed_up(backend: str) -> None:
    model, optimizer = Numbers({"a": (2,), "b": (3,)}), optimizers.SGD(1.0)
    optimizer.update(model, {"a": ops.zeros(2), "b": ops.zeros(3)})
    before = model.state_dict()
    with pytest.raises((ValueError, TypeError, RuntimeError)):  # libraries differ
        optimizer.update(model, {"a": ops.ones(3), "b": ops.ones(2)})
    assert ops.item(ops.all(ops.equal(model.b, before["b"])))


class Reversed(optimizers.AdamW):
    """Goes uphill, by a rule that no backend has a kernel for."""

    def rule(self, parameter: Any, gradient: Any, state: Any, scalars: Any) -> list[Any]:
        return super().rule(parameter, ops.negative(gradient), state, scalars)


def test_the_rule_of_a_subclass_is_used(backend: str) -> None:
    start = {"weight": [[1.0, -2.0]]}
    up, down = (nn.Linear(2, 1, bias=False).load_state_dict(start) for _ in range(2))
    gradient = ops.array([[0.5, -3.0]])
    one, other = Reversed(0.1, weight_decay=0.0), optimizers.AdamW(0.1, weight_decay=0.0)
    for _ in range(3):
        one.update(up, {"weight": gradient})
        other.update(down, {"weight": ops.negative(gradient)})
    assert ops.to_numpy(up.weight) == pytest.approx(ops.to_numpy(down.weight), rel=1e-6)


class Own(optimizers.Optimizer):
    """Returns from its rule what it is told to; its argument is no attribute."""

    slots = ("mean",)

    def __init__(self, lr: float, compute: Callable[[Any], Any]) -> None:
        super().__init__(lr)
        self._compute_new = compute

    def rule(self, parameter: Any, gradient: Any, state: Any, scalars: Any) -> Any:
        return self._compute_new(parameter)


def test_mistakes_in_rules_of_ones_own_are_named(backend: str, tmp_path: Path) -> None:
    model = nn.Linear(2, 1, bias=False)
    wrong: list[tuple[Callable[[Any], Any], str]] = [
        (lambda p: p, r"Own\.rule returns a list of the new parameter and mean, not \w+$"),
        (lambda p: [p], r"and mean, not 1 of them$"),
        (lambda p: [ops.sum(p), p], r"Own\.rule gave a parameter of shape \(\) for one of shape \(1, 2\)$"),
        (
            lambda p: [ops.cast(p, "float16"), p],
            r"Own\.rule gave a parameter of dtype float16 for one of dtype float32$",
        ),
    ]
    for rule, message in wrong:
        optimizer = Own(0.1, rule)
        with pytest.raises(ValueError, match=message):
            optimizer.update(model, {"weight": ops.ones((1, 2))})
        assert (optimizer.step, ops.shape(model.weight)) == (0, (1, 2))
    right = Own(0.1, lambda p: [p, p])
    assert repr(right) == "Own()"  # not an error
    mixed = optimizers.SGD(0.1, groups=[{"match": "weight", "optimizer": right}])
    with pytest.raises(TypeError, match="Own takes lr, compute, and has no such attribute"):
        mixed.update(model, {"weight": ops.ones((1, 2))})


class Passing(optimizers.Optimizer):
    """Passes further settings on to the class above."""

    def __init__(self, learning_rate: float, factor: float = 1.0, **settings: Any) -> None:
        super().__init__(learning_rate, **settings)
        self.factor = factor

    def rule(self, parameter: Any, gradient: Any, state: Any, scalars: Any) -> list[Any]:
        return [parameter - self.factor * scalars[0] * gradient]


def test_settings_that_are_passed_on_to_the_class_above(backend: str, tmp_path: Path) -> None:
    def make() -> Passing:
        return Passing(0.5, max_value=1.0, groups=[{"match": "bias", "factor": 2.0}])

    model = nn.Linear(1, 1).load_state_dict({"weight": [[0.0]], "bias": [0.0]})
    make().update(model, {"weight": ops.array([[4.0]]), "bias": ops.array([4.0])})
    assert [ops.item(x.value) for x in model.parameters()] == [-0.5, -1.0]
    assert "learning_rate=0.5, factor=1.0, max_norm=None, max_value=1.0" in repr(make())
    mixed = optimizers.SGD(1.0, groups=[{"match": ".*", "optimizer": Passing(0.25, factor=3.0)}])
    mixed.update(model, {"weight": ops.array([[1.0]]), "bias": ops.array([1.0])})
    assert [ops.item(x.value) for x in model.parameters()] == [-1.25, -1.75]
    trainer = Trainer(model, Passing(0.5, 2.0, max_value=1.0), "mean_squared_error", progress=False)
    trainer.fit(ops.ones((2, 1)), ops.ones((2, 1)))
    trainer.save(tmp_path)
    assert Trainer(model, Passing(0.5), "mean_squared_error").restore(tmp_path).steps == 1


@pytest.mark.parametrize("kind", [optimizers.SGD, optimizers.RMSprop])
def test_momentum_that_is_set_later_counts(backend: str, kind: Any) -> None:
    found = []
    for start in (0.0, 0.9):
        model = nn.Linear(1, 1, bias=False).load_state_dict({"weight": [[1.0]]})
        optimizer = kind(0.1, momentum=start)
        optimizer.momentum = 0.9
        for _ in range(3):
            optimizer.update(model, {"weight": ops.array([[1.0]])})
        optimizer.momentum = 0.0
        optimizer.update(model, {"weight": ops.array([[1.0]])})
        found.append(ops.item(model.weight))
    assert found[0] == found[1] < 0.5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optimizers.AdamW(beta1=1.5), "beta1 is a number from 0 up and below 1, not 1.5"),
        (lambda: optimizers.AdamW(beta2=1.0), "beta2 is a number from 0 up and below 1"),  # it would divide 0 by 0
        (lambda: optimizers.Adam(epsilon=-1e-8), "epsilon is a number from 0 up"),
        (lambda: optimizers.SGD(weight_decay="0.1"), "weight_decay is a number from 0 up, not '0.1'"),
        (lambda: optimizers.RMSprop(momentum=-0.5), "momentum is a number from 0 up"),
        (lambda: optimizers.SGD(max_norm="1"), "max_norm is a positive number"),
        (lambda: setattr(optimizers.Lion(), "beta1", math.nan), "beta1 is a number"),
        (lambda: setattr(optimizers.Muon(), "learning_rate", "fast"), "a learning rate is a number"),
    ],
)
def test_settings_out_of_range_are_refused(backend: str, make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
