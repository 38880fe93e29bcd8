"""Jobs that are asked to end, and save before; and long work that is not standing still."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from ember_ml.training import checkpoints
from tests.distributed.launching import Launched, launch

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it needs process groups")

TRAINING = """
import sys, time
from ember_ml import distributed, nn, ops
from ember_ml.distributed.strategy import DataParallelStrategy
from ember_ml.training import Trainer, callbacks

class Slow(callbacks.Callback):
    def after_step(self, trainer):
        if distributed.rank() == 0 and trainer.steps == 20:
            print("on")
        time.sleep(float(sys.argv[2]))

class SlowCheckpoint(callbacks.Checkpoint):
    def after_fit(self, trainer):
        time.sleep(float(sys.argv[3]))
        super().after_fit(trainer)

ops.seed(0)
model = nn.Sequential(nn.Linear(3, 8), ops.tanh, nn.Dropout(0.1), nn.Linear(8, 1))
x = ops.sin(ops.reshape(ops.arange(120, dtype="float32"), (40, 3)))
y = ops.sum(x, axis=1, keepdims=True)
kept = SlowCheckpoint(sys.argv[1], every_steps=10000, resume=True)
trainer = Trainer(model, "adam", strategy=DataParallelStrategy(2), callbacks=[kept, Slow()], progress=False)
trainer.fit(x, y, epochs=60, batch_size=8)
print("losses", list(trainer.history["loss"]))
"""


@pytest.mark.long_with("torch", "mlx")
def test_a_job_that_is_asked_to_end_loses_no_step(backend: str, tmp_path: Path) -> None:
    options = ("-n", "2", "--backend", backend, "--timeout", "60")
    losses = []
    for name, pause in (("whole", "0"), ("stopped", "0.02")):
        arguments = (str(tmp_path / name), pause, "7" if name == "stopped" else "0")  # longer than other ranks may take
        if name == "stopped":
            with Launched(tmp_path, TRAINING, *options, arguments=arguments) as launched:
                lines = iter(lambda: launched.lines(1)[0], "")
                # JAX 0.10: gloo prints a line when it is connected
                assert next(line for line in lines if "[Gloo]" not in line) == "[0] on"
                launched.process.send_signal(signal.SIGTERM)
                stopped = launched.finish()
            assert stopped.code == 128 + signal.SIGTERM, stopped.err
            assert "interrupted by SIGTERM" in stopped.err
            steps = checkpoints.read(tmp_path / name)[1]["steps"]
            assert 20 <= steps < 300
        shown = launch(tmp_path, TRAINING, *options, arguments=(str(tmp_path / name), "0", "0"))
        assert shown.code == 0, shown.err
        losses.append([json.loads(line.partition("losses ")[2]) for line in shown.out.splitlines() if "losses" in line])
    assert losses[0] == losses[1]
    assert [len(found) for found in losses[1]] == [300, 300]


LONG = """
import sys, time
from ember_ml import nn, ops
from ember_ml.distributed.strategy import DataParallelStrategy
from ember_ml.training import Trainer, checkpoints, steps

def slowly(function):
    def slow(*arguments):
        if sys.argv[2:]:  # once
            sys.argv.pop()
            time.sleep(17)
        if which is steps.Objective:  # nothing is really compiled, which takes longer still
            arguments = (*arguments[:3], False, *arguments[4:])
        return function(*arguments)
    return slow

is_compiled = sys.argv[2] == "compile"
which, method = (checkpoints, "write") if sys.argv[2] == "save" else (steps.Objective, "differentiate")
setattr(which, method, slowly(getattr(which, method)))
trainer = Trainer(nn.Linear(3, 1), "sgd", strategy=DataParallelStrategy(2), compile=is_compiled, progress=False)
x = ops.ones((8, 3))
trainer.fit(x, x[:, :1], batch_size=8)
trainer.save(sys.argv[1])
trainer.fit(x, x[:, :1], epochs=2, batch_size=8)
print("steps", trainer.steps)
"""


@pytest.mark.long_with("compile", "torch", "mlx")  # each waits for 17 seconds
@pytest.mark.parametrize("work", ["save", "compile"])
def test_saving_and_compiling_are_not_standing_still(backend: str, work: str, tmp_path: Path) -> None:
    options = ("-n", "2", "--backend", backend, "--timeout", "16")
    shown = launch(tmp_path, LONG, *options, arguments=(str(tmp_path / "run"), work))
    assert shown.code == 0, shown.err
    assert shown.out.count("steps 2") == 2
