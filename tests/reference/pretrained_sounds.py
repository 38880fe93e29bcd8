"""Small random Whispers that Transformers writes and computes on PyTorch, and its features of sounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.reference.pretrained import Case, make, open_with, quietly, transformers

__all__ = [
    *("CASES", "WrittenSounds", "compute", "draw", "features_of", "find_segments", "transcribe", "write"),
    *("write_extractor", "write_with_times"),
]

_TINY = {
    **{"vocab_size": 61, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2},
    **{"decoder_attention_heads": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "num_mel_bins": 8},
    **{"max_source_positions": 10, "max_target_positions": 24, "pad_token_id": 0, "bos_token_id": 1},
    **{"eos_token_id": 2, "decoder_start_token_id": 3, "begin_suppress_tokens": None},
}


def _whisper(**settings: Any) -> Case:
    return Case("WhisperForConditionalGeneration", "WhisperConfig", {**_TINY, **settings})


CASES: dict[str, Case] = {
    "whisper": _whisper(),
    "whisper-relu": _whisper(scale_embedding=True, activation_function="relu"),
    "whisper-layers": _whisper(encoder_layers=1, decoder_layers=3, encoder_ffn_dim=32),
    "whisper-heads": _whisper(encoder_attention_heads=4, decoder_attention_heads=1, decoder_ffn_dim=8),
    "whisper-bins": _whisper(num_mel_bins=12, max_source_positions=7),
}
SEVERAL = {
    "lang_to_id": {"<|en|>": 50, "<|de|>": 51, "<|fr|>": 52},
    "task_to_id": {"transcribe": 53, "translate": 54},
    **{"no_timestamps_token_id": 55, "is_multilingual": True, "suppress_tokens": [4, 5, 6, 7, 8, 9]},
    **{"begin_suppress_tokens": [10, 11, 12], "max_length": 24, "return_timestamps": False},
}
"""What generation_config.json says of models that know several languages."""


TIMES: dict[str, Any] = {**SEVERAL, "suppress_tokens": [0, 4, 5, 6], "max_initial_timestamp_index": 3}
"""The same for :func:`write_with_times`: the tokens from 56 on are times. Padding, 0, is never written."""


class WrittenSounds(NamedTuple):
    """A model in a folder, and what Transformers computes with it."""

    folder: Path
    features: np.ndarray
    """(batch, frames, bins)"""
    tokens: list[list[int]]
    result: np.ndarray


def write(name: str, folder: Path) -> WrittenSounds:
    """Write a model, and compute with it."""
    case = CASES[name]
    model = quietly(make, case, len(name))
    quietly(model.save_pretrained, folder)
    stream = np.random.default_rng(5)
    shape = (2, 2 * case.settings["max_source_positions"], case.settings["num_mel_bins"])
    features = stream.normal(size=shape).astype(np.float32)
    tokens = stream.integers(3, 61, (2, 9)).tolist()
    return WrittenSounds(folder, features, tokens, compute(model, features, tokens))


def compute(model: Any, features: np.ndarray, tokens: list[list[int]]) -> np.ndarray:
    """Return the logits of a model, or of that in a folder."""
    import torch

    model = open_with("WhisperForConditionalGeneration", model) if isinstance(model, Path) else model
    with torch.no_grad():
        given = torch.tensor(features).transpose(1, 2)
        return quietly(model, given, decoder_input_ids=torch.tensor(tokens)).logits.numpy()


def transcribe(folder: Path, features: np.ndarray, count: int, **settings: Any) -> list[list[int]]:
    """Return what Transformers writes greedily, with the first tokens."""
    import torch

    model = open_with("WhisperForConditionalGeneration", folder)
    given = torch.tensor(features).transpose(1, 2)
    for key, value in json.loads((folder / "generation_config.json").read_text()).items():
        setattr(model.generation_config, key, value)
    found = quietly(model.generate, given, max_new_tokens=count, do_sample=False, **settings)
    return found.tolist()


def draw(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    """Return spectrograms of noise."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def write_with_times(folder: Path, seed: int) -> None:
    """Write a model with tokens for times, a window of 0.2 seconds, and positions that make it write many tokens."""
    model = quietly(make, _whisper(vocab_size=67), seed)
    model.model.decoder.embed_positions.weight.data.mul_(8)
    quietly(model.save_pretrained, folder)
    config = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(json.dumps({**config, **TIMES}))


def find_segments(folder: Path, features: np.ndarray, **settings: Any) -> list[list[tuple[float, float, list[int]]]]:
    """Return start, end and tokens without times of what Transformers hears in each spectrogram."""
    import torch

    model = open_with("WhisperForConditionalGeneration", folder)
    for key, value in TIMES.items():
        setattr(model.generation_config, key, value)
    given, how = torch.tensor(features).transpose(1, 2), {"return_timestamps": True, "return_segments": True}
    found = quietly(model.generate, given, do_sample=False, **how, **settings)
    first = TIMES["no_timestamps_token_id"] + 1
    return [
        [(float(x["start"]), float(x["end"]), [t for t in x["tokens"].tolist() if t < first]) for x in row]
        for row in found["segments"]
    ]


def write_extractor(folder: Path, **settings: Any) -> None:
    """Write the preprocessor_config.json of a feature extractor."""
    transformers().WhisperFeatureExtractor(**settings).save_pretrained(folder)


def features_of(folder: Path, sounds: list[np.ndarray], rate: int) -> np.ndarray:
    """Return what the feature extractor in a folder makes of sounds, (batch, frames, bins)."""
    extractor = quietly(transformers().WhisperFeatureExtractor.from_pretrained, folder)
    found = quietly(extractor, sounds, sampling_rate=rate, return_tensors="np")["input_features"]
    return np.asarray(found, np.float32).transpose(0, 2, 1)
