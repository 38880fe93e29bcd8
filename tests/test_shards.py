"""Samples in tar and Parquet files."""

from __future__ import annotations

import io
import json
import pickle
import tarfile
from pathlib import Path
from typing import Any

import pytest

from ember_ml import datasets, ops
from ember_ml.training import DataLoader, samplers
from tests.training.worker_data import decode_tar


def _write(path: Path, files: list[tuple[str, bytes]], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        folder = tarfile.TarInfo("pictures")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path


def _sample(number: int) -> list[tuple[str, bytes]]:
    return [(f"pictures/n{number:03}.cls", str(number).encode()), (f"pictures/n{number:03}.seg.JSON", b"[1, 2]")]


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    counts, found, number = (4, 3, 5), [], 0
    for shard, count in enumerate(counts):
        files = [pair for sample in range(number, number + count) for pair in _sample(sample)]
        found.append(_write(tmp_path / f"{shard}.tar", [("__meta__", b"{}"), *files]))
        number += count
    return found


def test_samples_of_tar_files(shards: list[Path]) -> None:
    rows = datasets.TarShards(shards)
    assert len(rows) == 12
    assert rows.block_lengths == [4, 3, 5]
    expected = [{"__key__": f"pictures/n{n:03}", "cls": str(n).encode(), "seg.json": b"[1, 2]"} for n in range(12)]
    assert [rows[index] for index in range(12)] == expected == list(datasets.stream_tar(shards))


@pytest.mark.parametrize("workers", [0, 2])
def test_loaders_of_tar_files(shards: list[Path], workers: int) -> None:
    rows = datasets.TarShards(shards)
    loader = DataLoader(rows, 5, transform=decode_tar, sampler=samplers.BlockSampler(rows.block_lengths, 2))
    expected = [(ops.to_numpy(x).tolist(), keys) for x, keys in loader]
    assert sorted(n for x, _ in expected for n in x) == list(range(12))
    again = DataLoader(
        rows, 5, transform=decode_tar, sampler=samplers.BlockSampler(rows.block_lengths, 2), workers=workers
    )
    again.restore(json.loads(json.dumps(loader.state() | {"epoch": 0, "batch": 1})))
    assert [(ops.to_numpy(x).tolist(), keys) for x, keys in again] == expected[1:]
    again.close()


def test_compressed_and_broken_tar_files(tmp_path: Path, backend: str) -> None:
    packed = _write(tmp_path / "packed.tar.gz", [pair for n in range(3) for pair in _sample(n)], "w:gz")
    loader = DataLoader(lambda: datasets.stream_tar([packed]), batch_size=2, transform=decode_tar)
    assert [ops.to_numpy(x).tolist() for x, _ in loader] == [[0, 1], [2]]
    loader.restore(loader.state() | {"epoch": 0, "batch": 1})
    assert [ops.to_numpy(x).tolist() for x, _ in loader] == [[2]]
    with pytest.raises(ValueError, match="uncompress it"):
        datasets.TarShards([packed])
    twice = _write(tmp_path / "twice.tar", [*_sample(0), *_sample(0)])
    with pytest.raises(ValueError, match=r"twice\.tar has pictures/n000\.cls twice"):
        datasets.TarShards([twice])
    with pytest.raises(TypeError, match="a list of paths"):
        datasets.TarShards(str(twice))
    cut = datasets.TarShards([_write(tmp_path / "cut.tar", [("a.bin", b"x" * 5000)])])
    (tmp_path / "cut.tar").write_bytes((tmp_path / "cut.tar").read_bytes()[:2000])
    with pytest.raises(ValueError, match=r"a\.bin is not whole"):
        cut[0]


def test_rows_of_parquet_files(tmp_path: Path, backend: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    paths = []
    for part in range(2):
        numbers = list(range(part * 10, part * 10 + 10))
        columns: dict[str, Any] = {
            "x": [float(n) for n in numbers],
            "tokens": [[n] * 3 for n in numbers],
            "name": [f"n{n}" for n in numbers],
            "hole": [None if n == 4 else n for n in numbers],
        }
        paths.append(tmp_path / f"{part}.parquet")
        parquet.write_table(pyarrow.table(columns), paths[-1], row_group_size=4)
    rows = datasets.ParquetRows(paths)
    assert len(rows) == 20
    assert rows.block_lengths == [4, 4, 2, 4, 4, 2]
    assert [rows[n]["hole"] for n in range(20)] == [None if n == 4 else n for n in range(20)]
    chosen = datasets.ParquetRows(paths, ["x", "tokens", "name"])
    sampler = samplers.BlockSampler(chosen.block_lengths)
    for dataset in (chosen, pickle.loads(pickle.dumps(chosen))):
        seen = []
        for batch in DataLoader(dataset, batch_size=6, sampler=sampler):
            seen += ops.to_numpy(batch["x"]).tolist()
            assert ops.to_numpy(batch["tokens"]).tolist() == [[int(n)] * 3 for n in seen[-len(batch["name"]) :]]
            assert batch["name"] == [f"n{int(n)}" for n in seen[-len(batch["name"]) :]]
        assert sorted(seen) == [float(n) for n in range(20)]
    with pytest.raises(IndexError, match="20 rows"):
        rows[20]
    with pytest.raises(ValueError, match="no column 'z'"):
        datasets.ParquetRows(paths, ["z"])
    with pytest.raises(TypeError, match="a list of paths"):
        datasets.ParquetRows(paths[0])


def test_datasets_of_hugging_face(backend: str) -> None:
    library = pytest.importorskip("datasets")
    table = library.Dataset.from_dict({"ids": [[1, 2], [3, 4], [5, 6]], "y": [0, 1, 0]})
    for data in (table, table.to_iterable_dataset()):
        found = [ops.to_numpy(batch["ids"]).tolist() for batch in DataLoader(data, batch_size=2)]
        assert found == [[[1, 2], [3, 4]], [[5, 6]]]
