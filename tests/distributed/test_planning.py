"""Plans of training: sizes, memory, bytes and times against closed forms, models that exist, and published runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ember_ml import cli, models
from ember_ml.distributed.planning import DEVICES, Cluster, Job, Mesh, Transformer, estimate, plan
from ember_ml.errors import ConfigError
from ember_ml.models.settings import Settings
from ember_ml.models.sizes import read_sizes

LLAMA_8B = Transformer(32, 4096, 14336, 32, 8, 128, 128256)
LLAMA_70B = Transformer(80, 8192, 28672, 64, 8, 128, 128256)
LLAMA_405B = Transformer(126, 16384, 53248, 128, 8, 128, 128256)
H100 = DEVICES["h100"]
SMALL = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 32}


@pytest.mark.parametrize(
    ("model", "parameters"), [(LLAMA_8B, 8_030_261_248), (LLAMA_70B, 70_553_706_496), (LLAMA_405B, 405_853_388_800)]
)
def test_parameters_are_those_that_were_published(model: Transformer, parameters: int) -> None:
    assert model.parameters == parameters


@pytest.mark.parametrize(
    "settings",
    [
        {"model_type": "llama", **SMALL, "num_key_value_heads": 2},
        {"model_type": "llama", **SMALL, "tie_word_embeddings": True},
        {"model_type": "mistral", **SMALL, "num_key_value_heads": 1, "head_dim": 6},
        {"model_type": "mixtral", **SMALL, "num_key_value_heads": 4, "num_local_experts": 4, "num_experts_per_tok": 2},
    ],
)
def test_parameters_are_those_of_the_model_that_is_built(settings: dict[str, Any]) -> None:
    kinds = {"llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "mixtral": "MixtralForCausalLM"}
    made = models.from_config({**settings, "architectures": [kinds[settings["model_type"]]]})
    count = sum(parameter.size for parameter in made.parameters())
    assert read_sizes(Settings(settings)).parameters == count


def test_a_kind_that_is_no_decoder_is_refused() -> None:
    with pytest.raises(ConfigError, match="is of a 'bert'"):
        read_sizes(Settings({"model_type": "bert"}))


def test_flops_are_six_for_each_weight_and_the_products_of_attention() -> None:
    model = Transformer(2, 8, 16, 2, 2, 4, 10)
    weights = 2 * (4 * 8 * 8 + 3 * 8 * 16 + 2 * 8) + 10 * 8
    assert model.flops(5) == 6 * weights + 6 * 2 * 8 * 5


def test_copies_and_shards_send_what_a_ring_sends() -> None:
    job, cluster = Job(8192, 64 * 8192), Cluster(H100, 16, 50e9)
    size = LLAMA_8B.parameters
    copies = estimate(LLAMA_8B, cluster, job, Mesh(data=16)).moved
    assert copies["data"] == pytest.approx(2 * 15 / 16 * 4 * size)
    assert copies["shard"] == copies["tensor"] == copies["context"] == copies["pipeline"] == 0
    shards = estimate(LLAMA_8B, cluster, job, Mesh(shard=16), 4).moved
    assert shards["shard"] == pytest.approx(15 / 16 * (2 + 2 + 4) * size)
    more_rounds = estimate(LLAMA_8B, cluster, job, Mesh(shard=16), 1).moved
    assert more_rounds["shard"] == pytest.approx(4 * shards["shard"])


def test_states_are_sixteen_bytes_for_each_parameter_divided() -> None:
    job, cluster = Job(8192, 64 * 8192), Cluster(H100, 64, 50e9)
    for mesh in (Mesh(data=64), Mesh(data=2, shard=32), Mesh(shard=8, tensor=8), Mesh(shard=4, tensor=4, pipeline=4)):
        parts = mesh.shard * mesh.tensor * mesh.pipeline
        assert estimate(LLAMA_8B, cluster, job, mesh).states == pytest.approx(16 * LLAMA_8B.parameters / parts)


def test_a_slow_network_makes_computation_wait() -> None:
    job = Job(8192, 128 * 8192)
    fast, slow = (estimate(LLAMA_8B, Cluster(H100, 128, rate), job, Mesh(shard=128)) for rate in (50e9, 5e9))
    assert fast.exposed < 0.5 * slow.exposed
    assert slow.step == pytest.approx(slow.moved["shard"] / (0.8 * 5e9))


def test_what_is_computed_again_costs_time_and_saves_memory() -> None:
    cluster = Cluster(H100, 8, 50e9)
    kept = {
        keep: estimate(LLAMA_8B, cluster, Job(8192, 8 * 8192, keep), Mesh(shard=8))
        for keep in ("all", "products", "inputs")
    }
    assert kept["all"].activations > kept["products"].activations > kept["inputs"].activations
    assert kept["inputs"].computing == pytest.approx(4 / 3 * kept["all"].computing)
    with pytest.raises(ConfigError, match="keep is 'all'"):
        estimate(LLAMA_8B, cluster, Job(8192, 8 * 8192, "some"), Mesh(shard=8))


def test_stages_wait_for_each_other() -> None:
    found = estimate(LLAMA_8B, Cluster(H100, 4, 50e9), Job(8192, 8 * 8192), Mesh(pipeline=4))
    assert found.bubble / (found.step - found.bubble) == pytest.approx(3 / (8 * 8))


def test_plans_fit_use_all_devices_and_are_sorted() -> None:
    cluster = Cluster(H100, 64, 50e9)
    found = plan(LLAMA_70B, cluster, Job(8192, 256 * 8192))
    assert len(found) > 3
    assert all(each.mesh.devices == 64 and each.memory < H100.memory for each in found)
    assert [each.step for each in found] == pytest.approx(sorted(each.step for each in found), abs=1e-4)


def test_published_runs_are_met() -> None:
    """With the efficiency of 8,192 H100 the run of Llama 3 on twice as many, and with that of 8 the one on 128."""
    first = estimate(LLAMA_405B, Cluster(H100, 8192, 50e9, efficiency=0.528), Job(8192, 2048 * 8192), _llama(64))
    second = estimate(LLAMA_405B, Cluster(H100, 16384, 50e9, efficiency=0.528), Job(8192, 2048 * 8192), _llama(128))
    assert first.utilization * H100.flops == pytest.approx(430e12, rel=0.01)
    assert second.utilization * H100.flops == pytest.approx(400e12, rel=0.03)
    found = [
        estimate(
            LLAMA_8B, Cluster(H100, count, 50e9, efficiency=0.347), Job(8192, 2 * count * 8192), Mesh(shard=count), 2
        )
        for count in (8, 128)
    ]
    assert found[0].tokens_per_second == pytest.approx(6667, rel=0.01)
    assert found[1].tokens_per_second == pytest.approx(6514, rel=0.03)
    assert [each.memory / 2**30 for each in found] == pytest.approx([77.0, 62.0], rel=0.15)


def _llama(shard: int) -> Mesh:
    return Mesh(shard=shard, tensor=8, pipeline=16)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: str) -> tuple[Any, str, str]:
        monkeypatch.setattr(sys, "argv", ["ember-ml", "plan", *arguments])
        monkeypatch.setenv("COLUMNS", "80")
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", **SMALL, "vocab_size": 1000}))
    return str(tmp_path)


def test_the_command_prints_a_table_in_eighty_columns(command: Any, folder: str) -> None:
    code, out, _ = command(folder, "--gpus", "16", "--sequence", "128")
    assert not code
    assert all(word in out for word in ("meshes fit", "tokens/s", "micro", "peak"))
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 90  # the sentence below it


def test_the_command_prints_json(command: Any, folder: str) -> None:
    _, out, _ = command(folder, "--gpus", "4", "--sequence", "128", "--json")
    found = json.loads(out)
    assert found["parameters"] == read_sizes(Settings({"model_type": "llama", **SMALL, "vocab_size": 1000})).parameters
    assert {"data", "shard", "memory", "step", "moved", "tokens_per_second"} <= set(found["meshes"][0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "--gpus", "4"], "cannot be read"),
        ([".", "--gpus", "4", "--network", "fast"], "is no rate"),
        ([".", "--gpus", "4", "--device", "abacus"], "there is no device"),
        ([".", "--gpus", "0"], "--gpus"),
    ],
)
def test_wrong_input_is_an_error(command: Any, folder: str, arguments: list[str], message: str) -> None:
    where = folder if arguments[0] == "." else f"{folder}/{arguments[0]}"
    code, _, err = command(where, *arguments[1:])
    assert code == 2
    assert message in err


def test_a_model_that_fits_nowhere_says_what_to_do(command: Any, tmp_path: Path) -> None:
    large = {"model_type": "llama", **SMALL, "hidden_size": 16384, "intermediate_size": 53248, "num_hidden_layers": 126}
    (tmp_path / "config.json").write_text(json.dumps(large))
    code, _, err = command(str(tmp_path), "--gpus", "2")
    assert code == 2
    assert "take more devices" in " ".join(err.split())
