"""Settings that a ``config.json`` leaves out or changes mean what they mean to Transformers, or are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ember_ml import models, ops
from ember_ml.errors import ConfigError
from tests.reference import pretrained
from tests.reference.pretrained import Written, check_close

Writing = Callable[[str], Written]
CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "gemma2 scores": ("gemma2", {"attn_logit_softcapping": "left out"}),
    "gemma2 logits": ("gemma2", {"final_logit_softcapping": "left out"}),
    "gemma3 rotary": ("gemma3", {"rope_parameters": "left out"}),
    "gemma3 older rotary": (
        "gemma3",
        {"rope_parameters": "left out", "rope_scaling": {"rope_type": "linear", "factor": 8.0}, "rope_theta": 5e5},
    ),
    "gemma3 scores": ("gemma3", {"attn_logit_softcapping": 0.5}),
    "phi3": ("phi3", {"rms_norm_eps": "left out"}),
    "phi3 training": ("phi3-long", {"original_max_position_embeddings": 16}),
    "phi3 usual training": ("phi3-long", {"original_max_position_embeddings": "left out"}),
    "phi3 longest": ("phi3-long", {"max_position_embeddings": "left out"}),
    "mixtral": (
        "mixtral",
        {"rms_norm_eps": "left out", "rope_parameters": "left out", "num_experts_per_tok": "left out"},
    ),
    "qwen2 window": ("qwen2-window", {"sliding_window": "left out"}),
    "smollm3": ("smollm3", {"rope_parameters": "left out"}),
    "t5": ("t5", {"dense_act_fn": "silu"}),
}


@pytest.fixture(scope="module")
def changed(written: Writing, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Any, Any]]:
    """Change a folder; return it, tokens, and what Transformers computes, once for all backends."""
    root = tmp_path_factory.mktemp("changed")

    def change(name: str) -> tuple[Path, Any, Any]:
        case, changes = CHANGES[name]
        source, folder = written(case), root / name
        shutil.copytree(source.folder, folder)
        config = {**json.loads((folder / "config.json").read_text()), **changes}
        kept = {key: value for key, value in config.items() if value != "left out"}
        (folder / "config.json").write_text(json.dumps(kept))
        return folder, source.tokens, pretrained.result_of_folder(case, folder, source.tokens)

    return cache(change)


@pytest.mark.parametrize("name", CHANGES)
def test_changed_settings_mean_the_same(name: str, backend: str, changed: Callable[[str], Any], tmp_path: Path) -> None:
    folder, tokens, wanted = changed(name)
    model: Any = models.load(folder)
    check_close(ops.to_numpy(model(tokens, tokens) if name == "t5" else model(tokens)), wanted)
    model.save(tmp_path)  # without what was only assumed
    assert json.loads((tmp_path / "config.json").read_text()) == json.loads((folder / "config.json").read_text())


@pytest.mark.parametrize(
    ("case", "change", "message"),
    [
        ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor = 0.5"),
        ("llama", {"rope_parameters": {"rope_theta": -1.0}}, "base of rotary positions is a number above 0, not -1.0"),
        ("llama", {"rms_norm_eps": -1.0}, "epsilon of RMSNorm is a number from 0 up, not -1.0"),
        ("gemma3", {"use_bidirectional_attention": True}, "use_bidirectional_attention"),
        ("bert-words", {"is_decoder": True}, "is_decoder"),
    ],
)
def test_settings_that_would_change_the_result_silently_are_refused(
    case: str, change: dict[str, Any], message: str, written: Writing
) -> None:
    config = json.loads((written(case).folder / "config.json").read_text())
    with pytest.raises(ConfigError, match=message):
        models.from_config({**config, **change})
