"""Place ranks on hosts."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ember_ml.errors import LaunchError

__all__ = ["LOCAL", "Host", "address_of", "check_reach", "is_here", "places", "read_hosts", "route_to"]

LOCAL = "127.0.0.1"


@dataclass(frozen=True)
class Host:
    """A host by the name that its peers and ``ssh`` reach it by, and the ranks that run on it."""

    name: str
    ranks: range


def read_hosts(path: Path) -> list[tuple[str, int]]:
    """The hosts of a file and how many ranks each takes: lines of ``name`` or ``name slots=4``, comments after ``#``.

    >>> import tempfile
    >>> from ember_ml.distributed.hosts import read_hosts
    >>> with tempfile.NamedTemporaryFile("w") as file:
    ...     _ = file.write("node1 slots=4  # the first\\nnode2\\n")
    ...     file.flush()
    ...     read_hosts(Path(file.name))
    [('node1', 4), ('node2', 1)]
    """
    try:
        text = path.read_text()
    except OSError as error:
        raise LaunchError(f"the hosts cannot be read: {error}") from error
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, *rest = line.partition("#")[0].split() or [""]
        if not name:
            continue
        count = rest[0].removeprefix("slots=") if rest else "1"
        if len(rest) > 1 or not count.isdecimal() or int(count) < 1 or (rest and "=" not in rest[0]):
            raise LaunchError(f"{path}, line {number}: write 'name' or 'name slots=4', not {line.strip()!r}")
        if name.startswith("-"):  # ssh would take it for an option
            raise LaunchError(f"{path}, line {number}: a host's name does not begin with a dash: {name!r}")
        if name in found:
            raise LaunchError(f"{path}, line {number}: the host {name!r} is there twice; give it more slots instead")
        found[name] = int(count)
    if not found:
        raise LaunchError(f"{path} names no host")
    return list(found.items())


def places(hosts: list[tuple[str, int]], count: int | None) -> list[Host]:
    """Return the hosts that are needed for ``count`` ranks (all of them for None), filled in the order given.

    >>> from ember_ml.distributed.hosts import places
    >>> [(host.name, list(host.ranks)) for host in places([("a", 2), ("b", 2)], 3)]
    [('a', [0, 1]), ('b', [2])]
    """
    room = sum(slots for _, slots in hosts)
    wanted = room if count is None else count
    if wanted > room:
        raise LaunchError(f"{wanted} ranks were asked for, and the hosts take {room}; give them more slots")
    placed: list[Host] = []
    first = 0
    for name, slots in hosts:
        last = min(first + slots, wanted)
        if first < last:
            placed.append(Host(name, range(first, last)))
        first = last
    return placed


@cache
def address_of(name: str) -> str:
    """The address of a host, which its peers are told instead of the name: many a host knows itself by another one."""
    try:
        return socket.gethostbyname(name)
    except OSError as error:
        raise LaunchError(f"the host {name!r} is not known here: {error}") from error


def check_reach(hosts: list[Host]) -> None:
    """Raise where the ranks of several hosts could not reach one of them."""
    for host in hosts:
        if len(hosts) > 1 and address_of(host.name).startswith("127."):
            raise LaunchError(
                f"the host {host.name!r} has the address {address_of(host.name)}, by which the other hosts reach "
                "themselves; write its address in the network instead"
            )


def is_here(name: str) -> bool:
    """Return whether the name is one of this machine: only then can its address be listened at."""
    with socket.socket() as probe:
        try:
            probe.bind((address_of(name), 0))
        except OSError:
            return False
    return True


def route_to(name: str) -> str:
    """Return the address of this machine by which that host reaches it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # connecting it sends nothing
        try:
            probe.connect((address_of(name), 9))
        except OSError as error:
            raise LaunchError(f"there is no way to the host {name!r}: {error}") from error
        return probe.getsockname()[0]
