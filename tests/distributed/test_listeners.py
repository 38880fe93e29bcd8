"""The launcher's port: only agents that know the token are let in, whatever anybody else sends."""

from __future__ import annotations

import contextlib
import random
import resource
import selectors
import socket
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ember_ml.distributed import listeners
from ember_ml.distributed.hosts import LOCAL
from ember_ml.distributed.listeners import Listeners
from tests.distributed.launching import FIND_LAUNCHER, launch, needs_proc

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
