"""Checkpoints: runs that are killed, savings that fail, folders that several use, and other backends."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import installed_backends
from ember_ml.backend import safetensors as safetensors_file
from ember_ml.backend.tensor_pieces import JoinedTensors
from ember_ml.core import atomic_files as files
from ember_ml.core import folder_lock
from ember_ml.distributed.strategy import SingleProcess
from ember_ml.errors import CheckpointError
from ember_ml.training import Trainer, callbacks, checkpoint_stores, checkpoints, optimizers
from ember_ml.training import trainer_state as resuming

SCRIPT = Path(__file__).with_name("killed_run.py")


# runs that are killed


def _start(*arguments: object) -> subprocess.Popen[str]:
    """Start the run, and wait until it trains."""
    source = str(Path(ember_ml.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def _finish(process: subprocess.Popen[str]) -> None:
    said, _ = process.communicate()
    assert (said, process.returncode) == ("done\n", 0)


def _results(path: Path) -> tuple[bytes, str]:
    return path.with_suffix(".safetensors").read_bytes(), path.with_suffix(".json").read_text()


def _killed_and_resumed(backend: str, every: int, kills: int, of_run: int, folder: Path, seed: int) -> int:
    """Kill the run ``of_run`` times or less, let it end, compare; until there were as many ``kills``; gives them."""
    chance, count, number = random.Random(seed), 0, 0
    _finish(_start(backend, folder / "whole"))
    process = _start(backend, folder / "timed", folder / "timing", every)
    began = time.perf_counter()
    _finish(process)
    duration = time.perf_counter() - began
    assert _results(folder / "timed") == _results(folder / "whole")
    while count < kills:
        run, number = folder / f"run{number}", number + 1
        for _ in range(of_run):
            process = _start(backend, run, run, every)
            time.sleep(chance.uniform(0.0, 1.2 * duration / of_run))
            process.send_signal(signal.SIGKILL)
            _, count = process.communicate(), count + (process.returncode == -signal.SIGKILL)
            if checkpoints.exists(run):
                assert checkpoints.read(run)[1]["steps"] > 0
            if process.returncode == 0:
                break
        else:
            _finish(_start(backend, run, run, every))
        assert _results(run) == _results(folder / "whole")
        states = list(run.glob("*.json"))
        named = {entry["name"] for path in states for entry in json.loads(path.read_text())["files"].values()}
        assert len(states) == 2
        assert {file.name for file in run.iterdir()} == named | {path.name for path in states}  # no remains of the dead
    return count


def test_killed_runs_end_as_if_they_had_not_been(tmp_path: Path) -> None:
    assert _killed_and_resumed("numpy", every=1, kills=3, of_run=3, folder=tmp_path, seed=0) >= 3


@pytest.mark.long
@pytest.mark.parametrize("every", [1, 2])
def test_fifty_kills(backend: str, every: int, tmp_path: Path) -> None:
    assert _killed_and_resumed(backend, every, kills=25, of_run=4, folder=tmp_path, seed=every) >= 25


# savings that fail


def data() -> tuple[Any, Any]:
    x = ops.random_normal((24, 4), seed=1)
    return x, ops.argmax(ops.matmul(x, ops.random_normal((4, 3), seed=2)), axis=-1)


def trainer(**settings: Any) -> Trainer:
    ops.random.seed(4)
    model = nn.Sequential(nn.Linear(4, 6), ops.tanh, nn.Dropout(0.2), nn.Linear(6, 3))
    return Trainer(model, optimizers.Adam(0.02), "sparse_categorical_crossentropy", progress=False, **settings)


def weights(made: Trainer) -> dict[str, Any]:
    return {name: ops.to_numpy(x).tolist() for name, x in made.model.state_dict().items()}


WRITING = {module.__file__ for module in (checkpoints, checkpoint_stores, files, safetensors_file)}


def _at_each_line(action: Callable[[], None], visit: Callable[[int], None]) -> int:
    """Call ``visit`` with a growing number before each line that ``action`` runs in what writes files."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename not in WRITING or frame.f_code.co_name == "__del__":  # whose errors nobody gets
            return None
        if event == "line":
            count += 1
            visit(count)
        return trace

    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(None)
    return count


