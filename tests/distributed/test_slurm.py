"""Jobs under Slurm, with real daemons: what tasks learn of each other, and that a job which gives way loses no step."""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from ember_ml import ops
from ember_ml.training import checkpoints
from tests.distributed.launching import TOGETHER
from tests.distributed.namespaces import MissingRights
from tests.distributed.slurm_cluster import Cluster, what_is_missing

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(what_is_missing()), reason=what_is_missing())]
EXAMPLE = Path(__file__).parents[2] / "examples" / "cluster"
EPOCHS = 60  # of 8 steps


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    try:
        made = Cluster(tmp_path_factory.mktemp("slurm"))
    except MissingRights as error:
        pytest.skip(f"there can be no hosts for Slurm here: {error}")
    yield made
    made.close()


@pytest.mark.parametrize("kind", ["none", "pmi2", "pmix"])
def test_tasks_of_a_step_compute_together(cluster: Cluster, backend: str, kind: str, tmp_path: Path) -> None:
    known = cluster.run("srun", "--mpi=list")
    if not re.search(rf"^\s*{kind}$", known.stdout + known.stderr, re.MULTILINE):
        pytest.skip(f"this Slurm has no {kind}")
    script = tmp_path / "script.py"
    script.write_text(TOGETHER + "\nos.write(1, f'local {distributed.rank()} {distributed.local_rank()}\\n'.encode())")
    # Slurm 22.05: two of its daemons on one host cannot both serve PMIx, and its PMI2 does not understand the
    # addresses of MPICH 5.0 on several nodes
    nodes, tasks = (2, 4) if kind == "none" else (1, 2)
    options = (f"--mpi={kind}", f"--nodes={nodes}", f"--ntasks={tasks}")
    done = cluster.run("srun", *options, sys.executable, str(script), backend=backend)
    if "can not load PMIx library" in done.stderr:
        pytest.skip("Slurm finds no library of PMIx: Debian's libpmix-dev has it")
    assert done.returncode == 0, done.stderr
    found = re.findall(rf"rank (\d) of {tasks} has added up {tasks}\.0", done.stdout)
    assert sorted(found) == [str(rank) for rank in range(tasks)]
    assert sorted(re.findall(r"local (\d) (\d)", done.stdout)) == [(str(rank), str(rank % 2)) for rank in range(tasks)]


# the example's program; its epochs take longer while the file "slowly" is there, so that a test can choose its moment
SLOWLY = """
import time
from pathlib import Path
import example

class Slow(example.Told):
    def after_epoch(self, trainer, values):
        super().after_epoch(trainer, values)
        time.sleep(1.0 if Path("slowly").exists() else 0.0)

example.Told = Slow
example.main()
"""


def submit(cluster: Cluster, folder: Path, backend: str, *options: str) -> str:
    """Submit the example's job, in so small a size; return its number."""
    shutil.copy(EXAMPLE / "train.py", folder / "example.py")
    (folder / "train.py").write_text(SLOWLY)
    small = ["--nodes=2", "--ntasks-per-node=2", f"--chdir={folder}", "--parsable", *options]
    done = cluster.run("sbatch", *small, str(EXAMPLE / "slurm.sh"), "--epochs", str(EPOCHS), backend=backend)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def wait_for(cluster: Cluster, folder: Path, job: str, words: str, seconds: float = 300.0) -> str:
    """Return what the job has printed when these words are in it."""
    log, until = folder / f"train-{job}.log", time.monotonic() + seconds
    while time.monotonic() < until:
        printed = log.read_text() if log.exists() else ""
        if re.search(words, printed):
            return printed
        assert "JobState=FAILED" not in cluster.run("scontrol", "show", "job", job).stdout, printed
        time.sleep(0.3)
    raise AssertionError(f"the job has not printed {words!r}: {log.read_text() if log.exists() else 'nothing'}")


def weights(folder: Path) -> dict[str, list[float]]:
    tensors, state = checkpoints.read(folder / "checkpoints")
    assert state["steps"] == 8 * EPOCHS
    return {name: ops.to_numpy(x).ravel().tolist() for name, x in tensors["model"].items()}


@cache
def undisturbed(cluster: Cluster, backend: str) -> dict[str, list[float]]:
    """The weights of a job that nothing has ended before its time."""
    folder = cluster.folder / f"whole-{backend}"
    folder.mkdir()
    wait_for(cluster, folder, submit(cluster, folder, backend), "ended after")
    return weights(folder)


def release(cluster: Cluster, job: str) -> None:
    """Let a requeued job start at once, and for longer: Slurm waits for two minutes."""
    until = time.monotonic() + 150.0
    while time.monotonic() < until:
        shown = cluster.run("scontrol", "show", "job", job).stdout
        if "JobState=PENDING" in shown and "Restarts=1" in shown:
            time.sleep(
                3.0
            )  # a job that starts in the second in which it has ended is refused: its rights are withdrawn
            cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now", "TimeLimit=60")
            return
        time.sleep(0.3)
    raise AssertionError(f"the job was not requeued: {shown}")


@pytest.mark.parametrize("how", ["preempted", "time is over"])
def test_a_job_that_is_asked_to_end_goes_on_where_it_was(
    cluster: Cluster, backend: str, how: str, tmp_path: Path
) -> None:
    expected = undisturbed(cluster, backend)
    slowly = tmp_path / "slowly"
    slowly.touch()
    job = submit(cluster, tmp_path, backend, "--time=60", "--signal=TERM@1800")
    wait_for(cluster, tmp_path, job, "epoch 10:")
    if how == "preempted":  # by a job that needs all nodes, in a partition that comes first
        urgent = ("--partition=urgent", "--nodes=2", "--ntasks-per-node=2", f"--output={tmp_path}/urgent.log")
        assert cluster.run("sbatch", *urgent, "--wrap=srun echo urgent").returncode == 0
    else:  # there is less time left than that for which the signal is asked; Slurm looks twice a minute
        assert cluster.run("scontrol", "update", f"JobId={job}", "TimeLimit=20").returncode == 0
    release(cluster, job)
    slowly.unlink()
    printed = wait_for(cluster, tmp_path, job, "ended after")
    begun = [int(step) for step in re.findall(r"4 processes begin at step (\d+)", printed)]
    assert len(begun) == 2
    assert begun[0] == 0
    last = max(int(epoch) for epoch in re.findall(r"epoch (\d+):", printed.rpartition("begin at")[0]))
    assert 8 * last <= begun[1] < 8 * EPOCHS  # no step is lost
    assert weights(tmp_path) == expected
    if how == "preempted":
        assert (tmp_path / "urgent.log").read_text().split() == 4 * ["urgent"]
