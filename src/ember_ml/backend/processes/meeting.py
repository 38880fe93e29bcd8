"""Let processes exchange one line each before they compute together: rank 0 listens, and the others come to it.

For starters that tell each process its rank and where rank 0 is, and have no way to exchange anything: ``srun``, and
the pods of Kubernetes. Lines are of limited length, and who does not begin with the name of the job is disconnected.
"""

from __future__ import annotations

import contextlib
import errno
import re
import selectors
import socket
import time
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ember_ml.backend.processes.group import Place
from ember_ml.errors import LaunchError

__all__ = ["Meeting", "exchange_lines", "slurm_meeting"]

_LONGEST = 512  # bytes of a line
_MOST_STRANGERS = 64  # with more, the oldest is closed
_PATIENCE = 5.0  # seconds for the answer of a port, which may be that of another program
_PAUSE = 0.1  # seconds between two tries, while rank 0 starts
_PORTS = 4


class Meeting(NamedTuple):
    """Where processes meet: the host of rank 0, the ports that it tries in turn, and the name of the job."""

    host: str
    ports: Sequence[int]
    job: str


def slurm_meeting(variables: Mapping[str, str], place: Place) -> Meeting | None:
    """Return where the tasks of a step of Slurm meet, as its variables say; None where the place is not that of a task.

    Task 0 is on the first node of the step. The ports are made of the numbers of job, step and requeue: below those
    that systems give to connections, and others for each step.
    """
    nodes, job = variables.get("SLURM_STEP_NODELIST"), variables.get("SLURM_JOB_ID")
    task = [variables.get(name) for name in ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")]
    if not nodes or not job or task != [str(place.rank), str(place.world_size)]:
        return None
    name = ".".join((job, variables.get("SLURM_STEP_ID", "0"), variables.get("SLURM_RESTART_COUNT", "0")))
    ports = [16000 + zlib.crc32(f"{name} {number}".encode()) % 16000 for number in range(_PORTS)]
    return Meeting(_first_host(nodes), ports, name)


def _first_host(nodes: str) -> str:
    """Return the first host of a list as Slurm writes it: ``gpu[03-10,12],other`` begins with ``gpu03``."""
    first = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes)
    assert first is not None
    return re.sub(r"\[(\d+)[^\]]*\]", r"\1", first[0])


def exchange_lines(meeting: Meeting, place: Place, text: str) -> list[str]:
    """Return the texts of all ranks, in their order; a text has neither spaces nor ends of lines."""
    deadline = time.monotonic() + place.timeout
    try:
        host = socket.gethostbyname(meeting.host)
    except OSError as error:
        raise LaunchError(
            f"rank {place.rank} of {place.world_size} does not know the address of {meeting.host}, where rank 0 is "
            f"({error}): set MASTER_ADDR and MASTER_PORT"
        ) from error
    if place.rank == 0:
        return _receive(meeting, host, place, text, deadline)
    return _visit(meeting, host, place, text, deadline)


def _visit(meeting: Meeting, host: str, place: Place, text: str, deadline: float) -> list[str]:
    """Bring a line to rank 0, which may not listen yet, and return those of all."""
    answer = f"ember-ml {meeting.job}\n".encode()
    hello = f"ember-ml {meeting.job} {place.rank} {text}\n".encode()
    while time.monotonic() < deadline:
        for port in meeting.ports:
            with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=_PATIENCE) as connection:
                connection.sendall(hello)
                with connection.makefile("rb") as replies:
                    if replies.readline(_LONGEST) != answer:
                        continue
                    connection.settimeout(max(_PAUSE, deadline - time.monotonic()))
                    line = replies.readline(_LONGEST * place.world_size)
                if line.endswith(b"\n"):
                    return line.decode().split()
        time.sleep(_PAUSE)
    raise LaunchError(
        f"rank {place.rank} of {place.world_size} did not find rank 0 at {meeting.host} (ports "
        f"{', '.join(map(str, meeting.ports))}) within {place.timeout:g} s, or not all ranks came there: where rank 0 "
        "is on another host, set MASTER_ADDR and MASTER_PORT"
    )


