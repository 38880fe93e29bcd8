"""Training that something ends: errors of data, models and callbacks, Ctrl-C; fit goes on from a consistent state."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from ember_ml import nn, ops
from ember_ml.errors import CheckpointError
from ember_ml.training import DataLoader, Trainer, callbacks, losses, metrics, optimizers
from ember_ml.training.interrupts import Interrupts


@pytest.fixture(autouse=True)
def interrupts_are_heard() -> Iterator[None]:
    """Ctrl-C as in a terminal: what a shell starts in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def data() -> tuple[Any, Any]:
    x = ops.random_normal((24, 4), seed=1)
    return x, ops.argmax(ops.matmul(x, ops.random_normal((4, 3), seed=2)), axis=-1)


def trainer(*parts: Any, **settings: Any) -> Trainer:
    ops.random.seed(4)
    model = nn.Sequential(nn.Linear(4, 6), *parts, nn.Dropout(0.2), nn.Linear(6, 3))
    return Trainer(model, optimizers.Adam(0.02), "sparse_categorical_crossentropy", progress=False, **settings)


def result(made: Trainer) -> Any:
    """What a run comes to: the weights, the curves and the counters."""
    weights = {name: ops.to_numpy(x).tolist() for name, x in made.model.state_dict().items()}
    curves = {name: (list(curve), curve.epochs) for name, curve in made.history.items()}
    return weights, curves, made.steps, made.epoch, made.steps_in_epoch, made.optimizer.step


def whole(**settings: Any) -> Any:
    made = trainer(ops.tanh, **settings)
    made.fit(*data(), epochs=3, batch_size=8, validation=data())
    return result(made)


class Failing(Exception):
    pass


