"""Vectors of sentences by NumPy in double precision, and folders as Sentence Transformers writes them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from tests.reference.pretrained import Written, write_weights

__all__ = ["KEYS", "Dense", "draw_dense", "finish", "pool", "write"]

KEYS = ["cls_token", "max_tokens", "mean_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"]
Dense = tuple[np.ndarray, np.ndarray, dict[str, Any]]
"""Weight, bias and further settings of a linear map."""


def write(
    source: Path, target: Path, modes: list[str] | dict[str, Any], *more: str, dense: Dense | None = None
) -> Path:
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
        if dense is not None and "Dense" in path:
            weight, bias, settings = dense
            (target / path).mkdir()
            config = {"in_features": weight.shape[1], "out_features": weight.shape[0], "bias": True, **settings}
            (target / path / "config.json").write_text(json.dumps(config))
            write_weights(target / path / "model.safetensors", {"linear.weight": weight, "linear.bias": bias})
    return target


def draw_dense(inputs: int, outputs: int, settings: dict[str, Any]) -> Dense:
    """Return a linear map."""
    stream = np.random.default_rng(2)
    weight = stream.normal(size=(outputs, inputs)).astype(np.float32) / 9
    return weight, stream.normal(size=outputs).astype(np.float32), settings


def _pool_text(vectors: np.ndarray, mask: np.ndarray, mode: str) -> np.ndarray:
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


def pool(case: Written, modes: list[str]) -> np.ndarray:
    """Return one vector for each text of a case, from the vectors of its tokens with the mask."""
    rows = zip(case.masked, np.array(case.mask), strict=True)
    return np.array([np.concatenate([_pool_text(x, mask, mode) for mode in modes]) for x, mask in rows])


def finish(pooled: np.ndarray, dense: Dense, has_tanh: bool) -> np.ndarray:
    """Return what a linear map, tanh and a division by the length make of vectors."""
    found = pooled @ dense[0].T + dense[1]
    found = np.tanh(found) if has_tanh else found
    return found / np.sqrt((found**2).sum(1, keepdims=True))
