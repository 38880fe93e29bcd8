"""Which layers a mesh splits, and how: no processes are needed to decide it."""

from __future__ import annotations

from typing import Any

import pytest

from ember_ml import nn
from ember_ml.backend.processes.group import Group
from ember_ml.distributed import Mesh
from ember_ml.distributed.strategy import MeshStrategy
from ember_ml.distributed.tensor_plan import Cut, make_layout
from ember_ml.errors import LaunchError, UnsupportedOp
from tests.distributed.text_models import MODELS, PLAN, Reader


def test_a_mesh_has_places_and_groups() -> None:
    mesh = Mesh(data=2, shard=3, tensor=2)
    assert mesh.size == 12
    assert len({mesh.place(rank) for rank in range(12)}) == 12
    assert mesh.place(7) == (1, 0, 0, 1)
    with_context = Mesh(data=2, tensor=2, context=2)
    assert [with_context.place(rank).context for rank in range(8)] == [0, 0, 1, 1] * 2
    assert with_context.groups(["data", "context"]) == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert mesh.groups(["shard"]) == [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11]]
    assert mesh.groups(["shard", "tensor"]) == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    assert mesh.groups([]) == [[rank] for rank in range(12)]
    assert Mesh(tensor=2).fit(6) == Mesh(data=3, tensor=2)
    assert Mesh(tensor=2).fit(6) != Mesh(data=3, shard=2)


def test_an_engine_without_groups_of_some_ranks_says_so() -> None:
    with pytest.raises(UnsupportedOp, match="the engine ring has no groups"):
        Group("ring", 0, 4).subgroup([[0, 1], [2, 3]])


def test_mistakes_in_meshes() -> None:
    with pytest.raises(LaunchError, match="does not fit 6"):
        Mesh(shard=4).fit(6)
    with pytest.raises(ValueError, match="length from 1 up"):
        Mesh(tensor=0)
    with pytest.raises(ValueError, match="'pipe'"):
        Mesh(data=2).groups(["pipe"])
    with pytest.raises(ValueError, match="fit"):
        _ = Mesh().size
    with pytest.raises(TypeError, match="takes a Mesh"):
        MeshStrategy(8)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_most_of_each_model_is_split(kind: str) -> None:
    model = MODELS[kind]()
    layout = make_layout(model, 2, {"embedding": "vocabulary"})
    sizes = {name: x.size for name, x in model.named_parameters().items()}
    assert sum(size for name, size in sizes.items() if name in layout.cuts) > 0.85 * sum(sizes.values())
    assert make_layout(model, 1) == ({}, {})


def test_queries_keys_and_values_are_cut_apart() -> None:
    layout = make_layout(Reader(), 2)
    cut = layout.cuts["body.blocks.0.attention.qkv.weight"]
    assert cut == Cut(0, (16, 16, 16))
    assert cut.bounds(1, 2) == [(8, 16), (24, 32), (40, 48)]
    assert layout.cuts["body.blocks.0.attention.output.weight"] == Cut(1, (16,))
    assert "body.blocks.0.attention.output.bias" not in layout.cuts


def test_what_does_not_split_evenly_stays_whole() -> None:
    layout = make_layout(nn.blocks.Transformer(12, 1, heads=3, expansion=2.0), 2)
    assert list(layout.styles) == ["blocks.0.mlp.up", "blocks.0.mlp.down"]  # three heads do not
    with pytest.raises(ValueError, match="3 does not split into 2"):
        make_layout(nn.Attention(12, heads=3), 2, {"qkv": "column"})


def test_a_plan_of_ones_own() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            self.wide, self.narrow, self.other = nn.Linear(4, 8), nn.Linear(8, 4), nn.LayerNorm(4)

    plan = {"wide": "column", "narrow": "row"}
    assert make_layout(Mixed(), 2).styles == {}
    assert make_layout(Mixed(), 2, plan).cuts.keys() == {"wide.weight", "wide.bias", "narrow.weight"}
    assert make_layout(Reader(), 2, {"body.*": "whole"}).styles == {}
    with pytest.raises(ValueError, match="class LayerNorm"):
        make_layout(Mixed(), 2, {"other": "column"})
    with pytest.raises(ValueError, match="the styles are"):
        make_layout(Mixed(), 2, {"wide": "sideways"})


def test_layers_of_other_classes_stay_whole_with_those_beside_them() -> None:
    class Adapted(nn.Linear):
        """A layer that computes something else with its weight."""

    model: Any = nn.MLP(8, inputs=4)
    model.down = Adapted(8, 4)
    assert make_layout(model, 2).styles == {}


def test_a_weight_of_two_layers_is_cut_once() -> None:
    model = MODELS["qwen3"]()
    layout = make_layout(model, 2)
    assert layout.styles["embedding"] == "vocabulary"
    assert layout.styles["output"] == "column, gathered"
    assert "output.weight" not in layout.cuts
    assert layout.cuts["embedding.weight"] == Cut(0, (32,))
    tied = nn.MLP(4, inputs=4, bias=False)
    tied.down.weight = tied.up.variable("weight")  # which one would cut by rows, and one by columns
    assert make_layout(tied, 2).styles == {}


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_the_sequence_of_each_model_can_be_split(kind: str) -> None:
    plan = PLAN if kind == "layers" else {}
    styles = make_layout(MODELS[kind](), 2, plan, splits_sequence=True).styles
    assert styles.get("places") == ("sequence" if kind == "gpt2" else None)
    assert "places" not in make_layout(MODELS[kind](), 2).styles


def test_models_whose_sequence_cannot_be_split() -> None:
    class Mixing(Reader):
        def __init__(self) -> None:
            super().__init__()
            self.score = nn.Linear(5, 1)

    def layout_of(model: Any, plan: dict[str, str]) -> Any:
        return make_layout(model, 2, plan, splits_sequence=True)

    with pytest.raises(ValueError, match="no layer of Reader makes it whole again"):
        layout_of(Reader(), {"embedding": "vocabulary"})
    with pytest.raises(ValueError, match="no layer of Reader begins to split"):
        layout_of(Reader(), {"output": "sequence, gathered"})
    with pytest.raises(ValueError, match=r"body.blocks.0.attention is not split"):
        layout_of(Reader(), {**PLAN, "body.blocks.0.attention.*": "whole"})
    with pytest.raises(ValueError, match="score stands behind output"):
        layout_of(Mixing(), PLAN)
    assert layout_of(Mixing(), {**PLAN, "score": "whole"}).styles["score"] == "whole"
    model: Any = Reader()
    model.body.norm = nn.BatchNorm(16)
    with pytest.raises(ValueError, match=r"body.norm is of the class BatchNorm"):
        layout_of(model, PLAN)
