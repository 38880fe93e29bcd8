"""Parameter groups: settings of an optimizer by name, predicate and module."""

from __future__ import annotations

import math
import random
import re
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.errors import CheckpointError
from ember_ml.training import Trainer, optimizers, schedules
from tests.reference import optimizer_groups

NAMES = ("first.weight", "first.bias", "norm.weight", "norm.bias", "last.weight", "last.bias")
PATTERNS = (r".*bias", r"first\..*", r"norm\..*", r".*weight", r"last\.weight", r".*", r"nothing")
STEPS = 4


class Net(nn.Module):
    def __init__(self) -> None:
        self.first = nn.Linear(3, 4)
        self.norm = nn.LayerNorm(4)
        self.last = nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return self.last(self.norm(ops.tanh(self.first(x))))


Values = dict[str, list[float]]


def _values(model: nn.Module) -> Values:
    return {name: ops.to_numpy(x).ravel().tolist() for name, x in model.state_dict().items()}


def _draw(rng: random.Random, shape: tuple[int, ...]) -> Any:
    """A tensor of normal numbers."""
    return ops.reshape(ops.array([rng.gauss() for _ in range(math.prod(shape))]), shape)


def _check(found: Values, wanted: Values, relative: float = 1e-6, absolute: float = 1e-7) -> None:
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        assert found[name] == pytest.approx(values, rel=relative, abs=absolute), name


def _make_net(seed: int) -> Net:
    ops.random.seed(seed)
    return Net()


def _random_groups(rng: random.Random, kind: str) -> list[dict[str, Any]]:
    groups = []
    for pattern in rng.sample(PATTERNS, rng.randint(1, 3)):
        group: dict[str, Any] = {"match": pattern}
        if rng.random() < 0.5:
            group["weight_decay"] = rng.choice([0.0, 0.1, 0.3])
        if rng.random() < 0.4:
            group["learning_rate"] = rng.choice([0.05, 0.2])
        if rng.random() < 0.4:
            group["rate_factor"] = rng.choice([0.0, 0.5, 2.0])
        if rng.random() < 0.15:
            group["frozen"] = True
        if kind in ("adam", "adamw") and rng.random() < 0.4:
            group["beta1"] = 0.7
        if kind == "sgd" and rng.random() < 0.4:
            group["momentum"] = rng.choice([0.0, 0.8])
        groups.append(group)
    return groups


def _resolve(kind: str, groups: list[dict[str, Any]], name: str) -> dict[str, Any] | None:
    """What holds for one parameter, in PyTorch's words; None where it is frozen."""
    found: dict[str, Any] = {"learning_rate": 0.1, "weight_decay": 0.02, "beta1": 0.9, "momentum": 0.5, "frozen": False}
    factor = 1.0
    for group in groups:
        if re.fullmatch(group["match"], name):
            found |= {key: value for key, value in group.items() if key not in ("match", "rate_factor")}
            factor *= group.get("rate_factor", 1.0)
    if found["frozen"]:
        return None
    words = {"lr": found["learning_rate"] * factor, "weight_decay": found["weight_decay"]}
    if kind in ("adam", "adamw"):
        words["betas"] = (found["beta1"], 0.999)
    if kind == "sgd":
        words["momentum"] = found["momentum"]
    return words


def draw_case(kind: str, seed: int) -> tuple[Net, list[Values], dict[str, Any], Values]:
    """A model, the gradients of its steps, settings of the optimizer with random groups; what PyTorch makes of them."""
    rng = random.Random(f"{kind} {seed}")
    groups = _random_groups(rng, kind)
    max_norm = rng.choice([None, 0.5])
    model = _make_net(seed)
    before = _values(model)
    steps = [{name: [rng.gauss() for _ in values] for name, values in before.items()} for _ in range(STEPS)]
    settings = {name: _resolve(kind, groups, name) for name in NAMES}
    wanted = optimizer_groups.train(
        kind, before, steps, {name: x for name, x in settings.items() if x is not None}, max_norm
    )
    options: dict[str, Any] = {"learning_rate": 0.1, "weight_decay": 0.02, "max_norm": max_norm, "groups": groups}
    if kind == "sgd":
        options["momentum"] = 0.5
    return model, steps, options, wanted


