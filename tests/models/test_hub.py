"""Models of the Hub: a cache as huggingface_hub lays it out is opened without a network; errors say what is wrong."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ember_ml import models, ops
from tests.reference import tokenizing
from tests.reference.pretrained import Written

constants = pytest.importorskip("huggingface_hub.constants")
Writing = Callable[[str], Written]
COMMITS = {"main": "1" * 40, "older": "2" * 40}


@pytest.fixture
def hub(written: Writing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache with a model of two revisions, and no network."""
    stored = tmp_path / "cache" / "models--ember--small"
    (stored / "blobs").mkdir(parents=True)
    (stored / "refs").mkdir()
    for (revision, commit), name in zip(COMMITS.items(), ("llama", "llama-tied"), strict=True):
        snapshot = stored / "snapshots" / commit
        snapshot.mkdir(parents=True)
        (stored / "refs" / revision).write_text(commit)
        for file in ("config.json", "model.safetensors"):
            shutil.copy(written(name).folder / file, stored / "blobs" / f"{name}-{file}")
            os.symlink(f"../../blobs/{name}-{file}", snapshot / file)
    tokenizing.write_tokenizer(stored / "snapshots" / COMMITS["main"])
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    return stored


def test_a_cached_model_is_opened_by_its_id(hub: Path, backend: str, written: Writing) -> None:
    case = written("llama")
    same = models.load(case.folder)(case.tokens)
    assert bool(ops.all(ops.equal(models.load("ember/small")(case.tokens), same)))
    assert bool(ops.all(ops.equal(models.load("ember/small", revision="main")(case.tokens), same)))
    tied = models.load(written("llama-tied").folder)
    for revision in ("older", COMMITS["older"]):
        older = models.load("ember/small", revision=revision)
        assert older.num_parameters == tied.num_parameters
        assert bool(ops.all(ops.equal(older(case.tokens), tied(case.tokens))))


def test_its_tokenizer_too_and_both_go_to_a_folder(hub: Path, tmp_path: Path) -> None:
    tokenizer = models.tokenizer("ember/small")
    assert tokenizer.decode(tokenizer.encode("the cat")) == "the cat"
    models.load("ember/small").save(tmp_path / "out")
    assert models.tokenizer(tmp_path / "out").encode("the cat") == tokenizer.encode("the cat")


def test_saving_into_the_cache_leaves_the_blobs(hub: Path) -> None:
    blobs = {path.name: path.read_bytes() for path in (hub / "blobs").iterdir()}
    model = models.load("ember/small")
    model.embedding.weight = ops.zeros_like(model.embedding.weight)
    model.save(hub / "snapshots" / COMMITS["main"])
    assert {path.name: path.read_bytes() for path in (hub / "blobs").iterdir()} == blobs
    assert not ops.item(ops.any(models.load("ember/small").embedding.weight))


def test_a_folder_comes_before_an_id(hub: Path, tmp_path: Path, written: Writing) -> None:
    shutil.copytree(written("llama-tied").folder, tmp_path / "ember" / "small")
    assert models.load("ember/small").num_parameters == models.load(written("llama-tied").folder).num_parameters
    with pytest.raises(ValueError, match="is a path; leave it out"):
        models.load("ember/small", revision="main")


@pytest.mark.parametrize(
    ("source", "revision", "message"),
    [
        ("ember/nothing", None, "no folder ember/nothing, and huggingface_hub finds no model ember/nothing: .*HF_HUB"),
        ("ember/small", "never", "no model ember/small at the revision 'never'"),
        ("ember/small--x", None, "no model ember/small--x"),
        ("nothing", None, "no folder nothing;"),
        ("./ember/small", None, "no folder ember/small;"),
        ("../ember", None, "no folder"),
        ("a/b/c", None, "no folder a/b/c;"),
        (Path("ember/small"), None, "no folder ember/small;"),
    ],
)
def test_what_is_not_there_is_said(source: str, revision: str | None, message: str, hub: Path) -> None:
    with pytest.raises(FileNotFoundError, match=message):
        models.load(source, revision=revision)


def test_an_incomplete_snapshot_raises(hub: Path) -> None:
    (hub / "snapshots" / COMMITS["main"] / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"no \*\.safetensors"):
        models.load("ember/small")


def test_without_the_package_it_says_what_to_install(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match=r"no folder ember/small.*pip install 'ember-ml\[models\]'"):
        models.load("ember/small")


def test_no_programs_are_asked_for(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is downloaded is chosen by the two lists that huggingface_hub gets."""
    import huggingface_hub
    from huggingface_hub.utils import filter_repo_objects

    asked: dict[str, list[str]] = {}

    def download(name: str, *, revision: str | None, allow_patterns: list[str], ignore_patterns: list[str]) -> str:
        asked.update(allow_patterns=allow_patterns, ignore_patterns=ignore_patterns)
        return str(hub / "snapshots" / COMMITS["main"])

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    models.load("ember/small")
    wanted = {"config.json", "model.safetensors", "model.safetensors.index.json", "tokenizer.json"}
    others = {
        "modeling.py",
        "pytorch_model.bin",
        "onnx/model.safetensors",
        "consolidated.safetensors",
        "x.pt",
        "a.gguf",
    }
    assert set(filter_repo_objects(wanted | others, **asked)) == wanted
