"""Start the agents of a job: here, on other hosts by ``ssh``, or by ``mpirun`` where the engine is MPI."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ember_ml.backend.selection import is_installed
from ember_ml.distributed import agent
from ember_ml.distributed.hosts import LOCAL, Host, is_here, route_to
from ember_ml.errors import LaunchError

__all__ = ["Job", "Starter", "mpi_command"]

_TOKEN = "EMBER_ML_TOKEN"
# Open MPI, of both its generations: on one host more ranks than cores are meant; on several the slots say how many
_MORE_THAN_CORES = {
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
# ranks share the cores, and containers run as root
_OPEN_MPI = {
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


@dataclass
class Job:
    """What is to be run, where, and for how long a rank may stand still; ``mpi`` is the command for ranks of MPI."""

    command: list[str]
    hosts: list[Host]
    backend: str
    timeout: float
    mpi: list[str] | None = None


def mpi_command(hosts: list[Host]) -> list[str] | None:
    """The command that starts the ranks of NumPy on these hosts, without their program; None where gloo joins them.

    gloo, which PyTorch brings, has time limits but is slower.
    """
    beside = str(Path(sys.executable).parent)
    program = shutil.which("mpirun", path=os.pathsep.join((beside, os.environ.get("PATH", ""))))
    if program is None or importlib.util.find_spec("mpi4py") is None:
        if is_installed("torch"):
            return None
        missing = "mpirun was not found" if program is None else "the package mpi4py is not installed"
        raise LaunchError(
            f"several ranks of NumPy are joined by MPI, and {missing}: pip install 'ember-ml[mpi]', or install "
            "PyTorch, whose engine serves NumPy as well"
        )
    command = [program, "-n", str(sum(len(host.ranks) for host in hosts))]
    if len(hosts) == 1 and is_here(hosts[0].name):
        return command
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    places = ",".join(f"{host.name}:{len(host.ranks)}" for host in hosts)
    if "Open MPI" in version or "Open RTE" in version:
        return [*command, "--host", places, "-x", _TOKEN]
    away = [host.name for host in hosts if not is_here(host.name)]
    # its remote parts would look for this machine by its name, which may mean themselves
    return [*command, "-hosts", places, *(["-localhost", route_to(away[0])] if away else [])]


class Starter:
    """The processes that start the agents: the agents themselves on this host, else ``ssh`` or ``mpirun``.

    Args:
        job: What is to be run.
        ports: The port at which the launcher listens at each of its addresses.
        token: The secret by which it knows its agents.
    """

    def __init__(self, job: Job, ports: Mapping[str, int], token: str) -> None:
        self.said: deque[str] = deque(maxlen=20)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        program = [sys.executable, "-P", str(Path(agent.__file__))]
        environment = {**os.environ, _TOKEN: token}
        if job.mpi is not None:
            away = [host.name for host in job.hosts if not is_here(host.name)]
            address = route_to(away[0]) if away else LOCAL
            settings = {**_OPEN_MPI, **(_MORE_THAN_CORES if len(job.hosts) == 1 else {})}
            self._start(
                "mpirun", [*job.mpi, *program, f"{address}:{ports[address]}", "mpi"], {**settings, **environment}
            )
            return
        for number, host in enumerate(job.hosts):
            if is_here(host.name):
                self._start(host.name, [*program, f"{LOCAL}:{ports[LOCAL]}", str(number)], environment)
            else:
                address = route_to(host.name)
                there = shlex.join([*program, f"{address}:{ports[address]}", str(number)])
                # the secret goes through the input, since command lines can be read by everybody
                self._start(host.name, ["ssh", "-o", "BatchMode=yes", "--", host.name, there], dict(os.environ), token)

    def _start(self, name: str, command: list[str], environment: dict[str, str], line: str = "") -> None:
        try:
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.PIPE if line else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the launcher, which tells the agents
            )
        except OSError as error:
            self.end(0.0)
            raise LaunchError(f"{command[0]} cannot be run: {error}") from error
        self.processes[name] = process
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(line.encode() + b"\n")
                process.stdin.close()

    def outputs(self) -> list[IO[bytes]]:
        """Return what the processes print, to be read when something has come: errors of ``ssh`` and ``mpirun``."""
        return [process.stdout for process in self.processes.values() if process.stdout is not None]

    def read(self, source: IO[bytes]) -> bool:
        """Remember what has come; whether there may be more."""
        some = os.read(source.fileno(), 65536)
        self.said.extend(line for line in some.decode(errors="replace").splitlines() if line.strip())
        return bool(some)

    def ended(self) -> dict[str, int]:
        """Return the processes that have ended, with their exit codes."""
        return {name: process.returncode for name, process in self.processes.items() if process.poll() is not None}

    def end(self, patience: float) -> None:
        """Wait a little for the processes, whose agents have been told or have lost the connection, then kill them."""
        until = time.monotonic() + patience
        for process in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, until - time.monotonic()))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
