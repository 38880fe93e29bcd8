"""Starting a job on several processes, by each engine's own means, with a time limit."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def has_mpi() -> bool:
    return importlib.util.find_spec("mpi4py") is not None


def run_ranks(
    job: str,
    backend: str,
    ranks: int,
    limit: float = 120.0,
    variables: Mapping[str, str] = MappingProxyType({}),
    by_mpi: bool = True,
    module: str = "tests.distributed.jobs",
    **given: Any,
) -> list[Any]:
    """What each rank of the function ``job`` of a module gives, as plain data; ``given`` are its arguments.

    ``variables`` of the environment are added to those that the processes have. NumPy's processes are started by MPI
    where it is installed, unless ``by_mpi`` is False.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", module, job, folder, json.dumps(given)]
        variables = _variables(backend, Path(folder), ranks) | dict(variables)
        if backend == "numpy" and ranks > 1 and by_mpi and has_mpi():
            mpiexec = Path(sys.executable).with_name("mpiexec")
            processes = [_started([str(mpiexec), "-n", str(ranks), *command], variables, Path(folder) / "all.log")]
        else:
            processes = [
                _started(command, variables | _rank_of(rank, ranks), Path(folder) / f"{rank}.log")
                for rank in range(ranks)
            ]
        _wait(processes, limit, Path(folder))
        return [json.loads((Path(folder) / f"{rank}.json").read_text()) for rank in range(ranks)]


def _variables(backend: str, folder: Path, count: int) -> dict[str, str]:
    """The environment of all ranks: none of this process's own that would tell another place."""
    addresses = [[f"127.0.0.1:{free_port()}"] for _ in range(count)]
    hosts = folder / "hosts.json"
    hosts.write_text(json.dumps(addresses))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EMBER_ML_", "MLX_", "PMI"))}
    own = {
        "EMBER_ML_BACKEND": backend,
        "EMBER_ML_TIMEOUT": "60",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
    }
    if count > 1:
        own |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "MLX_HOSTFILE": str(hosts)}
    return kept | own


def _rank_of(rank: int, count: int) -> dict[str, str]:
    if count == 1:
        return {}
    return {
        "EMBER_ML_RANK": str(rank),
        "EMBER_ML_WORLD_SIZE": str(count),
        "EMBER_ML_LOCAL_RANK": str(rank),
        "MLX_RANK": str(rank),
    }


def _started(command: list[str], variables: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as file:
        return subprocess.Popen(
            command, cwd=ROOT, env=variables, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )


def _wait(processes: list[subprocess.Popen[bytes]], limit: float, folder: Path) -> None:
    """Wait for all; where one fails, or the time is over, end them all and show what they said."""
    end = time.monotonic() + limit
    codes: list[int | None] = [None]
    while None in codes and not any(codes) and time.monotonic() < end:
        time.sleep(0.02)
        codes = [process.poll() for process in processes]
    if codes == [0] * len(processes):
        return
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    said = [f"{path.name}:\n{path.read_text(errors='replace')}" for path in sorted(folder.glob("*.log"))]
    raise AssertionError(f"the ranks ended with {codes} (None: not within {limit:g} s)\n" + "\n".join(said))
