"""`ember-ml launch` on several hosts: network namespaces of this machine, each with a network interface of its own.

`ssh` is replaced by a command that enters the namespace; all else is as it is between machines.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ember_ml.distributed import hosts as placing
from ember_ml.errors import LaunchError
from tests.distributed.launching import TOGETHER, Launched, launch

STEPS = """
import os, time
from ember_ml import distributed, ops
from ember_ml.distributed import collectives

distributed.initialize(2)
print("pid", os.getpid())
for step in range(100000):
    total = ops.item(collectives.all_reduce(ops.array(1.0)))
    assert total == 2, total
    if step % 10 == 0:
        print("step", step)
    time.sleep(0.02)
"""

SSH = """#!/bin/sh
while :; do case "$1" in -o) shift 2;; -*) shift;; *) break;; esac; done
host=$1; shift
exec ip netns exec "em-$host" unshare --uts sh -c "hostname em-$host; $*"
"""


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


class Network:
    """Two hosts, and this machine, on one network."""

    def __init__(self, folder: Path) -> None:
        part = os.getpid() % 250
        self.bridge = f"em-br{part}"
        self.hosts = [f"10.77.{part}.{number}" for number in (2, 3)]
        self.wires = [f"em-{part}-{number}" for number in (2, 3)]
        self.file = folder / "hosts"
        self.file.write_text("".join(f"{host} slots=1\n" for host in self.hosts))
        self.bin = folder / "bin"
        self.bin.mkdir()
        (self.bin / "ssh").write_text(SSH)
        (self.bin / "ssh").chmod(0o755)
        self.address = f"10.77.{part}.1"

    def set_up(self) -> None:
        _ip("link", "add", self.bridge, "type", "bridge")
        _ip("addr", "add", f"{self.address}/24", "dev", self.bridge)
        _ip("link", "set", self.bridge, "up")
        for host, wire in zip(self.hosts, self.wires, strict=True):
            _ip("netns", "add", f"em-{host}")
            _ip("link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", f"em-{host}")
            _ip("link", "set", wire, "master", self.bridge, "up")
            _ip("-n", f"em-{host}", "addr", "add", f"{host}/24", "dev", "eth0")
            _ip("-n", f"em-{host}", "link", "set", "eth0", "up")
            _ip("-n", f"em-{host}", "link", "set", "lo", "up")

    def take_down(self) -> None:
        for link in (*self.wires, self.bridge):  # they would outlive the namespaces while connections linger there
            subprocess.run(["ip", "link", "del", link], check=False, capture_output=True)
        for host in self.hosts:
            subprocess.run(["ip", "netns", "del", f"em-{host}"], check=False, capture_output=True)

    def cut_off(self, number: int) -> None:
        _ip("link", "set", self.wires[number], "down")

    def processes(self, number: int) -> list[str]:
        """The processes that run on a host."""
        found = subprocess.run(
            ["ip", "netns", "pids", f"em-{self.hosts[number]}"], check=True, capture_output=True, text=True
        )
        return found.stdout.split()


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Network]:
    if sys.platform != "linux" or shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("network namespaces need Linux and the commands ip and unshare")
    probe = subprocess.run(["unshare", "--net", "--uts", "true"], check=False, capture_output=True, text=True)
    if probe.returncode or os.geteuid() != 0:
        pytest.skip(f"this user may not make network namespaces: {probe.stderr.strip() or 'not root'}")
    made = Network(tmp_path)
    try:
        made.set_up()
        monkeypatch.setenv("PATH", f"{made.bin}{os.pathsep}{os.environ['PATH']}")
        yield made
    finally:
        made.take_down()


def test_two_hosts_compute_together(backend: str, network: Network, tmp_path: Path) -> None:
    shown = launch(tmp_path, TOGETHER, "--hosts", str(network.file), "--backend", backend, "--timeout", "60")
    assert shown.code == 0, shown.err
    assert "[0] rank 0 of 2 has added up 2.0" in shown.out
    assert "[1] rank 1 of 2 has added up 2.0" in shown.out


def test_a_host_that_does_not_answer_is_named(network: Network, tmp_path: Path) -> None:
    network.file.write_text(f"{network.hosts[0]}\n10.77.255.9\n")
    shown = launch(tmp_path, TOGETHER, "--hosts", str(network.file), "--backend", "mlx", "--timeout", "5")
    assert shown.code not in (0, 2)
    assert "10.77.255.9" in shown.err
    assert network.processes(0) == []


@pytest.mark.long
def test_a_host_that_is_cut_off_ends_the_job_on_both_sides(backend: str, network: Network, tmp_path: Path) -> None:
    limit = 15.0
    options = ("--hosts", str(network.file), "--backend", backend, "--timeout", str(limit), "--json")
    with Launched(tmp_path, STEPS, *options) as launched:
        while "step 20" not in "".join(launched.lines(1)):
            assert launched.process.poll() is None, launched.finish()
        network.cut_off(1)
        cut = time.monotonic()
        shown = launched.finish()
        seconds = time.monotonic() - cut
    failure = next(event for event in shown.events if event["event"] == "failure")
    assert shown.code == 124
    assert failure["rank"] == 1
    assert f"host {network.hosts[1]} (rank 1) has not answered" in failure["why"]
    lines = [event["text"] for event in shown.events if event["event"] == "line" and event["rank"] == 0]
    assert any("PeerLost" in line and network.hosts[1] in line for line in lines)
    assert seconds < limit + 3.0  # the launcher itself ends a little after the last rank, and the machine may be busy
    while network.processes(0) or network.processes(1):
        assert time.monotonic() - cut < limit + 5.0
        time.sleep(0.1)


def test_a_loopback_address_among_several_hosts_is_refused() -> None:
    hosts = [placing.Host("localhost", range(1)), placing.Host("10.77.0.2", range(1, 2))]
    with pytest.raises(LaunchError, match="'localhost' has the address 127"):
        placing.check_reach(hosts)
    placing.check_reach(hosts[:1])
