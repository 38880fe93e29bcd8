"""Listen for the agents of a job, and let in those that know its token.

Nothing that a stranger sends is parsed: the first line of an agent is the token and its name, of limited length, and
has to come soon. Nobody is listened to once all agents are there.
"""

from __future__ import annotations

import hmac
import selectors
import socket
import time
from collections.abc import Collection, Iterable

__all__ = ["Listeners"]

_LONGEST_LINE = 256
_MOST_STRANGERS = 32  # with more, the oldest is closed
_PATIENCE = 10.0  # seconds for the first line


class Listeners:
    """Sockets at some addresses of this machine, and the connections that have not shown the token yet.

    Args:
        selector: Where the sockets are registered, with ``("server", None)`` and ``("stranger", None)`` as data.
        addresses: The addresses to listen at.
        token: The secret that agents know.
        limit: The seconds after which sending to an agent fails.
    """

    def __init__(self, selector: selectors.BaseSelector, addresses: Iterable[str], token: str, limit: float) -> None:
        self._selector, self._token, self._limit = selector, token.encode(), limit
        self._servers = {address: socket.create_server((address, 0)) for address in addresses}
        self._strangers: dict[socket.socket, tuple[float, bytes]] = {}
        for server in self._servers.values():
            selector.register(server, selectors.EVENT_READ, ("server", None))

    @property
    def ports(self) -> dict[str, int]:
        """The port at each address."""
        return {address: server.getsockname()[1] for address, server in self._servers.items()}

    def accept(self, server: socket.socket) -> None:
        """Take a connection; however many there are, the launcher can still open files."""
        self._dismiss([*self._strangers][: max(0, len(self._strangers) + 1 - _MOST_STRANGERS)])
        try:
            connection, _ = server.accept()
        except OSError:  # no file is left, or the other side has gone
            self._dismiss([*self._strangers])
            return
        connection.settimeout(self._limit)
        self._strangers[connection] = time.monotonic(), b""
        self._selector.register(connection, selectors.EVENT_READ, ("stranger", None))

    def greet(self, connection: socket.socket) -> str | None:
        """Read from a stranger; return the name of an agent that knows the token, which the caller then owns."""
        if connection not in self._strangers:  # dismissed a moment ago
            return None
        since, received = self._strangers[connection]
        try:
            arrived = connection.recv(_LONGEST_LINE - len(received))
        except OSError:
            arrived = b""
        received += arrived
        line, end, _ = received.partition(b"\n")
        if arrived and not end and len(received) < _LONGEST_LINE:
            self._strangers[connection] = since, received
            return None
        token, _, name = line.partition(b" ")
        if not end or not hmac.compare_digest(token, self._token):
            self._dismiss([connection])
            return None
        del self._strangers[connection]
        self._selector.unregister(connection)
        return name.decode(errors="replace")

    def expire(self, now: float) -> None:
        """Close the connections that have been silent for too long."""
        self._dismiss([stranger for stranger, (since, _) in self._strangers.items() if now - since > _PATIENCE])

    def _dismiss(self, strangers: Collection[socket.socket]) -> None:
        for connection in strangers:
            del self._strangers[connection]
            self._selector.unregister(connection)
            connection.close()

    def close(self) -> None:
        """Listen no longer."""
        self._dismiss([*self._strangers])
        for server in self._servers.values():
            self._selector.unregister(server)
            server.close()
        self._servers = {}