def _write(folder: Path, steps: int) -> None:
    tensors = {"model": {"x": ops.full((3,), float(steps))}, "optimizer": {"first/x": ops.full((3,), -float(steps))}}
    checkpoints.write(folder, tensors, {"steps": steps})


def _steps(folder: Path) -> int:
    """How many steps the checkpoint is of, whose tensors must be those of that step."""
    tensors, state = checkpoints.read(folder)
    assert ops.to_numpy(tensors["model"]["x"]).tolist() == [state["steps"]] * 3
    assert ops.to_numpy(tensors["optimizer"]["first/x"]).tolist() == [-state["steps"]] * 3
    return state["steps"]


def test_whatever_moment_a_saving_is_killed_at_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    _write(tmp_path / "run", 1)
    seen: list[Any] = []

    def keep(number: int) -> None:
        found = sorted((file.name, file.stat().st_size, file.stat().st_ino) for file in (tmp_path / "run").iterdir())
        if not seen or found != seen[-1]:
            seen.append(found)
            shutil.copytree(tmp_path / "run", tmp_path / str(len(seen)))

    assert _at_each_line(lambda: _write(tmp_path / "run", 2), keep) > 50
    copies = [tmp_path / str(number + 1) for number in range(len(seen))]
    steps = [_steps(copy) for copy in copies]
    assert len(steps) > 8
    assert steps == sorted(steps)
    assert {*steps} == {1, 2}
    for copy in copies:
        _write(copy, 3)
        assert (_steps(copy), len(list(copy.iterdir()))) == (3, 3)  # what the dead have left is gone


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of files that an error left open
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_whatever_line_a_saving_fails_at_leaves_a_whole_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Any
) -> None:
    monkeypatch.setattr(os, "fsync", lambda number: None)  # which takes most of the time, and makes no difference here
    _write(tmp_path / "first", 1)
    found: list[int] = []
    number = 0
    while True:
        number += 1
        run = tmp_path / str(number)
        shutil.copytree(tmp_path / "first", run)

        def fail(line: int, number: int = number) -> None:
            if line == number:
                raise error(errno.ENOSPC, "No space left on device")

        try:
            if _at_each_line(partial(_write, run, 2), fail) < number:
                break
        except (OSError, KeyboardInterrupt):
            found.append(_steps(run))
        if number % 4 == 0:
            _write(run, 3)
            assert (_steps(run), len(list(run.iterdir()))) == (3, 3)
        shutil.rmtree(run)
    assert found.count(1) > 50
    assert found == sorted(found)


def _two_states(folder: Path) -> tuple[Trainer, dict[int, dict[str, Any]]]:
    """A trainer whose state of one step is saved, and that has done another; the weights after each."""
    made = trainer()
    made.step(data())
    known = {1: weights(made)}
    made.save(folder)
    made.step(data())
    return made, known | {2: weights(made)}


def test_a_full_disk_loses_nothing_and_says_so(backend: str, tmp_path: Path) -> None:
    made, known = _two_states(tmp_path / "run")
    before = sorted(file.name for file in (tmp_path / "run").iterdir())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    sizes = [(tmp_path / "run" / name).stat().st_size for name in before]
    assert len({*sizes}) == 4
    for size in (0, *(size - 50 for size in sizes)):  # each of the files may be the one that is too large
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
        try:
            with pytest.raises(OSError, match="the checkpoint cannot be written") as caught:
                made.save(tmp_path / "run")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(tmp_path / "run"))
        assert sorted(file.name for file in (tmp_path / "run").iterdir()) == before
        assert weights(trainer().restore(tmp_path / "run")) == known[1]
    made.save(tmp_path / "run")
    assert weights(trainer().restore(tmp_path / "run")) == known[2]


