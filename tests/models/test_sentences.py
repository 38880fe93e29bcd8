"""Vectors of sentences from folders of Sentence Transformers are what NumPy pools from Transformers' vectors."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_ml import models, ops
from ember_ml.errors import ConfigError
from tests.reference import pretrained, tokenizing
from tests.reference.pretrained import Written, check_close

Writing = Callable[[str], Written]
KEYS = ["cls_token", "max_tokens", "mean_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"]


def _write(source: Path, target: Path, modes: list[str] | dict[str, Any], *more: str, dense: Any = None) -> Path:
    """Write a folder with a pooling, and with Dense and Normalize where asked for."""
    shutil.copytree(source, target, dirs_exist_ok=True)
    kinds = ["Transformer", "Pooling", *more]
    paths = ["", *(f"{i}_{kind}" for i, kind in enumerate(kinds) if i)]
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(zip(paths, kinds, strict=True))
    ]
    (target / "modules.json").write_text(json.dumps(listed))
    chosen = modes if isinstance(modes, dict) else {f"pooling_mode_{key}": key in modes for key in KEYS}
    (target / "1_Pooling").mkdir()
    (target / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32, **chosen}))
    for path in paths[2:]:
        if "Dense" in path:
            (target / path).mkdir()
            config = {"in_features": dense[0].shape[1], "out_features": 5, "bias": True, **dense[2]}
            (target / path / "config.json").write_text(json.dumps(config))
            tensors = {"linear.weight": dense[0], "linear.bias": dense[1]}
            pretrained.write_weights(target / path / "model.safetensors", tensors)
    return target


def _pool(vectors: np.ndarray, mask: np.ndarray, mode: str) -> np.ndarray:
    """Pool one text by the book."""
    x = vectors[mask.astype(bool)].astype(np.float64)
    places = np.flatnonzero(mask)[:, None] + 1.0
    return {
        "cls_token": lambda: x[0],
        "max_tokens": lambda: x.max(0),
        "mean_tokens": lambda: x.mean(0),
        "mean_sqrt_len_tokens": lambda: x.sum(0) / np.sqrt(len(x)),
        "weightedmean_tokens": lambda: (x * places).sum(0) / places.sum(),
        "lasttoken": lambda: x[-1],
    }[mode]()


def _wanted(case: Written, modes: list[str]) -> np.ndarray:
    rows = zip(case.masked, np.array(case.mask), strict=True)
    return np.array([np.concatenate([_pool(x, mask, mode) for mode in modes]) for x, mask in rows])


@pytest.mark.parametrize("name", ["bert", "roberta", "distilbert", "modernbert"])
def test_poolings_of_encoders(name: str, backend: str, written: Writing, tmp_path: Path) -> None:
    case = written(name)
    for i, modes in enumerate([[KEYS[2]], KEYS]):
        encoder = models.load_sentence_encoder(_write(case.folder, tmp_path / str(i), modes))
        check_close(ops.to_numpy(encoder(case.tokens, case.mask)), _wanted(case, modes))


@pytest.mark.parametrize(
    ("modes", "settings", "function"),
    [
        ({"pooling_mode": "mean"}, {}, np.tanh),
        (
            {"pooling_mode": ["lasttoken", "cls"]},
            {"activation_function": "torch.nn.modules.linear.Identity"},
            lambda x: x,
        ),
    ],
)
def test_maps_and_normalized_vectors(
    modes: Any, settings: Any, function: Any, backend: str, written: Writing, tmp_path: Path
) -> None:
    case = written("bert")
    names = {"mean": "mean_tokens", "cls": "cls_token", "lasttoken": "lasttoken"}
    chosen = [modes["pooling_mode"]] if isinstance(modes["pooling_mode"], str) else ["cls", "lasttoken"]
    pooled = _wanted(case, [names[mode] for mode in chosen])
    stream = np.random.default_rng(2)
    weight = stream.normal(size=(5, pooled.shape[1])).astype(np.float32) / 9
    bias = stream.normal(size=5).astype(np.float32)
    folder = _write(case.folder, tmp_path / "in", modes, "Dense", "Normalize", dense=(weight, bias, settings))
    wanted = function(pooled @ weight.T + bias)
    wanted /= np.sqrt((wanted**2).sum(1, keepdims=True))
    encoder = models.load_sentence_encoder(folder)
    check_close(ops.to_numpy(encoder(case.tokens, case.mask)), wanted)
    encoder.save(tmp_path / "out")
    again = models.load_sentence_encoder(tmp_path / "out")
    assert (
        ops.to_numpy(again(case.tokens, case.mask)).tolist() == ops.to_numpy(encoder(case.tokens, case.mask)).tolist()
    )
    listed = json.loads((tmp_path / "out" / "modules.json").read_text())
    assert [entry["path"] for entry in listed] == ["", "1_Pooling", "2_Dense", "3_Normalize"]
    assert pretrained.read_weights(tmp_path / "out" / "2_Dense") == pretrained.read_weights(folder / "2_Dense")


def test_texts_become_vectors(backend: str, tmp_path: Path) -> None:
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    models.from_config({"model_type": "bert", "vocab_size": 300, "pad_token_id": 2, **sizes}).save(tmp_path)
    tokenizing.write_tokenizer(tmp_path)
    encoder, tokenizer = models.load_sentence_encoder(tmp_path), models.tokenizer(tmp_path)
    texts = ["the cat sat on the mat", "a hat", "the", "the hat and the cat"]
    found = ops.to_numpy(encoder.encode(texts, batch_size=2))
    for text, vector in zip(texts, found, strict=True):
        check_close(vector, ops.to_numpy(encoder([tokenizer.encode(text)]))[0])
        check_close(ops.to_numpy(encoder.encode(text)), vector)
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 3, "do_lower_case": false}')
    short = models.load_sentence_encoder(tmp_path)
    check_close(ops.to_numpy(short.encode(texts[0])), ops.to_numpy(encoder([tokenizer.encode(texts[0])[:3]]))[0])
    with pytest.raises(ValueError, match="at least one text"):
        encoder.encode([])


def test_an_encoder_stored_with_a_head_gives_vectors(backend: str, written: Writing, tmp_path: Path) -> None:
    case = written("bert-words")
    encoder = models.load_sentence_encoder(case.folder)
    found = ops.to_numpy(encoder(case.tokens, case.mask))
    check_close(found, _wanted(case._replace(masked=pretrained.last_vectors("bert-words", case)), ["mean_tokens"]))


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("modules.json", "{}", "must hold a list of modules"),
        ("modules.json", '[{"path": "", "type": "x.Transformer"}]', "no Transformer or no Pooling"),
        ("modules.json", '[{"path": "1_Pooling", "type": "x.Pooling"}]', "a place where Ember ML does not expect one"),
        (
            "modules.json",
            '[{"path": "", "type": "x.Transformer"}, {"path": "../other", "type": "Pooling"}]',
            "only folders",
        ),
        ("modules.json", '[{"path": "", "type": "x.CLIPModel"}]', "lists a 'CLIPModel'"),
        ("1_Pooling/config.json", "{}", "chooses no pooling"),
        ("1_Pooling/config.json", '{"pooling_mode": "middle"}', "pooling_mode = 'middle'"),
        ("1_Pooling/config.json", '{"pooling_mode_mean_tokens": 1}', "true or false"),
        ("sentence_bert_config.json", '{"max_seq_length": -1}', "max_seq_length = -1"),
    ],
)
def test_damaged_folders_raise(file: str, text: str, message: str, written: Writing, tmp_path: Path) -> None:
    folder = _write(written("bert").folder, tmp_path, ["mean_tokens"])
    (folder / file).write_text(text)
    with pytest.raises(ConfigError, match=message):
        models.load_sentence_encoder(folder)


def test_folders_of_links_and_of_decoders_are_refused(written: Writing, tmp_path: Path) -> None:
    folder = _write(written("bert").folder, tmp_path / "in", ["mean_tokens"])
    shutil.move(folder / "1_Pooling", tmp_path / "elsewhere")
    (folder / "1_Pooling").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="leads out of the folder"):
        models.load_sentence_encoder(folder)
    with pytest.raises(ConfigError, match="holds a gpt2 model"):
        models.load_sentence_encoder(written("gpt2").folder)
