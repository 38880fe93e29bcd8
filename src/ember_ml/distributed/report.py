"""Show a launched job to a person or a program, and write the logs of its ranks."""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TextIO

from ember_ml.distributed.failure_detection import Failure, RankState, traceback_of

__all__ = ["JsonReport", "Report"]


class Report:
    """A job for people: lines of ranks behind their number, and at the end who failed first, and how."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.logs: dict[int, IO[str]] = {}
        self.began: float = time.monotonic()
        self._given_up: set[int] = set()

    def started(self, restart: int, ranks: list[RankState], backend: str) -> None:
        """The ranks are being started, for the first time or again."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            for rank in ranks:
                if rank.number not in self.logs:  # what an earlier job wrote there stays
                    path = self.folder / f"rank-{rank.number}.log"
                    self.logs[rank.number] = path.open("a", buffering=1, encoding="utf-8", errors="replace")
                now = time.strftime("%Y-%m-%d %H:%M:%S")
                self._log(rank.number, f"--- {now}: start {restart + 1}, {len(ranks)} ranks on {backend}")
        self.show_start(restart, ranks, backend)

    def lines(self, rank: int, stream: str, lines: list[str]) -> None:
        """Log and show lines that a rank has printed, many at a time."""
        if rank in self.logs:
            self._log(rank, "\n".join(lines))
        self.show_lines(rank, stream, lines)

    def _log(self, rank: int, text: str) -> None:
        """Write to a rank's log; a disk that is full ends the log, not the job."""
        if rank in self._given_up:
            return
        try:
            self.logs[rank].write(text + "\n")
        except OSError as error:
            self._given_up.add(rank)
            self.note(f"the log of rank {rank} ends here: {error}")

    def close(self) -> None:
        """Close the logs."""
        for log in self.logs.values():
            with suppress(OSError):
                log.close()

    def show(self, text: str, file: TextIO, flush: bool = True) -> None:
        """Print a line; where nobody can read it, or the characters are unknown there, the job goes on."""
        try:
            print(text, file=file, flush=flush)
        except UnicodeEncodeError:
            encoding = file.encoding or "ascii"
            self.show(text.encode(encoding, "backslashreplace").decode(encoding), file, flush)
        except OSError:
            pass

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def show_start(self, restart: int, ranks: list[RankState], backend: str) -> None:
        if restart:
            self.note(f"starting {len(ranks)} ranks again ({restart})")

    def show_lines(self, rank: int, stream: str, lines: list[str]) -> None:
        text = f"\n[{rank}] ".join(lines)
        self.show(f"[{rank}] {text}", sys.stdout if stream == "out" else sys.stderr)

    def note(self, text: str) -> None:
        """Something that a person should know."""
        self.show(f"ember-ml launch: {text}", sys.stderr)

    def exited(self, rank: RankState) -> None:
        """A rank has ended."""

    def failed(self, failure: Failure, ranks: list[RankState]) -> None:
        """The job has failed: the rank that did so first, its traceback, then the others."""
        self.note(f"failed after {self.seconds:.1f} s: {failure.why}")
        for line in _story(failure, ranks):
            self.show(f"    {line}", sys.stderr, flush=False)
        for rank in ranks:
            if rank.number != failure.rank and rank.code != 0:
                self.show(f"  then {_after(rank)}", sys.stderr, flush=False)
        if self.folder is not None:
            self.show(f"  logs: {self.folder}", sys.stderr)
        with suppress(OSError):
            sys.stderr.flush()

    def ended(self, code: int, starts: int) -> None:
        """The job is over, and what follows is the launcher's exit code."""


class JsonReport(Report):
    """A job for programs: one JSON object per line, each with the key ``event``."""

    def _say(self, event: str, **facts: Any) -> None:
        self.show(self._describe(event, **facts), sys.stdout)

    def _describe(self, event: str, **facts: Any) -> str:
        return json.dumps({"event": event, "seconds": round(self.seconds, 3), **facts})

    def show_start(self, restart: int, ranks: list[RankState], backend: str) -> None:
        placed = [{"rank": rank.number, "host": rank.host} for rank in ranks]
        self._say("start", restart=restart, backend=backend, ranks=placed)

    def show_lines(self, rank: int, stream: str, lines: list[str]) -> None:
        described = [self._describe("line", rank=rank, stream=stream, text=text) for text in lines]
        self.show("\n".join(described), sys.stdout)

    def note(self, text: str) -> None:
        self._say("note", text=text)

    def exited(self, rank: RankState) -> None:
        self._say("exit", rank=rank.number, code=rank.code)

    def failed(self, failure: Failure, ranks: list[RankState]) -> None:
        others = [{"rank": rank.number, "code": rank.code} for rank in ranks if rank.number != failure.rank]
        self._say(
            "failure",
            rank=failure.rank,
            why=failure.why,
            code=failure.code,
            traceback=_story(failure, ranks),
            others=others,
        )

    def ended(self, code: int, starts: int) -> None:
        self._say("end", code=code, starts=starts)


def _story(failure: Failure, ranks: list[RankState]) -> list[str]:
    return next((traceback_of(list(rank.errors)) for rank in ranks if rank.number == failure.rank), [])


def _after(rank: RankState) -> str:
    """How another rank ended, with its last line where that is an error."""
    last = next((line for line in reversed(rank.errors) if "Error" in line or "PeerLost" in line), "")
    return f"{rank.name} {rank.end}" + (f": {last}" if last else "")