def test_a_place_that_cannot_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OSError, match="the checkpoint cannot be written"):
        trainer().save(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


# what is in the folder besides


def test_files_of_others_and_links_stay(tmp_path: Path) -> None:
    run, outside = tmp_path / "run", tmp_path / "outside.safetensors"
    made, _ = _two_states(run)
    for name in ("model-best.safetensors", "notes.txt", ".state.json.mine", "other-3.safetensors"):
        (run / name).write_text("mine")
    (run / "model-2.safetensors").symlink_to(outside)
    made.save(run)
    assert not outside.exists()
    assert {file.name for file in run.iterdir()} == {
        "model-best.safetensors", "notes.txt", ".state.json.mine", "other-3.safetensors",
        "model-2-1.safetensors", "optimizer-2.safetensors", "history-2.safetensors", "state.json",
    }  # fmt: skip
    assert trainer().restore(run).steps == 2


@pytest.mark.parametrize("kind", ["pipe", "endless", "folder", "missing"])
@pytest.mark.parametrize("name", ["state.json", "model-1.safetensors"])
def test_what_is_no_file_is_not_read(kind: str, name: str, tmp_path: Path) -> None:
    made, _ = _two_states(tmp_path / "run")
    path = tmp_path / "run" / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(CheckpointError, match="run"):
        made.restore(tmp_path / "run")
    assert made.steps == 2


def test_a_damaged_checkpoint_is_not_taken_for_none(tmp_path: Path) -> None:
    made = trainer(callbacks=[callbacks.Checkpoint(tmp_path / "run", resume=True, keep=1)])
    made.fit(*data(), batch_size=8)
    (tmp_path / "run/state.json").write_text("{}")
    before = sorted(file.name for file in (tmp_path / "run").iterdir())
    with pytest.raises(CheckpointError, match="no checkpoint of Ember ML"):
        trainer(callbacks=[callbacks.Checkpoint(tmp_path / "run", resume=True)]).fit(*data())
    assert sorted(file.name for file in (tmp_path / "run").iterdir()) == before


def _kept_steps(folder: Path) -> list[int]:
    """Return the steps of the checkpoints in a folder, by the files of their models."""
    return sorted(int(path.stem.split("-")[1]) for path in folder.glob("model-*.safetensors"))


def test_the_last_checkpoints_are_kept(tmp_path: Path) -> None:
    made = trainer(callbacks=[callbacks.Checkpoint(tmp_path / "run", every_steps=2, keep=3)])
    made.fit(*data(), epochs=4, batch_size=8)
    assert _kept_steps(tmp_path / "run") == [8, 10, 12]
    assert sorted(path.name for path in (tmp_path / "run").glob("*.json")) == [
        "state-10.json", "state-8.json", "state.json",
    ]  # fmt: skip
    made.save(tmp_path / "run")
    assert _kept_steps(tmp_path / "run") == [12]
    assert len(list((tmp_path / "run").iterdir())) == 4


@pytest.mark.parametrize("damage", ["bit", "state", "missing", "no state"])
def test_a_damaged_checkpoint_gives_way_to_the_one_before(backend: str, damage: str, tmp_path: Path) -> None:
    def run(epochs: int, **settings: Any) -> Trainer:
        made = trainer(callbacks=[callbacks.Checkpoint(tmp_path / "run", every_steps=1, **settings)])
        made.fit(*data(), epochs=epochs, batch_size=8)
        return made

    whole = run(4)
    shutil.rmtree(tmp_path / "run")
    run(2)
    (tensors,) = (tmp_path / "run").glob("model-6*.safetensors")
    state = tmp_path / "run/state.json"
    if damage == "bit":
        content = bytearray(tensors.read_bytes())
        content[-5] ^= 4
        tensors.write_bytes(content)
    elif damage == "state":
        state.write_text(state.read_text()[:-20])
    else:
        (state if damage == "no state" else tensors).unlink()
    with pytest.warns(UserWarning, match="the checkpoint of step 5 is read instead"):
        again = run(4, resume=True)
    assert weights(again) == weights(whole)
    assert again.history["loss"] == whole.history["loss"]
    assert _kept_steps(tmp_path / "run") == [11, 12]
    for path in (tmp_path / "run").glob("model-*.safetensors"):
        path.unlink()
    with pytest.raises(CheckpointError, match="is missing"):
        run(5, resume=True)


def test_the_end_of_a_run_is_saved(backend: str, tmp_path: Path) -> None:
    made = trainer(callbacks=[callbacks.Checkpoint(tmp_path / "run", every_steps=4)])
    made.fit(*data(), epochs=2, batch_size=8)
    again = trainer().restore(tmp_path / "run")
    assert (again.steps, again.epoch) == (6, 2)
    assert weights(again) == weights(made)


def test_a_state_does_not_grow_with_the_steps(backend: str, tmp_path: Path) -> None:
    sizes = []
    made = trainer()
    made.step(data())
    for count in (1, 200_000):
        losses = made.history["loss"]
        losses.extend([float("nan"), 0.1, float(ops.item(ops.asarray(0.1, dtype="float32")))] * count)
        losses[-2:] = [0.5, losses[-1]]
        made.save(tmp_path / "run")
        sizes.append((tmp_path / "run/state.json").stat().st_size)
    assert sizes[1] < sizes[0] + 100
    assert (tmp_path / "run/history-1-1.safetensors").stat().st_size < 4 * len(made.history["loss"]) + 1000
    again = trainer().restore(tmp_path / "run").history["loss"]
    assert len(again) == 600_004
    assert again[-2:] == made.history["loss"][-2:]
    assert again[1] != again[1]  # NaN


def test_a_checkpoint_of_the_first_version_is_read(tmp_path: Path) -> None:
    _two_states(tmp_path / "run")
    state = tmp_path / "run/state.json"
    document = json.loads(state.read_text())
    assert document.pop("sha256")
    losses = [0.25]
    document["version"] = 1
    del document["files"]["history"]
    document["state"]["history"]["curves"]["loss"]["values"] = losses
    text = json.dumps(document)
    state.write_text(f'{text[:-1]}, "sha256": "{hashlib.sha256(text.encode()).hexdigest()}"}}')
    again = trainer().restore(tmp_path / "run")
    assert (again.steps, again.history["loss"]) == (1, losses)


def test_a_link_in_place_of_the_state_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "run").mkdir()
    for name in ("state.json", "state-1.json"):
        (tmp_path / "run" / name).symlink_to(victim)
    made = trainer()
    for _ in range(2):
        made.step(data())
        made.save(tmp_path / "run", keep=2)
    assert victim.read_text() == "mine"
    assert not (tmp_path / "run/state.json").is_symlink()
    assert trainer().restore(tmp_path / "run").steps == 2


