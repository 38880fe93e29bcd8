"""Keep what the launcher knows of each rank, and find the one that is responsible when a job fails or stalls."""

from __future__ import annotations

import signal
from collections import deque
from dataclasses import dataclass, field

__all__ = [
    "REMEMBERED_LINES",
    "STALLED",
    "Failure",
    "RankState",
    "Watch",
    "checkpoint_error_in",
    "describe_exit",
    "traceback_of",
]

STALLED = 124
"""The exit code of a job that was given up, as of the command ``timeout``."""
REMEMBERED_LINES = 400
"""How many lines of its standard error are kept of a rank."""


@dataclass
class Failure:
    """What ended a job: the rank that failed first (None where none did), why, and the exit code."""

    rank: int | None
    why: str
    code: int
    final: bool = False
    """Whether the user wanted it, so that nothing is started again."""


@dataclass
class RankState:
    """One rank, as far as the launcher has heard."""

    number: int
    host: str
    code: int | None = None
    joined: bool = False
    moves: int = 0
    collectives: int = 0
    inside: str = ""
    moved: float = 0.0
    heard: float = 0.0
    stopped: float | None = None
    broken: str = ""
    broken_at: float = 0.0
    leaving: bool = False
    stopping: bool = False
    """Whether it was asked to end and saves its state before."""
    raised: str = ""
    raised_at: float = 0.0
    ended: bool = False
    """Whether the launcher had begun to end this rank when it was still running."""
    errors: deque[str] = field(default_factory=lambda: deque(maxlen=REMEMBERED_LINES))

    def beat(self, now: float, said: dict[str, object]) -> None:
        """Take a sign of life into account."""
        moves = said["moves"]
        assert isinstance(moves, int)
        if moves != self.moves or not self.joined:
            self.moved = now
        self.joined = True
        self.moves = moves
        self.collectives = int(str(said["collectives"]))
        self.inside = str(said["inside"])
        self.heard = now
        if "broken" in said and not self.broken:
            self.broken = str(said["broken"])
            self.broken_at = now
        self.leaving = self.leaving or bool(said.get("leaving"))
        self.stopping = self.stopping or bool(said.get("stopping"))
        if "raised" in said and not self.broken:
            self.raised = str(said["raised"])
            self.raised_at = now

    @property
    def name(self) -> str:
        return f"rank {self.number}" + (f" on {self.host}" if self.host else "")

    @property
    def has_left(self) -> bool:
        """Whether it has ended well, or is about to."""
        return self.code == 0 or (self.code is None and self.leaving and not self.broken)

    @property
    def end(self) -> str:
        """How it ended, after its name."""
        if self.code is None:
            return "could not be reached"
        return "was ended by the launcher" if self.ended and self.code < 0 else describe_exit(self.code)


def describe_exit(code: int) -> str:
    """How a process ended, by the code that Python gives it: negative for signals.

    >>> from ember_ml.distributed.failure_detection import describe_exit
    >>> describe_exit(-9), describe_exit(3)
    ('was killed by SIGKILL', 'ended with exit code 3')
    """
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def traceback_of(errors: list[str]) -> list[str]:
    """The lines of the last traceback and of the exceptions that caused it; the last few lines where there is none."""
    start = len(errors)
    for number in range(len(errors) - 1, -1, -1):
        if "Traceback (most recent call last)" in errors[number]:  # behind "[rank0]:" where PyTorch prints it
            start = number
            if not any("exception" in line for line in errors[max(0, number - 2) : number]):
                break  # nothing says that another exception led to this one
    return errors[start:] or errors[-10:]


def checkpoint_error_in(errors: list[str]) -> str:
    """Return the message of the ``CheckpointError`` with which the last traceback ends; empty where there is none.

    >>> from ember_ml.distributed.failure_detection import checkpoint_error_in
    >>> checkpoint_error_in(["Traceback (most recent call last):", "ember_ml.errors.CheckpointError: it is damaged"])
    'it is damaged'
    """
    for line in traceback_of(errors):
        _, name, message = line.partition("ember_ml.errors.CheckpointError: ")
        if name:
            return message
    return ""


