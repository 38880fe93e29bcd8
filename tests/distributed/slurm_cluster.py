"""Slurm with two nodes on this machine: its own daemons, for the tests of jobs under it."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.distributed.namespaces import Namespace

__all__ = ["Cluster", "what_is_missing"]

_PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "unshare", "nsenter")
_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
_SECONDS = 60.0
# both nodes are this host, under two names; what is not needed here, as limits by cgroups, is off
_SETTINGS = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=26817
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=1,sched_interval=2
SlurmdParameters=config_overrides
KillWait=40
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.2 Port=26818 CPUs=2
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.3 Port=26819 CPUs=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=60
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


def what_is_missing() -> str:
    """Return why there can be no cluster here; empty where there can."""
    missing = [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]
    if missing:
        return f"{', '.join(missing)} of Debian's slurm-wlm, munge and util-linux are not installed"
    return "" if os.geteuid() == 0 else "the daemons of Slurm need the rights of root"


class Cluster:
    """The daemons; closing ends them, and all jobs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        host = socket.gethostname().partition(".")[0]
        (folder / "state").mkdir()
        (folder / "slurm.conf").write_text(_SETTINGS.format(host=host, folder=folder))
        (folder / "hosts").write_text(f"127.0.0.1 localhost {host}\n127.0.0.2 node1\n127.0.0.3 node2\n")
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o600)
        self._namespace = Namespace(f"mount --bind {folder}/hosts /etc/hosts", has_network=False)
        self._daemons: list[subprocess.Popen[bytes]] = []
        try:
            own = [f"--{name}={folder}/munge.{name.partition('-')[0]}" for name in ("key-file", "socket", "pid-file")]
            self._start("munged", "--foreground", "--force", *own, f"--seed-file={folder}/seed")
            self._wait_for(folder / "munge.socket")
            self._start("slurmctld", "-D", "-c")
            for node in ("node1", "node2"):
                self._start("slurmd", "-D", "-N", node)
            self._wait_for_nodes()
        except BaseException:
            self.close()
            raise

    @property
    def environment(self) -> dict[str, str]:
        path = os.pathsep.join((str(Path(sys.executable).parent), _PATH))
        entries = os.pathsep.join(entry for entry in sys.path if entry)
        return {**os.environ, "PATH": path, "SLURM_CONF": f"{self.folder}/slurm.conf", "PYTHONPATH": entries}

    def _start(self, *command: str) -> None:
        with open(self.folder / f"{command[0]}-{len(self._daemons)}.out", "wb") as output:
            self._daemons.append(
                subprocess.Popen(
                    self._namespace.enter(*command), env=self.environment, stdout=output, stderr=subprocess.STDOUT
                )
            )

    def _wait_for(self, path: Path) -> None:
        until = time.monotonic() + _SECONDS
        while not path.exists():
            if time.monotonic() > until or self._daemons[-1].poll() is not None:
                raise RuntimeError(f"no {path.name}: {self._told()}")
            time.sleep(0.05)

    def _wait_for_nodes(self) -> None:
        until = time.monotonic() + _SECONDS
        while self.run("sinfo", "--noheader", "--states=idle", "--format=%D").stdout.strip() != "2":
            if time.monotonic() > until:
                raise RuntimeError(f"the nodes have not come up: {self._told()}")
            time.sleep(0.2)

    def _told(self) -> str:
        """Return what the daemons have said."""
        return "\n".join(path.read_text(errors="replace")[-1000:] for path in self.folder.glob("*.[ol][uo][tg]"))

    def run(self, *command: str, backend: str = "numpy", seconds: float = 300.0) -> subprocess.CompletedProcess[str]:
        """Run a program on the machine from which jobs are started."""
        return subprocess.run(
            self._namespace.enter(*command),
            env={**self.environment, "EMBER_ML_BACKEND": backend},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def close(self) -> None:
        """End the jobs and the daemons."""
        if len(self._daemons) > 1:
            self.run("scancel", "--full", "--signal=KILL", "--user=root")
            self.run("scancel", "--user=root")
            until = time.monotonic() + _SECONDS
            while self.run("squeue", "--noheader").stdout.strip() and time.monotonic() < until:
                time.sleep(0.2)
        for daemon in reversed(self._daemons):
            daemon.terminate()
        for daemon in self._daemons:
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self._namespace.close()
