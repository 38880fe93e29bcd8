"""What a process learns of its place from the variables of whatever started it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ember_ml.backend.processes.group import Place
from ember_ml.distributed.placement import place_of
from ember_ml.errors import ConfigError


def test_a_plain_program_is_alone() -> None:
    assert place_of({}) == Place(0, 1, 0, None, 300.0, "python")


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        (
            {"EMBER_ML_RANK": "2", "EMBER_ML_WORLD_SIZE": "4", "EMBER_ML_LOCAL_RANK": "0", "EMBER_ML_TIMEOUT": "9.5",
             "EMBER_ML_COORDINATOR": "a:1"},
            Place(2, 4, 0, "a:1", 9.5, "ember-ml launch"),
        ),
        (
            {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "MASTER_ADDR": "h", "MASTER_PORT": "7"},
            Place(1, 2, 1, "h:7", 300.0, "torchrun"),
        ),
        (  # a worker of Ray, which listens for PyTorch at the second place
            {"EMBER_ML_RANK": "1", "EMBER_ML_WORLD_SIZE": "2", "EMBER_ML_LOCAL_RANK": "1",
             "EMBER_ML_COORDINATOR": "a:1", "MASTER_ADDR": "h", "MASTER_PORT": "7"},
            Place(1, 2, 1, "a:1", 300.0, "ember-ml launch"),
        ),
        (
            {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1"},
            Place(3, 4, 1, None, 300.0, "mpirun"),
        ),
        ({"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0"}, Place(1, 2, 0, None, 300.0, "mpirun")),
        (  # srun --mpi=pmi2
            {"PMI_RANK": "2", "PMI_SIZE": "4", "SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "0"},
            Place(2, 4, 0, None, 300.0, "mpirun"),
        ),
        (  # mpirun, whose helpers srun has started, one on each node
            {"PMI_RANK": "3", "PMI_SIZE": "4", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_LOCALID": "0"},
            Place(3, 4, 3, None, 300.0, "mpirun"),
        ),
        (
            {"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1", "SLURM_NTASKS": "8"},
            Place(3, 8, 1, None, 300.0, "srun"),
        ),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, Place(0, 1, 0, None, 300.0, "python")),  # a batch script
        (
            {"RANK": "3", "WORLD_SIZE": "4", "KUBERNETES_SERVICE_HOST": "10.0.0.1"},  # one process in each pod
            Place(3, 4, 0, None, 300.0, "torchrun"),
        ),
    ],
)  # fmt: skip
def test_each_starter_is_understood(variables: dict[str, str], place: Place) -> None:
    assert place_of(variables) == place


def test_the_ring_of_mlx_is_understood(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.json"
    hosts.write_text(json.dumps([["10.0.0.1:5"], ["10.0.0.2:5"], ["10.0.0.2:6", "10.1.0.2:6"]]))
    place = place_of({"MLX_RANK": "2", "MLX_HOSTFILE": str(hosts)})
    assert place == Place(2, 3, 1, "10.0.0.1:5", 300.0, "mlx.launch")


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"EMBER_ML_WORLD_SIZE": "4"}, "nothing tells this one its rank"),
        ({"EMBER_ML_WORLD_SIZE": "4", "PMI_RANK": "0", "PMI_SIZE": "1"}, "4 processes were asked for"),
        ({"RANK": "4", "WORLD_SIZE": "4"}, "rank 4 of 4"),
        ({"RANK": "x", "WORLD_SIZE": "4"}, "RANK is a number"),
        ({"EMBER_ML_TIMEOUT": "soon"}, "number of seconds"),
        ({"EMBER_ML_TIMEOUT": "0"}, "number of seconds"),
        ({"MLX_RANK": "0", "MLX_HOSTFILE": "/nowhere"}, "no list of addresses"),
        ({"MLX_RANK": "0"}, "MLX_RANK gives this process the rank '0', and nothing says of how many"),
        ({"PMIX_RANK": "1"}, "nothing says of how many"),
    ],
)
def test_contradictions_are_errors(variables: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        place_of(variables)
