"""The script that `ember-ml launch` runs, started by plain python, torchrun, mlx.launch and mpirun."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ember_ml.backend import is_installed
from tests.distributed.launching import PATIENCE, TOGETHER

STARTERS = {
    "torchrun": ["torchrun", "--standalone", "--nproc-per-node", "2"],
    "mlx.launch": ["mlx.launch", "-n", "2", "--backend", "ring"],
    "mpirun": ["mpirun", "-n", "2"],
}
OWN = {"torchrun": "torch", "mlx.launch": "mlx", "mpirun": "numpy"}
PAIRS = [
    pytest.param(starter, backend, marks=() if OWN[starter] == backend else pytest.mark.long)
    for starter in STARTERS
    for backend in ("numpy", "torch", "mlx", "jax")
    if (starter, backend) != ("mlx.launch", "torch")
]


def run(command: list[str], backend: str, folder: Path, script: str = TOGETHER) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    environment |= {"EMBER_ML_BACKEND": backend, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return subprocess.run(
        [*command, str(folder / "script.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize(("starter", "backend"), PAIRS)
def test_the_script_runs_under(starter: str, backend: str, tmp_path: Path) -> None:
    name, *options = STARTERS[starter]
    program = shutil.which(name, path=str(Path(sys.executable).parent))
    if program is None or not is_installed(backend):
        pytest.skip(f"{name} or {backend} is not installed")
    with_python = [] if starter == "torchrun" else [sys.executable]  # it starts Python by itself
    done = run([program, *options, *with_python], backend, tmp_path)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"rank (\d) of 2 has added up 2\.0", done.stdout + done.stderr)
    assert sorted(found) == ["0", "1"], done.stdout + done.stderr


# rank 1 is killed once, in the first start
DIES_ONCE = """
import os, sys
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    sys.argv.append("SIGKILL")
"""


@pytest.mark.long
def test_ranks_that_torchrun_starts_again_find_each_other(backend: str, tmp_path: Path) -> None:
    """PyTorch's own gloo does not always: it may look for the ranks that died (torch 2.13)."""
    name, *options = STARTERS["torchrun"]
    program = shutil.which(name, path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("torchrun is not installed")
    done = run([program, *options, "--max-restarts", "3"], backend, tmp_path, DIES_ONCE + TOGETHER)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"rank (\d) of 2 has added up 2\.0", done.stdout + done.stderr)
    assert sorted(found) == ["0", "1"], done.stdout + done.stderr
    assert "fault at" in done.stdout


OWN_GROUP = """
import sys
import torch.distributed as dist

dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=int(sys.argv[2]), world_size=2)
"""


@pytest.mark.long
def test_a_group_that_the_program_has_made_is_used(tmp_path: Path) -> None:
    if not is_installed("torch"):
        pytest.skip("torch is not installed")
    (tmp_path / "script.py").write_text(OWN_GROUP + TOGETHER)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    ranks = [
        subprocess.Popen(
            [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "meeting"), str(rank)],
            env={**environment, "EMBER_ML_BACKEND": "torch"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    printed = [rank.communicate(timeout=PATIENCE)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0]
    for rank, text in enumerate(printed):
        assert f"rank {rank} of 2 has added up 2.0" in text


def test_the_script_runs_alone(backend: str, tmp_path: Path) -> None:
    done = run([sys.executable], backend, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "rank 0 of 1 has added up 1.0" in done.stdout