def _receive(meeting: Meeting, host: str, place: Place, text: str, deadline: float) -> list[str]:
    """Wait for the lines of all other ranks, and answer each with all of them."""
    guests: dict[int, tuple[socket.socket, str]] = {}
    strangers: dict[socket.socket, bytes] = {}
    try:
        with _listen(meeting, host) as server, selectors.DefaultSelector() as selector:
            selector.register(server, selectors.EVENT_READ)
            while len(guests) < place.world_size - 1:
                left = deadline - time.monotonic()
                if left <= 0:
                    missing = sorted({*range(1, place.world_size)} - {*guests})
                    raise LaunchError(
                        f"ranks {', '.join(map(str, missing))} of {place.world_size} did not come to rank 0 at "
                        f"{meeting.host} within {place.timeout:g} s"
                    )
                for key, _ in selector.select(left):
                    source = key.fileobj
                    assert isinstance(source, socket.socket)
                    if source is server:
                        _accept(server, strangers, selector, _MOST_STRANGERS + place.world_size)
                    elif source in strangers:
                        _hear(source, strangers, guests, selector, meeting, place.world_size)
        # nobody listens any more, so that a rank that soon has another thing to exchange does not come here
        lines = [text, *(guests[rank][1] for rank in range(1, place.world_size))]
        for guest, _ in guests.values():
            with contextlib.suppress(OSError):  # it has ended, which the others will notice
                guest.sendall(" ".join(lines).encode() + b"\n")
        return lines
    finally:
        for connection in (*strangers, *(guest for guest, _ in guests.values())):
            connection.close()


def _accept(
    server: socket.socket, strangers: dict[socket.socket, bytes], selector: selectors.BaseSelector, most: int
) -> None:
    """Take a connection; with more than ``most`` of them, or where no file is left, older ones are closed."""
    try:
        connection = server.accept()[0]
    except OSError:  # no file is left, or the other side has gone
        most = 0
    else:
        connection.settimeout(_PATIENCE)
        strangers[connection] = b""
        selector.register(connection, selectors.EVENT_READ)
    for oldest in [*strangers][: max(0, len(strangers) - most)]:
        del strangers[oldest]
        selector.unregister(oldest)
        oldest.close()


def _hear(
    source: socket.socket,
    strangers: dict[socket.socket, bytes],
    guests: dict[int, tuple[socket.socket, str]],
    selector: selectors.BaseSelector,
    meeting: Meeting,
    size: int,
) -> None:
    """Read from a connection; with a whole line it is a stranger no longer: a rank's, or closed."""
    try:
        arrived = source.recv(_LONGEST - len(strangers[source]))
    except OSError:
        arrived = b""
    received = strangers[source] + arrived
    line, end, _ = received.partition(b"\n")
    if arrived and not end and len(received) < _LONGEST:
        strangers[source] = received
        return
    del strangers[source]
    selector.unregister(source)
    found = re.fullmatch(rf"ember-ml {re.escape(meeting.job)} (\d{{1,9}}) (\S+)", line.decode(errors="replace"))
    if not end or found is None or not 0 < int(found[1]) < size:
        source.close()
        return
    rank = int(found[1])
    try:
        source.sendall(f"ember-ml {meeting.job}\n".encode())
    except OSError:
        source.close()
        return
    if rank in guests:  # it comes again: its first connection was cut
        guests[rank][0].close()
    guests[rank] = source, found[2]


def _listen(meeting: Meeting, host: str) -> socket.socket:
    for port in meeting.ports:
        try:
            return socket.create_server((host, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise LaunchError(
                    f"rank 0 cannot listen at {meeting.host}, where the others look for it ({error}): set MASTER_ADDR "
                    "and MASTER_PORT"
                ) from error
    raise LaunchError(
        f"the ports {', '.join(map(str, meeting.ports))} of {meeting.host} are in use: set MASTER_ADDR and MASTER_PORT"
    )
