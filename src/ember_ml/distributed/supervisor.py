"""Run one start of a job: start agents on its hosts and ranks under them, and end all within the time limit."""

from __future__ import annotations

import contextlib
import json
import secrets
import selectors
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ember_ml.distributed.agent import SIGTERM_TO_SIGKILL, split_lines
from ember_ml.distributed.failure_detection import REMEMBERED_LINES, STALLED, Failure, RankState, Watch
from ember_ml.distributed.heartbeat import interval
from ember_ml.distributed.hosts import LOCAL, Host, is_here, route_to
from ember_ml.distributed.listeners import Listeners
from ember_ml.distributed.rank_environment import ENGINE_SHARE, LIMIT_SHARE, order_of
from ember_ml.distributed.report import Report
from ember_ml.distributed.start_agents import Job, Starter

__all__ = ["Supervisor"]

_CHUNK = 1 << 18
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TRACEBACK = 0.3  # seconds between the news of an uncaught exception and the last line of its traceback
_LEAVING = 3.0  # seconds that a rank may take between its last line and its end, as it closes libraries
_END = 1.0  # seconds for agents without ranks to end
_PAUSE = 1.0  # seconds that a look takes at most
_LOOK = 0.1  # seconds between two looks at the ranks where nothing comes in
_EXPLANATION = 0.5  # seconds in which the end of a rank is awaited that explains a broken collective or a lost agent
# seconds for ranks to end by themselves after a failure, after Ctrl-C, and by SIGTERM; less where the limit is short
_GRACE, _AFTER_SIGNAL, _TERM = 5.0, 5.0, 2.0


@dataclass
class _Link:
    """The connection to an agent."""

    host: Host
    socket: socket.socket | None = None
    received: bytes = b""
    ports: list[int] = field(default_factory=list)
    heard: float = 0.0
    lost: float | None = None

    @property
    def name(self) -> str:
        numbers = ", ".join(str(rank) for rank in self.host.ranks)
        return f"host {self.host.name} (rank{'s' if len(self.host.ranks) > 1 else ''} {numbers})"