class FailOnce:
    """Something to call that fails at its call number ``at``, and never again."""

    def __init__(self, at: int, error: Any = Failing) -> None:
        self.left, self.error = at, error

    def __call__(self, *arguments: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise self.error
        return arguments[0] if arguments else None


@pytest.mark.parametrize("at", [1, 2, 4])
@pytest.mark.parametrize("moment", ["after_step", "after_epoch", "begin"])
def test_a_callback_that_fails(backend: str, moment: str, at: int) -> None:
    at = 1 if moment == "begin" else min(at, 2) if moment == "after_epoch" else at
    ended: list[str] = []

    class Note(callbacks.Callback):
        def end(self, trainer: Trainer) -> None:
            ended.append("end")

    wanted = whole(metrics=["accuracy"])
    failing = callbacks.Callback()
    setattr(failing, moment, FailOnce(at))
    made = trainer(ops.tanh, metrics=["accuracy"], callbacks=[Note(), failing])
    with pytest.raises(Failing):
        made.fit(*data(), epochs=3, batch_size=8, validation=data())
    assert ended == ["end"]
    made.fit(*data(), epochs=3, batch_size=8, validation=data())
    assert result(made) == wanted


@pytest.mark.parametrize("at", [1, 5, 9])
@pytest.mark.parametrize("prefetch", [0, 2])
def test_data_that_fail_midway(backend: str, at: int, prefetch: int) -> None:
    x, y = map(ops.to_numpy, data())
    fail = FailOnce(at)

    def batches() -> Iterator[Any]:
        for start in range(0, 24, 6):
            fail()
            yield x[start : start + 6], y[start : start + 6]

    def run(source: Any) -> Trainer:
        made = trainer(ops.tanh)
        loader = DataLoader(source, prefetch=prefetch)
        if source is batches:
            with pytest.raises(Failing):
                made.fit(loader, epochs=3)
        made.fit(loader, epochs=3)
        return made

    plain = [(x[start : start + 6], y[start : start + 6]) for start in range(0, 24, 6)]
    assert result(run(batches)) == result(run(lambda: iter(plain)))


@pytest.mark.parametrize("at", [1, 3, 5])
@pytest.mark.parametrize("error", [Failing, KeyboardInterrupt])
def test_a_model_that_fails_leaves_the_step_undone(backend: str, at: int, error: Any, tmp_path: Path) -> None:
    """The random numbers that the failed step had drawn are gone, so the order of the data is what must be right."""
    made = trainer(ops.tanh, FailOnce(at, error), compile=False)  # compiled, on JAX, it is called once
    before = []

    class Note(callbacks.Callback):
        def after_step(self, trainer: Trainer) -> None:
            before.append(result(trainer))

    made.callbacks.append(Note())
    with pytest.raises(error):
        made.fit(*data(), epochs=2, batch_size=8)
    if before:
        assert result(made) == before[-1]
    assert made.steps == at - 1
    made.save(tmp_path / "run")
    made.fit(*data(), epochs=2, batch_size=8)
    assert (made.steps, made.epoch, len(made.history["loss"])) == (6, 2, 6)


def test_validation_that_fails_is_done_again(backend: str) -> None:
    wanted = whole(metrics=["accuracy"])
    x, y = data()
    fail = FailOnce(2)

    def batches() -> Iterator[Any]:
        fail()
        yield x, y

    made = trainer(ops.tanh, metrics=["accuracy"])
    with pytest.raises(Failing):
        made.fit(x, y, epochs=3, batch_size=8, validation=batches)
    assert (made.steps, made.epoch, made.steps_in_epoch, made.model.training) == (6, 1, 3, True)
    made.fit(x, y, epochs=3, batch_size=8, validation=batches)
    assert result(made)[2:] == wanted[2:]
    assert list(made.history["val_accuracy"]) == wanted[1]["val_accuracy"][0]


@pytest.mark.parametrize("at", [1, 3, 4])
def test_ctrl_c_waits_for_the_end_of_the_step(backend: str, at: int) -> None:
    class Press:
        def __init__(self) -> None:
            self.calls = 0

        def __call__(self, x: Any) -> Any:
            self.calls += 1
            if self.calls == at:
                os.kill(os.getpid(), signal.SIGINT)
            return ops.tanh(x)

    made = trainer(Press(), compile=False)  # compiled, on JAX, it is called once
    with pytest.raises(KeyboardInterrupt):
        made.fit(*data(), epochs=3, batch_size=8)
    assert made.steps == at
    made.fit(*data(), epochs=3, batch_size=8)
    plain = trainer(ops.tanh, compile=False)
    plain.fit(*data(), epochs=3, batch_size=8)
    assert result(made) == result(plain)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class PressOnce(callbacks.Callback):
    """Presses Ctrl-C once, at a moment of the step after so many."""

    def __init__(self, moment: str, steps: int) -> None:
        def press(trainer: Trainer, *_: Any) -> None:
            if trainer.steps >= steps:
                setattr(self, moment, lambda *_: None)
                os.kill(os.getpid(), signal.SIGINT)

        setattr(self, moment, press)

    def after_gradients(self, trainer: Trainer, gradients: Any) -> None:
        """It is asked of the class whether gradients are wanted."""


@pytest.mark.parametrize("is_saved", [False, True])
@pytest.mark.parametrize("moment", ["after_gradients", "validation", "after_validation", "after_step", "after_epoch"])
def test_callbacks_are_called_after_each_step_that_ctrl_c_ends(
    backend: str, moment: str, is_saved: bool, tmp_path: Path
) -> None:
    """An average of the weights counts every step, and validations within the epoch are all there."""

    def make(*others: callbacks.Callback) -> tuple[Trainer, callbacks.WeightAverage]:
        average = callbacks.WeightAverage(0.5)
        best = callbacks.EarlyStopping("val_loss", patience=9, restore_best=True)
        made = trainer(ops.tanh, callbacks=[*others, average, best, callbacks.WeightAverage(None, every_steps=None)])
        return made, average

    def fit(made: Trainer, validation: Any) -> None:
        made.fit(*data(), epochs=2, batch_size=4, validation=validation, validate_every=2)

    def press_before_reading() -> Iterator[Any]:
        if moment == "validation" and presses:
            presses.pop()
            os.kill(os.getpid(), signal.SIGINT)
        yield data()

    presses = [1]
    whole, wanted = make()
    fit(whole, data())
    made, average = make(PressOnce(moment, 3)) if moment != "validation" else make()
    with pytest.raises(KeyboardInterrupt):
        fit(made, press_before_reading)
    if is_saved:
        made.save(tmp_path)
        made, average = make(PressOnce("nothing", 0)) if moment != "validation" else make()
        made.restore(tmp_path)
    fit(made, press_before_reading)
    assert average.count == wanted.count == 12
    assert made.callbacks[-1].count == whole.callbacks[-1].count == 2  # type: ignore[attr-defined]
    near = {name: pytest.approx(ops.to_numpy(x), rel=1e-5, abs=1e-7) for name, x in wanted.averages().items()}
    assert {name: ops.to_numpy(x) for name, x in average.averages().items()} == near
    assert len(made.history["val_loss"]) == len(whole.history["val_loss"]) == 6
    assert list(made.history["loss"]) == pytest.approx(list(whole.history["loss"]), rel=1e-5)


def _press(times: int, block: Any, done: list[int]) -> None:
    """Press Ctrl-C several times inside a block, and note whether its end was reached."""
    with block:
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
        done.append(times)


def test_interrupts() -> None:
    done: list[int] = []
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            _press(1, nullcontext(), done)
        assert done == []
        with pytest.raises(KeyboardInterrupt):
            _press(1, interrupts.held, done)
        assert done == [1]
        with pytest.raises(KeyboardInterrupt):
            _press(2, interrupts.held, done)
        assert done == [1]
    own = signal.signal(signal.SIGINT, lambda number, frame: done.append(3))
    try:
        with Interrupts() as interrupts, interrupts.held:
            os.kill(os.getpid(), signal.SIGINT)
        assert done == [1, 3]
    finally:
        signal.signal(signal.SIGINT, own)


def test_training_in_another_thread(backend: str) -> None:
    made = trainer(ops.tanh)
    thread = threading.Thread(target=lambda: made.fit(*data(), epochs=3, batch_size=8, validation=data()))
    thread.start()
    thread.join()
    assert result(made) == whole()


def test_other_data_in_the_midst_of_an_epoch_are_refused_and_nothing_is_lost(backend: str) -> None:
    class Stop(callbacks.Callback):
        def after_step(self, trainer: Trainer) -> None:
            trainer.should_stop = trainer.steps == 4

    x, y = data()
    wanted = whole()
    made = trainer(ops.tanh, callbacks=[Stop()])
    made.fit(x, y, epochs=3, batch_size=8, validation=(x, y))
    with pytest.raises(ValueError, match="cannot go on with"):
        made.fit(x[:10], y[:10], epochs=3, batch_size=8)
    made.fit(x, y, epochs=3, batch_size=8, validation=(x, y))
    assert result(made) == wanted


def test_single_steps_between_epochs_belong_to_none(backend: str) -> None:
    x, y = data()
    made = trainer(ops.tanh)
    made.step((x, y))
    made.fit(x, y, epochs=1, batch_size=8)
    made.step((x, y))
    made.fit(x, y, epochs=2, batch_size=8)
    losses = made.history["loss"]
    assert (made.steps, len(losses), made.epoch) == (8, 8, 2)
    assert losses.epochs == pytest.approx([sum(losses[1:4]) / 3, sum(losses[5:8]) / 3])


def test_mistakes_are_found_before_the_first_step(backend: str) -> None:
    x, y = data()
    made = trainer(ops.tanh)
    before = result(made)
    for validation in (x, (x,), [x, y], [], {"x": x, "y": y}, "data.csv"):
        with pytest.raises(ValueError, match="validation is a tuple of inputs and targets"):
            made.fit(x, y, validation=validation)
    with pytest.raises(ValueError, match="validation is an iterator"):
        made.fit(x, y, epochs=2, validation=iter([(x, y)]))
    with pytest.raises(TypeError, match="epochs is a whole number"):
        made.fit(x, y, epochs=2.5)  # type: ignore[arg-type]
    for name in ("epochs", "max_steps"):
        with pytest.raises(ValueError, match=f"{name} is a number from 0 up, not -1"):
            made.fit(x, y, **{name: -1})
    with pytest.raises(TypeError, match=r"batch_size is an integer, not 2\.5"):
        made.fit(x, y, batch_size=2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="weight goes with x and y"):
        made.fit([(x, y)], weight=ops.ones((24,)))
    with pytest.raises(ValueError, match="the same number of rows"):
        made.fit(x, y[:5])
    with pytest.raises(ValueError, match="no rows"):
        made.fit(x[:0], y[:0])
    assert result(made) == before
    assert made.evaluate([(x, y)]) == made.evaluate(x, y, batch_size=24)


def test_mistakes_of_settings(backend: str) -> None:
    with pytest.raises(TypeError, match=r"callbacks is a list: \[StopOnNaN"):
        trainer(callbacks=callbacks.StopOnNaN())
    with pytest.raises(TypeError, match="is no callback"):
        trainer(callbacks=[print])
    with pytest.raises(TypeError, match="a loss is a name or a function"):
        Trainer(nn.Linear(1, 1), loss=3)
    with pytest.raises(ValueError, match=r"not 1\.5"):
        trainer(accumulate=1.5)
    for settings in ({"loss": losses.MeanSquaredError}, {"optimizer": optimizers.SGD}):
        with pytest.raises(TypeError, match=r"make an object of it, (MeanSquaredError|SGD)\(\)$"):
            Trainer(nn.Linear(1, 1), **settings)
    with pytest.raises(TypeError, match="StopOnNaN is a class of callbacks: make an object of it"):
        trainer(callbacks=[callbacks.StopOnNaN])
    with pytest.raises(TypeError, match="MeanSquaredError compares predictions with targets, and the batch has None"):
        Trainer(nn.Linear(4, 1), progress=False).step((data()[0], None))
    with pytest.raises(ValueError, match="two metrics are called 'accuracy'"):
        trainer(metrics=["accuracy", metrics.Accuracy()])
    own = metrics.Mean()
    own.name = "loss"
    with pytest.raises(ValueError, match="a metric and the loss are called 'loss'"):
        trainer(metrics=[own])
    frozen = Trainer(nn.Linear(4, 3).freeze(), "adam", "sparse_categorical_crossentropy", progress=False)
    with pytest.raises(ValueError, match="nothing to train"):
        frozen.fit(*data())


def test_a_checkpoint_of_another_trainer_changes_nothing(backend: str, tmp_path: Path) -> None:
    made = trainer(ops.tanh, accumulate=2)
    made.step(data())
    made.step(data())
    made.step(data())
    made.save(tmp_path / "run")

    def other(**settings: Any) -> Trainer:
        ops.random.seed(0)
        model = nn.Sequential(nn.Linear(4, 6), ops.tanh, nn.Dropout(0.2), nn.Linear(6, settings.pop("outputs", 3)))
        given = {"optimizer": "adam", "accumulate": 2, **settings}
        return Trainer(model, loss="sparse_categorical_crossentropy", progress=False, **given)

    for settings, match in (
        ({"outputs": 4}, "has shape"),
        ({"optimizer": "sgd"}, "keeps no 'first"),
        ({"optimizer": "adafactor"}, "keeps no|not whole|wrong shape"),
        ({"accumulate": 1}, "gradients of 1 batches"),
        ({"metrics": ["accuracy"]}, "metrics"),
    ):
        found = other(**settings)
        before, generator = result(found), ops.random.default_generator().state()
        with pytest.raises(CheckpointError, match=match):
            found.restore(tmp_path / "run")
        assert result(found) == before
        assert ops.random.default_generator().state() == generator


# SIGTERM, as schedulers send it before they kill


class AskToEnd(callbacks.Callback):
    def __init__(self, after: int) -> None:
        self.after = after

    def after_step(self, trainer: Trainer) -> None:
        if trainer.steps == self.after:
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("after", [1, 4, 6])
def test_a_run_that_is_asked_to_end_saves_and_goes_on_later(backend: str, after: int, tmp_path: Path) -> None:
    wanted = whole()
    saving = callbacks.Checkpoint(tmp_path / "run", every_steps=100, resume=True)
    with pytest.raises(SystemExit) as caught:
        trainer(ops.tanh, callbacks=[AskToEnd(after), saving]).fit(*data(), epochs=3, batch_size=8, validation=data())
    assert caught.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    made = trainer(ops.tanh, callbacks=[callbacks.Checkpoint(tmp_path / "run", every_steps=100, resume=True)])
    made.fit(*data(), epochs=3, batch_size=8, validation=data())
    assert result(made) == wanted


def test_sigterm_is_left_to_the_program_where_nothing_is_saved_or_it_handles_it(tmp_path: Path) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        saving = callbacks.Checkpoint(tmp_path / "run", every_steps=100)
        trainer(callbacks=[AskToEnd(2), saving]).fit(*data(), batch_size=8)
        trainer(callbacks=[AskToEnd(2)]).fit(*data(), batch_size=8)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM] * 2
