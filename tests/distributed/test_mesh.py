"""One process that trains on eight devices, and backends that cannot."""

from __future__ import annotations

from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ember_ml import nn, ops
from ember_ml.backend import is_installed
from ember_ml.distributed.strategy import MeshStrategy
from ember_ml.errors import UnsupportedOp
from ember_ml.training import Trainer
from tests.distributed.comparing import check_equal, largest_difference
from tests.distributed.ranks import run_ranks

EIGHT = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}


@cache
def results() -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        module = "tests.distributed.mesh_jobs"
        return run_ranks("mesh", "jax", 1, limit=300.0, variables=EIGHT, module=module, folder=folder)[0]


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
        MeshStrategy("cpu")
    with pytest.raises(ValueError, match="several names"):
        MeshStrategy([])


def test_backends_without_a_mesh_say_so(backend: str) -> None:
    if backend == "jax":  # one device is a mesh too
        assert MeshStrategy().num_devices == 1
        Trainer(nn.Linear(2, 1), strategy=MeshStrategy()).step((ops.ones((1, 2)), ops.ones((1, 1))))
        return
    with pytest.raises(UnsupportedOp, match="DataParallelStrategy"):
        Trainer(nn.Linear(2, 1), strategy=MeshStrategy())