class Supervisor:
    """Starts the agents, watches, and ends every rank before :meth:`run` returns."""

    def __init__(self, job: Job, restart: int, report: Report) -> None:
        self.job = job
        self.restart = restart
        self.report = report
        self.selector: selectors.BaseSelector = selectors.DefaultSelector()
        alone = [host.name for host in job.hosts] == [LOCAL]
        self.ranks: list[RankState] = [
            RankState(rank, "" if alone else host.name) for host in job.hosts for rank in host.ranks
        ]
        self.watch: Watch = Watch(self.ranks, job.timeout * LIMIT_SHARE)
        self._links = self._expect_agents()
        self._listeners: Listeners | None = None  # until all agents are there
        self.began: float = time.monotonic()
        self.failure: Failure | None = None
        self.failed_ranks: list[RankState] = []  # those that ended with a code other than 0, in that order
        self.stages: list[tuple[float, int]] = []  # what is still to be done to end the job: when, and by which signal
        self.saving_until: float = 0.0  # for ranks that save before they end

    def _expect_agents(self) -> dict[str, _Link]:
        """Return the agents by the names that they will give: the number of the host, or with MPI that of the rank."""
        if self.job.mpi is None:
            return {str(number): _Link(host) for number, host in enumerate(self.job.hosts)}
        alone = [Host(host.name, range(rank, rank + 1)) for host in self.job.hosts for rank in host.ranks]
        return {str(host.ranks.start): _Link(host) for host in alone}

    def run(self) -> Failure | None:
        """Run the job to its end, and say how it failed if it did."""
        token = secrets.token_hex(16)
        away = [host.name for host in self.job.hosts if not is_here(host.name)]
        addresses = {LOCAL, *(route_to(name) for name in away)}  # no other interface is listened at
        with self._signals():
            self._listeners = Listeners(self.selector, addresses, token, self.watch.limit)
            starter: Starter | None = None
            patience = SIGTERM_TO_SIGKILL + _END
            try:
                self.report.started(self.restart, self.ranks, self.job.backend)
                starter = Starter(self.job, self._listeners.ports, token)
                for source in starter.outputs():
                    self.selector.register(source, selectors.EVENT_READ, ("starter", starter))
                self._watch(starter)
                self._tell(over=True)
                patience = _END
            finally:  # agents that still have ranks end them when the connection closes
                for link in self._links.values():
                    if link.socket is not None:
                        link.socket.close()
                self._stop_listening()
                self.selector.close()
                if starter is not None:
                    starter.end(patience)
        return self.failure

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Signals come in as bytes to be read, so that they are handled between two looks."""
        here, there = socket.socketpair()
        there.setblocking(False)
        # one that is ignored stays so: nohup and background jobs of a shell ask for that
        wanted = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, lambda *_: None) for number in wanted}
        wakeup = signal.set_wakeup_fd(there.fileno(), warn_on_full_buffer=False)
        self.selector.register(here, selectors.EVENT_READ, ("signal", None))
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)
            here.close()
            there.close()

    def _watch(self, starter: Starter) -> None:
        beat = interval(self.job.timeout * ENGINE_SHARE)
        next_beat, before = 0.0, time.monotonic()
        while not self._is_over():
            if before >= next_beat:
                self._tell(tick=True)
                next_beat = before + beat
            for key, _ in self.selector.select(min(beat, _LOOK)):
                self._serve(key)
            now = time.monotonic()
            if now - before > _PAUSE:  # it was stopped, or what reads its output was
                self._forgive(now - before)
            before = now
            if self._listeners is not None:
                self._listeners.expire(now)
            self._judge(now, starter)

    def _forgive(self, seconds: float) -> None:
        """Take back time in which the launcher did not listen: what ranks have said since is still to be read."""
        self.began += seconds
        for link in self._links.values():
            link.heard += seconds
        for rank in self.ranks:
            rank.moved += seconds
            rank.heard += seconds
            rank.stopped = None if rank.stopped is None else rank.stopped + seconds

    def _is_over(self) -> bool:
        running = [link for link in self._links.values() if not self._is_done(link)]
        if self.failure is None:
            return not running
        reachable = [link for link in running if link.socket and time.monotonic() - link.heard < self.watch.limit / 2]
        return not self.stages or not reachable

    def _tell(self, **message: Any) -> None:
        line = json.dumps(message).encode() + b"\n"
        for link in self._links.values():
            if link.socket is not None:
                try:
                    link.socket.sendall(line)
                except OSError:
                    self._lose(link)

    def _lose(self, link: _Link) -> None:
        assert link.socket is not None
        self.selector.unregister(link.socket)
        link.socket.close()
        link.socket = None
        link.lost = time.monotonic()

    def _serve(self, key: selectors.SelectorKey) -> None:
        """Take in what has come from one source."""
        kind, more = key.data
        source: Any = key.fileobj
        if kind in ("server", "stranger"):
            self._admit(kind, source)
        elif kind == "signal":
            for number in source.recv(_CHUNK):
                self._interrupt(number)
        elif kind == "starter":
            if not more.read(source):
                self.selector.unregister(source)
        elif more.socket is source:  # else it was lost a moment ago
            self._hear(more)

    def _admit(self, kind: str, source: socket.socket) -> None:
        """Take a new connection, or what one has sent; an agent that knows the token is asked for ports."""
        if self._listeners is None:  # all agents came a moment ago
            return
        if kind == "server":
            self._listeners.accept(source)
            return
        name = self._listeners.greet(source)
        if name is None:
            return
        link = self._links.get(name)
        if link is None or link.socket is not None:
            source.close()
            return
        link.socket = source
        link.heard = time.monotonic()
        self.selector.register(source, selectors.EVENT_READ, ("agent", link))
        source.sendall(json.dumps({"ports": len(link.host.ranks) + 1}).encode() + b"\n")
        if all(other.socket is not None for other in self._links.values()):
            self._stop_listening()

    def _stop_listening(self) -> None:
        if self._listeners is not None:
            self._listeners.close()
            self._listeners = None

    def _hear(self, link: _Link) -> None:
        assert link.socket is not None
        try:
            arrived = link.socket.recv(_CHUNK)
        except OSError:
            arrived = b""
        if not arrived:
            self._lose(link)
            return
        link.heard = time.monotonic()
        lines, link.received = split_lines(link.received, arrived)
        for line in lines:
            self._take(link, json.loads(line))

    def _take(self, link: _Link, message: dict[str, Any]) -> None:
        now = time.monotonic()
        if "ports" in message:
            link.ports = message["ports"]
            if all(other.ports for other in self._links.values()):
                self._start_ranks()
        if "rank" not in message:
            return
        rank = self.ranks[message["rank"]]
        if "lines" in message:
            lines = message["lines"].split("\n")
            if message["stream"] == "err":
                rank.errors.extend(lines[-REMEMBERED_LINES:])
            if message["full"]:  # it had to wait for its output to be read
                rank.moved = now
            self.report.lines(rank.number, message["stream"], lines)
        elif "beat" in message:
            rank.beat(now, message["beat"])
        elif "stopped" in message:
            rank.stopped = now if message["stopped"] else None
        elif "exit" in message:
            rank.code = message["exit"]
            self.report.exited(rank)
            if rank.code != 0:
                self.failed_ranks.append(rank)

    def _start_ranks(self) -> None:
        links = list(self._links.values())
        ports = {rank: port for link in links for rank, port in zip(link.host.ranks, link.ports[1:], strict=True)}
        order = order_of(self.job, links[0].ports[0], ports, self.restart)
        for link in links:
            ranks = [rank for rank in order["ranks"] if rank["rank"] in link.host.ranks]
            if link.socket is not None:
                # an agent on this machine cannot be cut off, and a launcher that is only stopped loses nothing
                limit = None if is_here(link.host.name) else self.watch.limit
                message = {"start": {**order, "ranks": ranks, "limit": limit}}
                link.socket.sendall(json.dumps(message).encode() + b"\n")

    def _judge(self, now: float, starter: Starter) -> None:
        """See whether the job has failed, or take the next step in ending it."""
        if self.failure is None:
            self.failure = self._found_failure(now, starter)
            if self.failure is not None:
                self._begin_to_end(now)
        if now < self.saving_until and any(rank.stopping and rank.code is None for rank in self.ranks):
            return
        while self.stages and now >= self.stages[0][0]:
            number = self.stages.pop(0)[1]
            if number:
                self._signal(number)

    def _signal(self, number: int) -> None:
        for rank in self.ranks:
            rank.ended = rank.ended or rank.code is None
        self._tell(signal=number)

    def _begin_to_end(self, now: float) -> None:
        """Tell the ranks who failed, so that they raise it themselves; those that cannot are ended a little later."""
        assert self.failure is not None
        grace = min(_GRACE, 0.14 * self.job.timeout)
        term = min(_TERM, 0.05 * self.job.timeout)
        self._tell(lost=self.failure.why, rank=self.failure.rank, grace=0.6 * grace)
        self._plan(now + grace, term)

    def _plan(self, start: float, term: float) -> None:
        self.stages = [(start, signal.SIGTERM), (start + term, signal.SIGKILL), (start + term + 1.0, 0)]

    def _interrupt(self, number: int) -> None:
        """Pass Ctrl-C or another signal on to the ranks; a second time, or while they are being ended, kill them."""
        first = self.failure is None
        self.saving_until = time.monotonic() + self.job.timeout if first else 0.0
        self.failure = Failure(None, f"it was interrupted by {signal.Signals(number).name}", 128 + number, final=True)
        self._signal(number if first else signal.SIGKILL)
        self._plan(time.monotonic() + (_AFTER_SIGNAL if first else 0.0), _TERM if first else 0.0)

    def _found_failure(self, now: float, starter: Starter) -> Failure | None:
        if self.failed_ranks:
            first = self.watch.first_exit(self.failed_ranks)
            if not first.broken or now - first.broken_at > _EXPLANATION:
                return self.watch.exit_failure(first)
        uncaught = self.watch.uncaught(now, _TRACEBACK)
        if uncaught is not None:
            return uncaught
        broken = [rank for rank in self.ranks if rank.broken and now - rank.broken_at > _EXPLANATION]
        if broken:
            if any(rank.has_left and rank.code is None for rank in self.ranks) and now - broken[0].broken_at < _LEAVING:
                return None  # its exit code will say why it leaves
            dead = self._silent_host(now, self.watch.limit / 2) or self._lost_host(now)
            return dead or self.watch.behind(broken[0], now)
        lost = [link for link in self._links.values() if link.lost is not None and not self._is_done(link)]
        first = min(lost, key=lambda link: link.lost or now, default=None)
        if first is not None and now - (first.lost or now) > _EXPLANATION:
            # MPI ends every agent when a rank that has raised aborts the job
            return self.watch.uncaught(now, 0.0) or Failure(
                first.host.ranks.start, f"the agent of {first.name} was lost", 1
            )
        missing = self._silent_host(now, self.watch.limit) or self._missing_agent(now, starter)
        stalled = missing or self.watch.stalled(now)
        return stalled and (self._silent_host(now, self.watch.limit / 2) or stalled)

    def _lost_host(self, now: float) -> Failure | None:
        """Return the agent that was lost with its ranks, which explains why collectives of others broke."""
        if self.job.mpi is not None:  # which ends all agents when any rank fails
            return None
        lost = [link for link in self._links.values() if link.lost is not None and not self._is_done(link)]
        if not lost:
            return None
        first = min(lost, key=lambda link: link.lost or now)
        return Failure(first.host.ranks.start, f"the agent of {first.name} was lost", 1)

    def _is_done(self, link: _Link) -> bool:
        return all(self.ranks[rank].code is not None for rank in link.host.ranks)

    def _silent_host(self, now: float, limit: float) -> Failure | None:
        for link in self._links.values():
            if link.socket is not None and now - link.heard > limit and not self._is_done(link):
                seconds = now - link.heard
                return Failure(link.host.ranks.start, f"{link.name} has not answered for {seconds:.1f} s", STALLED)
        return None

    def _missing_agent(self, now: float, starter: Starter) -> Failure | None:
        """A host, or mpirun, that cannot be made to take part."""
        missing = [link for link in self._links.values() if link.socket is None and link.lost is None]
        if not missing:
            return None
        said = "".join(f"\n    {line}" for line in starter.said)
        for name, code in starter.ended().items():
            if name == "mpirun" or any(link.host.name == name for link in missing):
                return Failure(None, f"no rank could be started by {name}: exit code {code}{said}", code or 1)
        if now - self.began > self.watch.limit:
            names = ", ".join(link.name for link in missing)
            return Failure(None, f"{names} did not answer within {now - self.began:.1f} s{said}", STALLED)
        return None
