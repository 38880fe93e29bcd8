"""Send heartbeats of a rank to ``ember-ml launch``, and receive the news of a failed rank.

MPI, the MLX ring and JAX wait for ever for a peer that has stopped, so the launcher must learn whether each rank goes
on. A thread tells it, every second or so, how often the rank has moved: each collective and each step of training is a
move. When another rank has failed, the launcher says which one, and a collective that breaks raises ``PeerLost`` naming
it. In programs that something else started there is no channel to a launcher, and nothing here does anything.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any

from ember_ml.errors import EmberError, PeerLost

__all__ = ["HEARTBEAT", "TIMEOUT", "announce_stop", "busy", "interval", "progress", "start", "waiting"]

HEARTBEAT = "EMBER_ML_HEARTBEAT"
"""The variable with the number of the open file through which a rank and its launcher talk."""
TIMEOUT = "EMBER_ML_TIMEOUT"
"""The variable with the seconds after which an engine gives up waiting for a peer."""

_LONGEST_INTERVAL = 1.0
_BEATS_WITHIN_TIMEOUT = 10
_BUSY_TIMEOUTS = 10


class _Rank:
    """What this process tells its launcher, and what it has heard."""

    def __init__(self) -> None:
        self.moves = 0
        self.collectives = 0
        self.inside = ""
        self.channel: socket.socket | None = None
        self.sending = threading.Lock()
        self.news = ""
        self.is_lost_itself = False
        self.heard = threading.Event()
        self.is_stopping = False
        self.busy_until = 0.0

    def say(self, **more: Any) -> None:
        assert self.channel is not None
        beat = {"moves": self.moves, "collectives": self.collectives, "inside": self.inside, **more}
        if self.is_stopping:
            beat["stopping"] = True
        with self.sending:
            self.channel.sendall(json.dumps(beat).encode() + b"\n")


_rank = _Rank()


def interval(timeout: float) -> float:
    """Return the seconds between two signs of life, where a job is given up after ``timeout`` seconds.

    >>> from ember_ml.distributed.heartbeat import interval
    >>> interval(300.0), interval(5.0)
    (1.0, 0.5)
    """
    return min(_LONGEST_INTERVAL, timeout / _BEATS_WITHIN_TIMEOUT)


def start() -> bool:
    """Begin to give signs of life, and say whether a launcher listens; calling it again changes nothing."""
    if _rank.channel is not None:
        return True
    number = os.environ.pop(HEARTBEAT, "")  # processes that this one starts are not ranks
    if not number:
        return False
    try:
        _rank.channel = socket.socket(fileno=int(number))
    except (OSError, ValueError):
        return False
    atexit.register(_leave)
    sys.excepthook = _told(sys.excepthook)
    seconds = interval(float(os.environ.get(TIMEOUT, "300")))
    threading.Thread(target=_beat, args=(_rank.channel, seconds), name="ember-ml heartbeat", daemon=True).start()
    return True


def _told(before: Callable[..., Any]) -> Callable[..., Any]:
    """The hook for uncaught exceptions, which also tells the launcher, before engines are closed and others notice.

    With MPI the rank would then wait for ever, or end the whole job with the launcher's agents, before they can tell.
    """

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        before(kind, error, trace)
        with suppress(OSError):
            _rank.say(raised=f"{kind.__name__}: {error}")
            _rank.heard.wait(_LONGEST_INTERVAL)

    return hook


def _leave() -> None:
    """Tell the launcher that this rank is at its end: its engine may have left the others before the process ends."""
    with suppress(OSError):
        _rank.say(leaving=True)


def progress() -> None:
    """Tell the launcher that this rank goes on: for your own work that takes longer than the time limit.

    Steps, batches of an evaluation and checkpoints of a trainer do so by themselves.
    """
    _rank.moves += 1


def announce_stop() -> None:
    """Tell the launcher, with the next heartbeat, that this rank was asked to end, and saves before."""
    _rank.is_stopping = True


def moves() -> int:
    """Return how often this rank has said that it goes on."""
    return _rank.moves


class busy:
    """A block of long work without collectives, such as compiling, which is no standing still.

    The heartbeat counts as progress inside it, for ten times the time limit at most.
    """

    def __enter__(self) -> None:
        _rank.busy_until = time.monotonic() + _BUSY_TIMEOUTS * float(os.environ.get(TIMEOUT, "300"))

    def __exit__(self, *error: object) -> None:
        _rank.busy_until = 0.0


class waiting:
    """A scope in which this rank waits for the others, by the name of what it waits in.

    The engine's ``RuntimeError`` that leaves the scope becomes ``PeerLost`` where the launcher knows which rank failed.
    """

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        _rank.moves += 1
        _rank.collectives += 1
        _rank.inside = self._what

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        _rank.moves += 1
        _rank.inside = ""
        if isinstance(error, RuntimeError) and not isinstance(error, EmberError) and _rank.channel is not None:
            _raise_named(self._what, error)


def _raise_named(what: str, error: RuntimeError) -> None:
    """Raise ``PeerLost`` if the launcher can say which rank was lost; it learns that this rank is not the first."""
    try:
        _rank.say(broken=f"{what}: {error}")
    except OSError:
        return
    if _rank.heard.wait(5 * _LONGEST_INTERVAL) and not _rank.is_lost_itself:
        raise PeerLost(f"{what} cannot finish: {_rank.news}") from error


def _beat(channel: socket.socket, seconds: float) -> None:
    received = b""
    try:
        while True:
            if time.monotonic() < _rank.busy_until:
                _rank.moves += 1
            _rank.say()
            if not select.select([channel], [], [], seconds)[0]:
                continue
            some = channel.recv(65536)
            if not some:
                return  # the launcher has gone, and who started this process ends it
            received += some
            *lines, received = received.split(b"\n")
            for line in lines:
                _hear(json.loads(line))
    except OSError:
        return


def _hear(news: dict[str, Any]) -> None:
    """Remember who failed, and end this process unless it does so itself in time."""
    _rank.news = news["lost"]
    _rank.is_lost_itself = str(news["rank"]) == os.environ.get("EMBER_ML_RANK")
    _rank.heard.set()
    main = threading.main_thread()
    main.join(news["grace"])
    if main.is_alive():
        _end(main.ident)


def _end(main: int | None) -> None:
    """Say where the main thread is, and leave: an engine that waits for ever cannot be stopped otherwise."""
    where = sys._current_frames().get(main or 0)
    stack = "".join(traceback.format_stack(where)) if where is not None else ""
    place = f" in {_rank.inside}" if _rank.inside else ""
    what = "the launcher ends this rank" if _rank.is_lost_itself else f"PeerLost: this rank was still{place}"
    sys.stderr.write(f"{stack}{what}: {_rank.news}\n")
    sys.stderr.flush()
    os._exit(1)
