"""Tensors of a file that is mapped: they fill memory only while they are used, and share nothing."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from ember_ml.backend.safetensors import Contents, MappedTensors, write_tensors

COUNT = 1 << 18
"""Numbers of a tensor; each tensor begins in the middle of a page, so that two share one."""


def _write(folder: Path, tensors: int) -> Path:
    path = folder / "x.safetensors"
    values = {f"x{i}": np.full(COUNT, i, np.float32) for i in range(tensors)}
    write_tensors(path, Contents(values, {}, False))
    return path


def _held() -> int:
    found = re.search(r"RssFile:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="counts open files as Linux tells them")
def test_many_tensors_need_one_open_file(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with MappedTensors(_write(tmp_path, 8)) as file:
        found = [file.read(name) for name in file.shapes()]
    assert [x[-1] for x in found] == list(range(8))
    assert len(os.listdir("/proc/self/fd")) == before + 1


@pytest.mark.skipif(sys.platform != "linux", reason="counts memory as Linux tells it")
def test_tensors_leave_memory_when_nothing_refers_to_them(tmp_path: Path) -> None:
    with MappedTensors(_write(tmp_path, 8)) as file:
        kept = file.read("x7")
        before = _held()
        views = [file.read(f"x{i}").view(np.int32)[1:] for i in range(7)]
        assert all(view.any() for view in views[1:])
        assert not views[0].any()
        size = COUNT * 4
        assert _held() - before > 6 * size
        while views:
            views.pop()
            assert _held() - before < (len(views) + 1) * size
    del file
    assert (kept == 7).all()


def test_what_is_changed_is_not_read_again(tmp_path: Path) -> None:
    with MappedTensors(_write(tmp_path, 3)) as file:
        one = file.read("x1")
        one[:] = 9
        again = file.read("x1")
        assert (again == 1).all()
        del one
        assert (again == 1).all()
        assert (file.read("x1") == 1).all()
        assert (file.read("x0") == 0).all()
        assert (file.read("x2") == 2).all()


def test_neighbours_keep_what_was_written_to_them(tmp_path: Path) -> None:
    with MappedTensors(_write(tmp_path, 3)) as file:
        parts = [file.read(f"x{i}") for i in range(3)]
        parts[0][:], parts[2][:] = 5, 6
        del parts[1]
        assert (parts[0] == 5).all()
        assert (parts[1] == 6).all()


def test_a_file_that_became_shorter_is_damaged(tmp_path: Path) -> None:
    path = _write(tmp_path, 2)
    with MappedTensors(path) as file:
        assert (file.read("x0") == 0).all()
        os.truncate(path, path.stat().st_size - 4)
        with pytest.raises(ValueError, match="ends within the tensor 'x1'"):
            file.read("x1")
