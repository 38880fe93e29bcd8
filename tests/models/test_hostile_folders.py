"""Folders that are damaged or meant to harm: a clear error for each, nothing run, nothing read from outside."""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ember_ml import models
from ember_ml.errors import ConfigError, EmberError
from tests.models.hostile import DAMAGES, ESCAPES, escape_by_template
from tests.reference import tokenizing
from tests.reference.pretrained import Written

Writing = Callable[[str], Written]
Damage = Callable[[Path, random.Random], None]


@pytest.fixture
def folder(written: Writing, tmp_path: Path) -> Path:
    """A model that opens, to be damaged."""
    return Path(shutil.copytree(written("llama").folder, tmp_path / "model"))


def _change(folder: Path, name: str = "config.json", **values: Any) -> None:
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "llama99"}, "model_type = 'llama99'"),
        ({"model_type": None}, "model_type = None"),
        ({"model_type": ["llama"]}, "model_type"),
        ({"architectures": ["LlamaForEverything"]}, "LlamaForEverything"),
        ({"architectures": ["GPT2LMHeadModel"]}, "no model of model_type 'llama'"),
        ({"architectures": []}, "architectures"),
        ({"auto_map": {"AutoModel": "evil.Model"}}, "auto_map.*runs none"),
        ({"trust_remote_code": True}, "trust_remote_code"),
        ({"quantization_config": {"bits": 4}}, "quantized"),
        ({"hidden_size": "32"}, "hidden_size = '32'"),
        ({"hidden_size": True}, "hidden_size = True"),
        ({"hidden_size": -1}, "hidden_size = -1"),
        ({"hidden_size": 10**30}, "hidden_size"),
        ({"hidden_size": None}, "lacks hidden_size"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers"),
        ({"num_hidden_layers": 3}, r"lack 'model\.layers\.2.*num_hidden_layers=3"),
        ({"num_hidden_layers": 1}, r"unknown 'model\.layers\.1.*num_hidden_layers=1"),
        ({"hidden_size": 64, "head_dim": 8}, r"'model\.embed_tokens\.weight'.*\(61, 32\).*\(61, 64\).*hidden_size=64"),
        ({"vocab_size": 62}, r"'model\.embed_tokens\.weight'.*vocab_size=62"),
        ({"vocab_size": 2**39}, "vocab_size"),
        (
            {"num_key_value_heads": 3},
            "3 groups .* do not divide its 4 heads.*num_key_value_heads=3",
        ),
        ({"num_key_value_heads": 4}, r"'model\.layers\.0\.self_attn\.k_proj\.weight'"),
        ({"attention_bias": True}, r"lack 'model\.layers\.0\.self_attn\.q_proj\.bias'"),
        ({"attention_bias": "no"}, "attention_bias = 'no'"),
        ({"hidden_act": "evil"}, "hidden_act = 'evil'"),
        ({"rms_norm_eps": "small"}, "rms_norm_eps"),
        ({"tie_word_embeddings": True}, r"'lm_head\.weight'.*tie_word_embeddings"),
        ({"head_dim": 7}, "rotary positions"),
        ({"layer_types": ["full_attention"]}, "layer_types"),
        ({"layer_types": ["full_attention", {}]}, "layer_types"),
        ({"rope_parameters": {"rope_type": "evil"}}, "no scaling of rotary positions 'evil'"),
        ({"rope_parameters": {"rope_type": "linear", "factor": -1}}, "factor = -1"),
        ({"rope_parameters": {"rope_type": ["linear"]}}, "rotary positions"),
        ({"rope_parameters": {"rope_theta": "big"}}, "rotary positions"),
        ({"rope_parameters": 7}, "rope_parameters"),
        ({"rope_parameters": {"rope_type": "longrope", "short_factor": [1]}}, "short_factor"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 1e308, "beta_fast": 1e-308}}, "rotary positions|config"),
    ],
)
def test_wrong_settings_name_the_key(changes: dict[str, Any], message: str, folder: Path) -> None:
    _change(folder, **changes)
    with pytest.raises(ConfigError, match=message):
        models.load(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "cannot be read"),
        (b"[]", "holds a list"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": NaN}', "not JSON"),
        (b'{"a": ' * 100_000, "cannot be read"),
        (b'{"a":' + b"[" * 40 + b"]" * 40 + b"}", "nested"),
        (b"\xff\xfe", "cannot be read"),
        (b" " * ((1 << 24) + 1), "bytes"),
    ],
)
def test_damaged_settings_raise(text: bytes, message: str, folder: Path) -> None:
    (folder / "config.json").write_bytes(text)
    with pytest.raises(ConfigError, match=message):
        models.load(folder)


def test_missing_parts_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no folder"):
        models.load(tmp_path / "nothing")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ConfigError, match=r"pytorch_model\.bin, a pickle"):
        models.load(folder)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"no \*\.safetensors"):
        models.load(folder)
    (folder / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"config\.json"):
        models.load(folder)


@pytest.mark.parametrize(
    "file",
    ["../outside.safetensors", "/etc/passwd.safetensors", "a/b.safetensors", "..\\x.safetensors", "x\0.safetensors", 7],
)
def test_an_index_names_files_of_the_folder_alone(file: Any, folder: Path) -> None:
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"lm_head.weight": file}}))
    with pytest.raises(ConfigError, match=r"files in the folder itself|not in a \.safetensors file"):
        models.load(folder)


