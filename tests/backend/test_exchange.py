"""Processes that know where the first of them is exchange a line each, whoever else comes to its port."""

from __future__ import annotations

import contextlib
import resource
import socket
import threading
import time
import tracemalloc

import pytest

from ember_ml.backend.processes import meeting as meetings
from ember_ml.backend.processes import rendezvous
from ember_ml.backend.processes.group import Place
from ember_ml.backend.processes.meeting import Meeting, exchange_lines, slurm_meeting
from ember_ml.errors import LaunchError

STEP = {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "4", "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "2"}


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("node7", "node7"),
        ("node[1-2]", "node1"),
        ("gpu-a[003-010,12],login1", "gpu-a003"),
        ("one.example,two", "one.example"),
        ("r[2-3]n[05,07-09]x", "r2n05x"),
    ],
)
def test_tasks_meet_on_the_first_node_of_their_step(nodes: str, first: str) -> None:
    found = slurm_meeting({**STEP, "SLURM_STEP_NODELIST": nodes}, Place(1, 4))
    assert found is not None
    assert (found.host, found.job) == (first, "77.2.0")
    assert all(16000 <= port < 32000 for port in found.ports)
    again = slurm_meeting({**STEP, "SLURM_STEP_NODELIST": nodes, "SLURM_RESTART_COUNT": "1"}, Place(1, 4))
    assert again is not None
    assert set(again.ports).isdisjoint(found.ports)  # those of the former start may still be in use


def test_a_process_that_is_no_task_meets_nobody() -> None:
    variables = {**STEP, "SLURM_STEP_NODELIST": "node1"}
    assert slurm_meeting(variables, Place(3, 4)) is None  # a rank of mpirun, whose helper is the task
    assert slurm_meeting({}, Place(1, 4)) is None


def exchange(meeting: Meeting, size: int, timeout: float = 30.0) -> list[list[str] | LaunchError]:
    """What each of so many ranks gets, or how it fails."""
    found: list[list[str] | LaunchError] = [[]] * size

    def take_part(rank: int) -> None:
        place = Place(rank, size, timeout=timeout)
        try:
            found[rank] = exchange_lines(meeting, place, f"10.0.0.{rank}:5")
        except LaunchError as error:
            found[rank] = error

    ranks = [threading.Thread(target=take_part, args=(rank,)) for rank in reversed(range(size))]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(60)
    return found


def test_all_ranks_get_the_lines_of_all() -> None:
    meeting = Meeting("localhost", [rendezvous._free_port()], "1.0.0")
    for _ in range(2):  # a port serves again at once
        assert exchange(meeting, 3) == [["10.0.0.0:5", "10.0.0.1:5", "10.0.0.2:5"]] * 3


def test_a_port_of_another_program_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meetings, "_PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as other:  # it listens, and never answers
        meeting = Meeting("127.0.0.1", [other.getsockname()[1], rendezvous._free_port()], "1.0.0")
        assert exchange(meeting, 2) == [["10.0.0.0:5", "10.0.0.1:5"]] * 2


WRONG = (b"", b"GET / HTTP/1.1\r\n\r\n", b"[" * 5000, b"ember-ml 2.0.0 1 b:2\n", b"ember-ml 1.0.0 0 b:2\n",
         b"ember-ml 1.0.0 2 b:2\n", b"ember-ml 1.0.0 1\n", b"ember-ml 1.0.0 -1 b:2\n", b"\xff\n")  # fmt: skip


