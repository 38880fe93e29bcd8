"""Ranks that are killed or stand still while a model is trained: the job ends, and goes on from its last checkpoint."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.distributed.jobs import SHARDING
from tests.distributed.launching import TOGETHER, Launched, launch

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform == "win32", reason="it needs process groups"),
]

LIMIT = 20.0
KILLS = 20
# each rank says where it is, and takes at least three seconds for a hundred steps
TRAINING = """
import os
print("pid", os.getpid())
import json, sys, time
from ember_ml import distributed, nn, ops
from ember_ml.distributed import strategy as strategies
from ember_ml.training import Trainer, callbacks

class Slow(callbacks.Callback):
    def after_step(self, trainer):
        print("step", trainer.steps)
        time.sleep(0.03)

folder, epochs, strategy = sys.argv[1], int(sys.argv[2]), getattr(strategies, sys.argv[3])
ops.seed(0)
model = nn.Sequential(nn.Linear(3, 8), ops.tanh, nn.Linear(8, 1))
x = ops.sin(ops.reshape(ops.arange(120, dtype="float32"), (40, 3)))
y = ops.sum(x, axis=1, keepdims=True)
print("ready")
kept = callbacks.Checkpoint(folder, every_steps=5, resume=True)
trainer = Trainer(model, "adam", strategy=strategy(2), seed=3, callbacks=[kept, Slow()], progress=False)
trainer.fit(x, y, epochs=epochs, batch_size=8)
print("weights", json.dumps({name: ops.to_numpy(value).tolist() for name, value in model.state_dict().items()}))
"""


class Killer:
    """Reads what the launcher tells, and kills one rank at a random moment of each start, so many times."""

    def __init__(self, kills: int, chances: random.Random) -> None:
        self.left = kills
        self.chances = chances
        self.pids: dict[int, int] = {}
        self.victim, self.phase, self.is_chosen = 0, "", False
        self.killed_at = 0.0
        self.was_training = False
        self.faults: list[dict[str, Any]] = []
        self.weights: dict[int, str] = {}
        self.survivors: list[str] = []

    def take(self, event: dict[str, Any]) -> None:
        if event["event"] == "start":
            self.pids, self.killed_at, self.was_training, self.survivors = {}, 0.0, False, []
            self.victim = self.chances.randrange(2)
            # most die while they train, some while they load libraries, some while they look for each other
            self.phase = self.chances.choice(["pid", "ready", "step", "step", "step"])
            self.is_chosen = False
        elif event["event"] == "line":
            self._take_line(event["rank"], event["text"])
        elif event["event"] == "failure":
            fault = {"killed": self.victim, "training": self.was_training, "survivors": self.survivors, **event}
            self.faults.append({**fault, "took": time.monotonic() - self.killed_at})

    def _take_line(self, rank: int, text: str) -> None:
        word, _, rest = text.partition(" ")
        if word == "pid":
            self.pids[rank] = int(rest)
        if word == "weights":
            self.weights[rank] = rest
        if rank == self.victim and word == self.phase and self.left and not self.is_chosen:
            self.left -= 1
            self.is_chosen = True
            threading.Timer(self.chances.uniform(0.0, 1.2), self._kill, [self.pids[rank]]).start()
        self.was_training = self.was_training or (word == "step" and not self.killed_at)
        if rank != self.victim and "PeerLost" in text:
            self.survivors.append(text)

    def _kill(self, pid: int) -> None:
        self.killed_at = time.monotonic()
        os.kill(pid, signal.SIGKILL)


def trained(
    folder: Path, backend: str, epochs: int, kills: int, chances: random.Random, strategy: str = "DataParallelStrategy"
) -> Killer:
    options = ("-n", "2", "--backend", backend, "--timeout", str(LIMIT), "--restarts", str(kills), "--json")
    killer = Killer(kills, chances)
    with Launched(folder, TRAINING, *options, arguments=(str(folder / "kept"), str(epochs), strategy)) as launched:
        watchdog = threading.Timer(900.0, launched.process.kill)
        watchdog.start()
        assert launched.process.stdout is not None
        for line in launched.process.stdout:
            killer.take(json.loads(line))
        watchdog.cancel()
        assert launched.process.wait(30) == 0, killer.faults[-1:]
    return killer


def test_ranks_killed_at_random_moments_change_nothing(backend: str, tmp_path: Path) -> None:
    epochs = 100  # of five steps
    for name in ("quiet", "killed"):
        (tmp_path / name).mkdir()
    undisturbed = trained(tmp_path / "quiet", backend, epochs, 0, random.Random(0))
    found = trained(tmp_path / "killed", backend, epochs, KILLS, random.Random(backend))
    check_killed(found, undisturbed, KILLS)


def test_killed_ranks_of_split_parameters_change_nothing(backend: str, tmp_path: Path) -> None:
    if backend not in SHARDING:
        pytest.skip("parameters are split on PyTorch and JAX")
    for name in ("quiet", "killed"):
        (tmp_path / name).mkdir()
    undisturbed = trained(tmp_path / "quiet", backend, 40, 0, random.Random(0), "FullShardStrategy")
    found = trained(tmp_path / "killed", backend, 40, 4, random.Random(backend), "FullShardStrategy")
    check_killed(found, undisturbed, 4)


def check_killed(found: Killer, undisturbed: Killer, kills: int) -> None:
    assert len(found.faults) == kills
    for fault in found.faults:
        assert fault["rank"] == fault["killed"], fault
        assert fault["code"] == 128 + signal.SIGKILL, fault
        assert f"rank {fault['killed']} was killed by SIGKILL" in fault["why"]
    assert max(fault["took"] for fault in found.faults) < LIMIT
    raised = [fault for fault in found.faults if fault["training"]]
    assert raised
    for fault in raised:
        assert any("was killed by SIGKILL" in line for line in fault["survivors"]), fault
    assert undisturbed.weights[0] == undisturbed.weights[1] == found.weights[0] == found.weights[1]


@pytest.mark.parametrize("how", ["SIGSTOP", "hang", "leave"])
def test_a_rank_that_does_not_go_on_ends_the_job_within_the_limit(backend: str, how: str, tmp_path: Path) -> None:
    limit = 10.0
    options = ("-n", "2", "--backend", backend, "--timeout", str(limit), "--json")
    shown = launch(tmp_path, TOGETHER, *options, arguments=(how,))
    end = time.time()
    fault = next(event for event in shown.events if event["event"] == "line" and "fault at" in event["text"])
    failure = next(event for event in shown.events if event["event"] == "failure")
    assert failure["rank"] == 1, failure
    assert shown.code != 0
    assert end - float(fault["text"].split()[-1]) < limit + 3.0  # a busy machine ends processes slowly
    lines = [event["text"] for event in shown.events if event["event"] == "line" and event["rank"] == 0]
    assert any("PeerLost" in line and "rank 1" in line for line in lines), lines


def test_an_exception_on_one_rank_is_shown_first(backend: str, tmp_path: Path) -> None:
    shown = launch(tmp_path, TOGETHER, "-n", "2", "--backend", backend, "--timeout", "30", arguments=("raise",))
    assert shown.code == 1
    story = shown.err.partition("ember-ml launch: failed")[2]
    assert "rank 1" in story.splitlines()[0]
    assert "ValueError: a mistake in step 7" in story.partition("then rank 0")[0]