KINDS = ("sgd", "adam", "adamw", "adagrad")


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("kind", KINDS)
def test_groups_equal_those_of_pytorch(backend: str, kind: str, seed: int) -> None:
    """Also after going on in another model and optimizer from a state in the middle, then to the last bit."""
    model, steps, options, wanted = draw_case(kind, seed)
    make = type(optimizers.get(kind))
    shapes = {name: x.shape for name, x in model.named_parameters().items()}
    optimizer = make(**options)
    other, again = _make_net(seed + 1), make(**options)
    for number, step in enumerate(steps):
        if number == STEPS // 2:
            other.load_state_dict(model.state_dict())
            again.load_state_dict(optimizer.state_dict(), optimizer.step)
        gradients = {name: ops.reshape(ops.array(x), shapes[name]) for name, x in step.items()}
        optimizer.update(model, gradients)
        if number >= STEPS // 2:
            again.update(other, gradients)
    _check(_values(model), wanted, 1e-5, 1e-5)
    assert _values(other) == _values(model)


def test_modules_and_functions_choose_parameters(backend: str) -> None:
    model = _make_net(0)
    before = _values(model)
    optimizer = optimizers.SGD(
        0.1,
        groups=[
            {"match": model.first, "frozen": True},
            {"match": lambda name, x: len(x.shape) == 1, "learning_rate": 0.2},
            {"match": [model.last, r"norm\.bias"], "rate_factor": 0.5},
        ],
    )
    optimizer.update(model, {name: ops.ones(x.shape) for name, x in model.named_parameters().items()})
    rates = dict.fromkeys(NAMES, 0.1) | {name: 0.2 for name in NAMES if "bias" in name or "norm" in name}
    for name in ("last.weight", "last.bias", "norm.bias"):
        rates[name] *= 0.5
    rates |= {"first.weight": 0.0, "first.bias": 0.0}
    _check(_values(model), {name: [x - rates[name] for x in values] for name, values in before.items()})


def test_another_optimizer_updates_a_group_by_its_rule_and_rate(backend: str) -> None:
    rng = random.Random(3)
    gradients = {name: _draw(rng, x.shape) for name, x in _make_net(1).named_parameters().items()}

    def train(optimizer: optimizers.Optimizer) -> Values:
        model = _make_net(1)
        for _ in range(3):
            optimizer.update(model, gradients)
        return _values(model)

    group = {"match": r"(first|last)\.weight", "optimizer": optimizers.Muon(0.02, other_rate=1.0)}
    mixed = train(optimizers.AdamW(0.01, groups=[group]))
    muon, adam = train(optimizers.Muon(0.02)), train(optimizers.AdamW(0.01))
    matrices = ("first.weight", "last.weight")
    _check(mixed, {name: (muon if name in matrices else adam)[name] for name in NAMES})


def test_schedules_of_groups_follow_the_steps_of_the_optimizer(backend: str) -> None:
    model = nn.Linear(1, 1).load_state_dict({"weight": [[0.0]], "bias": [0.0]})
    optimizer = optimizers.SGD(
        schedules.Polynomial(1.0, steps=4),
        groups=[{"match": "bias", "rate_factor": 2.0, "learning_rate": lambda step: step}],
    )
    for _ in range(3):
        optimizer.update(model, {"weight": ops.ones((1, 1)), "bias": ops.ones((1,))})
    found = _values(model)
    assert found["weight"] == pytest.approx([-(1.0 + 0.75 + 0.5)])
    assert found["bias"] == pytest.approx([-2.0 * (0 + 1 + 2)])


