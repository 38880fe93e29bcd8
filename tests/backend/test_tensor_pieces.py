"""Files of pieces of tensors: whatever the pieces, the whole tensors come back; what does not fit is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_ml.backend.safetensors import Contents, write_tensors
from ember_ml.backend.tensor_pieces import JoinedTensors, Region, write_pieces
from ember_ml.core.dtypes import as_dtype

WHOLE = np.arange(6 * 5 * 2, dtype=np.float32).reshape(6, 5, 2)


def write(path: Path, *pieces: tuple[Any, Region]) -> list[Path]:
    """Write each piece of a tensor to a file of its own."""
    paths = [path / f"{number}.safetensors" for number in range(len(pieces))]
    for file, piece in zip(paths, pieces, strict=True):
        write_pieces(file, {"x": piece})
    return paths


def cut(axis: int, *bounds: tuple[int, int], start: int = 0, end: int | None = None) -> tuple[np.ndarray, Region]:
    stretches = [np.take(WHOLE, range(*pair), axis) for pair in bounds]
    vector = np.concatenate(stretches, axis).reshape(-1)
    return vector[start:end], Region(WHOLE.shape, axis, bounds, start)


@pytest.mark.parametrize(
    "pieces",
    [
        [cut(0, (0, 6))],
        [cut(0, (0, 6), end=23), cut(0, (0, 6), start=23), cut(0, (0, 6), start=60)],  # the last has nothing
        [cut(0, (0, 2), (4, 5)), cut(0, (2, 4), (5, 6))],
        [cut(1, (3, 5)), cut(1, (0, 3), end=7), cut(1, (0, 3), start=7)],
        [cut(2, (1, 2)), cut(2, (0, 1))],
    ],
)
def test_pieces_make_the_whole(tmp_path: Path, pieces: list[tuple[Any, Region]]) -> None:
    paths = write(tmp_path, *pieces)
    joined = JoinedTensors(paths)
    for path in paths:
        path.unlink()  # what is open stays
    assert list(joined) == ["x"]
    assert len(joined) == 1
    assert joined["x"].dtype == WHOLE.dtype
    np.testing.assert_array_equal(joined["x"], WHOLE)


@pytest.mark.parametrize(
    "pieces",
    [
        [cut(0, (0, 6), end=23), cut(0, (0, 6), start=23)],
        [cut(1, (3, 5)), cut(1, (0, 3), end=7), cut(1, (0, 3), start=7)],
    ],
)
def test_stretches_of_tensors_make_a_vector(tmp_path: Path, pieces: list[tuple[Any, Region]]) -> None:
    joined = JoinedTensors(write(tmp_path, *pieces))
    flat = WHOLE.reshape(-1)
    for low, high in [(0, 60), (0, 23), (20, 30), (23, 24), (30, 30), (59, 60)]:
        expected = np.concatenate([flat[low:high], np.zeros(3, np.float32)])
        np.testing.assert_array_equal(joined.read_vector({"x": (low, high)}, high - low + 3), expected)


def test_whole_tensors_are_read_one_by_one(tmp_path: Path) -> None:
    values = {"x": WHOLE, "z": np.array([1 + 2j, 3j]), "b": np.array([True, False]), "n": np.array(2.0)}
    write_tensors(tmp_path / "x", Contents(values, {}, False))
    joined = JoinedTensors([tmp_path / "x"], are_whole=True)
    (tmp_path / "x").unlink()
    for name, value in values.items():
        assert joined.shapes[name] == (as_dtype(value.dtype), value.shape)
        np.testing.assert_array_equal(joined[name], value, strict=True)
    np.testing.assert_array_equal(joined.read_vector({"z": (1, 2)}, 1), [3j])
    with pytest.raises(ValueError, match="x, z have the dtypes complex128, float32, not one"):
        joined.read_vector({"x": (0, 1), "z": (0, 1)}, 2)


def test_pieces_of_complex_numbers(tmp_path: Path) -> None:
    value = np.arange(6) * (1 + 2j)
    region = Region((6,), 0, ((0, 6),), 0)
    joined = JoinedTensors(write(tmp_path, (value[:4], region), (value[4:], region._replace(start=4))))
    np.testing.assert_array_equal(joined["x"], value, strict=True)


def test_tensors_without_axes_or_elements(tmp_path: Path) -> None:
    pieces = {
        "number": (np.float32(3.0).reshape(()), Region((), 0, (), 0)),
        "empty": (np.zeros(0, np.int64), Region((0, 3), 0, ((0, 0),), 0)),
    }
    write_pieces(tmp_path / "x", pieces)
    joined = JoinedTensors([tmp_path / "x"])
    assert joined["number"] == 3.0
    assert joined["number"].shape == ()
    assert joined["empty"].shape == (0, 3)


@pytest.mark.parametrize(
    "pieces",
    [
        [cut(0, (0, 3))],
        [cut(0, (0, 3)), cut(0, (2, 6))],
        [cut(0, (0, 6), end=30)],
        [cut(0, (0, 6), end=30), cut(0, (0, 6), start=29)],
        [cut(0, (0, 3)), cut(1, (2, 5))],
        [cut(0, (0, 3)), (cut(0, (3, 6))[0].astype(np.float64), cut(0, (3, 6))[1])],
        [cut(0, (0, 3)), (cut(0, (3, 6))[0], cut(0, (3, 6))[1]._replace(shape=(6, 10)))],
        [(WHOLE, Region((10**9, 10**9), 0, ((0, 10**9),), 0))],
    ],
)
def test_pieces_that_make_no_tensor(tmp_path: Path, pieces: list[tuple[Any, Region]]) -> None:
    with pytest.raises(ValueError, match="do not make one tensor"):
        JoinedTensors(write(tmp_path, *pieces))


@pytest.mark.parametrize(
    "index",
    [
        None,
        "[",
        "[1]",
        json.dumps({"x": [[2], 0, [[0, 2]]]}),
        json.dumps({"x": [[2], 1, [[0, 2]], 0]}),
        json.dumps({"x": [[2], 0, [[0, 3]], 0]}),
        json.dumps({"x": [[2], 0, [[1, 0]], 0]}),
        json.dumps({"x": [[2], 0, [], 0]}),
        json.dumps({"x": [[-2], 0, [[0, 2]], 0]}),
        json.dumps({"x": [[2.0], 0, [[0, 2]], 0]}),
        json.dumps({"y": [[2], 0, [[0, 2]], 0]}),
        "[" * 100_000,
    ],
)
def test_indices_that_say_nothing(tmp_path: Path, index: str | None) -> None:
    text = {} if index is None else {"pieces": index}
    write_tensors(tmp_path / "x", Contents({"x": np.zeros(2, np.float32)}, text, False))
    with pytest.raises(ValueError, match="does not say where"):
        JoinedTensors([tmp_path / "x"])
