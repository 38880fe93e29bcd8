"""A saved folder holds the same bits, Transformers opens it, and weights go through files of any size."""

from __future__ import annotations

import copy
import json
import os
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ember_ml import models, ops
from tests.reference import pretrained
from tests.reference.pretrained import CASES, Written, check_close

Writing = Callable[[str], Written]
UNUSED = {"bert-untied": {"cls.predictions.bias"}, "xlm-roberta-untied": {"lm_head.bias"}}
"""Tensors that Transformers stores and computes nothing with."""


@pytest.mark.parametrize("name", CASES)
def test_saved_weights_are_the_same_bits(name: str, backend: str, written: Writing, tmp_path: Path) -> None:
    case = written(name)
    models.load(case.folder).save(tmp_path)
    before, after = pretrained.read_weights(case.folder), pretrained.read_weights(tmp_path)
    assert set(before) - set(after) == UNUSED.get(name, set())
    assert after == {key: before[key] for key in after}
    assert json.loads((tmp_path / "config.json").read_text()) == json.loads((case.folder / "config.json").read_text())


@pytest.mark.parametrize(
    "name", ["gpt2", "llama-tied", "gemma3", "phi3", "bert-words", "distilbert-sequence", "modernbert-words", "mamba2"]
)
def test_transformers_opens_what_was_trained_here(name: str, backend: str, written: Writing, tmp_path: Path) -> None:
    case = written(name)
    model = models.load(case.folder)
    for parameter in model.parameters():
        parameter.value = ops.multiply(parameter.value, 1.5)
    model.save(tmp_path)
    check_close(ops.to_numpy(model(case.tokens)), pretrained.result_of_folder(name, tmp_path, case.tokens))


