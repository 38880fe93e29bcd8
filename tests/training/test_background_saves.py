"""Checkpoints that are written while training goes on."""

from __future__ import annotations

import copy
import errno
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ember_ml import nn, ops
from ember_ml.backend.host_copies import HostCopies
from ember_ml.training import Trainer, callbacks, checkpoints, optimizers

LIMIT = 20.0


def data() -> tuple[Any, Any]:
    x = ops.random_normal((24, 4), seed=1)
    return x, ops.argmax(ops.matmul(x, ops.random_normal((4, 3), seed=2)), axis=-1)


def trainer(**settings: Any) -> Trainer:
    ops.random.seed(4)
    model = nn.Sequential(nn.Linear(4, 6), ops.tanh, nn.Linear(6, 3))
    return Trainer(model, optimizers.Adam(0.02), "sparse_categorical_crossentropy", progress=False, **settings)


def read(folder: Path) -> tuple[int, dict[str, Any]]:
    """The step of a checkpoint, and its tensors as lists."""
    tensors, state = checkpoints.read(folder)
    return state["steps"], {part: as_lists(named) for part, named in tensors.items()}


def as_lists(named: Any) -> dict[str, Any]:
    return {name: ops.to_numpy(x).tolist() for name, x in named.items()}


class Gate:
    """In place of ``checkpoints.write``: each write waits until the gate is open; how many were at work at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: OSError | None = None) -> None:
        self.is_open, self.has_begun, self.error = threading.Event(), threading.Event(), error
        self.inside = self.most = self.count = 0
        self._write, self._lock = checkpoints.write, threading.Lock()
        monkeypatch.setattr(checkpoints, "write", self)

    def __call__(self, *arguments: Any) -> None:
        with self._lock:
            self.inside, self.count = self.inside + 1, self.count + 1
            self.most = max(self.most, self.inside)
        self.has_begun.set()
        try:
            assert self.is_open.wait(LIMIT)
            if self.error is not None:
                raise self.error
            self._write(*arguments)
        finally:
            with self._lock:
                self.inside -= 1


def test_a_checkpoint_is_of_its_step_though_training_goes_on(
    backend: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = trainer(metrics=["accuracy"])
    made.step(data())
    made.save(tmp_path / "waited")
    gate = Gate(monkeypatch)
    made.save(tmp_path / "begun", wait=False)
    for _ in range(3):
        made.step(data())
    assert not checkpoints.exists(tmp_path / "begun")
    gate.is_open.set()
    made.finish_saving()
    assert read(tmp_path / "begun") == read(tmp_path / "waited")
    assert made.steps == 4


def test_a_run_that_saves_in_the_background_is_the_run_that_waits(backend: str, tmp_path: Path) -> None:
    found = []
    for wait in (False, True):
        saving = callbacks.Checkpoint(tmp_path / str(wait), every_steps=1, keep=3, wait=wait)
        made = trainer(callbacks=[saving])
        made.fit(*data(), epochs=2, batch_size=8)
        checkpoint = checkpoints.read(tmp_path / str(wait))
        state = {name: x for name, x in checkpoint[1].items() if name != "history"}  # which has times
        found.append([as_lists(made.model.state_dict()), state, read(tmp_path / str(wait))])
        files = sorted(path.name for path in (tmp_path / str(wait)).iterdir())
        assert [name for name in files if name.startswith("state")] == ["state-4.json", "state-5.json", "state.json"]
    assert found[0] == found[1]


def test_one_checkpoint_is_written_at_a_time(backend: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gate = Gate(monkeypatch)
    made = trainer(callbacks=[callbacks.Checkpoint(tmp_path / "run", every_steps=1)])
    threading.Timer(0.1, gate.is_open.set).start()
    made.fit(*data(), epochs=1, batch_size=8)
    assert (gate.count, gate.most, gate.inside) == (4, 1, 0)  # three steps, and the end of the epoch
    assert read(tmp_path / "run")[0] == 3


@pytest.mark.parametrize("at_end", [False, True])
def test_an_error_is_raised_by_the_next_save_or_the_end(
    backend: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at_end: bool
) -> None:
    when: dict[str, Any] = {"monitor": "loss"} if at_end else {"every_steps": 1}
    made = trainer(callbacks=[callbacks.Checkpoint(tmp_path / "run", **when)])
    made.save(tmp_path / "run")
    with monkeypatch.context() as patch:
        gate = Gate(patch, OSError(errno.ENOSPC, "No space left on device"))
        gate.is_open.set()
        with pytest.raises(OSError, match="No space left"):
            made.fit(*data(), epochs=1, batch_size=8)
        assert gate.count == 1
        assert made.steps in ((3,) if at_end else (1, 2))
    assert read(tmp_path / "run")[0] == 0
    made.fit(*data(), epochs=2 if at_end else 1, batch_size=8)  # and goes on
    assert read(tmp_path / "run")[0] == made.steps == (6 if at_end else 3)


def test_an_error_is_raised_before_the_next_save(backend: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Wait(callbacks.Callback):
        """Waits after the third step until the writing of the second one's state has ended."""

        def after_step(self, trainer: Trainer) -> None:
            saving = trainer._saving
            while trainer.steps == 3 and saving is not None and not saving.has_failed:
                time.sleep(0.001)

    gate = Gate(monkeypatch, OSError(errno.ENOSPC, "No space left on device"))
    gate.is_open.set()
    made = trainer(callbacks=[callbacks.Checkpoint(tmp_path / "run", every_steps=2), Wait()])
    with pytest.raises(OSError, match="No space left"):
        made.fit(*data(), epochs=9, batch_size=8)
    assert made.steps in (2, 3)