@pytest.mark.parametrize("count", [1500, pytest.param(100_000, marks=pytest.mark.long)])
def test_strangers_change_nothing_and_memory_stays(count: int) -> None:
    meeting = Meeting("127.0.0.1", [rendezvous._free_port()], "1.0.0")
    found: list[list[str]] = []
    host = threading.Thread(target=lambda: found.append(exchange_lines(meeting, Place(0, 2, timeout=600.0), "a:1")))
    host.start()
    held: list[socket.socket] = []
    sizes = []
    tracemalloc.start()
    for number in range(count):
        held.append(_connect(meeting.ports[0]))
        with contextlib.suppress(ConnectionError):
            held[-1].sendall(WRONG[number % len(WRONG)])
        if len(held) > 100:
            held.pop(0).close()
        if number in (500, count - 1):
            sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert exchange_lines(meeting, Place(1, 2, timeout=30.0), "b:2") == ["a:1", "b:2"]
    host.join(30)
    assert found == [["a:1", "b:2"]]
    for connection in held:
        connection.close()
    assert sizes[1] < sizes[0] + 100_000


def test_a_host_that_may_open_no_more_files_waits_on() -> None:
    meeting = Meeting("127.0.0.1", [rendezvous._free_port()], "1.0.0")
    found: list[list[str]] = []
    host = threading.Thread(target=lambda: found.append(exchange_lines(meeting, Place(0, 2, timeout=60.0), "a:1")))
    host.start()
    first = _connect(meeting.ports[0])
    with _connect(meeting.ports[0]) as second:
        second.sendall(b"wrong\n")
        assert second.recv(1) == b""  # so the first was accepted too
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    connections = [socket.socket() for _ in range(20)]
    with socket.socket() as spare:
        free = spare.fileno()
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        for connection in connections:
            connection.connect(("127.0.0.1", meeting.ports[0]))
        first.settimeout(20)
        assert first.recv(1) == b""  # it has given way
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for connection in (first, *connections):
            connection.close()
    assert exchange_lines(meeting, Place(1, 2, timeout=30.0), "b:2") == ["a:1", "b:2"]
    host.join(30)
    assert found == [["a:1", "b:2"]]


def _connect(port: int) -> socket.socket:
    until = time.monotonic() + 20.0
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=5)
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


def test_ranks_that_do_not_come_are_named() -> None:
    meeting = Meeting("127.0.0.1", [rendezvous._free_port()], "1.0.0")
    with pytest.raises(LaunchError, match=r"ranks 1, 2 of 3 did not come to rank 0 at 127\.0\.0\.1 within 0\.2 s"):
        exchange_lines(meeting, Place(0, 3, timeout=0.2), "a:1")
    with pytest.raises(LaunchError, match="rank 1 of 3 did not find rank 0"):
        exchange_lines(meeting, Place(1, 3, timeout=0.2), "a:1")
    nowhere = Meeting("no-such-host.invalid", [1], "1.0.0")
    with pytest.raises(LaunchError, match="does not know the address of no-such-host"):
        exchange_lines(nowhere, Place(1, 2), "a:1")
    elsewhere = Meeting("192.0.2.1", [9], "1.0.0")
    with pytest.raises(LaunchError, match=r"cannot listen at 192\.0\.2\.1"):
        exchange_lines(elsewhere, Place(0, 2), "a:1")


def test_ranks_of_a_known_coordinator_exchange_addresses_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    coordinator = f"127.0.0.1:{rendezvous._free_port()}"  # as MASTER_ADDR and MASTER_PORT of pods tell
    found: dict[int, list[str]] = {}

    def take_part(rank: int) -> None:
        found[rank] = rendezvous.all_addresses(Place(rank, 2, 0, coordinator, 30.0, "torchrun"))

    ranks = [threading.Thread(target=take_part, args=(rank,)) for rank in (0, 1)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(60)
    assert found[0] == found[1]
    assert len({*found[0]}) == 2
    assert all(address.startswith("127.0.0.1:") for address in found[0])


def test_mpich_is_not_asked_where_pmix_has_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mpi4py")
    for name in rendezvous._MPI_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PMIX_RANK", "0")
    if rendezvous._library().get_vendor()[0] != "MPICH":
        assert rendezvous.is_mpi_here()
        return
    assert not rendezvous.is_mpi_here()
    monkeypatch.setenv("MPIR_CVAR_PMI_VERSION", "x")
    assert rendezvous.is_mpi_here()
