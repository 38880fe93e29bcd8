"""Whisper computes and writes what Transformers does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from ember_ml import models, ops
from ember_ml.errors import ConfigError
from tests.reference import pretrained, pretrained_sounds
from tests.reference.pretrained import check_close
from tests.reference.pretrained_sounds import CASES, SEVERAL, WrittenSounds

Writing = Callable[[str], WrittenSounds]


@pytest.fixture(scope="session")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Writing:
    """Write the model of a case, at its first use."""
    root = tmp_path_factory.mktemp("sounds")
    return cache(lambda name: pretrained_sounds.write(name, root / name))


@pytest.mark.parametrize("name", CASES)
def test_logits_are_those_of_transformers_with_and_without_cache(
    name: str, backend: str, heard: Writing, tmp_path: Path
) -> None:
    case = heard(name)
    model = models.load(case.folder)
    check_close(ops.to_numpy(model(case.features, case.tokens)), case.result)
    state, parts = model.begin(case.features), []
    for first, last in ((0, 4), (4, 5), (5, 9)):
        hidden, state = model.hidden_states([row[first:last] for row in case.tokens], None, state)
        parts.append(model.logits(hidden))
    check_close(ops.to_numpy(ops.concatenate(parts, 1)), case.result)
    model.save(tmp_path)
    assert pretrained.read_weights(tmp_path) == pretrained.read_weights(case.folder)


def test_transformers_opens_what_was_trained_here(backend: str, heard: Writing, tmp_path: Path) -> None:
    case = heard("whisper")
    model = models.load(case.folder)
    for parameter in model.parameters():
        parameter.value = ops.multiply(parameter.value, 1.25)
    model.save(tmp_path)
    wanted = pretrained_sounds.compute(tmp_path, case.features, case.tokens)
    check_close(ops.to_numpy(model(case.features, case.tokens)), wanted)


def _several(source: Path, target: Path) -> Path:
    """Copy a model, with the settings of one that knows several languages."""
    shutil.copytree(source, target)
    config = json.loads((target / "generation_config.json").read_text())
    (target / "generation_config.json").write_text(json.dumps({**config, **SEVERAL}))
    return target


def test_greedy_tokens_are_those_of_transformers(backend: str, heard: Writing, tmp_path: Path) -> None:
    folder, features = _several(heard("whisper").folder, tmp_path / "several"), heard("whisper").features
    model = models.load(folder)
    for settings in ({"language": "de"}, {"language": "fr", "task": "translate"}, {"task": "transcribe"}):
        wanted = pretrained_sounds.transcribe(folder, features, 12, **settings)
        found = model.transcribe(features, 12, **settings)
        assert found == wanted, settings
    assert [model.transcribe(features[i : i + 1], 12)[0] for i in range(2)] == model.transcribe(features, 12)


_SOUNDS = {0: ((2, 20, 8), 21), 4: ((1, 47, 8), 21), 6: ((2, 20, 8), 9)}
"""By the seed of a model that writes several segments: the shape of the spectrograms, and the most tokens."""


@pytest.fixture(scope="session")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], tuple[Path, Any, list[list[Any]]]]:
    """Write a model with tokens for times; return it, sounds, and the segments that Transformers hears in them."""

    def write(seed: int) -> tuple[Path, Any, list[list[Any]]]:
        folder, (shape, most) = tmp_path_factory.mktemp("times"), _SOUNDS[seed]
        pretrained_sounds.write_with_times(folder, seed)
        features = pretrained_sounds.draw(seed, shape)
        return folder, features, pretrained_sounds.find_segments(folder, features, language="de", max_new_tokens=most)

    return cache(write)


@pytest.mark.parametrize("seed", _SOUNDS)
def test_segments_are_those_of_transformers(seed: int, backend: str, timed: Any) -> None:
    folder, features, wanted = timed(seed)
    found = models.load(folder).transcribe_segments(features, _SOUNDS[seed][1], language="de")
    assert [[x.tokens for x in row] for row in found] == [[x[2] for x in row] for row in wanted]
    for ours, theirs in zip(chain(*found), chain(*wanted), strict=True):
        assert (ours.start, ours.end) == pytest.approx(theirs[:2], abs=1e-9)
    assert max(map(len, found)) > 1


def test_times_need_their_tokens(backend: str, heard: Writing) -> None:
    case = heard("whisper")
    with pytest.raises(ConfigError, match="lacks no_timestamps_token_id"):
        models.load(case.folder).transcribe_segments(case.features)


def test_what_is_wrong_is_said(backend: str, heard: Writing, tmp_path: Path) -> None:
    case = heard("whisper")
    model = models.load(case.folder)
    with pytest.raises(ValueError, match=r"\(batch, 20, 8\), as models.processor"):
        model(case.features[:, :19], case.tokens)
    with pytest.raises(ValueError, match="24 tokens at most"):
        model(case.features, [[1] * 25] * 2)
    with pytest.raises(ValueError, match="a state"):
        model.hidden_states(case.tokens)
    with pytest.raises(ValueError, match="knows one language"):
        model.transcribe(case.features, language="de")
    with pytest.raises(ValueError, match="room for 24 tokens"):
        model.transcribe(case.features, 25)
    model = models.load(_several(case.folder, tmp_path / "several"))
    with pytest.raises(ValueError, match="no language 'xx'"):
        model.transcribe(case.features, language="xx")
    with pytest.raises(ValueError, match="the task is one of"):
        model.transcribe(case.features, task="sing")
    model.generation["suppress_tokens"] = ["x"]
    with pytest.raises(ConfigError, match="suppress_tokens"):
        model.transcribe(case.features)
