"""Weights of few bits: packed as MLX packs them, opened by mlx-lm and from it, close to the originals."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ember_ml import models, nn, ops
from ember_ml.backend import use_backend
from ember_ml.backend.built_in import HOST
from ember_ml.errors import ConfigError
from ember_ml.training import Trainer, optimizers, schedules
from tests.reference import packing, pretrained
from tests.reference.pretrained import check_close

TOKENS = [[3, 4, 5], [6, 7, 8]]
LLAMA: dict[str, Any] = {
    **{"model_type": "llama", "vocab_size": 61, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-6, "max_position_embeddings": 64},
    **{"architectures": ["LlamaForCausalLM"], "rope_theta": 10000.0, "head_dim": 16, "tie_word_embeddings": False},
}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": LLAMA,
    "tied": {**LLAMA, "tie_word_embeddings": True, "attention_bias": True},
    "gpt2": {"model_type": "gpt2", "vocab_size": 61, "n_embd": 64, "n_layer": 1, "n_head": 4, "n_positions": 32},
    "bert": {
        **{"model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": 61, "hidden_size": 64},
        **{"intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 4, "max_position_embeddings": 24},
    },
}


def _make(name: str) -> models.PretrainedModel:
    ops.random.seed(1)
    return models.from_config(CONFIGS[name])


def _difference(x: Any, y: Any) -> float:
    return ops.item(ops.max(ops.abs(ops.subtract(ops.to_numpy(x), ops.to_numpy(y)))))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("group_size", [32, 64])
def test_weights_are_rounded_as_the_format_says(bits: int, group_size: int, backend: str) -> None:
    model = _make("llama")
    before = ops.to_numpy(model.layers[0].mlp.down.weight)
    layer = models.quantize(model, bits, group_size).layers[0].mlp.down
    found = tuple(ops.to_numpy(x) for x in (layer.weight, layer.scales, layer.biases))
    wanted = packing.pack(before, bits, group_size)
    assert [x.dtype.name for x in found] == ["uint32", "float32", "float32"]
    for ours, reference in zip(found, wanted, strict=True):
        assert ours.tolist() == reference.tolist()
    dense = packing.unpack(*wanted, bits, group_size).astype("float32")
    assert _difference(layer.dense_weight(), dense) < 1e-7
    # half a step, or a whole one at the end of a group that is not exact
    assert _difference(dense, before) <= 1.001 * ops.item(ops.max(ops.abs(wanted[1])))


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("quantize", ["int4", "int8"])
def test_a_quantized_model_is_that_of_its_rounded_weights(
    name: str, quantize: str, backend: str, tmp_path: Path
) -> None:
    _make(name).save(tmp_path / "original")
    model = models.load(tmp_path / "original", quantize=quantize)
    found = ops.to_numpy(model(TOKENS))
    model.save(tmp_path / "quantized")
    again = models.load(tmp_path / "quantized")
    assert ops.to_numpy(again(TOKENS)).tolist() == found.tolist()
    again.save(tmp_path / "same")
    assert pretrained.read_weights(tmp_path / "same") == pretrained.read_weights(tmp_path / "quantized")
    dense = models.dequantize(again)
    check_close(ops.to_numpy(dense(TOKENS)), found)
    dense.save(tmp_path / "dense")
    plain = models.load(tmp_path / "dense")
    assert sorted(plain.named_parameters()) == sorted(models.load(tmp_path / "original").named_parameters())
    check_close(ops.to_numpy(plain(TOKENS)), found)
    original = ops.to_numpy(models.load(tmp_path / "original")(TOKENS))
    assert (
        0 < _difference(found, original) < (0.02 if quantize == "int8" else 0.4) * ops.item(ops.max(ops.abs(original)))
    )


def test_int4_has_at_most_three_tenths_of_the_size(backend: str, tmp_path: Path) -> None:
    model = _make("llama").to_dtype("bfloat16")
    model.save(tmp_path / "original")
    models.quantize(model).save(tmp_path / "quantized")
    sizes = [sum(len(x[2]) for x in pretrained.read_weights(tmp_path / y).values()) for y in ("quantized", "original")]
    assert sizes[0] <= 0.30 * sizes[1]
    config = json.loads((tmp_path / "quantized" / "config.json").read_text())
    assert config["quantization"] == {"bits": 4, "group_size": 64, "mode": "affine"} == config["quantization_config"]
    assert config["dtype"] == "bfloat16"
    half = models.load(tmp_path / "quantized")
    assert {x.dtype.name for x in half.named_buffers().values()} == {"uint32", "bfloat16"}
    wide = models.load(tmp_path / "quantized", dtype="float32")
    assert {x.dtype.name for x in wide.named_buffers().values()} == {"uint32", "float32"}
    scale = ops.item(ops.max(ops.abs(wide(TOKENS))))
    assert _difference(ops.cast(half(TOKENS), "float32"), wide(TOKENS)) < 0.05 * scale


def _read_docs() -> list[bytes]:
    return [page.read_bytes() for page in sorted((Path(__file__).parents[2] / "docs").glob("*.md"))]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a decoder of bytes in bfloat16, trained on all pages of the documentation but the first two."""
    config = {**LLAMA, "vocab_size": 256, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 32}
    text = b"".join(_read_docs()[2:])
    with use_backend(HOST):
        ops.random.seed(0)
        model = models.from_config(config).train()
        tokens = ops.reshape(ops.array(list(text[: len(text) // 33 * 33])), (-1, 33))
        optimizer = optimizers.AdamW(schedules.Cosine(5e-3, steps=250), weight_decay=0.0)
        trainer = Trainer(model, optimizer, "sparse_categorical_crossentropy", compile=False, progress=False)
        trainer.fit(tokens[:, :-1], tokens[:, 1:], epochs=1, batch_size=32, max_steps=250)
        folder = tmp_path_factory.mktemp("trained")
        model.to_dtype("bfloat16").save(folder)
    return folder


@pytest.mark.long
def test_perplexity_stays_close_to_that_in_bfloat16(trained: Path, backend: str) -> None:
    # torch 2.13: in bfloat16 a linear map of more than 16 rows ends the process on some processors with AMX
    text = b"".join(_read_docs()[:2])[: 17 * 60]
    pieces = [list(text[start : start + 17]) for start in range(0, len(text), 17)]

    def measure(quantize: str | None) -> float:
        model = models.load(trained, quantize=quantize)
        losses = []
        for piece in pieces:
            rows = ops.to_numpy(ops.cast(model([piece[:-1]]), "float32"))[0].tolist()
            losses += [
                math.log(sum(map(math.exp, row))) - row[token] for row, token in zip(rows, piece[1:], strict=True)
            ]
        assert {x.dtype.name for x in model.named_parameters().values()} == {"bfloat16"}
        return math.exp(sum(losses) / len(losses))

    found = {quantize: measure(quantize) for quantize in (None, "int8", "int4")}
    assert found[None] < 20  # of 256 that a model has which learned nothing
    assert abs(found["int8"] / found[None] - 1) <= 0.02, found
    assert abs(found["int4"] / found[None] - 1) <= 0.06, found
    assert found["int4"] != found["int8"] != found[None]


def test_generation_goes_on_with_a_cache(backend: str) -> None:
    model = models.quantize(_make("tied"))
    whole = ops.to_numpy(model(TOKENS))
    _, state = model([row[:2] for row in TOKENS], state=model.initial_state(2))
    last, _ = model([row[2:] for row in TOKENS], state=state)
    check_close(ops.to_numpy(last)[:, 0], whole[:, 2])
    assert len(model.generate([3, 4], 3, stop=[])) == 3


@pytest.mark.parametrize("is_dora", [False, True])
def test_adapters_of_quantized_weights_learn(is_dora: bool, backend: str, tmp_path: Path) -> None:
    """The gradients are those of the same adapter beside the rounded weights as numbers."""
    model = models.quantize(_make("llama"))
    models.add_lora(model, 2, targets=("q_proj", "down_proj"), is_dora=is_dora)
    optimizer = optimizers.SGD(0.1)
    for _ in range(2):  # after the first step B is not zero
        _, gradients = nn.value_and_grad(model, lambda: ops.mean(ops.square(model(TOKENS))))()
        assert set(gradients) == set(model.trainable())
        optimizer.update(model, gradients)
    models.save_adapter(model, tmp_path)
    _, gradients = nn.value_and_grad(model, lambda: ops.mean(ops.square(model(TOKENS))))()
    with pytest.raises(ValueError, match="not merged into quantized"):
        models.merge_adapter(model)
    dense = models.dequantize(models.remove_adapter(model))
    models.load_adapter(dense, tmp_path)
    _, wanted = nn.value_and_grad(dense, lambda: ops.mean(ops.square(dense(TOKENS))))()
    for key, gradient in gradients.items():
        assert _difference(gradient, wanted[key]) < 1e-4 * max(ops.item(ops.max(ops.abs(wanted[key]))), 1e-3), key


@pytest.mark.parametrize("name", ["llama", "tied"])
def test_mlx_lm_opens_ours_and_we_its(name: str, backend: str, tmp_path: Path) -> None:
    pytest.importorskip("mlx_lm")
    model = models.quantize(_make(name), 8, 32)
    model.save(tmp_path / "ours")
    check_close(packing.logits_of_mlx_lm(tmp_path / "ours", TOKENS), ops.to_numpy(model(TOKENS)))
    _make(name).save(tmp_path / "original")
    wanted = packing.convert_with_mlx_lm(tmp_path / "original", tmp_path / "theirs", TOKENS)
    check_close(ops.to_numpy(models.load(tmp_path / "theirs")(TOKENS)), wanted)


@pytest.mark.parametrize(
    ("quantization", "message"),
    [
        ({"bits": 4, "group_size": 64, "mode": "mxfp4"}, "mode = 'mxfp4'"),
        ({"bits": 3, "group_size": 64}, "bits = 3"),
        ({"bits": 8, "group_size": 64}, r"shape \(61, 8\).*\(61, 16\)"),
        ({"bits": 4, "group_size": 32}, r"scales.*shape \(61, 1\).*\(61, 2\)"),
        ({"bits": 4}, "lacks group_size"),
        ({"bits": "4", "group_size": 64}, "bits = '4'"),
        (7, "quantization = 7"),
        (None, "unknown|shape"),
    ],
)
def test_wrong_descriptions_are_refused(quantization: Any, message: str, tmp_path: Path) -> None:
    models.quantize(_make("llama")).save(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "quantization": quantization, "quantization_config": quantization}))
    with pytest.raises(ConfigError, match=message):
        models.load(tmp_path)


def test_what_cannot_be_quantized_raises(written: Callable[[str], pretrained.Written]) -> None:
    with pytest.raises(ValueError, match="not 3"):
        models.quantize(_make("llama"), 3)
    with pytest.raises(ValueError, match="once"):
        models.quantize(models.quantize(_make("llama")))
    with pytest.raises(ValueError, match="experts"):
        models.quantize(models.load(written("mixtral").folder), 4, 32)
    with pytest.raises(ValueError, match="multiple of 128"):
        models.quantize(models.load(written("llama").folder), 4, 128)
    with pytest.raises(ValueError, match="int4, int8"):
        models.load(written("llama").folder, quantize="int2")