@pytest.mark.parametrize("compiled", [False, True])
def test_a_trainer_with_groups_goes_on_from_its_checkpoint(backend: str, compiled: bool, tmp_path: Any) -> None:
    rng = random.Random(0)
    x, y = _draw(rng, (24, 3)), _draw(rng, (24, 2))

    def make() -> Trainer:
        ops.random.seed(5)
        groups: list[dict[str, Any]] = [
            {"match": r".*bias", "weight_decay": 0.0, "learning_rate": 0.05},
            {"match": r"norm\..*", "optimizer": optimizers.SGD(0.1, momentum=0.9)},
        ]
        optimizer = optimizers.AdamW(0.01, weight_decay=0.1, groups=groups)
        return Trainer(Net(), optimizer, "mean_squared_error", compile=compiled, progress=False)

    whole = make()
    whole.fit(x, y, epochs=4, batch_size=8)
    first = make()
    first.fit(x, y, epochs=2, batch_size=8)
    first.optimizer.groups[0]["learning_rate"] = 0.05
    first.save(tmp_path / "run")
    again = make()
    again.restore(tmp_path / "run")
    again.fit(x, y, epochs=4, batch_size=8)
    assert _values(again.model) == _values(whole.model)
    loaded = Trainer.load(tmp_path / "run", model=Net())
    assert [group["match"] for group in loaded.optimizer.groups] == [r".*bias", r"norm\..*"]
    loaded.fit(x, y, epochs=4, batch_size=8)
    _check(_values(loaded.model), _values(whole.model))


def test_a_rate_of_a_group_that_was_changed_is_restored(backend: str, tmp_path: Any) -> None:
    def make() -> Trainer:
        ops.random.seed(0)
        return Trainer(Net(), optimizers.SGD(0.1, groups=[{"match": ".*bias", "learning_rate": 0.5}]), progress=False)

    x, y = ops.ones((4, 3)), ops.ones((4, 2))
    first, again = make(), make()
    first.fit(x, y, epochs=1)
    first.optimizer.groups[0]["learning_rate"] = 0.25
    first.save(tmp_path / "run")
    again.restore(tmp_path / "run")
    assert again.optimizer.groups[0]["learning_rate"] == 0.25


def test_groups_train_the_same_compiled_and_switched(backend: str) -> None:
    rng = random.Random(1)
    x, y = _draw(rng, (16, 3)), _draw(rng, (16, 2))

    def train(compiled: bool, switch: bool) -> Values:
        ops.random.seed(7)
        optimizer = optimizers.Adam(
            0.02,
            groups=[
                *optimizers.layer_wise_groups([r"first\..*", r"last\..*"], 0.5),
                {"match": r".*bias", "beta1": 0.5},
            ],
        )
        trainer = Trainer(Net(), optimizer, "mean_squared_error", compile=compiled, progress=False)
        trainer.fit(x, y, epochs=3, batch_size=8)
        if switch:
            with ember_ml.use_backend("numpy"):
                trainer.fit(x, y, epochs=6, batch_size=8)
        else:
            trainer.fit(x, y, epochs=6, batch_size=8)
        return _values(trainer.model)

    wanted = train(False, False)
    for found in (train(True, False), train(False, True)):
        _check(found, wanted, 1e-4, 1e-5)


@pytest.mark.parametrize("compiled", [False, True])
def test_changes_of_groups_count_from_the_next_update_on(backend: str, compiled: bool) -> None:
    """Each update is that of an optimizer which has had the group from the start."""
    ops.random.seed(3)
    gradient = {name: ops.random_normal(x.shape) for name, x in _make_net(0).named_parameters().items()}
    model, other = _make_net(1), _make_net(1)
    optimizer = optimizers.SGD(0.1, groups=[{"match": r".*bias"}])
    optimizer.update(model, gradient)  # which puts the parameters into their groups

    def update() -> None:
        optimizer.update(model, gradient)

    def check(update: Any) -> None:
        other.load_state_dict(model.state_dict())
        optimizers.SGD(0.1, groups=optimizer.groups).update(other, gradient)
        update()
        _check(_values(model), _values(other), 1e-5, 1e-6)

    changes = {"weight_decay": 0.5, "learning_rate": 0.2, "rate_factor": 0.5, "momentum": 0.9}
    step = ember_ml.compile(update) if compiled else update
    for name, value in (("frozen", True), ("frozen", False), *changes.items()):
        optimizer.groups[0][name] = value
        check(step)
    del optimizer.groups[0]["momentum"]
    optimizer.groups[0]["match"] = r"first\..*"
    check(update)
    optimizer.groups = [{"match": r"norm\..*", "frozen": True}]
    check(update)
    optimizer.groups[0]["weight_decay"] = "much"
    with pytest.raises(ValueError, match=r"weight_decay of groups\[0\] is a number"):
        update()


