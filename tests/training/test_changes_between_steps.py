"""A compiled step that is repeated does what the user changed since the last one, as steps on NumPy do."""

from __future__ import annotations

import copy
import gc
import math
import threading
from collections.abc import Callable
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.training import Trainer, losses, optimizers
from ember_ml.training.optimizers.base import Rate

pytestmark = pytest.mark.long_with("torch")  # a compilation takes seconds
Change = Callable[[Trainer], Any]
STEPS = 3
"""So many before the change and after it: from the second on a step is a repetition."""
WEIGHT = [[-1.0, -0.8, -0.6], [-0.4, -0.2, 0.0], [0.2, 0.4, 0.6], [0.8, 1.0, 0.5]]


class Net(nn.Module):
    """A perceptron, whose layers stand in a list, with a setting and a buffer."""

    def __init__(self) -> None:
        self.layers = [nn.Linear(3, 4), nn.Linear(4, 2)]
        self.factor = 1.0
        self.calls = nn.Buffer(ops.array(0.0))

    def forward(self, x: Any) -> Any:
        self.calls = ops.add(self.calls, 1.0)
        return self.layers[1](ops.tanh(ops.multiply(self.layers[0](x), self.factor)))


def make_trainer(is_compiled: bool) -> Trainer:
    ops.random.seed(0)
    return Trainer(Net(), optimizers.Adam(0.05), compile=is_compiled, progress=False)


def batch_of(rows: int = 4) -> tuple[Any, Any]:
    x = [[math.sin(7.0 * row + column + 1.0) for column in range(3)] for row in range(rows)]
    return ops.array(x), ops.array([[a * b, b - c] for a, b, c in x])


def assign(trainer: Trainer) -> None:
    trainer.model.layers[0].weight = ops.array(WEIGHT)


def change_part_of_the_state(trainer: Trainer) -> None:
    trainer.model.load_state_dict({**trainer.model.state_dict(), "layers.0.weight": ops.array(WEIGHT)})


def assign_inside_a_scope(trainer: Trainer) -> None:
    with ember_ml.use_backend("numpy"):
        trainer.model.layers[0].weight = ops.array(WEIGHT)


def read_inside_a_scope(trainer: Trainer) -> None:
    with ember_ml.use_backend("numpy"):
        assert ops.to_numpy(trainer.model.layers[0].weight).shape == (4, 3)


def step_inside_a_scope(trainer: Trainer) -> None:
    with ember_ml.use_backend("numpy"):
        trainer.step(batch_of())
    with ember_ml.use_backend(ember_ml.get_backend()):
        trainer.step(batch_of())
        trainer.step(batch_of())


def freeze(trainer: Trainer) -> None:
    trainer.model.layers[0].freeze()


def freeze_for_a_while(trainer: Trainer) -> None:
    trainer.model.layers[0].freeze()
    trainer.step(batch_of())
    trainer.step(batch_of())
    trainer.model.layers[0].unfreeze()


def set_rate(trainer: Trainer) -> None:
    trainer.optimizer.learning_rate = 0.5


def set_decay(trainer: Trainer) -> None:
    trainer.optimizer.weight_decay = 0.5  # pyright: ignore[reportAttributeAccessIssue]


def set_schedule(trainer: Trainer) -> None:
    trainer.optimizer.learning_rate = lambda step: 0.01 * (step + 1)


def set_step(trainer: Trainer) -> None:
    trainer.optimizer.step = 40


def set_factor(trainer: Trainer) -> None:
    trainer.model.factor = -2.0


def replace_layer(trainer: Trainer) -> None:
    trainer.model.layers[1] = nn.Linear(4, 2).load_state_dict({"weight": [[1.0] * 4] * 2, "bias": [0.0] * 2})


def switch_backend(trainer: Trainer) -> None:
    before = ember_ml.get_backend()
    ember_ml.set_backend("numpy")
    trainer.step(batch_of())
    ember_ml.set_backend(before)


def load_state(trainer: Trainer) -> None:
    model, optimizer = trainer.model.state_dict(), trainer.optimizer.state_dict()
    step = trainer.optimizer.step
    for _ in range(2):
        trainer.step(batch_of())
    trainer.model.load_state_dict(model)
    trainer.optimizer.load_state_dict(optimizer, step)


