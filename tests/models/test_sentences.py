"""Vectors of sentences from folders of Sentence Transformers are what NumPy pools from Transformers' vectors."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ember_ml import models, ops
from ember_ml.errors import ConfigError
from tests.reference import pretrained, sentences, tokenizing
from tests.reference.pretrained import Written, check_close

Writing = Callable[[str], Written]


@pytest.mark.parametrize("name", ["bert", "roberta", "distilbert", "modernbert"])
def test_poolings_of_encoders(name: str, backend: str, written: Writing, tmp_path: Path) -> None:
    case = written(name)
    for i, modes in enumerate([[sentences.KEYS[2]], sentences.KEYS]):
        encoder = models.load_sentence_encoder(sentences.write(case.folder, tmp_path / str(i), modes))
        check_close(ops.to_numpy(encoder(case.tokens, case.mask)), sentences.pool(case, modes))


@pytest.mark.parametrize(
    ("modes", "keys", "settings"),
    [
        ("mean", ["mean_tokens"], {}),
        (["lasttoken", "cls"], ["cls_token", "lasttoken"], {"activation_function": "torch.nn.modules.linear.Identity"}),
    ],
)
def test_maps_and_normalized_vectors(
    modes: Any, keys: list[str], settings: dict[str, Any], backend: str, written: Writing, tmp_path: Path
) -> None:
    case = written("bert")
    pooled = sentences.pool(case, keys)
    dense = sentences.draw_dense(pooled.shape[1], 5, settings)
    wanted = sentences.finish(pooled, dense, has_tanh=not settings)
    folder = sentences.write(case.folder, tmp_path / "in", {"pooling_mode": modes}, "Dense", "Normalize", dense=dense)
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
    check_close(
        found, sentences.pool(case._replace(masked=pretrained.last_vectors("bert-words", case)), ["mean_tokens"])
    )


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
    folder = sentences.write(written("bert").folder, tmp_path, ["mean_tokens"])
    (folder / file).write_text(text)
    with pytest.raises(ConfigError, match=message):
        models.load_sentence_encoder(folder)


def test_folders_of_links_and_of_decoders_are_refused(written: Writing, tmp_path: Path) -> None:
    folder = sentences.write(written("bert").folder, tmp_path / "in", ["mean_tokens"])
    shutil.move(folder / "1_Pooling", tmp_path / "elsewhere")
    (folder / "1_Pooling").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="leads out of the folder"):
        models.load_sentence_encoder(folder)
    with pytest.raises(ConfigError, match="holds a gpt2 model"):
        models.load_sentence_encoder(written("gpt2").folder)
