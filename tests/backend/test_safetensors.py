"""Our files and those of the package safetensors (for NumPy and for PyTorch) and of MLX, read by each other."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends

INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES = (*INTEGERS, "float16", "bfloat16", "float32", "float64", "complex64")


def _values(name: str) -> dict[str, np.ndarray]:
    dtype = np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)
    grid = (np.arange(12).reshape(3, 4) - 3).astype(dtype)
    grid = grid * dtype.type(1 + 0.5j) if name == "complex64" else grid
    return {"grid": grid, "number": np.array(grid[1, 2]), "empty": np.zeros((2, 0), dtype)}


def _theirs(name: str) -> Any:
    """The functions with which each other library saves and loads a dict of arrays, as NumPy arrays."""
    if name == "safetensors.numpy":
        module = pytest.importorskip(name)
        return module.save_file, module.load_file
    if name == "safetensors.torch":
        module, torch = pytest.importorskip(name), pytest.importorskip("torch")

        def to_torch(x: np.ndarray) -> Any:
            is_bits = x.dtype == ml_dtypes.bfloat16
            return torch.from_numpy(x.view(np.uint16)).view(torch.bfloat16) if is_bits else torch.from_numpy(x)

        def from_torch(x: Any) -> np.ndarray:
            is_bits = x.dtype is torch.bfloat16
            return x.view(torch.uint16).numpy().view(ml_dtypes.bfloat16) if is_bits else x.numpy()

        def save(arrays: dict[str, np.ndarray], path: str) -> None:
            module.save_file({key: to_torch(value) for key, value in arrays.items()}, path)

        return save, lambda path: {key: from_torch(value) for key, value in module.load_file(path).items()}
    mx = pytest.importorskip("mlx.core")

    def from_mlx(x: Any) -> np.ndarray:
        is_bits = x.dtype == mx.bfloat16
        return np.array(x.view(mx.uint16)).view(ml_dtypes.bfloat16) if is_bits else np.array(x)

    def save_mlx(arrays: dict[str, np.ndarray], path: str) -> None:
        with ember_ml.use_backend("mlx"):
            mx.save_safetensors(path, {key: ops.asarray(value) for key, value in arrays.items()})

    return save_mlx, lambda path: {key: from_mlx(value) for key, value in mx.load(path, format="safetensors").items()}


def _same(found: np.ndarray, wanted: np.ndarray) -> bool:
    return found.dtype == wanted.dtype and found.shape == wanted.shape and found.tobytes() == wanted.tobytes()


PAIRS = [
    pytest.param(library, name, id=f"{library}-{name}")
    for library in ("safetensors.numpy", "safetensors.torch", "mlx")
    for name in DTYPES
    if (library, name) != ("mlx", "float64")  # which MLX neither reads nor writes
]


@pytest.mark.parametrize(("library", "name"), PAIRS)
def test_others_read_our_files(library: str, name: str, tmp_path: Path) -> None:
    _, load = _theirs(library)
    path, values = str(tmp_path / "x.safetensors"), _values(name)
    ops.save(path, values, metadata={"made by": "us"})
    found = load(path)
    assert sorted(found) == sorted(values)
    assert all(_same(found[key], value) for key, value in values.items())


@pytest.mark.parametrize(("library", "name"), PAIRS)
def test_we_read_the_files_of_others(library: str, name: str, tmp_path: Path) -> None:
    save, _ = _theirs(library)
    path, values = str(tmp_path / "x.safetensors"), _values(name)
    save(values, path)
    for backend in installed_backends():
        with ember_ml.use_backend(backend):
            found = ops.load(path)
            assert sorted(found) == sorted(values)
            assert all(_same(ops.to_numpy(found[key]), value) for key, value in values.items()), backend


def test_metadata_both_ways(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors")
    path = str(tmp_path / "x.safetensors")
    ops.save(path, {"a": np.ones(2)}, metadata={"epoch": "3"})
    with safetensors.safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"epoch": "3"}
    importlib.import_module("safetensors.numpy").save_file({"a": np.ones(2)}, path, metadata={"epoch": "4"})
    assert ops.load(path, return_metadata=True)[1] == {"epoch": "4"}


def test_strided_arrays_of_many_dtypes_in_one_file(tmp_path: Path) -> None:
    """Others require that tensors lie without gaps; mixed widths would make some of them unaligned."""
    _, load = _theirs("safetensors.numpy")
    path = str(tmp_path / "x.safetensors")
    values = {name: _values(name)["grid"].T[::2, ::-1] for name in DTYPES}
    ops.save(path, {**values, "complex128": np.array([1 + 2j])})
    found = load(path)
    assert found.pop("complex128").tolist() == [[1.0, 2.0]]
    assert all(_same(found[name], value) for name, value in values.items())
    begin = 8 + int.from_bytes(Path(path).read_bytes()[:8], "little")
    assert begin % 8 == 0
    assert all(x.flags.aligned for x in ops.load(path).values() if x.dtype != bool)
