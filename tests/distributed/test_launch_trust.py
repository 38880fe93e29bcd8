"""What must not end a job: strangers at the launcher's port, a hangup, a full disk for logs, unknown characters."""

from __future__ import annotations

import resource
import signal
import sys
import time
from pathlib import Path

import pytest

from ember_ml.distributed.hosts import Host
from ember_ml.distributed.report import Report
from ember_ml.distributed.start_agents import Job, Starter
from ember_ml.distributed.supervisor import Supervisor
from tests.distributed.launching import Launched, launch

QUICK = ("--timeout", "30", "--backend", "numpy")
# the agent, which has started this rank, was told the launcher's port
FIND = """
import os, socket, time
from pathlib import Path
words = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().split(b"\\0")
port = next(int(word.rpartition(b":")[2]) for word in words if word.startswith(b"127.0.0.1:"))
def knock(text=b""):
    connection = socket.create_connection(("127.0.0.1", port), timeout=5)
    connection.sendall(text)
    return connection
"""
needs_proc = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="the port is read from /proc")


@needs_proc
def test_nothing_that_a_stranger_says_ends_the_job(tmp_path: Path) -> None:
    said = [b"[" * 60000, b'{"hello":["0"],"token":5}', b"[1,2]", b'{"hello":"0","token":"\xc3\xa9"}', b"\xff" * 100]
    script = FIND + f"held = [knock(text + b'\\n') for text in {said!r}]\ntime.sleep(1)\nprint('whole')"
    shown = launch(tmp_path, script, "-n", "1", *QUICK)
    assert shown.code == 0, shown.err
    assert "whole" in shown.out


@needs_proc
def test_any_number_of_idle_connections_leaves_the_job_alone(tmp_path: Path) -> None:
    more = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (1024, 4096))\ntime.sleep(1)\n"
    script = FIND + more + "held = [knock() for _ in range(200)]\ntime.sleep(1)\nprint('whole')"
    with Launched(tmp_path, script, "-n", "1", *QUICK) as launched:
        resource.prlimit(launched.process.pid, resource.RLIMIT_NOFILE, (64, 4096))
        shown = launched.finish()
    assert shown.code == 0, shown.err
    assert "whole" in shown.out


def test_a_hangup_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        launched = Launched(tmp_path, "import time\nprint('on')\ntime.sleep(2)\nprint('whole')", "-n", "1", *QUICK)
    finally:
        signal.signal(signal.SIGHUP, before)
    with launched:
        assert launched.lines(1) == ["[0] on"]
        launched.process.send_signal(signal.SIGHUP)
        shown = launched.finish()
    assert shown.code == 0
    assert "whole" in shown.out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_ends_the_log_and_not_the_job(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "rank-0.log").symlink_to("/dev/full")
    shown = launch(tmp_path, "print('whole')", "-n", "1", "--log-dir", str(tmp_path / "logs"), *QUICK)
    assert shown.code == 0, shown.err
    assert "the log of rank 0 ends here" in shown.err
    assert "whole" in shown.out


def test_characters_that_the_terminal_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    script = "import os\nos.write(1, 'gr\\u00fc\\u00dfe\\n'.encode())"
    shown = launch(tmp_path, script, "-n", "1", "--log-dir", str(tmp_path), *QUICK)
    assert shown.code == 0, shown.err
    assert "gr\\xfc\\xdfe" in shown.out
    assert "gr\u00fc\u00dfe" in (tmp_path / "rank-0.log").read_text(encoding="utf-8")


def test_a_host_that_died_is_blamed_and_not_the_rank_that_waited_for_it() -> None:
    job = Job([sys.executable, "x"], [Host("one", range(1)), Host("two", range(1, 2))], "torch", 100.0, None)
    supervisor = Supervisor(job, 0, Report(None))
    now = time.monotonic()
    survivor, lost = supervisor.ranks[0], supervisor._links["1"]
    survivor.broken, survivor.broken_at, lost.lost = "average", now - 1.0, now - 1.0
    starter = Starter.__new__(Starter)  # nothing is started, and nothing is asked of it
    failure = supervisor._found_failure(now, starter)
    assert failure is not None
    assert (failure.rank, failure.why) == (1, "the agent of host two (rank 1) was lost")
