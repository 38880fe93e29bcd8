"""Mamba 2 computes and writes what Transformers does, in one call or in several."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ember_ml import models, ops
from ember_ml.errors import ConfigError
from tests.reference import pretrained
from tests.reference.pretrained import RECURRENT, Written, check_close

Writing = Callable[[str], Written]


@pytest.mark.parametrize("name", RECURRENT)
def test_logits_are_those_of_transformers_with_and_without_state(name: str, backend: str, written: Writing) -> None:
    case = written(name)
    model = models.load(case.folder)
    check_close(ops.to_numpy(model(case.tokens)), case.result)
    masked = ops.to_numpy(model(case.tokens, case.mask))
    check_close(masked[0], case.masked[0])
    check_close(masked[1, 3:], case.masked[1, 3:])
    state, parts = model.initial_state(2), []
    for first, last in ((0, 5), (5, 6), (6, len(case.tokens[0]))):
        found, state = model([row[first:last] for row in case.tokens], state=state)
        parts.append(found)
    check_close(ops.to_numpy(ops.concatenate(parts, 1)), case.result)


def test_greedy_tokens_are_those_of_transformers(backend: str, written: Writing) -> None:
    case = written("mamba2")
    model = models.load(case.folder)
    wanted = pretrained.generate("mamba2", case.folder, case.tokens, 30, eos_token_id=None)
    assert model.generate(case.tokens, 30, stop=[]) == wanted
    prompts = [case.tokens[0], case.tokens[1][:4]]
    assert model.generate(prompts, 10, stop=[]) == [model.generate(prompt, 10, stop=[]) for prompt in prompts]


@pytest.mark.parametrize("limits", ["[0.0, Infinity]", "[0.0, 1e9]", "null"])
def test_limits_of_older_files_are_read(limits: str, backend: str, written: Writing, tmp_path: Path) -> None:
    case = written("mamba2")
    shutil.copytree(case.folder, tmp_path, dirs_exist_ok=True)
    config = {**json.loads((tmp_path / "config.json").read_text()), "time_step_limit": "LIMITS"}
    (tmp_path / "config.json").write_text(json.dumps(config).replace('"LIMITS"', limits))
    check_close(ops.to_numpy(models.load(tmp_path)(case.tokens)), case.result)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_heads": 8}, r"8 heads \(num_heads\)"),
        ({"n_groups": 3}, r"3 groups \(n_groups\)"),
        ({"time_step_limit": [0.0]}, "time_step_limit"),
        ({"state_size": 9}, "'backbone.layers.0.mixer.*state_size=9"),
        ({"hidden_act": "sine"}, "hidden_act = 'sine'"),
    ],
)
def test_wrong_settings_raise(change: dict[str, Any], message: str, written: Writing, tmp_path: Path) -> None:
    shutil.copytree(written("mamba2").folder, tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(ConfigError, match=message):
        models.load(tmp_path)