class Watch:
    """The ranks of a job, and the judgement on them."""

    def __init__(self, ranks: list[RankState], limit: float) -> None:
        self.ranks = ranks
        self.limit = limit

    def stalled(self, now: float) -> Failure | None:
        """Return the failure of a job in which a rank has stood still for the time limit."""
        running = [rank for rank in self.ranks if rank.code is None]
        still = any(rank.joined and now - rank.moved > self.limit for rank in running)
        if not still:
            still = any(rank.stopped is not None and now - rank.stopped > self.limit for rank in running)
        return self._blame(now) if still else None

    def behind(self, broken: RankState, now: float) -> Failure:
        """Return the failure that broke a collective of that rank: another one's if one is behind, else its own."""
        found = self._blame(now)
        other = next(rank for rank in self.ranks if rank.number == found.rank)
        if other.broken or not self._holds_up(other, broken, now):
            return Failure(broken.number, f"{broken.name} could not finish {broken.broken}", 1)
        return found

    def _holds_up(self, rank: RankState, other: RankState, now: float) -> bool:
        still = now - rank.moved > self.limit / 2  # else it is only a little slower than the other
        is_behind = rank.collectives < other.collectives or not rank.joined
        return rank.has_left or rank.stopped is not None or (still and is_behind)

    def _blame(self, now: float) -> Failure:
        """The rank for which the others wait: stopped, silent, absent, or behind in the sequence of collectives."""
        running = [rank for rank in self.ranks if rank.code is None]
        for rank in running:
            if rank.stopped is not None:
                return self._failure(rank, f"has been stopped for {now - rank.stopped:.1f} s, by SIGSTOP or a debugger")
        silent = [rank for rank in running if rank.joined and now - rank.heard > self.limit / 2]
        if silent:
            worst = min(silent, key=lambda rank: rank.heard)
            return self._failure(worst, f"has given no sign of life for {now - worst.heard:.1f} s")
        gone = [rank for rank in self.ranks if rank.has_left]
        if gone:
            return self._failure(gone[0], "has ended before the others" + self._place_of_others(gone[0]))
        absent = [rank for rank in self.ranks if not rank.joined]
        if absent:
            return self._failure(absent[0], "has not joined the others" + self._place_of_others(absent[0]))
        last = min(self.ranks, key=lambda rank: (rank.collectives, bool(rank.inside), rank.moves))
        where = f" in {last.inside}" if last.inside else ""
        return self._failure(last, f"has not moved{where} for {now - last.moved:.1f} s{self._place_of_others(last)}")

    def _place_of_others(self, last: RankState) -> str:
        ahead = [rank for rank in self.ranks if rank is not last and rank.inside]
        if not ahead:
            return ""
        names = ", ".join(str(rank.number) for rank in ahead)
        return f"; {'rank' if len(ahead) == 1 else 'ranks'} {names} waited for it in {ahead[0].inside}"

    def first_exit(self, ended: list[RankState]) -> RankState:
        """Of the ranks that ended badly, in that order, the first that did so on its own account.

        A rank whose collective broke suffers from another's end, even where its own end was heard of first.
        """
        return next((rank for rank in ended if not rank.broken), ended[0])

    def exit_failure(self, rank: RankState) -> Failure:
        """Return the failure of a rank that ended with a code other than 0."""
        assert rank.code is not None
        return Failure(rank.number, f"{rank.name} {describe_exit(rank.code)}", _shell_code(rank.code))

    def uncaught(self, now: float, patience: float) -> Failure | None:
        """Return the failure of a rank that has raised an exception, told that long ago, and has not ended yet."""
        for rank in self.ranks:
            if rank.raised and rank.code is None and now - rank.raised_at > patience:
                return Failure(rank.number, f"{rank.name} raised {rank.raised}", 1)
        return None

    def _failure(self, rank: RankState, why: str) -> Failure:
        return Failure(rank.number, f"{rank.name} {why}", STALLED)


def _shell_code(code: int) -> int:
    return code if code >= 0 else 128 - code