def test_shards_have_an_index(backend: str, written: Writing, tmp_path: Path) -> None:
    case = written("llama")
    model = models.load(case.folder)
    model.save(tmp_path)
    model.save(tmp_path, shard_bytes=20_000)
    files = sorted(path.name for path in tmp_path.glob("*.safetensors"))
    assert len(files) > 2
    assert files[0] == f"model-00001-of-{len(files):05}.safetensors"
    assert all(path.stat().st_size < 22_000 for path in tmp_path.glob("*.safetensors"))
    assert pretrained.read_weights(tmp_path) == pretrained.read_weights(case.folder)
    check_close(ops.to_numpy(models.load(tmp_path)(case.tokens)), case.result)
    check_close(pretrained.result_of_folder("llama", tmp_path, case.tokens), case.result)
    model.save(tmp_path)
    assert [path.name for path in tmp_path.glob("model*")] == ["model.safetensors"]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_dtypes_are_those_of_the_file_or_those_asked_for(
    dtype: str, backend: str, written: Writing, tmp_path: Path
) -> None:
    case = written("qwen2")
    half = models.load(case.folder, dtype=dtype)
    assert {parameter.dtype.name for parameter in half.parameters()} == {dtype}
    half.save(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["dtype"] == dtype
    again = models.load(tmp_path)
    assert {parameter.dtype.name for parameter in again.parameters()} == {dtype}
    found = ops.to_numpy(ops.cast(again(case.tokens), "float32"))
    wanted = pretrained.result_of_folder("qwen2", tmp_path, case.tokens)
    assert ops.item(ops.max(ops.abs(ops.subtract(found, wanted)))) < 0.05 * ops.item(ops.max(ops.abs(wanted)))
    wide = ops.to_numpy(models.load(tmp_path, dtype="float32")(case.tokens))
    assert ops.item(ops.max(ops.abs(ops.subtract(wide, wanted)))) < 0.05 * ops.item(ops.max(ops.abs(wanted)))


def test_what_is_changed_here_does_not_reach_the_file(backend: str, written: Writing, tmp_path: Path) -> None:
    """The weights of a large tensor are a private mapping of the file."""
    config = {"model_type": "gpt2", "vocab_size": 3000, "n_embd": 32, "n_layer": 1, "n_head": 2}
    models.from_config(config).save(tmp_path)
    before = (tmp_path / "model.safetensors").read_bytes()
    model = models.load(tmp_path)
    first = ops.to_numpy(model([[1, 2]])).tolist()
    model.embedding.weight = ops.multiply(model.embedding.weight, 2.0)
    assert (tmp_path / "model.safetensors").read_bytes() == before
    model.save(tmp_path)  # over the file that is mapped
    assert ops.to_numpy(models.load(tmp_path)([[1, 2]])).tolist() == ops.to_numpy(model([[1, 2]])).tolist() != first


def test_files_of_the_tokenizer_and_of_generation_go_along(backend: str, written: Writing, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    models.load(written("llama").folder).save(source)
    (source / "tokenizer.json").write_bytes(b"{}")
    (source / "generation_config.json").write_text('{"eos_token_id": [2, 5]}')
    (source / "run_me.py").write_text("raise SystemExit")
    models.load(source).save(target)
    assert sorted(path.name for path in target.iterdir()) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
    ]
    assert json.loads((target / "generation_config.json").read_text()) == {"eos_token_id": [2, 5]}


def test_weights_are_loaded_into_a_model_that_is_there(backend: str, written: Writing) -> None:
    case = written("llama")
    model = models.from_config(json.loads((case.folder / "config.json").read_text()))
    check_close(ops.to_numpy(model.load(case.folder)(case.tokens)), case.result)


def test_a_model_and_its_adapter_survive_pickle_and_copy(backend: str) -> None:
    config = {"model_type": "gpt2", "vocab_size": 50, "n_embd": 8, "n_layer": 1, "n_head": 2}
    model = models.add_lora(models.from_config(config), rank=2).eval()
    wanted = ops.to_numpy(model(ops.array([[1, 2, 3]]))).tolist()
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert ops.to_numpy(other(ops.array([[1, 2, 3]]))).tolist() == wanted
        assert list(other.trainable()) == list(model.trainable())


@pytest.mark.parametrize("named", ["bfloat16", "float32"])
def test_weights_of_several_dtypes_get_the_one_that_is_named(
    named: str, backend: str, written: Writing, tmp_path: Path
) -> None:
    case = written("llama")
    pretrained.write_mixed(case.folder, tmp_path, named)
    model = models.load(tmp_path)
    assert {parameter.dtype.name for parameter in model.parameters()} == {named}
    model.save(tmp_path / "again")
    wanted = pretrained.open_folder("llama", tmp_path)  # by Transformers, which does the same
    wanted.save_pretrained(tmp_path / "theirs")
    assert pretrained.read_weights(tmp_path / "again") == pretrained.read_weights(tmp_path / "theirs")
    assert ops.shape(model(case.tokens)) == case.result.shape


def test_tied_weights_that_are_stored_twice_are_compared_by_their_bytes(
    backend: str, written: Writing, tmp_path: Path
) -> None:
    model = models.load(written("llama-tied").folder)
    model.embedding.weight = ops.full(ops.shape(model.embedding.weight), float("nan"))
    model.save(tmp_path)
    pretrained.store_twice(tmp_path, "model.embed_tokens.weight", "lm_head.weight")
    assert ops.all(ops.isnan(models.load(tmp_path).output.weight))


def test_a_path_of_a_file_is_named(written: Writing) -> None:
    with pytest.raises(NotADirectoryError, match=r"config\.json is a file; models\.load takes the folder"):
        models.load(written("llama").folder / "config.json")


class _Ended(BaseException):
    """Stands for the end of the process at one place."""


@pytest.mark.parametrize("sizes", [(10**9, 10**9), (20_000, 20_000), (20_000, 10**9), (10**9, 20_000)])
def test_a_saving_that_is_ended_leaves_the_old_model_the_new_one_or_none(
    sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is ended at each step that changes the folder, in turn, as by a full disk or by a signal."""
    config = {"model_type": "llama", "vocab_size": 50, "hidden_size": 32, "intermediate_size": 64}
    config |= {"num_hidden_layers": 3, "num_attention_heads": 4}
    ops.random.seed(1)
    old, new = models.from_config(config), models.from_config({**config, "rms_norm_eps": 1e-3})
    logits = [ops.to_numpy(model([[7, 3, 9]])).tolist() for model in (old, new)]
    seen: set[str] = set()
    is_ended = True
    for last in range(100):
        folder = tmp_path / str(last)
        old.save(folder, sizes[0])
        left = iter(range(last))

        def end(step: Callable[..., Any], *arguments: Any, left: Any = left, **options: Any) -> Any:
            if next(left, None) is None:
                raise _Ended
            return step(*arguments, **options)

        with monkeypatch.context() as changed:
            for name in ("replace", "unlink", "fsync"):
                changed.setattr(os, name, partial(end, getattr(os, name)))
            changed.setattr(Path, "unlink", lambda path, missing_ok=False, end=end: end(_unlink, path, missing_ok))
            try:
                new.save(folder, sizes[1])
                is_ended = False
            except _Ended:
                is_ended = True
        if (folder / "config.json").exists():
            found = ops.to_numpy(models.load(folder)([[7, 3, 9]])).tolist()
            seen.add(("old", "new")[logits.index(found)])
        else:
            with pytest.raises(FileNotFoundError, match=r"config\.json"):
                models.load(folder)
        if not is_ended:
            break
    assert seen >= {"old", "new"}
    assert not is_ended


_unlink = Path.unlink
