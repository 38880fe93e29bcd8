"""Saving and loading: what comes back, what a file must be, and what happens when something fails."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ember_ml
from ember_ml import dtypes, ops
from ember_ml.backend import installed_backends, load
from ember_ml.backend import safetensors as safetensors_file
from ember_ml.errors import UnsupportedDType
from ember_ml.nn import tensor
from tests.reference import array_of, arrays, as_array, shapes

NAMES = sorted(dtype.name for dtype in dtypes.ALL)


def _held(*backends: str) -> list[str]:
    """The dtypes that all these backends have."""
    return [name for name in NAMES if all(dtypes.as_dtype(name) in load(backend).dtypes for backend in backends)]


def _bits(x: Any) -> tuple[str, tuple[int, ...], bytes]:
    host = ops.to_numpy(x)
    return host.dtype.name, host.shape, host.tobytes()


@pytest.mark.parametrize("writer", installed_backends())
@pytest.mark.parametrize("reader", installed_backends())
def test_what_one_backend_saves_every_other_loads(writer: str, reader: str, tmp_path: Path) -> None:
    path = tmp_path / "all.safetensors"
    saved: dict[str, Any] = {}
    with ember_ml.use_backend(writer):
        for name in _held(writer, reader):
            grid = ops.cast(ops.reshape(ops.arange(-6, 6), (3, 4)), name)
            saved[f"{name} matrix"] = grid
            saved[f"{name} number"] = ops.get_item(grid, (1, 2))
            saved[f"{name} empty"] = ops.zeros((0, 3), dtype=name)
            saved[f"{name} strided"] = ops.get_item(grid, (slice(None), slice(None, None, 2)))
            saved[f"{name} across"] = ops.transpose(grid)
            saved[f"{name} repeated"] = ops.broadcast_to(ops.get_item(grid, 0), (2, 4))
            saved[f"{name} backwards"] = ops.flip(grid)
        ops.save(path, saved)
    with ember_ml.use_backend(reader):
        found = ops.load(path)
        assert list(found) == list(saved)
        for name, x in found.items():
            assert type(x) is load(reader).tensor_type
            assert _bits(x) == _bits(saved[name]), name
            ops.add(x, x) if "bool" not in name else ops.logical_not(x)  # it can be computed with


@pytest.mark.parametrize("backend_name", installed_backends())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_tensor_comes_back_bit_by_bit(backend_name: str, tmp_path: Path, data: st.DataObject) -> None:
    with ember_ml.use_backend(backend_name):
        dtype = data.draw(st.sampled_from(_held(backend_name)))
        values = data.draw(arrays(dtype, shapes()))
        path = tmp_path / "one.safetensors"
        x = ops.asarray(values)
        ops.save(path, x)
        assert _bits(ops.load(path)) == _bits(x)


def test_portable_tensors_and_python_data(backend: str, tmp_path: Path) -> None:
    path = str(tmp_path / "x")
    ops.save(path, {"portable": tensor.EmberTensor([1.0, 2.0]), "list": [[1, 2]], "number": 2.5})
    found = ops.load(path, device="cpu")
    assert {name: ops.to_numpy(x).tolist() for name, x in found.items()} == {
        "portable": [1.0, 2.0],
        "list": [[1, 2]],
        "number": 2.5,
    }
    assert ops.dtype(found["number"]) == "float32"
    assert ops.get_device(found["list"]) == "cpu"


def test_metadata(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    text = {"epoch": "3", "": "ünïcödé \n \x00", "long": "x" * 10_000}
    ops.save(path, {"a": ops.ones(2)}, metadata=text)
    found, metadata = ops.load(path, return_metadata=True)
    assert metadata == text
    assert list(found) == ["a"]
    ops.save(path, {})
    assert ops.load(path, return_metadata=True) == ({}, {})
    ops.save(path, ops.array(2), {"unit": "m"})
    found, metadata = ops.load(path, return_metadata=True)
    assert (ops.item(found), metadata) == (2, {"unit": "m"})


def test_names(backend: str, tmp_path: Path) -> None:
    named = {name: ops.full((), i) for i, name in enumerate(["", "a.b/c", "日本", '"', "tensor", "ember_ml"])}
    ops.save(tmp_path / "x", named)
    assert {name: ops.item(x) for name, x in ops.load(tmp_path / "x").items()} == {n: i for i, n in enumerate(named)}


def test_loaded_tensors_are_free_of_the_file(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    ops.save(path, {"a": ops.arange(1000), "b": ops.ones(3)})
    before = path.read_bytes()
    found = ops.load(path)
    host = ops.to_numpy(found["a"])
    if host.flags.writeable:
        host[0] = 77
    assert path.read_bytes() == before
    ops.save(path, {"a": ops.zeros(1000)})  # in the place of the file from which they come
    assert ops.item(ops.sum(ops.get_item(found["a"], slice(1, None)))) == sum(range(1000))
    path.unlink()
    assert ops.item(ops.sum(found["b"])) == 3.0


def test_failure_leaves_the_old_file_and_no_other(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    ops.save(path, ops.ones(3))
    before = path.read_bytes()

    def full(*args: Any) -> Any:
        raise OSError(28, "No space left on device")

    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(safetensors_file.os, step, full)
            with pytest.raises(OSError, match="No space"):
                ops.save(path, ops.zeros(5))
        assert os.listdir(tmp_path) == ["x"]
        assert path.read_bytes() == before
    for wrong in ({"a": ops.ones(1), "b": "text"}, {"a": None}, {1: ops.ones(1)}):
        with pytest.raises(TypeError):
            ops.save(path, wrong)
    assert path.read_bytes() == before


def test_links_and_modes_are_kept(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    ops.save(real, ops.ones(1))
    real.chmod(0o640)
    link.symlink_to(real)
    ops.save(link, ops.zeros(1))
    assert link.is_symlink()
    assert ops.to_numpy(ops.load(real)).tolist() == [0.0]
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_what_cannot_be_saved(backend: str, tmp_path: Path) -> None:
    path, x = tmp_path / "x", ops.ones(1)
    with pytest.raises(ValueError, match="__metadata__"):
        ops.save(path, {"__metadata__": x})
    with pytest.raises(TypeError, match="not 'epoch': 3; json"):
        ops.save(path, x, {"epoch": 3})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="'ember_ml'"):
        ops.save(path, x, {"ember_ml": "x"})
    with pytest.raises(FileNotFoundError):
        ops.save(tmp_path / "nowhere" / "x", x)
    with pytest.raises(FileNotFoundError):
        ops.load(path)
    assert os.listdir(tmp_path) == []


def test_dtype_that_the_backend_lacks(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    ops.save(path, {"w": array_of("complex128", [1 + 2j])})
    if backend == "mlx":
        with pytest.raises(UnsupportedDType, match=r"'w' in .*x is complex128, which the backend 'mlx' does not have"):
            ops.load(path)
    else:
        assert ops.to_numpy(ops.load(path)["w"]).tolist() == [1 + 2j]


def _file(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    encoded = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(encoded) if length is None else length).to_bytes(8, "little") + encoded + data


def _entry(dtype: Any = "F32", shape: Any = (2,), places: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(places)}


EIGHT = bytes(8)
DAMAGED = {
    "nothing": b"",
    "seven bytes": bytes(7),
    "no header": _file({}, length=3)[:9],
    "header longer than the file": _file({}, length=2**40),
    "no text": _file(b"\xff\xfe"),
    "no JSON": _file(b"{'a'}"),
    "no table": _file([]),
    "endless nesting": _file(b"[" * 100_000),
    "a pickle": b"\x80\x04" + bytes(64),
    "a name twice": _file(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{}}', b"1"),
    "no table for a tensor": _file({"a": 3}),
    "no shape": _file({"a": {"dtype": "F32", "data_offsets": [0, 8]}}, EIGHT),
    "a shape that is none": _file({"a": _entry() | {"shape": 2}}, EIGHT),
    "a negative shape": _file({"a": _entry(shape=(-1, -2))}, EIGHT),
    "a true shape": _file({"a": _entry("U8", shape=(True,), places=(0, 1))}, b"1"),
    "a fraction": _file({"a": _entry(shape=(2.0,))}, EIGHT),
    "three places": _file({"a": _entry(places=(0, 8, 8))}, EIGHT),
    "places backwards": _file({"a": _entry(shape=(0,), places=(8, 0))}, EIGHT),
    "too few bytes for the shape": _file({"a": _entry(shape=(3,))}, EIGHT),
    "a shape that overflows": _file({"a": _entry(shape=(2**62, 2**62))}, EIGHT),
    "a truncated file": _file({"a": _entry()}, EIGHT[:-1]),
    "bytes too many": _file({"a": _entry()}, EIGHT + b"1"),
    "places beyond the file": _file({"a": _entry(places=(8, 16))}, EIGHT),
    "tensors that overlap": _file({"a": _entry(), "b": _entry(places=(4, 12))}, EIGHT + EIGHT[:4]),
    "the same bytes twice": _file({"a": _entry(), "b": _entry()}, EIGHT),
    "a hole": _file({"a": _entry(), "b": _entry(places=(12, 20))}, bytes(20)),
    "texts that are none": _file({"__metadata__": {"a": 1}}),
    "metadata that are no table": _file({"__metadata__": ["a"]}),
    "bytes that are no bools": _file({"a": _entry("BOOL", places=(0, 2))}, b"\x00\x02"),
    "an entry of ours that is none": _file({"__metadata__": {"ember_ml": "["}}),
    "an entry of ours of another kind": _file({"__metadata__": {"ember_ml": "3"}}),
    "one tensor of none": _file({"__metadata__": {"ember_ml": '{"single": true}'}}),
    "one tensor that is no truth": _file({"__metadata__": {"ember_ml": '{"single": 1}'}}),
    "complex numbers of nothing": _file({"__metadata__": {"ember_ml": '{"complex128": ["a"]}'}}),
    "complex numbers of floats": _file({"__metadata__": {"ember_ml": '{"complex128": ["a"]}'}, "a": _entry()}, EIGHT),
}


@pytest.mark.parametrize("name", sorted(DAMAGED))
def test_damaged_file_is_an_error_that_names_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.safetensors"
    path.write_bytes(DAMAGED[name])
    with pytest.raises(ValueError, match=r"broken\.safetensors is no safetensors file, or a damaged one"):
        ops.load(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_change_of_a_byte_does_worse_than_an_error(tmp_path: Path, data: st.DataObject) -> None:
    """A file with one byte changed, cut off or added is refused, or gives other tensors; nothing else happens."""
    path = tmp_path / "x"
    ops.save(path, {"a": [True, False, True], "b": [1.0, 2.0], "c": array_of("complex128", [1j])}, {"k": "v"})
    whole = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(whole) - 1))
    kind = data.draw(st.sampled_from(["change", "cut", "add"]))
    if kind == "change":
        whole[place] ^= data.draw(st.integers(1, 255))
    elif kind == "cut":
        del whole[place]
    else:
        whole.insert(place, data.draw(st.integers(0, 255)))
    path.write_bytes(whole)
    try:
        found = ops.load(path)
    except (ValueError, UnsupportedDType):
        return
    for x in found.values() if isinstance(found, dict) else [found]:
        as_array(ops.to_numpy(x)).tolist()


def test_dtype_that_nobody_here_has(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for dtype in ("F8_E4M3", "F128", 7, None):
        path.write_bytes(_file({"w": _entry(dtype, shape=(8,))}, EIGHT))
        with pytest.raises(UnsupportedDType, match=r"'w' in .*which Ember ML does not have"):
            ops.load(path)


def test_unaligned_tensors_of_other_writers(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    values = as_array([1.5, -2.0], "float32").tobytes()
    header = {"byte": _entry("U8", (1,), (0, 1)), "floats": _entry("F32", (2,), (1, 9))}
    path.write_bytes(_file(header, b"\x07" + values))
    found = ops.load(path)
    assert ops.to_numpy(found["byte"]).tolist() == [7]
    assert ops.to_numpy(ops.multiply(found["floats"], 2.0)).tolist() == [3.0, -4.0]