def test_an_error_of_training_waits_for_the_checkpoint(
    backend: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Fail(callbacks.Callback):
        def after_step(self, trainer: Trainer) -> None:
            if trainer.steps == 2:
                threading.Timer(0.1, gate.is_open.set).start()
                raise ZeroDivisionError

    gate = Gate(monkeypatch)
    made = trainer(callbacks=[callbacks.Checkpoint(tmp_path / "run", every_steps=1), Fail()])
    with pytest.raises(ZeroDivisionError):
        made.fit(*data(), epochs=1, batch_size=8)
    assert gate.inside == 0
    assert read(tmp_path / "run")[0] == 1


def test_a_trainer_is_copied_while_it_saves(backend: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gate = Gate(monkeypatch)
    made = trainer()
    made.step(data())
    made.save(tmp_path / "run", wait=False)
    other = copy.deepcopy(made)
    other.finish_saving()  # has nothing to wait for
    assert gate.has_begun.wait(LIMIT)
    assert gate.inside == 1
    gate.is_open.set()
    made.finish_saving()
    assert gate.inside == 0


def test_copies_lie_where_the_last_ones_lay(backend: str) -> None:
    copies = HostCopies()
    tensors = {"a": ops.ones((3, 4)), "b": ops.asarray([1, 2, 3]), "c": ops.ones((2,), dtype="bfloat16")}
    first = copies.take(tensors)
    assert {name: x.tolist() for name, x in first.items()} == as_lists(tensors)
    tensors = {name: ops.add(x, x) for name, x in tensors.items()} | {"b": ops.asarray([5, 6])}
    second = copies.take(tensors)
    assert {name: x.tolist() for name, x in second.items()} == as_lists(tensors)
    assert [first[name] is second[name] for name in "abc"] == [True, False, True]


@pytest.mark.long
def test_the_end_of_a_program_waits_for_its_last_checkpoint(tmp_path: Path) -> None:
    script = f"""
from ember_ml import nn, ops
from ember_ml.training import Trainer, checkpoints
import time
write = checkpoints.write
def slow(*arguments):
    time.sleep(0.3)
    write(*arguments)
checkpoints.write = slow
made = Trainer(nn.Linear(2, 1), "sgd", progress=False)
made.step((ops.ones((4, 2)), ops.ones((4, 1))))
made.save({str(tmp_path / "run")!r}, wait=False)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert read(tmp_path / "run")[0] == 1