def other_shape(trainer: Trainer) -> None:
    trainer.step(batch_of(6))
    trainer.step(batch_of(6))


def fail(trainer: Trainer) -> None:
    with pytest.raises(Exception, match="5"):
        trainer.step((ops.ones((4, 5)), ops.ones((4, 2))))


def copy_trainer(trainer: Trainer) -> None:
    copy.deepcopy(trainer).step(batch_of())


def train_by_another(trainer: Trainer) -> None:
    other = Trainer(trainer.model, optimizers.SGD(0.1), compile=trainer.compile, progress=False)
    for _ in range(STEPS):
        other.step(batch_of())


def add_hook(trainer: Trainer) -> None:
    trainer.model.layers[0].register_forward_hook(lambda module, args, result: ops.multiply(result, 2.0))


def evaluate(trainer: Trainer) -> None:
    trainer.evaluate(*batch_of())


def read_in_a_thread(trainer: Trainer) -> None:
    thread = threading.Thread(target=lambda: ops.to_numpy(trainer.model.layers[0].weight))
    thread.start()
    thread.join()


CHANGES: list[Change] = [
    assign,
    change_part_of_the_state,
    assign_inside_a_scope,
    read_inside_a_scope,
    step_inside_a_scope,
    freeze,
    freeze_for_a_while,
    set_rate,
    set_decay,
    set_schedule,
    set_step,
    set_factor,
    replace_layer,
    switch_backend,
    load_state,
    other_shape,
    fail,
    copy_trainer,
    train_by_another,
    add_hook,
    evaluate,
    read_in_a_thread,
]


def run(change: Change, is_compiled: bool) -> list[float]:
    """Return the losses, and the state of model and optimizer, of steps before and after a change."""
    trainer = make_trainer(is_compiled)
    found = [trainer.step(batch_of()) for _ in range(STEPS)]
    change(trainer)
    found += [trainer.step(batch_of()) for _ in range(STEPS)]
    found += [*trainer.model.state_dict().values(), *trainer.optimizer.state_dict().values()]
    return [number for x in found for number in numbers(x)]


def numbers(x: Any) -> list[float]:
    return ops.to_numpy(x).ravel().tolist()


def close_to(expected: list[float]) -> Any:
    return pytest.approx(expected, rel=2e-4, abs=2e-5)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_counts_at_the_next_step(backend: str, change: Change) -> None:
    compare_with_numpy(change)


def compare_with_numpy(change: Change) -> None:
    """Compare compiled steps on the active backend with steps on NumPy, which becomes the active one."""
    found = run(change, True)
    ember_ml.set_backend("numpy")
    expected = run(change, False)
    assert found == close_to(expected)


def test_variables_are_right_after_each_step(backend: str) -> None:
    one, two = make_trainer(True), make_trainer(False)
    for _ in range(STEPS):
        one.step(batch_of())
        two.step(batch_of())
        pairs = zip(one.model.named_variables().values(), two.model.named_variables().values(), strict=True)
        for first, second in pairs:
            assert first.shape == second.shape
            assert first.dtype is second.dtype
            assert first.device == second.device
            assert numbers(first) == close_to(numbers(second))


def test_a_model_keeps_its_tensors_without_its_trainer(backend: str) -> None:
    trainer = make_trainer(True)
    model = trainer.model
    for _ in range(STEPS):
        trainer.step(batch_of())
    before = numbers(trainer.model(batch_of()[0]))
    trainer.step(batch_of())
    trainer.step(batch_of())
    del trainer
    gc.collect()
    assert numbers(model(batch_of()[0])) != close_to(before)


@pytest.mark.parametrize("rate", [0.05, pytest.param(lambda step: 0.05 / (step + 1), id="schedule")])
def test_many_steps_follow_the_scalars_of_each(backend: str, rate: Rate) -> None:
    results = []
    for is_compiled in (True, False):
        ops.random.seed(0)
        kind = optimizers.Adam(rate, beta1=0.5)
        trainer = Trainer(nn.Linear(3, 2), kind, losses.Huber(), compile=is_compiled, progress=False)
        for step in range(100):
            if step == 70 and type(rate) is float:
                kind.learning_rate = 0.02
            trainer.step(batch_of())
        assert kind.step == 100
        results.append(numbers(trainer.model.weight))
    assert results[0] == close_to(results[1])
