"""Meshes that split sequences: what they refuse, and meshes of more than two processes or of devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ember_ml import nn, ops
from ember_ml.distributed.context import check_positionwise, take_positions
from tests.distributed.comparing import check_equal, largest_difference
from tests.distributed.ranks import run_ranks
from tests.distributed.test_mesh import EIGHT, JOBS
from tests.distributed.text_models import MODELS, OTHERS, read_text


class Scaled(nn.Module):
    def __init__(self) -> None:
        self.scale = nn.Parameter(ops.ones((8, 1)))


@pytest.mark.parametrize("kind", sorted(MODELS | OTHERS))
def test_models_that_can_compute_with_parts(kind: str) -> None:
    check_positionwise((MODELS | OTHERS)[kind](), None)


@pytest.mark.parametrize(
    "layer",
    [
        *(nn.Conv1d(4, 4, 3), nn.CausalConv1d(4, 4, 3), nn.GRU(4, 4), nn.LinearAttention(4), nn.CrossAttention(4)),
        *(nn.BatchNorm(4), nn.GlobalAvgPool(), nn.Flatten(), nn.LayerNorm((8, 4)), nn.Softmax(axis=1), Scaled()),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_layers_that_mix_positions_are_refused(layer: nn.Module) -> None:
    model = nn.Sequential(nn.Linear(4, 4), layer)
    with pytest.raises(ValueError, match=f"^1 is of the class {type(layer).__name__}, which may compute with several"):
        check_positionwise(model, {"0": "positionwise"})
    check_positionwise(model, {"1*": "positionwise"})


def test_a_class_of_ones_own_is_judged_by_what_it_derives_from() -> None:
    class Pool(nn.GlobalAvgPool):
        """No parameters, and a result of all positions."""

    class Halved(nn.Linear):
        """Parameters, with which it may do anything."""

    check_positionwise(nn.Sequential(nn.ReLU(), nn.Softmax(), nn.blocks.Residual(nn.LayerNorm(4))), None)
    for layer in (Pool(), Halved(4, 4)):
        with pytest.raises(ValueError, match="may compute with several positions"):
            check_positionwise(nn.Sequential(layer), None)


def test_batches_are_split_along_their_second_axis(backend: str) -> None:
    batch: Any = ({"tokens": ops.reshape(ops.arange(8), (2, 4)), "kind": ops.arange(2)}, ops.zeros((2, 4, 3)))
    parts = [take_positions(batch, index, 2) for index in range(2)]
    assert [ops.to_numpy(x["tokens"]).tolist() for x, _ in parts] == [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]
    assert [(ops.shape(x["kind"]), ops.shape(y)) for x, y in parts] == [((2,), (2, 2, 3))] * 2
    for wrong, words in (
        (ops.zeros((2, 3)), "3 positions do not split into 2"),
        (ops.zeros((2, 2)), "equal parts of at least 2"),
        ((ops.zeros((2, 4)), ops.zeros((2, 6))), "its tensors have 4 and 6 there"),
        (ops.zeros(4), "it has no such tensor"),
    ):
        with pytest.raises(ValueError, match=words):
            take_positions(wrong, 0, 2)


@pytest.mark.long_with("torch", "mlx", "jax")  # two ranks of which run in test_two_ranks.py, but for JAX
def test_four_processes_with_halves_of_rows_and_texts(backend: str) -> None:
    mesh = {"data": 2, "context": 2}
    cases = {kind: {"kind": kind, "mesh": mesh, "is_padded": True} for kind in ("mistral", "masked")}
    ranks = run_ranks("read_texts", backend, 4, limit=600.0, module=JOBS, cases=cases)
    for kind in cases:
        alone = read_text(kind, None, is_padded=True)
        check_equal([rank[kind] for rank in ranks], alone, 5e-6)
        assert largest_difference(ranks[0][kind]["predicted"], alone["predicted"]) < 1e-5


@pytest.mark.long
@pytest.mark.parametrize("backend", ["torch"])
def test_sequences_beside_the_other_axes(backend: str, tmp_path: Path) -> None:
    pytest.importorskip(f"ember_ml.backend.{backend}")
    cases = {
        "tensor": {"kind": "mistral", "mesh": {"tensor": 2, "context": 2}, "is_padded": True},
        "sequence": {"kind": "gpt2", "mesh": {"tensor": 2, "context": 2}, "splits_sequence": True},
        "shard": {"kind": "gpt2", "mesh": {"shard": 2, "context": 2}, "steps": 4, "folder": str(tmp_path / "saved")},
        "weighted": {"kind": "gpt2", "mesh": {"shard": 2, "context": 2}, "is_padded": True},
        "all": {"kind": "layers", "mesh": {"context": 4}},
    }
    ranks = run_ranks("read_texts", backend, 4, limit=600.0, module=JOBS, cases=cases)
    for name, case in cases.items():
        alone = read_text(case["kind"], None, case.get("steps", 3), is_padded="is_padded" in case)
        check_equal([rank[name] for rank in ranks], alone, 1e-5)
    saved = {"kind": "gpt2", "steps": 4, "folder": str(tmp_path / "saved"), "is_saved": True}
    fewer = {"fewer": {**saved, "mesh": {"context": 2}}}
    ranks = run_ranks("read_texts", backend, 2, module=JOBS, cases=fewer)
    check_equal([rank["fewer"] for rank in ranks], read_text("gpt2", None, 4), 1e-5)


@pytest.mark.long
def test_devices_with_parts_of_the_sequences_are_one() -> None:
    pytest.importorskip("ember_ml.backend.jax")
    mesh = {"data": 2, "tensor": 2, "context": 2}
    kinds = {"layers": False, "mistral": True}
    cases = {kind: {"kind": kind, "mesh": mesh, "is_padded": is_padded} for kind, is_padded in kinds.items()}
    (found,) = run_ranks("read_texts", "jax", 1, limit=600.0, variables=EIGHT, module=JOBS, cases=cases)
    for kind, is_padded in kinds.items():
        check_equal([found[kind]], read_text(kind, None, is_padded=is_padded), 1e-5)
