"""How processes that another program started meet, by torchrun's store and MLX's host files, and how they part."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ember_ml.backend.processes import rendezvous
from ember_ml.backend.processes.group import Place


def test_ranks_that_torchrun_has_started_again_do_not_meet_the_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("torch.distributed")
    port = rendezvous._free_port()
    store = distributed.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)  # it outlives the restart
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "0")  # torchrun counts a restart on the machine that failed alone
    for start in ("first", "second"):
        found: dict[int, list[list[str]]] = {}

        def meet(rank: int, found: dict[int, list[list[str]]] = found, start: str = start) -> None:
            place = Place(rank, 3, rank, f"127.0.0.1:{port}", 30.0, "torchrun")
            # as where a program uses two backends: the first rank goes on to the next while others have yet to read
            found[rank] = [rendezvous.meet_by_store(place, f"{start} {number}:{rank}")[1] for number in range(4)]

        ranks = [threading.Thread(target=meet, args=(rank,)) for rank in (2, 1, 0)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join(60)
        met = [[f"{start} {number}:{rank}" for rank in range(3)] for number in range(4)]
        assert found == dict.fromkeys(range(3), met)
    del store


_ALONE_IN_A_GROUP = """
import sys
from pathlib import Path
import torch
from ember_ml.backend.torch.processes import TorchGroup

torch.distributed.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=0, world_size=1)
group = TorchGroup("torch gloo", 0, 1)
group.begin_all_reduce(torch.ones(2), "sum")()
threads = lambda: [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
before = threads()
group.close()
print(any("gloo" in name for name in before), any("gloo" in name for name in threads()))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the names of threads are read from Linux")
def test_closing_a_group_ends_the_threads_of_its_engine(tmp_path: Path) -> None:
    pytest.importorskip("torch.distributed")
    command = [sys.executable, "-c", _ALONE_IN_A_GROUP, str(tmp_path / "meeting")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split() == ["True", "False"], done.stderr


@pytest.mark.parametrize("is_joined", [True, False])
def test_a_host_file_of_mlx_does_not_stay(is_joined: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlx.core")
    processes: Any = importlib.import_module("ember_ml.backend.mlx.processes")  # not the one that loads when asked

    class Ring:
        def rank(self) -> int:
            return 1

        def size(self) -> int:
            return 2

    def init(**settings: Any) -> Ring:
        assert list(tmp_path.iterdir()) == [Path(os.environ["MLX_HOSTFILE"])]
        if not is_joined:
            raise RuntimeError("the ring could not be joined")
        return Ring()

    for name in ("MLX_HOSTFILE", "MLX_RANK"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(processes, "all_addresses", lambda place: ["127.0.0.1:1", "127.0.0.1:2"])
    monkeypatch.setattr(processes.mx.distributed, "init", init)
    place = Place(1, 2, 1, None, 30.0, "torchrun")
    if is_joined:
        assert processes.connect(place).rank == 1
    else:
        with pytest.raises(RuntimeError, match="could not be joined"):
            processes.connect(place)
    assert list(tmp_path.iterdir()) == []