def test_an_index_must_agree_with_its_files(folder: Path) -> None:
    index = folder / "model.safetensors.index.json"
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    for table, message in (({}, "no weight_map"), ([], "no weight_map"), ({"x": "part.safetensors"}, "disagree")):
        index.write_text(json.dumps({"weight_map": table}))
        with pytest.raises(ConfigError, match=message):
            models.load(folder)
    index.unlink()
    assert models.load(folder).num_parameters  # without an index all files are taken
    shutil.copy(folder / "part.safetensors", folder / "same.safetensors")
    with pytest.raises(ConfigError, match="two files"):
        models.load(folder)


def test_links_do_not_lead_out(folder: Path, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        outside = tmp_path / name
        (folder / name).rename(outside)
        os.symlink(outside, folder / name)
        with pytest.raises(ConfigError, match="leads out of the folder"):
            models.load(folder)
        (folder / name).unlink()
        outside.rename(folder / name)
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")
    with pytest.raises(ConfigError, match="not a plain file"):
        models.load(folder)


def test_the_cache_of_the_hub_may_link_to_its_blobs(folder: Path, tmp_path: Path) -> None:
    snapshot, blobs = tmp_path / "models--a--b" / "snapshots" / "123", tmp_path / "models--a--b" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(folder / name, blobs / f"blob-of-{name}")
        os.symlink(f"../../blobs/blob-of-{name}", snapshot / name)
    assert models.load(snapshot).num_parameters


def test_five_hundred_damaged_files(folder: Path) -> None:
    """Bytes that are changed, cut or added in weights and settings: a model or an error, and never a crash."""
    stream = random.Random(5)
    whole = {name: (folder / name).read_bytes() for name in ("config.json", "model.safetensors")}
    header = 8 + int.from_bytes(whole["model.safetensors"][:8], "little")
    errors = 0
    for number in range(500):
        name = ("config.json", "model.safetensors")[number % 2]
        data, end = bytearray(whole[name]), len(whole[name]) if name == "config.json" else header
        kind = number // 2 % 3
        if kind == 0:
            for _ in range(stream.randint(1, 8)):
                data[stream.randrange(end)] = stream.randrange(256)
        elif kind == 1:
            del data[stream.randrange(end) :]
        else:
            start = stream.randrange(end)
            data[start:start] = bytes(stream.randrange(256) for _ in range(stream.randint(1, 64)))
        (folder / name).write_bytes(data)
        try:
            models.load(folder)
        except (EmberError, ValueError):
            errors += 1
        (folder / name).write_bytes(whole[name])
    assert errors > 400
    assert models.load(folder).num_parameters


def _check_harmless(damage: Damage, number: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage a model and open it: that must raise an error that names the folder, and leave all else as it was."""
    outside, inside = folder.parent / "outside", folder.parent / "cwd"
    for made in (outside, inside):
        made.mkdir()
    monkeypatch.chdir(inside)
    damage(folder, random.Random(number))
    before = {path: path.read_bytes() for path in outside.iterdir()}
    listed = sorted(path.name for path in folder.iterdir())
    start = time.process_time()
    try:
        tokenizer = models.tokenizer(folder)
        models.load(folder)
        rendered = tokenizer.render_chat([{"role": "user", "content": "hello"}])
    except (EmberError, FileNotFoundError, ValueError) as error:
        message = str(error)
    else:  # Jinja shows some of what is forbidden as nothing
        assert damage is escape_by_template, (damage.__name__, number)
        assert not any(word in rendered for word in ("class", "module", "function"))
        message = str(folder)
    assert str(folder) in message, (damage.__name__, number, message[:300])
    assert len(message) < 3000
    assert time.process_time() - start < 20
    assert {path: path.read_bytes() for path in outside.iterdir()} == before
    assert sorted(path.name for path in folder.iterdir()) == listed
    assert not list(inside.iterdir())


@pytest.fixture
def whole(written: Writing, tmp_path: Path) -> Path:
    """A model with a tokenizer and a template, to be damaged."""
    copied = Path(shutil.copytree(written("llama").folder, tmp_path / "whole"))
    tokenizing.write_tokenizer(copied)
    return copied


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_hostile_folders_do_no_harm(
    damage: Damage, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models.load(whole)
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        folder = Path(shutil.copytree(whole, tmp_path / str(number) / "model"))
        _check_harmless(damage, number, folder, monkeypatch)


@pytest.mark.long
def test_a_thousand_hostile_folders_do_no_harm(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1000):
        damage = DAMAGES[number % len(DAMAGES)]
        with tempfile.TemporaryDirectory(dir=tmp_path) as place:
            folder = Path(shutil.copytree(whole, Path(place).resolve() / "model"))
            _check_harmless(damage, number, folder, monkeypatch)
            monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("template", ESCAPES)
def test_every_template_that_tries_to_escape_fails(
    template: str, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.models.hostile.ESCAPES", [template])
    _check_harmless(escape_by_template, 0, whole, monkeypatch)


def test_saving_writes_nothing_through_links(whole: Path, tmp_path: Path) -> None:
    """Links with names that a model is stored under, which loading did not look at."""
    (tmp_path / "target").write_bytes(b"kept")
    for name in (
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
    ):
        os.symlink(tmp_path / "target", whole / name)
    model = models.load(whole)
    model.save(whole, shard_bytes=model.num_parameters * 4 * 2 // 3)
    assert (tmp_path / "target").read_bytes() == b"kept"
    assert models.load(whole).num_parameters == model.num_parameters


@pytest.mark.parametrize("value", ["evil", {"a": 1}, 1.5, [1, "x"], True])
def test_a_wrong_end_token_is_named(value: Any, folder: Path) -> None:
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": value}))
    with pytest.raises(ConfigError, match="eos_token_id"):
        models.load(folder).generate([5], 1)
