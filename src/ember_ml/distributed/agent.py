"""Run the ranks of one host for ``ember-ml launch``, and end them with the launcher.

The launcher starts this file by its path (``python agent.py HOST:PORT NAME``); it needs the standard library only. The
token that the launcher expects comes in the variable ``EMBER_ML_TOKEN``, or where that is not set on the first line of
the standard input; the agent sends it first, with its name. All else is a JSON object per line. The launcher asks for
free ports, sends the ranks to start, and then receives what they print, their heartbeats and their ends, in the order
in which they happen. When the launcher has gone, or from another host says nothing for the time limit, the agent ends
its ranks.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import math
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from typing import Any

_CHUNK = 65536
_LONGEST_LINE = 1 << 20
_MOST_FILES = 4096  # a new process has fewer open
SIGTERM_TO_SIGKILL = 2.0
_LAST_WORDS = 0.5
_PR_SET_PDEATHSIG = 1
_SIOCGIFADDR = 0x8915
_C = ctypes.CDLL(None)
# the ranks of MPI implementations; an agent that mpirun has started takes its name from the first one that is set
_MPI_RANK = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")


def split_lines(received: bytes, arrived: bytes) -> tuple[list[bytes], bytes]:
    """Return the whole lines in what was received before and now, and the beginning of the next one."""
    *lines, rest = (received + arrived).split(b"\n")
    return lines, rest


def overwrite(line: bytes) -> bytes:
    """Return what a terminal shows of a line in which carriage returns start again from the left."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]


class Guardian:
    """A process that outlives an agent that is killed, and then ends what its ranks have started.

    Linux kills the ranks themselves (:func:`_die_with_parent`), but not their children.
    """

    def __init__(self) -> None:
        source, self._sink = os.pipe()
        self._pid: int = os.fork()  # the agent has one thread
        if self._pid == 0:
            os.setsid()
            kept = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(kept, number)
            for low, high in ((3, source), (source + 1, _MOST_FILES)):
                os.closerange(low, high)
            _guard(source)
            os._exit(0)
        os.close(source)

    def watch(self, group: int) -> None:
        """Kill the process group of a rank when the agent has gone."""
        os.write(self._sink, b"+%d\n" % group)

    def forget(self, group: int) -> None:
        """Leave alone the group of a rank that has ended."""
        os.write(self._sink, b"-%d\n" % group)

    def close(self) -> None:
        """End the process; the groups that it still watches are killed."""
        os.close(self._sink)
        os.waitpid(self._pid, 0)


def _guard(source: int) -> None:
    groups: set[int] = set()
    with os.fdopen(source, "rb") as file:
        for line in file:
            (groups.add if line.startswith(b"+") else groups.discard)(int(line[1:]))
    for group in groups:
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)


