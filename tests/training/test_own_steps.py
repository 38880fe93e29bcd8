"""Steps of one's own: distillation, adversaries, validation within an epoch, gradients that callbacks see, loggers."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from ember_ml import nn, ops
from ember_ml.training import DataLoader, Trainer, callbacks, optimizers
from tests.reference import own_steps

SETTINGS: list[dict[str, Any]] = [{}, {"compile": True}, {"accumulate": 2}, {"precision": "bfloat16"}]


def data(rows: int = 24) -> tuple[Any, Any]:
    return ops.random_normal((rows, 4), seed=1), ops.random_normal((rows, 1), seed=2)


class Distillation(Trainer):
    """Learns half from the targets, half from a teacher."""

    def __init__(self, **settings: Any) -> None:
        ops.random.seed(0)
        super().__init__(nn.Linear(4, 1), optimizers.SGD(0.05), progress=False, **settings)
        self.teacher = nn.Linear(4, 1)

    def training_step(self, batch: Any) -> Any:
        loss, prediction = super().training_step(batch)
        taught = ops.mean(ops.square(ops.subtract(prediction, ops.stop_gradient(self.teacher(batch[0])))))
        return ops.multiply(ops.add(loss, taught), 0.5), prediction


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_step_of_ones_own_is_trained_as_by_hand(backend: str, settings: dict[str, Any]) -> None:
    trainer = Distillation(metrics=["mean_absolute_error"], **settings)
    x, y = data()
    model, teacher = ([ops.to_numpy(v.value).copy() for v in m.parameters()] for m in (trainer.model, trainer.teacher))
    wanted, w = own_steps.distil(
        ops.to_numpy(x), ops.to_numpy(y), model, teacher, 0.05, 8, settings.get("accumulate", 1)
    )
    history = trainer.fit(x, y, epochs=2, batch_size=8, shuffle=False)
    near: dict[str, Any] = {"rel": 0.03, "abs": 0.01} if "precision" in settings else {"rel": 1e-4}
    assert history["loss"] == pytest.approx(wanted, **near)
    assert ops.to_numpy(trainer.model.weight) == pytest.approx(w, **near)
    assert len(history["mean_absolute_error"]) == 2
    assert ops.to_numpy(trainer.teacher.weight).tolist() == teacher[0].tolist()


def test_a_teacher_that_changes_is_seen_by_the_compiled_step(backend: str) -> None:
    trainer = Distillation(compile=True)
    batch = data(8)
    first = ops.item(trainer.step(batch))
    trainer.teacher.load_state_dict({"weight": ops.full((1, 4), 9.0), "bias": ops.full((1,), 9.0)})
    assert ops.item(trainer.step(batch)) > first + 10


class Pair(nn.Module):
    def __init__(self) -> None:
        self.left, self.right = nn.Linear(4, 1, bias=False), nn.Linear(4, 1, bias=False)

    def forward(self, x: Any) -> Any:
        return self.left(x)


class Adversaries(Trainer):
    """One part makes the product of both small, the other one large."""

    parts = ("left", "right")

    def training_step(self, batch: Any, part: str = "") -> Any:
        value = ops.mean(ops.multiply(self.model.left(batch[0]), self.model.right(batch[0])))
        return value if part == "left" else ops.negative(value)


def make_adversaries(**settings: Any) -> Adversaries:
    ops.random.seed(0)
    model = Pair()
    groups = [{"match": model.right, "optimizer": optimizers.SGD(0.2)}]
    return Adversaries(model, optimizers.SGD(0.1, groups=groups), progress=False, **settings)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_each_part_follows_its_own_loss_and_optimizer(backend: str, settings: dict[str, Any]) -> None:
    trainer = make_adversaries(**settings)
    x = data(4)[0]
    left, right = (ops.to_numpy(v.value).copy() for v in trainer.model.parameters())
    count = settings.get("accumulate", 1)
    history = trainer.fit([(x,)] * (3 * count))
    values, right = own_steps.oppose(ops.to_numpy(x), left, right, (0.1, 0.2), 3)
    wanted = [value for value in values for _ in range(count)]
    near: dict[str, Any] = {"rel": 0.05, "abs": 0.02} if "precision" in settings else {"rel": 1e-4, "abs": 1e-5}
    assert history["left_loss"] == pytest.approx(wanted, **near)
    assert history["right_loss"] == pytest.approx([-value for value in wanted], **near)
    assert history["loss"] == pytest.approx([0.0] * len(wanted), abs=1e-5)
    assert ops.to_numpy(trainer.model.right.weight)[0] == pytest.approx(right, **near)
    assert history["left_loss"].epochs == pytest.approx([math.fsum(values) / 3], **near)
    assert trainer.optimizer.step == 3


def test_parts_go_on_from_a_checkpoint(backend: str, tmp_path: Path) -> None:
    x = data(8)[0]
    loader = DataLoader((x,), batch_size=2, shuffle=True)
    whole, part = make_adversaries(), make_adversaries()
    whole.fit(DataLoader((x,), batch_size=2, shuffle=True), epochs=2)
    part.fit(loader, epochs=2, max_steps=3)
    assert len(part.history["left_loss"]) == 3  # in the midst of an epoch
    part.save(tmp_path)
    again = make_adversaries().restore(tmp_path)
    again.fit(DataLoader((x,), batch_size=2, shuffle=True), epochs=2)
    for name in ("loss", "left_loss"):
        assert list(again.history[name]) == list(whole.history[name])
        assert again.history[name].epochs == whole.history[name].epochs


def test_a_parameter_of_no_part_is_an_error(backend: str) -> None:
    trainer = make_adversaries()
    trainer.model.extra = nn.Linear(4, 1)
    with pytest.raises(ValueError, match=r"extra\.weight belongs to none of the parts left, right"):
        trainer.step((data(4)[0],))


class Named(NamedTuple):
    inputs: Any
    targets: Any


class Fields(Trainer):
    """Takes batches that are named tuples, dicts, or a single tensor, in training and validation alike."""

    def __init__(self, **settings: Any) -> None:
        ops.random.seed(0)
        super().__init__(nn.Linear(4, 1), optimizers.SGD(0.05), progress=False, **settings)
        self.seen: list[Any] = []

    def training_step(self, batch: Any) -> Any:
        if isinstance(batch, Named):
            inputs, targets = batch.inputs, batch.targets
        elif isinstance(batch[0], dict):
            inputs, targets = batch[0]["inputs"], batch[0]["targets"]
            self.seen.append({name: x for name, x in batch[0].items() if not hasattr(x, "shape")})
        else:
            inputs, targets = batch[0], ops.sum(batch[0], axis=1, keepdims=True)
        return ops.mean(ops.square(ops.subtract(self.model(inputs), targets)))

    validation_step = training_step


@pytest.mark.parametrize("compiled", [False, True])
def test_batches_of_every_kind_come_to_training_and_validation(backend: str, compiled: bool) -> None:
    x = data(8)[0]
    y = ops.sum(x, axis=1, keepdims=True)
    halves = [(x[:4], y[:4]), (x[4:], y[4:])]
    rest = {"text": ["a", "b", "c", "d"], "name": "first", "mask": None}
    kinds: list[Any] = [
        [Named(*half) for half in halves],
        [{**rest, "inputs": inputs, "targets": targets} for inputs, targets in halves],
        DataLoader(Named(x, y), batch_size=4),
        DataLoader(x, batch_size=4),
    ]
    losses = []
    for given in kinds:
        trainer = Fields(compile=compiled)
        losses.append([*trainer.fit(given, epochs=2, validation=given)["loss"], *trainer.history["val_loss"]])
        assert all(found == rest for found in trainer.seen)
        assert trainer.evaluate(given)["loss"] == pytest.approx(losses[-1][-1], rel=1e-5)
    assert losses == [pytest.approx(losses[0], rel=1e-5)] * len(kinds)


@pytest.mark.parametrize(
    ("found", "message"),
    [(None, "not NoneType"), ({"loss": 1.0}, "not dict"), ((1.0, 2.0, 3.0), "not 3 values")],
    ids=str,
)
def test_what_a_step_must_return_is_said(backend: str, found: Any, message: str) -> None:
    class Wrong(Trainer):
        def training_step(self, batch: Any) -> Any:
            return found

        def validation_step(self, batch: Any) -> Any:
            return found

    trainer = Wrong(nn.Linear(4, 1), progress=False)
    for method, name in ((trainer.fit, "training_step"), (trainer.evaluate, "validation_step")):
        with pytest.raises(TypeError, match=f"{name} returns the loss, or a tuple of the loss .*, {message}"):
            method(*data())


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("left", "rihgt"), "no module 'rihgt', which parts names; it has left, right"),
        ("left", r"parts is a tuple of names: \('left',\)"),
        (("left", "right.weight"), "no module 'right.weight'"),
    ],
)
def test_parts_that_are_no_modules_are_named(backend: str, names: Any, message: str) -> None:
    class Wrong(Adversaries):
        parts = names

    with pytest.raises((TypeError, ValueError), match=message):
        Wrong(Pair(), progress=False)


def test_parts_need_losses_of_their_own(backend: str) -> None:
    class Wrong(Trainer):
        parts = ("left", "right")

    with pytest.raises(ValueError, match=r"define training_step\(batch, part\)"):
        Wrong(Pair(), progress=False)


def test_metrics_need_predictions(backend: str) -> None:
    class Alone(Trainer):
        def training_step(self, batch: Any) -> Any:
            return ops.mean(self.model(batch[0]))

    trainer = Alone(nn.Linear(4, 1), metrics=["mean_absolute_error"], progress=False)
    with pytest.raises(ValueError, match="return both, the loss and the predictions"):
        trainer.fit(*data())


def test_validation_every_so_many_steps_and_of_several_sets(backend: str, tmp_path: Path) -> None:
    seen: list[tuple[int, set[str]]] = []

    class See(callbacks.Callback):
        def after_validation(self, trainer: Trainer, values: dict[str, Any]) -> None:
            seen.append((trainer.steps, set(values)))

    x, y = data(24)
    log = tmp_path / "log.jsonl"
    trainer = Trainer(
        nn.Linear(4, 1),
        optimizers.SGD(0.05),
        metrics=["mean_absolute_error"],
        callbacks=[See(), callbacks.JSONLog(log, every_steps=5), callbacks.EarlyStopping("test_loss", patience=9)],
        progress=False,
    )
    sets = {"val": (x[:8], y[:8]), "test": [(x[8:], y[8:])]}
    history = trainer.fit(x, y, epochs=2, batch_size=4, validation=sets, validate_every=2)
    names = {"val_loss", "val_mean_absolute_error", "test_loss", "test_mean_absolute_error"}
    assert seen == [(steps, names) for steps in (2, 4, 8, 10)]
    assert len(history["val_loss"]) == 6
    assert len(history["test_loss"].epochs) == 2
    assert history["test_loss"][-1] == pytest.approx(trainer.evaluate(x[8:], y[8:])["loss"], rel=1e-5)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["steps"] for line in lines] == [2, 4, 5, 6, 8, 10, 10, 12]
    with pytest.raises(ValueError, match="watches 'tst_loss', and an epoch gives loss"):
        Trainer(trainer.model, callbacks=[callbacks.EarlyStopping("tst_loss")], progress=False).fit(
            x, y, validation=sets
        )
    for wrong in (0, 1.5):
        with pytest.raises(ValueError, match="validate_every is a number of steps"):
            trainer.fit(x, y, validate_every=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("settings", [{}, {"precision": "float16"}], ids=str)
def test_callbacks_see_the_gradients_and_their_norms(backend: str, tmp_path: Path, settings: dict[str, Any]) -> None:
    x, y = data(8)
    norms = callbacks.GradientNorms(every=2, by_name=True)
    log = tmp_path / "log.jsonl"
    trainer = Trainer(
        nn.Linear(4, 1),
        optimizers.SGD(0.05, max_norm=0.01),
        callbacks=[norms, callbacks.JSONLog(log, every_steps=1)],
        progress=False,
        **settings,
    )
    start = [ops.to_numpy(v.value).copy() for v in trainer.model.parameters()]
    wanted = own_steps.find_norms(ops.to_numpy(x), ops.to_numpy(y), *start)
    trainer.fit(x, y, epochs=3, batch_size=8)
    assert sorted(norms.norms) == [0, 2]
    near = 0.02 if "precision" in settings else 1e-4
    found = norms.norms[0]
    assert found["gradient_norm/weight"] == pytest.approx(wanted[0], rel=near)
    assert found["gradient_norm"] == pytest.approx(math.hypot(*wanted), rel=near)
    first = json.loads(log.read_text().splitlines()[0])
    assert first["gradient_norm"] == found["gradient_norm"]


def test_norms_of_the_gradients_by_layer(backend: str) -> None:
    x, y = data(8)
    model = nn.Sequential(nn.Linear(4, 3), nn.Sequential(ops.tanh, nn.Linear(3, 1)))
    _, gradients = nn.value_and_grad(model, lambda x: ops.mean(ops.square(ops.subtract(model(x), y))))(x)
    read = {name: ops.to_numpy(g).ravel().tolist() for name, g in gradients.items()}
    layers = {path: [*read[f"{path}.weight"], *read[f"{path}.bias"]] for path in ("0", "1.1")}
    wanted = {f"gradient_norm/{path}": math.hypot(*numbers) for path, numbers in layers.items()}
    norms = callbacks.GradientNorms(by_layer=True)
    Trainer(model, "sgd", callbacks=[norms], progress=False).fit(x, y, batch_size=8, shuffle=False)
    assert norms.norms[0] == pytest.approx({"gradient_norm": math.hypot(*wanted.values()), **wanted}, rel=1e-4)


def test_norms_are_of_the_same_updates_where_a_run_goes_on(backend: str, tmp_path: Path) -> None:
    def make() -> tuple[Trainer, callbacks.GradientNorms]:
        ops.random.seed(0)
        norms = callbacks.GradientNorms(every=3)
        return Trainer(nn.Linear(4, 1), optimizers.SGD(0.05), callbacks=[norms], progress=False), norms

    x, y = data(8)
    (whole, wanted), (first, begun), (again, found) = make(), make(), make()
    whole.fit(x, y, epochs=8, batch_size=8)
    first.fit(x, y, epochs=4, batch_size=8)
    first.save(tmp_path)
    again.restore(tmp_path).fit(x, y, epochs=8, batch_size=8)
    assert sorted(found.norms) == [6]
    assert begun.norms | found.norms == pytest.approx(wanted.norms, rel=1e-5)


def test_tensorboard_reads_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    x, y = data(8)
    log = callbacks.TensorBoard(tmp_path, every_steps=1)
    trainer = Trainer(nn.Linear(4, 1), optimizers.SGD(0.05), callbacks=[log], progress=False)
    trainer.fit(x, y, epochs=2, batch_size=4, validation=(x, y))
    read = EventAccumulator(str(tmp_path))
    read.Reload()
    assert {"loss", "rate", "val_loss"} <= set(read.Tags()["scalars"])
    assert [event.step for event in read.Scalars("val_loss")] == [2, 4]
    by_step = [event.value for event in read.Scalars("loss") if event.step in (1, 3)]
    assert by_step == pytest.approx([trainer.history["loss"][0], trainer.history["loss"][2]])


def test_loggers_name_the_package_that_they_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tensorboard", "tensorboard.compat.proto.event_pb2", "mlflow", "wandb"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="TensorBoard needs the package tensorboard: pip install tensorboard"):
        callbacks.TensorBoard(tmp_path)
    with pytest.raises(ImportError, match="MLflow needs the package mlflow"):
        callbacks.MLflow()
    with pytest.raises(ImportError, match="WandB needs the package wandb"):
        callbacks.WandB()


def test_mlflow_and_wandb_get_every_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """By stand-ins with the functions of those packages that are called."""
    calls: list[tuple[str, Any]] = []
    flow = SimpleNamespace(
        active_run=lambda: None,
        start_run=lambda **settings: calls.append(("start", settings)) or "the run",
        log_metrics=lambda values, step: calls.append(("mlflow", (step, values))),
        end_run=lambda: calls.append(("end", None)),
    )
    run = SimpleNamespace(
        log=lambda values, step: calls.append(("wandb", (step, values))), finish=lambda: calls.append(("finish", None))
    )
    wandb = SimpleNamespace(run=None, init=lambda **settings: calls.append(("init", settings)) or run)
    monkeypatch.setitem(sys.modules, "mlflow", flow)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    loggers = [callbacks.MLflow(run_name="a"), callbacks.WandB(every_steps=1, project="b")]
    x, y = data(8)
    trainer = Trainer(nn.Linear(4, 1), "sgd", callbacks=loggers, progress=False)
    history = trainer.fit(x, y, batch_size=4, validation=(x, y))
    assert calls[:2] == [("start", {"run_name": "a"}), ("init", {"project": "b"})]
    assert calls[-2:] == [("finish", None), ("end", None)]
    (step, values), *_ = [found for name, found in calls if name == "mlflow"]
    assert (step, values["epoch"], values["val_loss"]) == (2, 1, history["val_loss"][0])
    assert [found[0] for name, found in calls if name == "wandb"] == [1, 2, 2]
