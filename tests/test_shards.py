"""Samples in tar and Parquet files."""

from __future__ import annotations

import io
import json
import pickle
import random
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


def _read_both(path: Path) -> list[Any]:
    """Return the samples of a tar file, by their places and in order, or what was raised."""
    found: list[Any] = []
    for read in (
        lambda: [rows[n] for rows in [datasets.TarShards([path])] for n in range(len(rows))],
        lambda: [*datasets.stream_tar([path])],
    ):
        try:
            found.append(read())
        except ValueError as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda held: b"", "ends without the zeros"),
        (lambda held: held[: 5 * 1024], "ends without the zeros"),  # between two files
        (lambda held: held[: 5 * 1024 + 200], "truncated header"),
        (lambda held: held[: 5 * 1024 + 512 + 100], "unexpected end of data"),
        (lambda held: held[:4096] + b"?" + held[4097:], "bad checksum"),
        (lambda held: held[:4096] + b"\0" * 512 + held[4608:], "data behind the zeros"),
        (lambda held: held + held, "data behind the zeros"),
        (lambda held: held[:2048] + _header(b"x", 10**12) + held[2048:], "a header tells the size 1000000000000"),
        (lambda held: held[:2048] + _header(b"L", 1 << 30) + held[2048:], "a header tells the size 1073741824"),
        (lambda held: held[:2048] + _header(b"0", -1024) + held[2048:], "a header tells the size -1024"),
        (lambda held: held[:2048] + _header(b"0", 10**12) + held[2048:], "unexpected end of data"),
        (lambda held: held[:2048] + _header(b"2") + held[2048:], "has a link in the place of a.bin"),
        (lambda held: held[:2048] + _header(b"1") + held[2048:], "has a link in the place of a.bin"),
        (lambda held: held[:2048] + _header(b"0", name=b"a.__key__") + held[2048:], "the name of the sample's key"),
    ],
)
def test_tar_files_that_are_not_whole(tmp_path: Path, damage: Any, message: str) -> None:
    whole = _write(tmp_path / "whole.tar", [pair for n in range(4) for pair in _sample(n)]).read_bytes()[512:]
    broken = tmp_path / "broken.tar"
    broken.write_bytes(damage(whole))
    for found in _read_both(broken):
        assert isinstance(found, str)
        assert message in found
        assert str(broken) in found


def _header(kind: bytes, size: int = 0, name: bytes = b"a.bin") -> bytes:
    """Return the header of an entry of a tar file, written by the standard of the format."""
    digits = b"%011o\0" % size if 0 <= size < 8**11 else (size % 256**12 | 1 << 95).to_bytes(12, "big")
    fields = (name.ljust(100, b"\0"), b"0000644\0" + b"0000000\0" * 2, digits, b"00000000000\0", b" " * 8, kind)
    block = b"".join(fields).ljust(512, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
def test_compressed_files_that_are_not_whole(tmp_path: Path, kind: str) -> None:
    files = [(f"{n}.bin", bytes(random.Random(n).randbytes(3000))) for n in range(20)]
    held = _write(tmp_path / f"0.tar.{kind}", files, f"w:{kind}").read_bytes()
    broken = tmp_path / f"1.tar.{kind}"
    flipped = len(held) // 2
    for damaged in (held[:flipped], held[:flipped] + bytes([held[flipped] ^ 255]) + held[flipped + 1 :]):
        broken.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"1\.tar.* is no whole tar file"):
            list(datasets.stream_tar([broken]))


def test_files_with_holes(tmp_path: Path) -> None:
    parts = b"".join(b"%011o\0%011o\0" % part for part in ((0, 4), (1 << 20, 4)))
    header = _header(b"S", 8)
    block = header[:257] + b"ustar  \0" + header[265:386] + parts.ljust(24 * 4 + 1, b"\0")
    block += b"%011o\0" % ((1 << 20) + 4) + header[495:]
    block = block[:148] + b" " * 8 + block[156:]
    block = block[:148] + b"%06o\0 " % sum(block) + block[156:]
    path = tmp_path / "holes.tar"
    path.write_bytes(block + b"headtail".ljust(512, b"\0") + b"\0" * 1024)
    with pytest.raises(ValueError, match="without --sparse"):
        datasets.TarShards([path])
    (sample,) = datasets.stream_tar([path])
    assert sample["bin"] == b"head" + b"\0" * ((1 << 20) - 4) + b"tail"


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


def test_values_of_parquet_files(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns: dict[str, Any] = {
        "words": [["a", "b"], [], ["c"]],
        "holes": [[1, None], [2], [3]],
        "nested": [[[1, 2]], [[3], [4]], []],
        "things": [[{"n": 1}], [], [{"n": 2}]],
        "flags": [[True], [False, True], []],
    }
    path = tmp_path / "0.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    rows = datasets.ParquetRows([path])
    for name in ("words", "holes", "nested", "things"):  # Python values, an integer beside a null too
        assert [rows[n][name] for n in range(3)] == columns[name]
        assert {type(rows[n][name]) for n in range(3)} == {list}
    assert [rows[n]["flags"].tolist() for n in range(3)] == columns["flags"]
    assert datasets.ParquetRows([path, path], (name for name in ("words", "holes")))[3] == {
        "words": ["a", "b"],
        "holes": [1, None],
    }
    with pytest.raises(TypeError, match="columns are a list of names"):
        datasets.ParquetRows([path], "words")
    with pytest.raises(ValueError, match="no column to read"):
        datasets.ParquetRows([path], [])
    held = path.read_bytes()
    for damaged in (b"", held[: len(held) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="Parquet") as caught:
            datasets.ParquetRows([path])
        assert str(path) in caught.value.__notes__[0]


def test_datasets_of_hugging_face(backend: str) -> None:
    library = pytest.importorskip("datasets")
    table = library.Dataset.from_dict({"ids": [[1, 2], [3, 4], [5, 6]], "y": [0, 1, 0]})
    for data in (table, table.to_iterable_dataset()):
        found = [ops.to_numpy(batch["ids"]).tolist() for batch in DataLoader(data, batch_size=2)]
        assert found == [[[1, 2], [3, 4]], [[5, 6]]]