def test_a_folder_that_stays_locked_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_lock, "_PATIENCE", 0.1)
    made, _ = _two_states(tmp_path / "run")
    script = (
        "import fcntl, os, sys, time; fcntl.flock(os.open(sys.argv[1], 0), 2); print(1, flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "run")], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(OSError, match="another process has locked the folder"):
            made.save(tmp_path / "run")
    finally:
        holder.kill()
        holder.communicate()
    made.save(tmp_path / "run")
    assert trainer().restore(tmp_path / "run").steps == 2


def test_several_writers_and_readers_of_one_folder(tmp_path: Path) -> None:
    def tensors(value: float) -> dict[str, Any]:
        return {"model": {"x": ops.full((50,), value)}, "optimizer": {"s/x": ops.full((50,), -value)}}

    checkpoints.write(tmp_path, tensors(0.0), {"steps": 0})
    errors: list[BaseException] = []
    is_over = threading.Event()

    def write(number: int) -> None:
        for step in range(12):
            checkpoints.write(tmp_path, tensors(100.0 * number + step), {"steps": step, "by": number})

    def read() -> None:
        while not is_over.is_set():
            found, state = checkpoints.read(tmp_path)
            value = 100.0 * state.get("by", 0) + state["steps"]
            assert ops.to_numpy(found["model"]["x"]).tolist() == [value] * 50
            assert ops.to_numpy(found["optimizer"]["s/x"]).tolist() == [-value] * 50

    def noting(function: Callable[..., None], *arguments: Any) -> None:
        try:
            function(*arguments)
        except BaseException as error:
            errors.append(error)

    writers = [threading.Thread(target=noting, args=(write, number)) for number in range(3)]
    readers = [threading.Thread(target=noting, args=(read,)) for _ in range(2)]
    for thread in (*writers, *readers):
        thread.start()
    for thread in writers:
        thread.join()
    is_over.set()
    for thread in readers:
        thread.join()
    assert errors == []
    assert len(list(tmp_path.iterdir())) == 3


# what is kept


@pytest.mark.parametrize("stop", [1, 2, 3, 5])
def test_gradients_that_wait_for_an_update_are_kept(backend: str, stop: int, tmp_path: Path) -> None:
    class Stop(callbacks.Callback):
        def after_step(self, trainer: Trainer) -> None:
            trainer.should_stop = trainer.steps == stop

    whole = trainer(accumulate=4)
    whole.fit(*data(), epochs=2, batch_size=4)
    part = trainer(accumulate=4, callbacks=[Stop()])
    part.fit(*data(), epochs=2, batch_size=4)
    part.save(tmp_path / "run")
    again = Trainer.load(tmp_path / "run", progress=False)
    again.fit(*data(), epochs=2, batch_size=4)
    assert weights(again) == weights(whole)
    assert again.history["loss"] == whole.history["loss"]


def test_sizes_that_were_inferred_are_kept(backend: str, tmp_path: Path) -> None:
    ops.random.seed(1)
    made = Trainer(nn.Sequential(nn.Linear(5), ops.tanh, nn.Linear(3)), "adam", "sparse_categorical_crossentropy")
    made.progress = False
    made.fit(*data(), batch_size=8)
    made.save(tmp_path / "run")
    before = ops.random.default_generator().state()
    again = Trainer.load(tmp_path / "run", progress=False)
    assert ops.random.default_generator().state() == before
    assert weights(again) == weights(made)
    unused = Trainer(nn.Sequential(nn.Linear(5), ops.tanh, nn.Linear(4)), "adam", "sparse_categorical_crossentropy")
    with pytest.raises(CheckpointError, match="has shape"):
        unused.restore(tmp_path / "run")
    assert not unused.model[0].is_built


class Refusing(callbacks.Callback):
    def state(self) -> dict[str, Any]:
        return {"key": 1}

    def restore(self, state: dict[str, Any], tensors: dict[str, Any]) -> None:
        raise ValueError("not this one")


@pytest.mark.parametrize("strategy", [None, SingleProcess])
def test_what_is_refused_last_has_changed_nothing(backend: str, strategy: Any, tmp_path: Path) -> None:
    def made() -> Trainer:
        return trainer(callbacks=[Refusing()], strategy=strategy and strategy())

    old, new = made(), made()
    for each, epochs in ((old, 1), (new, 2)):
        each.fit(*data(), epochs=epochs, batch_size=8)
    new.save(tmp_path)
    before = weights(old), [ops.to_numpy(x).tolist() for x in old.optimizer.current_tensors().values()]
    with pytest.raises(CheckpointError, match="does not fit this trainer: not this one"):
        old.restore(tmp_path)
    assert (weights(old), [ops.to_numpy(x).tolist() for x in old.optimizer.current_tensors().values()]) == before
    assert old.steps == new.steps // 2


def test_a_disk_that_fails_after_the_checksums(backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, again = trainer(), trainer()
    made.fit(*data(), batch_size=8)
    made.save(tmp_path)
    steps, read = again.steps, JoinedTensors.__getitem__

    def fail(self: JoinedTensors, name: str) -> Any:
        if name == list(made.model.named_variables())[-1]:
            raise OSError("the disk is gone")
        return read(self, name)

    monkeypatch.setattr(JoinedTensors, "__getitem__", fail)
    with pytest.raises(CheckpointError, match=r"the disk is gone\. Some parameters are those of the checkpoint"):
        again.restore(tmp_path)
    assert again.steps == steps
    monkeypatch.undo()
    assert weights(again.restore(tmp_path)) == weights(made)


@pytest.mark.parametrize("order", [0, 1])
def test_early_stopping_goes_on_and_brings_back_the_best(backend: str, order: int, tmp_path: Path) -> None:
    def made(*more: callbacks.Callback) -> Trainer:
        stopping = callbacks.EarlyStopping("loss", patience=3, smallest_change=0.2, restore_best=True)
        return trainer(callbacks=[stopping, *more] if order else [*more, stopping])

    def saving() -> callbacks.Checkpoint:
        return callbacks.Checkpoint(tmp_path / "run", resume=True)

    whole = made()
    whole.fit(*data(), epochs=20, batch_size=8)
    for epochs in (2, 3, 20):
        part = made(saving())
        part.fit(*data(), epochs=epochs, batch_size=8)
    assert part.epoch == whole.epoch < 20
    assert weights(part) == weights(whole)
    again = made(saving())
    again.fit(*data(), epochs=20, batch_size=8)
    assert (again.epoch, weights(again)) == (whole.epoch, weights(whole))


def test_the_best_checkpoint_is_not_that_of_no_number(tmp_path: Path) -> None:
    x, y = data()
    saving = callbacks.Checkpoint(tmp_path / "run", monitor="loss")
    made = trainer(callbacks=[saving])
    made.fit(ops.multiply(x, float("nan")), y, epochs=2)
    assert not checkpoints.exists(tmp_path / "run")
    made.save(tmp_path / "run")
    again = trainer(callbacks=[saving]).restore(tmp_path / "run")
    assert all(value != value for value in again.history["loss"])
    for mistake in ({"every_steps": 0}, {"every_epochs": -1}, {"mode": "least"}):
        with pytest.raises(ValueError, match=r"at least 1|min or max"):
            callbacks.Checkpoint(tmp_path, **mistake)  # type: ignore[arg-type]


# other backends


def test_a_run_goes_on_on_another_backend(backend: str, tmp_path: Path) -> None:
    whole = trainer(metrics=["accuracy"])
    whole.fit(*data(), epochs=4, batch_size=8)
    part = trainer(metrics=["accuracy"])
    part.fit(*data(), epochs=2, batch_size=8)
    part.save(tmp_path / "run")
    for other in installed_backends():
        ember_ml.set_backend(other)
        again = Trainer.load(tmp_path / "run", progress=False)
        history = again.fit(*data(), epochs=4, batch_size=8)
        assert list(history["loss"]) == pytest.approx(whole.history["loss"], rel=1e-5)
        assert list(history["accuracy"]) == pytest.approx(whole.history["accuracy"])
        assert len(history.switches) == 1 + (other != backend)


@pytest.mark.parametrize("scoped", [False, True])
def test_saving_where_another_backend_is_active(backend: str, scoped: bool, tmp_path: Path) -> None:
    made = trainer(metrics=["accuracy"], accumulate=2)
    for _ in range(3):
        made.step(data())
    wanted = resuming.state_of(made), weights(made)
    for other in installed_backends():
        if scoped:
            with ember_ml.use_backend(other):
                made.save(tmp_path / "run")
        else:
            ember_ml.set_backend(other)
            made.save(tmp_path / "run")
        again = trainer(metrics=["accuracy"], accumulate=2).restore(tmp_path / "run")
        assert (resuming.state_of(again), weights(again)) == wanted
        assert again._step.count == 1
