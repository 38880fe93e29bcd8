"""Callbacks that change rates, average weights and write logs."""

from __future__ import annotations

import csv
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from ember_ml import nn, ops
from ember_ml.training import Trainer, callbacks, optimizers, schedules


def _make(*used: callbacks.Callback, rate: Any = 0.1, groups: Any = ()) -> Trainer:
    ops.random.seed(0)
    optimizer = optimizers.SGD(rate, groups=groups)
    return Trainer(nn.Linear(2, 1), optimizer, callbacks=list(used), progress=False)


def _data() -> tuple[Any, Any]:
    rng = random.Random(0)
    x = ops.array([[rng.gauss(), rng.gauss()] for _ in range(12)])
    return x, ops.sum(x, axis=1, keepdims=True)


def _weight(trainer: Trainer) -> list[float]:
    return ops.to_numpy(trainer.model.weight).ravel().tolist()


class _Recorder(callbacks.Callback):
    """Keeps the parameters after each step."""

    def __init__(self) -> None:
        self.weights: list[list[float]] = []

    def after_step(self, trainer: Trainer) -> None:
        self.weights.append(_weight(trainer))


class _Script(callbacks.Callback):
    """Gives an epoch the values of a list."""

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def after_epoch(self, trainer: Trainer, values: dict[str, Any]) -> None:
        values["score"] = self.values[trainer.epoch - 1]


def test_the_rate_is_reduced_after_epochs_without_improvement(backend: str) -> None:
    seen: list[float] = []
    reduce = callbacks.ReduceRateOnPlateau("score", factor=0.5, patience=2, cooldown=1, mode="max", smallest_rate=0.02)
    scores = [1.0, 2.0, 2.0, 1.5, 1.0, 1.0, 1.0, math.nan, 3.0, 0.0, 0.0, 0.0]
    follow = callbacks.OnEpoch(lambda trainer, _: seen.append(trainer.optimizer.learning_rate))
    groups = [{"match": "bias", "learning_rate": 1.0}]
    trainer = _make(_Script(scores), reduce, follow, groups=groups)
    trainer.fit(*_data(), epochs=len(scores), batch_size=6)
    assert seen == pytest.approx([0.1] * 3 + [0.05] * 3 + [0.025] * 4 + [0.02] * 2)
    assert trainer.optimizer.groups[0]["learning_rate"] == pytest.approx(0.125)


def test_the_rate_of_a_groups_own_optimizer_is_reduced_and_restored(backend: str, tmp_path: Path) -> None:
    def make() -> Trainer:
        reduce = callbacks.ReduceRateOnPlateau("loss", factor=0.5, patience=1, smallest_change=1e9, smallest_rate=0.2)
        groups = [
            {"match": "bias", "optimizer": optimizers.SGD(0.8)},
            {"match": "weight", "learning_rate": 0.01},  # below the smallest, which it must not be raised to
            {"match": "weight", "optimizer": optimizers.SGD(schedules.Constant(0.3))},
        ]
        return _make(reduce, groups=groups)

    first, again = make(), make()
    first.fit(*_data(), epochs=2)
    first.save(tmp_path / "run")
    again.restore(tmp_path / "run")
    for trainer in (first, again):
        assert [group.get("learning_rate") for group in trainer.optimizer.groups] == [0.4, 0.01, None]
    again.fit(*_data(), epochs=4)
    assert again.optimizer.groups[0]["learning_rate"] == 0.2


def test_a_plateau_goes_on_after_a_checkpoint(backend: str, tmp_path: Path) -> None:
    def make() -> Trainer:
        return _make(callbacks.ReduceRateOnPlateau("loss", patience=2, smallest_change=1e9))

    first, again = make(), make()
    first.fit(*_data(), epochs=2)
    first.save(tmp_path / "run")
    again.restore(tmp_path / "run").fit(*_data(), epochs=3)
    assert again.optimizer.learning_rate == pytest.approx(0.01)


def test_a_schedule_is_not_reduced(backend: str) -> None:
    with pytest.raises(TypeError, match="decides for itself"):
        _make(callbacks.ReduceRateOnPlateau("loss"), rate=schedules.Constant(0.1)).fit(*_data())
    with pytest.raises(ValueError, match="los"):
        _make(callbacks.ReduceRateOnPlateau("los")).fit(*_data())


@pytest.mark.parametrize(("decay", "start"), [(0.9, 0), (0.5, 2), (None, 0), (None, 1)])
def test_weights_are_averaged_over_the_steps(backend: str, decay: float | None, start: int) -> None:
    recorder, average = _Recorder(), callbacks.WeightAverage(decay, start=start)
    trainer = _make(recorder, average)
    trainer.fit(*_data(), epochs=2, batch_size=4)
    counted = recorder.weights[start:]
    wanted = counted[0]
    for place, value in enumerate(counted[1:], start=2):
        part = 1.0 / place if decay is None else 1.0 - decay
        wanted = [old + part * (new - old) for old, new in zip(wanted, value, strict=True)]
    assert ops.to_numpy(average.averages()["weight"]).ravel().tolist() == pytest.approx(wanted, rel=1e-5)
    assert average.count == len(counted)
    before = _weight(trainer)
    with average.applied(trainer.model):
        assert _weight(trainer) == pytest.approx(wanted, rel=1e-5)
    assert _weight(trainer) == before


