"""Running `ember-ml launch` as a user types it, with small scripts, and never for ever."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

COMMAND = [shutil.which("ember-ml", path=str(Path(sys.executable).parent)) or sys.executable]
if [sys.executable] == COMMAND:  # the package is on the path, not installed
    COMMAND += ["-m", "ember_ml.cli"]
PATIENCE = 120.0
"""Seconds after which a test has failed, whatever the launcher does; a busy machine starts slowly."""

# the agent, which has started this rank, was told the launcher's port
FIND_LAUNCHER = """
import os, socket
from pathlib import Path
words = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().split(b"\\0")
port = next(int(word.rpartition(b":")[2]) for word in words if word.startswith(b"127.0.0.1:"))
"""
needs_proc = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="the port is read from /proc")

# each rank joins the others and adds up ones; rank 1 fails at the seventh step in the way that it is told
TOGETHER = """
import os, signal, sys, time
from ember_ml import distributed, ops
from ember_ml.distributed import collectives

distributed.initialize()
how = sys.argv[1] if len(sys.argv) > 1 else ""
for step in range(14):
    if step == 7 and distributed.rank() == 1:
        print("fault at", time.time())
        if how == "SIGKILL":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "SIGSTOP":
            os.kill(os.getpid(), signal.SIGSTOP)
        if how == "hang":
            time.sleep(1000)
        if how == "raise":
            raise ValueError("a mistake in step 7")
        if how == "leave":
            sys.exit(0)
    total = ops.item(collectives.all_reduce(ops.array(1.0)))
    assert total == distributed.world_size(), total
line = f"rank {distributed.rank()} of {distributed.world_size()} has added up {total}\\n"
os.write(1, line.encode())  # in one piece: other launchers let the ranks share one stream
"""


@dataclass
class Outcome:
    code: int
    out: str
    err: str
    seconds: float

    @property
    def events(self) -> list[dict[str, Any]]:
        """What `--json` printed."""
        return [json.loads(line) for line in self.out.splitlines()]


class Launched:
    """A running `ember-ml launch`; leaving the block kills what may be left of it."""

    def __init__(self, folder: Path, script: str, *options: str, arguments: tuple[str, ...] = ()) -> None:
        path = folder / "script.py"
        path.write_text(script)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [*COMMAND, "launch", *options, str(path), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        )

    def lines(self, count: int) -> list[str]:
        """The next lines of its standard output."""
        return [self._line() for _ in range(count)]

    def _line(self) -> str:
        """Byte by byte: what a buffer has read ahead, ``communicate`` would not see."""
        assert self.process.stdout is not None
        found = bytearray()
        while not found.endswith(b"\n") and (byte := os.read(self.process.stdout.fileno(), 1)):
            found += byte
        return found.decode().rstrip("\n")

    def finish(self) -> Outcome:
        out, err = self.process.communicate(timeout=PATIENCE)
        return Outcome(self.process.returncode, out, err, time.monotonic() - self.began)

    def __enter__(self) -> Launched:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
        except ValueError:  # it was read to the end before
            pass


def launch(folder: Path, script: str, *options: str, arguments: tuple[str, ...] = ()) -> Outcome:
    """Run it to its end."""
    with Launched(folder, script, *options, arguments=arguments) as launched:
        return launched.finish()


def is_running(pid: int) -> bool:
    """Whether a process is there and not only waiting to be taken note of."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        if Path("/proc/self").exists():
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    return state != "Z"


def all_end(pids: list[int], seconds: float = 20.0) -> bool:
    """Whether the processes are gone soon."""
    until = time.monotonic() + seconds
    while any(is_running(pid) for pid in pids):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True