class Rank:
    """One process, with the pipes of what it prints and its channel for heartbeats."""

    def __init__(self, number: int, command: list[str], environment: dict[str, str], folder: str) -> None:
        self.number = number
        self.channel: socket.socket
        self.channel, theirs = socket.socketpair()
        theirs.set_inheritable(True)
        environment = {**environment, "EMBER_ML_HEARTBEAT": str(theirs.fileno())}
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            close_fds=False,  # MPICH talks to its ranks through an open file
            start_new_session=True,  # processes that it starts can be ended with it; Ctrl-C reaches the launcher only
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # the agent has one thread
        )
        theirs.close()
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.sources: dict[str, int] = {
            "out": self.process.stdout.fileno(),
            "err": self.process.stderr.fileno(),
            "beat": self.channel.fileno(),
        }
        self.received: dict[str, bytes] = {"out": b"", "err": b"", "beat": b""}
        self.shown: dict[str, bytes] = {"out": b"", "err": b""}  # of lines that the rank overwrites

    def read(self, stream: str) -> bytes | None:
        """Return what has come since, None if nothing can be read now; empty at the end."""
        try:
            return os.read(self.sources[stream], _CHUNK)
        except BlockingIOError:
            return None
        except ConnectionError:
            return b""

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            # a rank that saves before it ends needs the processes that load its data until then
            (os.kill if number == signal.SIGTERM else os.killpg)(self.process.pid, number)

    def tell(self, news: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # it has ended, or does not listen
            self.channel.sendall(json.dumps(news).encode() + b"\n")


def _die_with_parent() -> None:
    """Let Linux kill the rank when the agent dies of SIGKILL, the one signal that it cannot pass on."""
    _C.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Agent:
    """The ranks of this host, and the connection to the launcher."""

    def __init__(self, launcher: socket.socket, guardian: Guardian) -> None:
        self.launcher = launcher
        self.guardian = guardian
        self.received: bytes = b""
        self.ranks: dict[int, Rank] = {}
        self.selector: selectors.BaseSelector = selectors.DefaultSelector()
        self.selector.register(launcher, selectors.EVENT_READ, None)
        self.interval: float = 1.0
        self.limit: float = 60.0
        self.last_heard: float = time.monotonic()
        self.last_tick: float = self.last_heard
        self.over: bool = False
        self.leaving: float = math.inf

    def leave(self) -> None:
        """End soon, since mpirun wants it: a rank that aborts has every agent ended, and must be heard of before."""
        self.leaving = min(self.leaving, time.monotonic() + _LAST_WORDS)

    def say(self, **message: Any) -> None:
        self.launcher.sendall(json.dumps(message).encode() + b"\n")

    def serve(self) -> None:
        """Work until the launcher says that it is over, or has gone."""
        children = self._wake_for_children()
        try:
            while not self.over and time.monotonic() < self.leaving:
                for key, _ in self.selector.select(min(self.interval, self.leaving - time.monotonic())):
                    if key.data == "children":
                        children.recv(_CHUNK)
                    elif key.data is None:
                        self._hear(self.launcher.recv(_CHUNK))
                    else:
                        self._relay(*key.data)
                self._reap()
                self._tick()
                if time.monotonic() - self.last_heard > self.limit:
                    break
        except OSError:
            pass  # the launcher has gone, or cannot be reached
        finally:
            self.selector.close()
            self._end_ranks()

    def _tick(self) -> None:
        if time.monotonic() - self.last_tick >= self.interval:
            self.last_tick = time.monotonic()
            self.say(tick=True)
            for rank in self.ranks.values():
                self._show_bars(rank)

    def _show_bars(self, rank: Rank) -> None:
        """Pass on lines that the rank overwrites, as a progress bar does: each time only what is there now."""
        for stream in ("out", "err"):
            text = overwrite(rank.received[stream]) if b"\r" in rank.received[stream] else b""
            if text and text != rank.shown[stream]:
                rank.shown[stream] = text
                self._print(rank, stream, [text])

    def _print(self, rank: Rank, stream: str, lines: list[bytes], is_full: bool = False) -> None:
        text = b"\n".join(lines).decode(errors="replace")
        self.say(rank=rank.number, stream=stream, lines=text, full=is_full)

    def _wake_for_children(self) -> socket.socket:
        """Return a socket that becomes readable when a rank ends: ends are reported in their order."""
        here, there = socket.socketpair()
        for end in (here, there):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(there.fileno(), warn_on_full_buffer=False)
        self._wakeup = there
        self.selector.register(here, selectors.EVENT_READ, "children")
        return here

    def _hear(self, arrived: bytes) -> None:
        if not arrived:
            raise ConnectionError("the launcher has gone")
        self.last_heard = time.monotonic()
        lines, self.received = split_lines(self.received, arrived)
        for line in lines:
            message = json.loads(line)
            if "ports" in message:
                self.say(ports=free_ports(message["ports"]))
            elif "start" in message:
                self._start(message["start"])
            elif "lost" in message:
                for rank in self.ranks.values():
                    rank.tell(message)
            elif "signal" in message:
                for rank in self.ranks.values():
                    rank.signal(message["signal"])
            elif "over" in message:
                self.over = True

    def _start(self, job: dict[str, Any]) -> None:
        self.interval = job["interval"]
        self.limit = math.inf if job["limit"] is None else job["limit"]
        self.launcher.settimeout(job["limit"])  # a host that was cut off must not wait for ever to send
        common = {**os.environ, **job["environment"]}
        for name, text in job["files"].items():
            common[name] = self._write(name, text)
        for entry in job["ranks"]:
            environment = {**common, **entry["environment"]}
            environment.setdefault("OMP_NUM_THREADS", str(max(1, _cores() // int(environment["LOCAL_WORLD_SIZE"]))))
            interface = interface_of(entry["address"])
            if interface:  # gloo takes the one of the host's name, which is often the loopback
                environment.setdefault("GLOO_SOCKET_IFNAME", interface)
            try:
                rank = Rank(entry["rank"], job["command"], environment, job["folder"])
            except OSError as error:
                self.say(rank=entry["rank"], lines=f"it could not be started: {error}", stream="err", full=False)
                self.say(rank=entry["rank"], exit=127)
                continue
            self.ranks[rank.number] = rank
            self.guardian.watch(rank.process.pid)
            for stream, source in rank.sources.items():
                os.set_blocking(source, False)
                self.selector.register(source, selectors.EVENT_READ, (rank, stream))

    def _write(self, name: str, text: str) -> str:
        self._folder = tempfile.TemporaryDirectory(prefix="ember-ml-")  # removed when the agent ends
        path = os.path.join(self._folder.name, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def _relay(self, rank: Rank, stream: str) -> bool:
        """Pass on what a rank has said; return whether there may be more."""
        arrived = rank.read(stream)
        if arrived is None:
            return False
        lines, rest = split_lines(rank.received[stream], arrived)
        if len(rest) > _LONGEST_LINE:
            lines, rest = [*lines, rest], b""
        if not arrived:
            self.selector.unregister(rank.sources[stream])
            if rest:
                lines.append(rest)
            rest = b""
        if stream == "beat":
            rank.received[stream] = rest
            for line in lines:
                self.say(rank=rank.number, beat=json.loads(line))
            return bool(arrived)
        # of a line that is being overwritten, the last version and the sign that it is one
        rank.received[stream] = rest[max(0, rest.rstrip(b"\r").rfind(b"\r")) :]
        if lines:
            if b"\r" in arrived or b"\r" in lines[0]:
                lines = [overwrite(line) for line in lines]
            self._print(rank, stream, lines, len(arrived) == _CHUNK)
        return bool(arrived)

    def _reap(self) -> None:
        for rank in list(self.ranks.values()):
            number, status = os.waitpid(rank.process.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            if number == 0:
                continue
            if os.WIFSTOPPED(status) or os.WIFCONTINUED(status):
                self.say(rank=rank.number, stopped=os.WIFSTOPPED(status))
                continue
            rank.signal(signal.SIGKILL)  # what it has started and left behind
            self.guardian.forget(rank.process.pid)
            rank.process.returncode = os.waitstatus_to_exitcode(status)
            self._forget(rank)
            self.say(rank=rank.number, exit=rank.process.returncode)

    def _forget(self, rank: Rank) -> None:
        """Pass on the last words, then close what was open for this rank."""
        for stream, source in rank.sources.items():
            while source in self.selector.get_map() and self._relay(rank, stream):
                pass
            if source in self.selector.get_map():  # a process that it has started elsewhere still holds it
                self.selector.unregister(source)
        for file in (rank.process.stdout, rank.process.stderr, rank.channel):
            assert file is not None
            file.close()
        del self.ranks[rank.number]

    def _end_ranks(self) -> None:
        end = time.monotonic() + SIGTERM_TO_SIGKILL
        for rank in self.ranks.values():
            rank.signal(signal.SIGTERM)
        for rank in self.ranks.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                rank.process.wait(max(0.0, end - time.monotonic()))
        for rank in self.ranks.values():
            rank.signal(signal.SIGKILL)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def free_ports(count: int) -> list[int]:
    """Return as many different ports as asked for that nothing listens at now."""
    sockets = [socket.create_server(("", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in sockets]
    for server in sockets:
        server.close()
    return ports


def interface_of(address: str) -> str:
    """Return the name of the network interface with that address, on Linux; empty where there is none."""
    if sys.platform != "linux":
        return ""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # it has no address
                answer = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                if socket.inet_ntoa(answer[20:24]) == address:
                    return name
    return ""


def main(address: str, name: str) -> None:
    """Connect to the launcher, show the token, and serve."""
    token = os.environ.pop("EMBER_ML_TOKEN", "") or sys.stdin.readline().strip()
    if name == "mpi":
        name = next((os.environ[variable] for variable in _MPI_RANK if variable in os.environ), "")
    host, _, port = address.rpartition(":")
    for number in (signal.SIGINT, signal.SIGHUP):  # the launcher decides; a handler, since ranks would inherit SIG_IGN
        signal.signal(number, lambda *_: None)
    guardian = Guardian()
    try:
        with socket.create_connection((host, int(port)), timeout=60) as launcher:
            agent = Agent(launcher, guardian)
            signal.signal(signal.SIGTERM, lambda *_: agent.leave())
            launcher.sendall(f"{token} {name}\n".encode())
            agent.serve()
    finally:
        guardian.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