def test_averages_of_epochs_replace_the_weights_and_are_in_checkpoints(backend: str, tmp_path: Path) -> None:
    def make() -> tuple[Trainer, _Recorder]:
        recorder = _Recorder()
        return _make(recorder, callbacks.WeightAverage(None, every_steps=None, replace=True)), recorder

    whole, recorder = make()
    whole.fit(*_data(), epochs=4, batch_size=4)
    columns = zip(*[recorder.weights[k] for k in (2, 5, 8, 11)], strict=True)
    assert _weight(whole) == pytest.approx([sum(column) / 4 for column in columns], rel=1e-5)
    first, _ = make()
    first.callbacks[1].replace = False  # type: ignore[attr-defined]  # the run is interrupted, not ended
    first.fit(*_data(), epochs=2, batch_size=4)
    first.save(tmp_path / "run")
    again, _ = make()
    again.restore(tmp_path / "run").fit(*_data(), epochs=4, batch_size=4)
    assert _weight(again) == pytest.approx(_weight(whole), rel=1e-6)


def test_json_lines_hold_every_value(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    trainer = _make(_Script([1.0, math.inf]), callbacks.JSONLog(path, every_steps=2))
    trainer.fit(*_data(), epochs=2, batch_size=4, validation=_data())
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["steps"] for row in rows] == [2, 3, 4, 6, 6]
    epochs = [row for row in rows if "epoch" in row]
    assert [row["score"] for row in epochs] == [1.0, None]
    assert epochs[-1]["val_loss"] == trainer.history["val_loss"][-1]
    assert rows[0] == {"steps": 2, "loss": trainer.history["loss"][1], "rate": 0.1}


def test_lines_of_a_table_have_the_same_columns(backend: str, tmp_path: Path) -> None:
    x, y = _data()
    path = tmp_path / "log.csv"
    for epochs, validation in ((1, None), (2, (x, y)), (3, None)):
        made = _make(callbacks.CSVLog(path))
        made.epoch = epochs - 1  # another program that continues the file
        made.fit(x, y, epochs=epochs, batch_size=6, validation=validation)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    assert [list(row) for row in rows] == [["epoch", "steps", "loss", "val_loss"]] * 3
    assert [bool(row["val_loss"]) for row in rows] == [False, True, False]
    assert [child.name for child in tmp_path.iterdir()] == ["log.csv"]


@pytest.mark.parametrize("stop", [1, 3, 4, 6, 50])
def test_training_ends_after_so_many_steps_and_goes_on(backend: str, stop: int) -> None:
    whole, parts = _make(), _make()
    whole.fit(*_data(), epochs=3, batch_size=4, validation=_data())
    parts.fit(*_data(), epochs=3, batch_size=4, max_steps=stop, validation=_data())
    assert (parts.steps, parts.epoch) == (min(stop, 9), min(stop // 3, 3))
    parts.fit(*_data(), epochs=3, batch_size=4, validation=_data())
    for name in ("loss", "val_loss"):  # MLX 0.32: equal programs differ in the last bit now and then
        assert list(parts.history[name]) == pytest.approx(list(whole.history[name]), rel=1e-6)
        assert parts.history[name].epochs == pytest.approx(whole.history[name].epochs, rel=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: callbacks.WeightAverage(1.0), "below 1"),
        (lambda: callbacks.WeightAverage(0.9, every_steps=0), "at least 1"),
        (lambda: callbacks.ReduceRateOnPlateau(factor=2.0), "between 0 and 1"),
        (lambda: callbacks.ReduceRateOnPlateau(mode="up"), "min or max"),
        (lambda: callbacks.JSONLog("x", every_steps=0), "at least 1"),
        (lambda: callbacks.WeightAverage().averages(), "no averages yet"),
        (lambda: callbacks.EarlyStopping(patience="3"), "patience is a whole number from 0 up, not '3'"),  # type: ignore[arg-type]
        (lambda: callbacks.ReduceRateOnPlateau(patience=0), "patience is a whole number from 1 up"),
        (lambda: callbacks.StopOnNaN(every=0), "every is a whole number from 1 up"),
        (lambda: callbacks.GradientNorms(every=0), "every is a whole number from 1 up"),
    ],
)
def test_wrong_settings_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "make",
    [callbacks.EarlyStopping, callbacks.ReduceRateOnPlateau, lambda name: callbacks.Checkpoint("run", monitor=name)],
)
def test_a_matrix_cannot_be_monitored(make: Any) -> None:
    with pytest.raises(TypeError, match=r"watches 'confusion_matrix', which is no number: \[\[2"):
        make("confusion_matrix").after_epoch(None, {"confusion_matrix": [[2.0, 0.0], [1.0, 1.0]]})
