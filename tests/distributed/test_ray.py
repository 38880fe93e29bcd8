"""Ray Train with two local workers, by its example: what it computes, and what it does after a worker has died."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ember_ml.training.ray import join_workers

EXAMPLE = Path(__file__).parents[2] / "examples" / "cluster" / "ray_train.py"
# the second worker is killed once, after the second epoch
SCRIPT = """
import json, os, runpy, signal, sys
from pathlib import Path
from ember_ml import distributed

_, example, folder, backend = sys.argv
names = runpy.run_path(example)
Base = names["ReportToRay"]

class Dying(Base):
    def after_epoch(self, trainer, values):
        Base.after_epoch(self, trainer, values)
        mark = Path(folder, "died")
        if distributed.rank() == 1 and trainer.epoch == 2 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)

names["train"].__globals__["ReportToRay"] = Dying
result = names["main"]([folder, "--backend", backend])
with result.checkpoint.as_directory() as kept:
    print("result", json.dumps({**result.metrics, "files": sorted(os.listdir(kept))}))
"""
ALONE = """
import json, runpy, sys
from ember_ml import nn, ops, set_backend
from ember_ml.training import DataLoader, Trainer

set_backend(sys.argv[1])
ops.random.seed(0)
x = ops.random_normal((512, 8), seed=1)
y = ops.sum(ops.square(x), axis=1, keepdims=True)
model = nn.Sequential(nn.Linear(8, 32), ops.tanh, nn.Linear(32, 1))
trainer = Trainer(model, "adam", "mean_squared_error", progress=False, seed=0)
trainer.fit(DataLoader((x, y), batch_size=64, shuffle=True, seed=0), epochs=4)
print("result", json.dumps({"loss": float(trainer.history["loss"].epochs[-1])}))
"""


def run(tmp_path: Path, script: str, *arguments: str) -> dict[str, object]:
    path = tmp_path / "script.py"
    path.write_text(script)
    entries = os.pathsep.join(entry for entry in sys.path if entry)
    # Ray 2.60 gives its workers the lowest priority but a few, with which they hardly run on a busy machine
    environment = {**os.environ, "PYTHONPATH": entries, "RAY_worker_niceness": "0"}
    command = [sys.executable, str(path), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("result "))
    return json.loads(line.removeprefix("result "))


@pytest.mark.long
def test_workers_of_ray_train_together_and_after_one_has_died(backend: str, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'ember-ml[ray]'")
    alone = run(tmp_path, ALONE, backend)
    found = run(tmp_path, SCRIPT, str(EXAMPLE), str(tmp_path / "out"), backend)
    assert (tmp_path / "out" / "died").exists()
    assert (found["epoch"], found["steps"]) == (4, 32)
    assert found["loss"] == pytest.approx(alone["loss"], rel=1e-5)
    files = found["files"]
    assert isinstance(files, list)
    assert {"state.json", "model-32.safetensors", "optimizer-32.safetensors"} <= {*files}


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"ember-ml\[ray\]"):
        join_workers()
