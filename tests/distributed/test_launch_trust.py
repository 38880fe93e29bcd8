"""What must not end a job: a hangup, a full disk for logs, unknown characters, much output; and what is shown of it."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import pytest

from ember_ml.distributed import supervisor as supervising
from ember_ml.distributed.hosts import Host, route_to
from ember_ml.distributed.report import Report
from ember_ml.distributed.start_agents import Job, Starter
from ember_ml.distributed.supervisor import Supervisor
from ember_ml.errors import LaunchError
from tests.distributed.launching import Launched, launch

QUICK = ("--timeout", "30", "--backend", "numpy")


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


def test_no_other_interface_is_listened_at_than_the_one_by_which_a_host_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[set[str]] = []

    def refuse(selector: object, addresses: set[str], *_: object) -> None:
        found.append(addresses)
        raise LaunchError("enough is known")

    monkeypatch.setattr(supervising, "Listeners", refuse)
    for hosts in ([Host("127.0.0.1", range(1))], [Host("127.0.0.1", range(1)), Host("192.0.2.9", range(1, 2))]):
        job = Job([sys.executable, "x"], hosts, "torch", 100.0, None)
        with pytest.raises(LaunchError, match="enough"):
            Supervisor(job, 0, Report(None)).run()
    assert found == [{"127.0.0.1"}, {"127.0.0.1", route_to("192.0.2.9")}]
    assert not found[1] & {"", "0.0.0.0", "::"}


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


def test_much_output_arrives_whole_and_is_no_standing_still(tmp_path: Path) -> None:
    script = """
import os
from ember_ml.distributed import heartbeat
heartbeat.start()
for number in range(400):
    os.write(1, b"".join(b"%d %090d\\n" % (number, line) for line in range(1000)))
"""
    shown = launch(tmp_path, script, "-n", "1", "--backend", "numpy", "--timeout", "20")
    assert shown.code == 0, shown.err
    lines = shown.out.splitlines()
    assert lines == [f"[0] {number} {line:090d}" for number in range(400) for line in range(1000)]


def test_a_rank_that_waits_for_its_output_to_be_read_is_not_standing_still() -> None:
    supervisor = Supervisor(Job([sys.executable, "x"], [Host("127.0.0.1", range(1))], "torch", 100.0), 0, Report(None))
    (rank,), (link,) = supervisor.ranks, supervisor._links.values()
    now = time.monotonic()
    rank.beat(now - 200.0, {"moves": 1, "collectives": 1, "inside": ""})
    assert supervisor.watch.stalled(now) is not None
    supervisor._take(link, {"rank": 0, "stream": "err", "lines": "a\nb", "full": True})
    assert supervisor.watch.stalled(now) is None
    assert list(rank.errors) == ["a", "b"]


def test_progress_bars_are_shown_while_they_move(tmp_path: Path) -> None:
    script = """
import sys, time
for step in range(25):
    print(f"\\rstep {step:2}", end="", flush=True)
    time.sleep(0.1)
print("\\rdone   \\nwindows\\r\\nplain")
"""
    shown = launch(tmp_path, script, "-n", "1", *QUICK)
    assert shown.code == 0, shown.err
    *bars, done, windows, plain = shown.out.splitlines()
    assert 1 <= len(bars) <= 5  # about one each second, not one for each of 25 steps
    assert bars == sorted(bars)
    assert all(bar.startswith("[0] step ") for bar in bars)
    assert (done, windows, plain) == ("[0] done   ", "[0] windows", "[0] plain")
