"""The launcher's port: only agents that know the token are let in, whatever anybody else sends."""

from __future__ import annotations

import contextlib
import random
import resource
import selectors
import socket
import struct
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ember_ml.distributed import listeners
from ember_ml.distributed.hosts import LOCAL
from ember_ml.distributed.listeners import Listeners
from tests.distributed.launching import FIND_LAUNCHER, Launched, launch, needs_proc

TOKEN = "0123456789abcdef"


class Port:
    """Listeners, and what the supervisor does with what they find."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.listeners = Listeners(self.selector, [LOCAL], TOKEN, 5.0)
        self.agents: list[tuple[str, socket.socket]] = []

    def connect(self, text: bytes = b"") -> socket.socket:
        connection = socket.create_connection((LOCAL, self.listeners.ports[LOCAL]), timeout=5)
        if text:
            connection.sendall(text)
        return connection

    def serve(self, patience: float = 0.05) -> None:
        while found := self.selector.select(patience):
            for key, _ in found:
                source = key.fileobj
                assert isinstance(source, socket.socket)
                if key.data[0] == "server":
                    self.listeners.accept(source)
                else:
                    name = self.listeners.greet(source)
                    if name is not None:
                        self.agents.append((name, source))

    def close(self) -> None:
        self.listeners.close()
        for _, agent in self.agents:
            agent.close()
        self.selector.close()


@pytest.fixture
def port() -> Iterator[Port]:
    made = Port()
    yield made
    made.close()


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_an_agent_is_known_by_the_token(port: Port) -> None:
    with port.connect(f"{TOKEN} 3\n".encode()):
        port.serve()
        assert [name for name, _ in port.agents] == ["3"]


def test_an_agent_may_send_its_line_in_pieces(port: Port) -> None:
    with port.connect(TOKEN[:5].encode()) as connection:
        port.serve()
        connection.sendall(f"{TOKEN[5:]} 1\n".encode())
        port.serve()
        assert [name for name, _ in port.agents] == ["1"]


def hostile(chances: random.Random) -> bytes:
    kinds: list[Callable[[], bytes]] = [
        lambda: b"[" * chances.randrange(1, 70000),
        lambda: chances.randbytes(chances.randrange(1, 600)),
        lambda: chances.randbytes(chances.randrange(1, 300)) + b"\n",
        lambda: TOKEN[: chances.randrange(len(TOKEN))].encode() + b" 0\n",
        lambda: f'{{"hello": "0", "token": "{TOKEN}"}}\n'.encode(),
        lambda: "\u00e9 0\n".encode() * 3,
        lambda: b"",
    ]
    return chances.choice(kinds)()


@pytest.mark.parametrize("count", [2000, pytest.param(100_000, marks=pytest.mark.long)])
def test_nothing_else_is_let_in_and_memory_stays(port: Port, count: int) -> None:
    chances = random.Random(0)
    held: list[socket.socket] = []
    sizes = []
    tracemalloc.start()
    for number in range(count):
        held.append(port.connect())
        with contextlib.suppress(ConnectionError):
            held[-1].sendall(hostile(chances))
        if len(held) > 60:
            held.pop(0).close()
        port.serve(0.0)
        if number in (500, count - 1):
            sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    for connection in held:
        connection.close()
    assert not port.agents
    assert sizes[1] < sizes[0] + 100_000
    with port.connect(f"{TOKEN} 0\n".encode()):  # an agent still finds its way
        port.serve()
        assert [name for name, _ in port.agents] == ["0"]


def test_silent_connections_give_way(port: Port) -> None:
    connections = [port.connect() for _ in range(100)]
    port.serve()
    assert is_closed(connections[0])
    assert len(port.listeners._strangers) <= 32
    port.listeners.expire(time.monotonic() + listeners._PATIENCE + 1)
    assert all(is_closed(connection) for connection in connections)
    for connection in connections:
        connection.close()


def test_a_launcher_that_may_open_no_more_files_goes_on(port: Port) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    connections = [port.connect() for _ in range(20)]
    spare = socket.socket()
    used = spare.fileno()
    spare.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 3, before[1]))
    try:
        port.serve()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    for connection in connections:
        connection.close()
    with port.connect(f"{TOKEN} 0\n".encode()):
        port.serve()
        assert [name for name, _ in port.agents] == ["0"]


@needs_proc
def test_nobody_is_listened_to_once_the_agents_are_there(tmp_path: Path) -> None:
    script = (
        FIND_LAUNCHER
        + """
try:
    socket.create_connection(("127.0.0.1", port), timeout=5)
except ConnectionRefusedError:
    print("refused")
"""
    )
    shown = launch(tmp_path, script, "-n", "1", "--timeout", "30", "--backend", "numpy")
    assert shown.code == 0, shown.err
    assert "refused" in shown.out


# Python runs it at its start: the agent tells where the launcher listens, and waits until it may go there
LATE = """
import os, sys, time
if any(word.endswith("agent.py") for word in sys.orig_argv):
    place = next(word for word in sys.orig_argv if word.startswith("127.0.0.1:"))
    with open(os.environ["AT"] + ".new", "w") as file:
        file.write(place)
    os.replace(file.name, os.environ["AT"])
    while not os.path.exists(os.environ["GO"]):
        time.sleep(0.05)
"""


def resident(pid: int) -> int:
    """The bytes of memory that a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


@needs_proc
@pytest.mark.parametrize("count", [1500, pytest.param(100_000, marks=pytest.mark.long)])
def test_a_job_outlives_hostile_messages(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "late").mkdir()
    (tmp_path / "late" / "sitecustomize.py").write_text(LATE)
    at, go = tmp_path / "at", tmp_path / "go"
    monkeypatch.setenv("AT", str(at))
    monkeypatch.setenv("GO", str(go))
    monkeypatch.syspath_prepend(str(tmp_path / "late"))
    chances = random.Random(0)
    options = ("-n", "1", "--timeout", "600", "--backend", "numpy")
    with Launched(tmp_path, "print('whole')", *options) as launched:
        until = time.monotonic() + 60.0
        while not at.exists():
            assert time.monotonic() < until, launched.process.poll()
            time.sleep(0.05)
        host, _, number = at.read_text().partition(":")
        held: list[socket.socket] = []
        sizes = []
        for sent in range(count):
            held.append(socket.create_connection((host, int(number)), timeout=20))
            # what is left is thrown away, so that as many connections as one likes can follow each other
            held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with contextlib.suppress(ConnectionError):
                held[-1].sendall(hostile(chances))
            if len(held) > 60:
                held.pop(0).close()
            if sent in (1000, count - 1):
                sizes.append(resident(launched.process.pid))
        go.touch()
        shown = launched.finish()
    for connection in held:
        connection.close()
    print(f"{count} messages: the launcher had {sizes[0]} bytes after 1,000 of them, {sizes[1]} after all")
    assert shown.code == 0, shown.err
    assert "[0] whole" in shown.out
    assert sizes[1] < sizes[0] + 1_000_000
