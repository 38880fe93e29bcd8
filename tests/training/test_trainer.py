"""The trainer: the same run on every backend, across switches, from checkpoints, with callbacks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import installed_backends
from ember_ml.distributed.strategy import Strategy
from ember_ml.training import DataLoader, Trainer, callbacks, optimizers
from ember_ml.transforms.captured_variables import find_holders


def data() -> tuple[Any, Any]:
    x = ops.random_normal((48, 5), seed=1)
    return x, ops.argmax(ops.matmul(x, ops.random_normal((5, 3), seed=2)), axis=-1)


def classifier(dropout: float = 0.0) -> nn.Sequential:
    ops.random.seed(4)
    return nn.Sequential(nn.Linear(5, 8), ops.tanh, nn.Dropout(dropout), nn.Linear(8, 3))


def trainer(dropout: float = 0.0, **settings: Any) -> Trainer:
    return Trainer(
        classifier(dropout), optimizers.Adam(0.02), "sparse_categorical_crossentropy", progress=False, **settings
    )


def weights(model: nn.Module) -> dict[str, Any]:
    return {name: ops.to_numpy(x).tolist() for name, x in model.state_dict().items()}


def test_one_run_on_every_backend(backend: str) -> None:
    found = trainer().fit(*data(), epochs=3, batch_size=8)
    ember_ml.set_backend("numpy")
    wanted = trainer().fit(*data(), epochs=3, batch_size=8)
    assert len(found["loss"]) == 18
    assert found["loss"] == pytest.approx(wanted["loss"], rel=1e-5)
    assert wanted["loss"].epochs[-1] < wanted["loss"].epochs[0] / 1.3


def test_epochs_are_means_of_their_steps(backend: str) -> None:
    x, y = data()
    history = trainer().fit(x[:20], y[:20], epochs=2, batch_size=8)
    steps = history["loss"][:3]
    assert history["loss"].epochs[0] == pytest.approx((8 * steps[0] + 8 * steps[1] + 4 * steps[2]) / 20)
    assert len(history.times) == 2


def test_the_backend_changes_in_the_midst_of_a_run() -> None:
    class Switch(callbacks.Callback):
        def after_step(self, trainer: Trainer) -> None:
            ember_ml.set_backend(installed_backends()[trainer.steps // 4 % len(installed_backends())])

    ember_ml.set_backend("numpy")
    wanted = trainer().fit(*data(), epochs=3, batch_size=8)
    found = trainer(callbacks=[Switch()]).fit(*data(), epochs=3, batch_size=8)
    ember_ml.set_backend("numpy")
    assert list(found["loss"]) == pytest.approx(wanted["loss"], rel=1e-5)
    assert len(found.switches) == (5 if len(installed_backends()) > 1 else 1)


def test_validation_evaluation_and_prediction(backend: str) -> None:
    x, y = data()
    made = trainer(dropout=0.5)
    history = made.fit(x, y, epochs=2, batch_size=16, validation=(x, y))
    value = made.evaluate(x, y)["loss"]
    assert history["val_loss"][-1] == pytest.approx(value, rel=1e-6)
    assert made.model.training
    logits = made.predict(x, batch_size=10)
    assert ops.shape(logits) == (48, 3)
    assert value == pytest.approx(ops.item(made.loss(y, logits)), rel=1e-5)


def test_metrics_of_training_and_validation(backend: str, tmp_path: Path) -> None:
    x, y = data()
    made = trainer(metrics=["accuracy"])
    history = made.fit(x, y, epochs=8, batch_size=16, validation=(x, y))
    hits = ops.to_numpy(ops.equal(ops.argmax(made.predict(x), axis=-1), y)).tolist()
    assert history["val_accuracy"][-1] == pytest.approx(sum(hits) / 48)
    assert history["accuracy"][-1] > history["accuracy"][0]
    assert made.evaluate(x, y)["accuracy"] == history["val_accuracy"][-1]
    made.save(tmp_path / "run")
    assert Trainer.load(tmp_path / "run").fit(x, y, epochs=9)["accuracy"][-1] > 0.5


def test_a_list_of_batches_is_evaluated_as_it_is_trained_on(backend: str) -> None:
    x, y = data()
    made, batches = trainer(), [(x[i : i + 16], y[i : i + 16]) for i in range(0, 48, 16)]
    assert made.evaluate(batches) == pytest.approx(made.evaluate((x, y), batch_size=16))
    assert len(made.fit(batches, validation=batches)["val_loss"]) == 1


def test_single_steps(backend: str) -> None:
    x, y = data()
    made = trainer()
    losses = [ops.item(made.step((x, y))) for _ in range(5)]
    assert losses == sorted(losses, reverse=True)
    assert (made.steps, list(made.history["loss"])) == (5, losses)


def test_a_step_trains_whatever_the_modes_were(backend: str) -> None:
    made, batch = trainer(dropout=0.5), data()
    made.step(batch)
    for part in (made.model, made.model[2]):
        part.eval()
        made.step(batch)
        assert all(module.training for _, module in made.model.named_modules())


def test_weights_of_samples(backend: str) -> None:
    x, y = data()
    half = ops.cast(ops.less(ops.arange(48), 24), "float32")
    whole = trainer().fit(x[:24], y[:24], batch_size=24, shuffle=False)
    found = trainer().fit(x, y, weight=half, batch_size=48, shuffle=False)
    assert found["loss"] == pytest.approx(whole["loss"], rel=1e-5)


def test_accumulated_batches_are_one_batch(backend: str) -> None:
    x, y = data()
    whole, parts = trainer(), trainer(accumulate=4)
    whole.fit(x, y, batch_size=32, shuffle=False)
    parts.fit(x[:32], y[:32], batch_size=8, shuffle=False)
    assert (whole.optimizer.step, parts.optimizer.step) == (2, 1)
    first = trainer()
    first.fit(x[:32], y[:32], batch_size=32, shuffle=False)
    assert ops.to_numpy(parts.model[0].weight) == pytest.approx(ops.to_numpy(first.model[0].weight), abs=1e-5)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_mixed_precision_keeps_float32_parameters(backend: str, precision: str) -> None:
    wanted = trainer().fit(*data(), epochs=3, batch_size=8)
    made = trainer(precision=precision)
    found = made.fit(*data(), epochs=3, batch_size=8)
    assert {x.dtype.name for x in made.model.parameters()} == {"float32"}
    assert found["loss"].epochs == pytest.approx(wanted["loss"].epochs, rel=0.02)
    assert list(found["loss"]) != list(wanted["loss"])


def test_overflow_in_float16_leaves_the_batch_out_and_halves_the_scale(backend: str) -> None:
    made = trainer(precision="float16")
    x, y = data()
    assert made.precision is not None
    made.precision.scale = 2.0**40
    before = weights(made.model)
    made.step((x, y))
    assert (made.precision.scale, weights(made.model)) == (2.0**39, before)
    made.precision.scale = 2.0**10
    made.step((x, y))
    assert weights(made.model) != before


@pytest.mark.parametrize("stop", [3, 6, 7, 12])
def test_a_run_goes_on_from_a_checkpoint_to_the_last_bit(backend: str, tmp_path: Path, stop: int) -> None:
    class Stop(callbacks.Callback):
        def after_step(self, trainer: Trainer) -> None:
            if trainer.steps == stop:
                trainer.save(tmp_path / "run")
                trainer.should_stop = True

    whole = trainer(dropout=0.3)
    whole.fit(*data(), epochs=3, batch_size=8)
    trainer(dropout=0.3, callbacks=[Stop()]).fit(*data(), epochs=3, batch_size=8)
    ops.random.seed(99)  # another process knows nothing
    made = trainer(dropout=0.3).restore(tmp_path / "run")
    assert made.steps == stop
    history = made.fit(*data(), epochs=3, batch_size=8)
    assert weights(made.model) == weights(whole.model)
    assert list(history["loss"]) == list(whole.history["loss"])
    assert history["loss"].epochs == whole.history["loss"].epochs


def test_a_checkpoint_opens_on_every_backend(backend: str, tmp_path: Path) -> None:
    made = trainer()
    made.fit(*data(), epochs=1, batch_size=8)
    made.save(tmp_path / "run")
    for name in installed_backends():
        ember_ml.set_backend(name)
        again = trainer().restore(tmp_path / "run")
        assert weights(again.model) == weights(made.model)
        assert again.fit(*data(), epochs=2, batch_size=8)["loss"].epochs[1] < made.history["loss"].epochs[0]
    ember_ml.set_backend(backend)


def test_a_trainer_is_built_from_its_checkpoint(backend: str, tmp_path: Path) -> None:
    ops.random.seed(4)
    model = nn.Sequential(nn.Linear(5, 8), ops.relu, nn.modules.activations.Tanh(), nn.Linear(8, 3))
    made = Trainer(model, optimizers.Adam(0.02), "sparse_categorical_crossentropy", progress=False)
    made.fit(*data(), epochs=1, batch_size=8)
    made.save(tmp_path / "run")
    again = Trainer.load(tmp_path / "run")
    assert weights(again.model) == weights(made.model)
    assert repr(again.optimizer) == repr(made.optimizer)
    made.fit(*data(), epochs=2, batch_size=8)
    again.fit(*data(), epochs=2, batch_size=8)
    assert weights(again.model) == weights(made.model)


class Custom(nn.Module):
    def __init__(self) -> None:
        self.layer = nn.Linear(5, 3)

    def forward(self, x: Any) -> Any:
        return self.layer(x)


def test_a_model_without_a_registered_name_must_be_given(backend: str, tmp_path: Path) -> None:
    made = Trainer(Custom(), "sgd", "sparse_categorical_crossentropy", progress=False)
    made.fit(*data())
    made.save(tmp_path / "run")
    with pytest.raises(ember_ml.errors.CheckpointError, match=r"pass model="):
        Trainer.load(tmp_path / "run")
    assert weights(Trainer.load(tmp_path / "run", model=Custom()).model) == weights(made.model)


def test_saving_again_replaces_and_cleans(backend: str, tmp_path: Path) -> None:
    made = trainer(callbacks=[callbacks.Checkpoint(tmp_path / "run", every_steps=2, keep=1)])
    made.fit(*data(), epochs=2, batch_size=8)
    assert len(list((tmp_path / "run").iterdir())) == 4
    made.save(tmp_path / "run")
    assert sorted(file.name for file in (tmp_path / "run").iterdir()) == [
        "history-12.safetensors", "model-12.safetensors", "optimizer-12.safetensors", "state.json",
    ]  # fmt: skip


def test_resuming_by_a_callback(backend: str, tmp_path: Path) -> None:
    def run(epochs: int) -> Trainer:
        made = trainer(callbacks=[callbacks.Checkpoint(tmp_path / "run", resume=True)])
        made.fit(*data(), epochs=epochs, batch_size=8)
        return made

    run(1)
    found, whole = run(3), trainer()
    whole.fit(*data(), epochs=3, batch_size=8)
    assert weights(found.model) == weights(whole.model)


class Turned(nn.Module):
    """A product with a weight that is read turned around: its order in memory shows in the last bits."""

    def __init__(self) -> None:
        self.weight = nn.Parameter(ops.random_normal((100, 1000), seed=3))

    def forward(self, x: Any) -> Any:
        return ops.matmul(x, ops.transpose(self.weight))


def test_resuming_ends_in_the_same_bits_whatever_the_gradients_look_like_in_memory(
    backend: str, tmp_path: Path
) -> None:
    x, y = ops.random_normal((6, 1000), seed=1), ops.random_normal((6, 100), seed=2)

    def run(epochs: int, *saving: callbacks.Callback) -> Trainer:
        made = Trainer(Turned(), optimizers.SGD(1e-3), "mean_squared_error", callbacks=list(saving), progress=False)
        made.fit(x, y, epochs=epochs, batch_size=1)
        return made

    run(1, callbacks.Checkpoint(tmp_path / "run"))
    found = run(3, callbacks.Checkpoint(tmp_path / "run", resume=True))
    assert weights(found.model) == weights(run(3).model)


@pytest.mark.parametrize("dtype", ["float64", "float16"])
@pytest.mark.parametrize("optimizer", ["adafactor", "muon"])
def test_optimizers_of_matrices_resume_in_the_dtype_of_the_parameters(
    optimizer: str, dtype: str, backend: str, tmp_path: Path
) -> None:
    def run(*saving: callbacks.Callback, epochs: int = 2) -> Trainer:
        ops.random.seed(1)
        made = Trainer(
            nn.Linear(4, 3, dtype=dtype), optimizer, "mean_squared_error", callbacks=list(saving), progress=False
        )
        x, y = ops.random_normal((8, 4), dtype=dtype, seed=2), ops.random_normal((8, 3), dtype=dtype, seed=3)
        made.fit(x, y, epochs=epochs, batch_size=4)
        return made

    run(callbacks.Checkpoint(tmp_path / "run"), epochs=1)
    found, whole = run(callbacks.Checkpoint(tmp_path / "run", resume=True)), run()
    assert found.steps == whole.steps == 4
    assert weights(found.model) == weights(whole.model)


def test_early_stopping(backend: str) -> None:
    x, y = data()
    stopping = callbacks.EarlyStopping("loss", patience=2, smallest_change=10.0, restore_best=True)
    made = trainer(callbacks=[stopping])
    history = made.fit(x, y, epochs=50, batch_size=16)
    assert len(history["loss"].epochs) == 3
    with pytest.raises(ValueError, match="EarlyStopping watches 'val_loss'"):
        trainer(callbacks=[callbacks.EarlyStopping()]).fit(x, y)


def test_a_loss_that_is_no_number_is_noticed(backend: str) -> None:
    x, y = data()
    made = trainer(callbacks=[callbacks.StopOnNaN(every=1)])
    with pytest.raises(FloatingPointError, match="the loss of step 1 is nan"):
        made.fit(ops.multiply(x, math.nan), y)


def test_loaders_iterables_and_progress(backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = data()
    one = trainer().fit(DataLoader((x, y), batch_size=8))
    two = trainer().fit([(x[i : i + 8], y[i : i + 8]) for i in range(0, 48, 8)])
    assert one["loss"] == pytest.approx(two["loss"])
    made = Trainer(classifier(), "adam", "sparse_categorical_crossentropy", progress=True)
    made.callbacks.append(callbacks.CSVLog(tmp_path / "log.csv"))
    made.fit(x, y, epochs=2)
    assert "epoch 2" in capsys.readouterr().err
    assert (tmp_path / "log.csv").read_text().splitlines()[0] == "epoch,steps,loss"


def test_mistakes_are_named(backend: str) -> None:
    x, _ = data()
    with pytest.raises(TypeError, match="a Trainer takes a module"):
        Trainer(lambda x: x)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="metrics is a list"):
        trainer(metrics="accuracy")
    with pytest.raises(ValueError, match="a batch is a tuple of inputs and targets"):
        trainer().step(x)
    with pytest.raises(ember_ml.errors.CheckpointError, match="holds no checkpoint"):
        trainer().restore("/nowhere/at/all")
    with pytest.raises(ValueError, match="the data have no rows"):
        trainer().predict(x[:0])


def test_a_compiled_loss_takes_no_tensors_of_the_optimizer() -> None:
    step = trainer(compile=True)._step
    assert find_holders(step.objective.loss_of) == [step.model]


class Scaled(nn.Module):
    """A loss with a tensor of its own."""

    def __init__(self) -> None:
        self.scale = nn.Buffer(ops.ones(()))

    def forward(self, target: Any, prediction: Any) -> Any:
        return ops.multiply(ops.mean(ops.square(ops.subtract(target, prediction))), self.scale)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_loss_may_hold_tensors(backend: str, compiled: bool) -> None:
    loss = Scaled()
    made = Trainer(nn.Linear(2, 1), optimizers.SGD(1e-30), loss, compile=compiled, progress=False)
    batch = ops.ones((4, 2)), ops.zeros((4, 1))
    before = [ops.item(made.step(batch)) for _ in range(2)]
    loss.scale = ops.asarray(10.0)
    assert ops.item(made.step(batch)) == pytest.approx(10.0 * before[-1], rel=1e-5)


class Halving(Strategy):
    """A strategy that averages gradients in its own way."""

    def average(self, gradients: Any, weight: float | None = None) -> Any:
        return [ops.multiply(g, 0.5) for g in gradients]


def test_a_strategy_may_average_in_its_own_way(backend: str) -> None:
    found = []
    for rate, strategy in ((0.1, Halving()), (0.05, None)):
        model = classifier()
        made = Trainer(model, optimizers.SGD(rate), "sparse_categorical_crossentropy", strategy=strategy)
        made.step(data())
        found.append(weights(model))
    assert found[0] == found[1]  # halves are exact


def test_a_compiled_step_goes_on_from_a_loaded_state_also_for_another_shape(backend: str) -> None:
    x, y = ops.random_normal((8, 3), seed=1), ops.random_normal((8, 1), seed=2)

    def losses(compiled: bool) -> list[float]:
        ops.random.seed(0)
        trainer = Trainer(nn.Linear(3, 1), optimizers.Adam(0.1), compile=compiled, progress=False)
        for _ in range(2):
            trainer._step((x, y))
        trainer.optimizer.load_state_dict(trainer.optimizer.state_dict(), trainer.optimizer.step)
        return [float(trainer._step((x[:count], y[:count]))[0]) for count in (8, 5, 8, 5)]

    assert losses(True) == pytest.approx(losses(False), rel=1e-5)


@pytest.mark.parametrize("kind", ["adamw", "sgd"])
def test_a_compiled_step_in_float64_has_its_precision(backend: str, kind: str) -> None:
    x, y = (ops.random_normal((8, width), seed=width, dtype="float64") for width in (3, 1))

    def trained(compiled: bool) -> list[float]:
        ops.random.seed(0)
        model = nn.Linear(3, 1)
        optimizer = optimizers.SGD(0.1) if kind == "sgd" else optimizers.AdamW(0.1, weight_decay=0.1)
        trainer = Trainer(model, optimizer, compile=compiled, progress=False)
        trainer._step((ops.cast(x, "float32"), ops.cast(y, "float32")))
        model.to_dtype("float64")
        model.load_state_dict(
            {"weight": ops.array([[0.1, 0.2, 0.3]], dtype="float64"), "bias": ops.zeros(1, "float64")}
        )
        optimizer.load_state_dict({}, 0)  # for slots of that dtype
        for _ in range(3):
            trainer._step((x, y))
        assert ops.dtype(model.weight).name == "float64"
        return ops.to_numpy(model.weight).ravel().tolist()

    assert trained(True) == pytest.approx(trained(False), rel=1e-12)
