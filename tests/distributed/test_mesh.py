"""Meshes of processes, and of the devices of one process; backends that cannot."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ember_ml import nn, ops
from ember_ml.backend import is_installed, use_backend
from ember_ml.distributed.strategy import MeshStrategy
from ember_ml.errors import UnsupportedOp
from ember_ml.training import Trainer
from tests.distributed.comparing import check_equal, largest_difference
from tests.distributed.ranks import run_ranks
from tests.distributed.text_models import MODELS, read_text

JOBS = "tests.distributed.mesh_jobs"
EIGHT = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
CUBE = {"data": 2, "shard": 2, "tensor": 2}


@cache
def results() -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        return run_ranks("mesh", "jax", 1, limit=300.0, variables=EIGHT, module=JOBS, folder=folder)[0]


@pytest.fixture(params=["jax"])
def found(request: pytest.FixtureRequest) -> dict[str, Any]:
    if not is_installed(request.param):
        pytest.skip("JAX is not installed")
    return results()


@pytest.mark.parametrize("kind", ["whole", "split"])
def test_fifty_steps_on_eight_devices_are_those_of_one(found: dict[str, Any], kind: str) -> None:
    alone, made = found["alone"], found[kind]
    assert len(alone["losses"]) == 50
    assert alone["losses"][-1] < alone["losses"][0] / 4
    check_equal([made], alone, 1e-6)
    for name, value in alone["evaluated"].items():
        assert made["evaluated"][name] == pytest.approx(value, abs=1e-6)


def test_each_device_has_its_part(found: dict[str, Any]) -> None:
    assert found["whole"]["rows"] == found["split"]["rows"] == [2, 13]  # 13 rows do not split evenly
    assert found["whole"]["shares"] == found["whole"]["resumed shares"] == [1.0, 1.0]
    sizes = [16 * 3, 16, 2 * 16, 2]  # of which the last does not split
    share = (sum(sizes[:3]) / 8 + sizes[3]) / sum(sizes)
    assert found["split"]["shares"] == pytest.approx([share, share])
    assert found["split"]["resumed shares"] == found["split"]["shares"]


@pytest.mark.parametrize("kind", ["whole", "split"])
def test_a_restored_run_goes_on_bit_for_bit(found: dict[str, Any], kind: str) -> None:
    for part in ("losses", "parameters", "state"):
        assert found[kind]["resumed"][part] == found[kind][part], part


def test_batches_that_do_not_split_evenly(found: dict[str, Any]) -> None:
    assert largest_difference(found["uneven"]["losses"], found["uneven alone"]["losses"]) < 1e-6
    check_equal([found["uneven"]], found["uneven alone"], 1e-6)


def test_devices_that_are_not_there(found: dict[str, Any]) -> None:
    assert found["unknown"][0] == "DeviceError"
    assert "cuda:9" in found["unknown"][1]
    with pytest.raises(ValueError, match="several names"):
        MeshStrategy(devices="cpu")
    with pytest.raises(ValueError, match="several names"):
        MeshStrategy(devices=[])


def test_backends_without_a_mesh_say_so(backend: str) -> None:
    if backend == "jax":  # one device is a mesh too
        assert MeshStrategy().num_devices == 1
        Trainer(nn.Linear(2, 1), strategy=MeshStrategy()).step((ops.ones((1, 2)), ops.ones((1, 1))))
        return
    with pytest.raises(UnsupportedOp, match="DataParallelStrategy"):
        Trainer(nn.Linear(2, 1), strategy=MeshStrategy())


# data, shard and tensor


@pytest.mark.long_with("torch", "mlx")  # two ranks of which run in test_two_ranks.py
def test_four_processes_of_which_two_share_each_layer(backend: str) -> None:
    if backend == "jax":
        pytest.skip("its steps are compiled, which is refused in test_two_ranks.py")
    mesh = {"data": 2, "tensor": 2}
    alone = read_text("layers", None)
    ranks = run_ranks("read_texts", backend, 4, module=JOBS, cases={"layers": {"kind": "layers", "mesh": mesh}})
    check_equal([rank["layers"] for rank in ranks], alone)
    assert ranks[0]["layers"]["evaluated"] == pytest.approx(alone["evaluated"], abs=1e-6)
    assert ranks[0]["layers"]["layout"] == {
        "embedding": "vocabulary",
        "body.blocks.0.attention.qkv": "column",
        "body.blocks.0.attention.output": "row",
        "body.blocks.0.mlp.up": "column",
        "body.blocks.0.mlp.gate": "column",
        "body.blocks.0.mlp.down": "row",
    }


@pytest.mark.long
@pytest.mark.parametrize("backend", ["torch"])
def test_models_on_meshes_of_four_processes(backend: str) -> None:
    pytest.importorskip(f"ember_ml.backend.{backend}")
    meshes = [{"data": 1, "shard": 2, "tensor": 2}, {"data": 2, "shard": 2}, {"data": 2, "tensor": 2}]
    cases = {f"{kind} {number}": {"kind": kind, "mesh": m} for kind in MODELS for number, m in enumerate(meshes)}
    ranks = run_ranks("read_texts", backend, 4, limit=600.0, module=JOBS, cases=cases)
    for name, case in cases.items():
        check_equal([rank[name] for rank in ranks], read_text(case["kind"], None), 1e-5)


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_fifty_steps_of_eight_processes_are_those_of_one(kind: str, dtype: str, tmp_path: Path) -> None:
    pytest.importorskip("ember_ml.backend.torch")
    case = {"kind": kind, "mesh": CUBE, "steps": 50, "folder": str(tmp_path / "saved"), "dtype": dtype}
    ranks = run_ranks("read_texts", "torch", 8, limit=600.0, module=JOBS, cases={kind: case})
    with use_backend("torch"):
        check_cube([rank[kind] for rank in ranks], read_text(kind, None, 50, dtype=dtype), dtype)


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_fifty_steps_of_eight_devices_in_a_cube_are_those_of_one(kind: str, dtype: str, tmp_path: Path) -> None:
    pytest.importorskip("ember_ml.backend.jax")
    case = {"kind": kind, "mesh": CUBE, "steps": 50, "folder": str(tmp_path / "saved"), "dtype": dtype}
    alone = {"kind": kind, "mesh": None, "steps": 50, "dtype": dtype}
    cases = {"cube": case, "alone": alone}
    (found,) = run_ranks("read_texts", "jax", 1, limit=600.0, variables=EIGHT, module=JOBS, cases=cases)
    check_cube([found["cube"]], found["alone"], dtype)


def check_cube(ranks: list[Any], alone: dict[str, Any], dtype: str) -> None:
    assert len(alone["losses"]) == 50
    assert alone["losses"][-1] < alone["losses"][0] / 4
    assert all(rank["bytes"] < 0.28 * alone["bytes"] for rank in ranks)
    for rank in ranks:
        assert largest_difference(rank["losses"], alone["losses"]) < 1e-5
        if dtype == "float64":  # where nothing but a wrong sum is left to differ
            for name, values in alone["parameters"].items():
                assert largest_difference(rank["parameters"][name], values) < 1e-10, name