@pytest.mark.parametrize("compiled", [False, True])
def test_changes_inside_of_lists_and_optimizers_of_groups_count(backend: str, compiled: bool) -> None:
    names = ["weight"]
    momentum = optimizers.SGD(0.5)
    model = nn.Linear(1, 1).load_state_dict({"weight": [[0.0]], "bias": [0.0]})
    optimizer = optimizers.SGD(
        1.0, groups=[{"match": names, "frozen": True}, {"match": ["bias"], "optimizer": momentum}]
    )
    gradients = {"weight": ops.array([[1.0]]), "bias": ops.array([1.0])}

    def update() -> None:
        optimizer.update(model, gradients)

    update()
    step = ember_ml.compile(update) if compiled else update
    step()
    assert _values(model) == {"weight": [0.0], "bias": [-1.0]}
    momentum.weight_decay = 1.0
    update()  # by 0.5 times 1 - 1, the bias with its decay
    step()
    assert _values(model) == {"weight": [0.0], "bias": [-1.0]}
    names.append("bias")
    update()
    step()
    assert _values(model) == {"weight": [0.0], "bias": [-1.0]}
    names[:] = []
    momentum.learning_rate, momentum.weight_decay = 0.25, 0.0
    update()
    step()
    assert _values(model) == {"weight": [-2.0], "bias": [-1.5]}


def test_a_checkpoint_that_is_refused_leaves_the_rates_of_groups(backend: str, tmp_path: Any) -> None:
    def make(rate: float, metrics: Any = ()) -> Trainer:
        groups = [{"match": ".*bias", "learning_rate": rate}]
        return Trainer(Net(), optimizers.SGD(rate, groups=groups), metrics=metrics, progress=False)

    first, other = make(0.5), make(0.25, ["mean_absolute_error"])
    first.fit(ops.ones((4, 3)), ops.ones((4, 2)))
    first.save(tmp_path / "run")
    with pytest.raises(CheckpointError, match="metrics"):
        other.restore(tmp_path / "run")
    assert (other.optimizer.learning_rate, other.optimizer.groups[0]["learning_rate"]) == (0.25, 0.25)


def test_a_group_that_no_parameter_is_in_is_named(backend: str) -> None:
    groups = [{"match": ".*bias"}, {"match": "bais", "weight_decay": 0.0}, {"match": r"norm\..*"}]
    trainer = Trainer(Net().freeze("norm"), optimizers.SGD(0.1, groups=groups), progress=False)
    with pytest.warns(UserWarning, match=r"^groups\[1\] .* 'bais' matches none of first\.weight"):
        trainer.fit(ops.ones((4, 3)), ops.ones((4, 2)))
    trainer.fit(ops.ones((4, 3)), ops.ones((4, 2)), epochs=2)  # it is said once, and warnings are errors here


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"match": "x"}, "list of dicts"),
        ([{"weight_decay": 0.0}], "with a match"),
        ([{"match": "("}], "no regular expression"),
        ([{"match": 3}], "pattern, a module or a function"),
        ([{"match": "x", "beta3": 0.1}], "beta3"),
        ([{"match": "x", "max_norm": 0.1}], "all gradients together"),
        ([{"match": "x", "rate_factor": -1.0}], "from 0 up"),
        ([{"match": "x", "learning_rate": -1.0}], "from 0 up"),
        ([{"match": "x", "optimizer": 3}], "optimizer"),
        ([{"match": "x", "optimizer": optimizers.SGD(0.1, max_norm=1.0)}], "max_norm, which only the optimizer"),
        (
            [{"match": "x", "optimizer": optimizers.SGD(0.1, groups=[{"match": "y"}])}],
            "groups, which only the optimizer",
        ),
        ([{"match": "x", "frozen": "no"}], "True or False"),
        ([{"match": "x", "weight_decay": None}], r"weight_decay of groups\[0\] is a number from 0 up, not None"),
        ([{"match": "x", "beta2": 1.0}], "from 0 up and below 1"),
    ],
)
def test_wrong_groups_are_named(backend: str, groups: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        optimizers.Adam(groups=groups)


def test_an_optimizer_without_groups_reads_as_before(backend: str) -> None:
    assert "groups" not in repr(optimizers.SGD(0.1))
    assert "match" in repr(optimizers.SGD(0.1, groups=[{"match": ".*bias", "weight_decay": 0.0}]))
