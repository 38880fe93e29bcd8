"""What a rank says to its launcher, what it hears, and how a broken collective names the rank that was lost."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import Any

import pytest

from ember_ml.distributed import heartbeat

PREAMBLE = (
    "import sys, time; from ember_ml.distributed import heartbeat; assert heartbeat.start(); assert heartbeat.start();"
)


class Rank:
    """A process that was given a channel, and the launcher's end of it."""

    def __init__(self, code: str, timeout: str = "2") -> None:
        self.channel, theirs = socket.socketpair()
        environment = {**os.environ, heartbeat.HEARTBEAT: str(theirs.fileno()), heartbeat.TIMEOUT: timeout}
        self.process = subprocess.Popen(
            [sys.executable, "-c", PREAMBLE + code],
            env=environment,
            pass_fds=[theirs.fileno()],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        theirs.close()
        self.channel.settimeout(30)
        self.lines = self.channel.makefile("r")

    def hear(self) -> dict[str, Any]:
        return json.loads(self.lines.readline())

    def hear_until(self, key: str, value: Any) -> dict[str, Any]:
        while (beat := self.hear()).get(key) != value:
            pass
        return beat

    def say(self, lost: str, grace: float) -> None:
        self.channel.sendall(json.dumps({"lost": lost, "rank": 1, "grace": grace}).encode() + b"\n")

    def __enter__(self) -> Rank:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
        self.lines.close()
        self.channel.close()


def test_without_a_launcher_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(heartbeat.HEARTBEAT, raising=False)
    assert not heartbeat.start()
    with pytest.raises(RuntimeError, match=r"^the engine's own words$"), heartbeat.waiting("all_reduce"):
        raise RuntimeError("the engine's own words")


def test_a_number_that_is_no_open_channel_counts_as_no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(heartbeat.HEARTBEAT, "9999")
    assert not heartbeat.start()


def test_a_rank_tells_its_moves_and_what_it_waits_in() -> None:
    with Rank("heartbeat.start(); heartbeat.progress()\nwith heartbeat.waiting('all_reduce'): time.sleep(60)") as rank:
        beat = rank.hear_until("inside", "all_reduce")
        assert beat == {"moves": 2, "collectives": 1, "inside": "all_reduce"}
        assert rank.hear() == beat  # it goes on while the main thread waits


def test_processes_that_a_rank_starts_are_no_ranks() -> None:
    code = f"import os; assert {heartbeat.HEARTBEAT!r} not in os.environ"
    with Rank(code) as rank:
        assert rank.process.wait(30) == 0


def test_a_broken_collective_raises_with_the_name_of_the_lost_rank() -> None:
    with Rank("\nwith heartbeat.waiting('all_reduce'): raise RuntimeError('connection closed')") as rank:
        assert rank.hear_until("broken", "all_reduce: connection closed")["inside"] == ""
        rank.say("rank 1 was killed by SIGKILL", 30.0)
        errors = rank.process.communicate(timeout=30)[1]
        assert rank.process.returncode == 1
        assert "PeerLost: all_reduce cannot finish: rank 1 was killed by SIGKILL" in errors
        assert "RuntimeError: connection closed" in errors


def test_other_errors_inside_a_collective_stay_what_they_are() -> None:
    with Rank("\nwith heartbeat.waiting('all_reduce'): raise ValueError('shapes differ')") as rank:
        errors = rank.process.communicate(timeout=30)[1]
        assert errors.rstrip().endswith("ValueError: shapes differ")


def test_a_rank_that_waits_for_ever_leaves_when_its_grace_is_over() -> None:
    with Rank("\nwith heartbeat.waiting('all_gather'): time.sleep(60)") as rank:
        rank.hear_until("inside", "all_gather")
        rank.say("rank 3 has stopped", 0.2)
        errors = rank.process.communicate(timeout=30)[1]
        assert rank.process.returncode == 1
        assert "PeerLost: this rank was still in all_gather: rank 3 has stopped" in errors
        assert "time.sleep" in errors or 'File "<string>"' in errors


def test_a_rank_goes_on_when_the_channel_is_closed() -> None:
    with Rank("sys.stdin.readline(); time.sleep(0.5); print('went on')") as rank:
        rank.hear()
        rank.lines.close()
        rank.channel.close()
        assert rank.process.communicate(timeout=30)[0] == "went on\n"
