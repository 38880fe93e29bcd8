"""The process that ``ember-ml launch`` starts on each host: it starts the ranks there, and ends them with the launcher.

It is run by its path (``python agent.py HOST:PORT NAME``) and needs the standard library only. The secret that the
launcher expects comes in the variable ``EMBER_ML_TOKEN``, or where that is not set on the first line of the standard
input. All else goes over one connection, a JSON object per line. The launcher asks for free ports, gives the ranks to
start, and then gets every line that they print, every sign of life and every end, in the order in which they happen.
When the launcher has gone, or from another host says nothing for the time limit, the agent ends its ranks.
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
SIGTERM_TO_SIGKILL = 2.0
_LAST_WORDS = 0.5
_PR_SET_PDEATHSIG = 1
_SIOCGIFADDR = 0x8915
_C = ctypes.CDLL(None)
# the ranks of MPI implementations; an agent that mpirun has started takes its name from the first one that is set
_MPI_RANK = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")


def lines_of(received: bytes, some: bytes) -> tuple[list[bytes], bytes]:
    """The whole lines in what was received before and now, and the beginning of the next one."""
    *lines, rest = (received + some).split(b"\n")
    return lines, rest


class Rank:
    """One process, with what it prints and its channel for signs of life."""

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

    def read(self, stream: str) -> bytes | None:
        """What has come since, None if nothing can be read now; empty at the end."""
        try:
            return os.read(self.sources[stream], _CHUNK)
        except BlockingIOError:
            return None
        except ConnectionError:
            return b""

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def tell(self, news: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # it has ended, or does not listen
            self.channel.sendall(json.dumps(news).encode() + b"\n")


def _die_with_parent() -> None:
    """Linux kills the rank when the agent dies of SIGKILL, the one signal that it cannot pass on."""
    _C.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Agent:
    """The ranks of this host, and the connection to the launcher."""

    def __init__(self, launcher: socket.socket) -> None:
        self.launcher = launcher
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

    def _wake_for_children(self) -> socket.socket:
        """Ends of ranks are seen at once, so that they are told in the order in which they happen."""
        here, there = socket.socketpair()
        for end in (here, there):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(there.fileno(), warn_on_full_buffer=False)
        self._wakeup = there
        self.selector.register(here, selectors.EVENT_READ, "children")
        return here

    def _hear(self, some: bytes) -> None:
        if not some:
            raise ConnectionError("the launcher has gone")
        self.last_heard = time.monotonic()
        lines, self.received = lines_of(self.received, some)
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
            common[name] = self._written(name, text)
        for entry in job["ranks"]:
            environment = {**common, **entry["environment"]}
            environment.setdefault("OMP_NUM_THREADS", str(max(1, _cores() // int(environment["LOCAL_WORLD_SIZE"]))))
            interface = interface_of(entry["address"])
            if interface:  # gloo takes the one of the host's name, which is often the loopback
                environment.setdefault("GLOO_SOCKET_IFNAME", interface)
            try:
                rank = Rank(entry["rank"], job["command"], environment, job["folder"])
            except OSError as error:
                self.say(rank=entry["rank"], line=f"it could not be started: {error}", stream="err")
                self.say(rank=entry["rank"], exit=127)
                continue
            self.ranks[rank.number] = rank
            for stream, source in rank.sources.items():
                os.set_blocking(source, False)
                self.selector.register(source, selectors.EVENT_READ, (rank, stream))

    def _written(self, name: str, text: str) -> str:
        self._folder = tempfile.TemporaryDirectory(prefix="ember-ml-")  # removed when the agent ends
        path = os.path.join(self._folder.name, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def _relay(self, rank: Rank, stream: str) -> bool:
        """Pass on what a rank has said; whether there may be more."""
        some = rank.read(stream)
        if some is None:
            return False
        lines, rest = lines_of(rank.received[stream], some)
        if len(rest) > _LONGEST_LINE:
            lines, rest = [*lines, rest], b""
        if not some:
            self.selector.unregister(rank.sources[stream])
            if rest:
                lines.append(rest)
            rest = b""
        rank.received[stream] = rest
        for line in lines:
            text = line.decode(errors="replace")
            if stream == "beat":
                self.say(rank=rank.number, beat=json.loads(text))
            else:
                self.say(rank=rank.number, line=text, stream=stream)
        return bool(some)

    def _reap(self) -> None:
        for rank in list(self.ranks.values()):
            number, status = os.waitpid(rank.process.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            if number == 0:
                continue
            if os.WIFSTOPPED(status) or os.WIFCONTINUED(status):
                self.say(rank=rank.number, stopped=os.WIFSTOPPED(status))
                continue
            rank.signal(signal.SIGKILL)  # what it has started and left behind
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
    """As many different ports as asked for that nothing listens at now."""
    sockets = [socket.create_server(("", 0)) for _ in range(count)]
    ports = [found.getsockname()[1] for found in sockets]
    for found in sockets:
        found.close()
    return ports


def interface_of(address: str) -> str:
    """The name of the network interface with that address, on Linux; empty where there is none."""
    if sys.platform != "linux":
        return ""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # it has no address
                found = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                if socket.inet_ntoa(found[20:24]) == address:
                    return name
    return ""


def main(address: str, name: str) -> None:
    """Connect to the launcher, say who this is, and serve."""
    token = os.environ.pop("EMBER_ML_TOKEN", "") or sys.stdin.readline().strip()
    if name == "mpi":
        name = next((os.environ[variable] for variable in _MPI_RANK if variable in os.environ), "")
    host, _, port = address.rpartition(":")
    for number in (signal.SIGINT, signal.SIGHUP):  # the launcher decides; a handler, since ranks would inherit SIG_IGN
        signal.signal(number, lambda *_: None)
    with socket.create_connection((host, int(port)), timeout=60) as launcher:
        agent = Agent(launcher)
        signal.signal(signal.SIGTERM, lambda *_: agent.leave())
        agent.say(hello=name, token=token)
        agent.serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
