"""Packed weights from the definition of their format, in NumPy; and by mlx-lm, whose format it is."""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.reference import arrays
from tests.reference.spec import spec

__all__ = ["convert_with_mlx_lm", "logits_of_mlx_lm", "pack", "unpack"]


def pack(weight: np.ndarray, bits: int, group_size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Round float32 numbers group by group; return words, scales and offsets."""
    words, scales, biases = [], [], []
    for group in weight.astype(np.float32).reshape(-1, group_size):
        low, high = group.min(), group.max()
        scale = max((high - low) / np.float32(2**bits - 1), np.float32(1e-7))
        edge, scale = (low, scale) if abs(low) > abs(high) else (high, -scale)
        steps = np.rint(edge / scale)
        scale, bias = (edge / steps, edge) if steps else (scale, np.float32(0))
        whole = [int(x) for x in np.clip(np.rint((group - bias) / scale), 0, 2**bits - 1)]
        each = 32 // bits
        words += [sum(x << (bits * i) for i, x in enumerate(whole[n : n + each])) for n in range(0, group_size, each)]
        scales.append(scale)
        biases.append(bias)
    rows = len(weight)
    return (
        np.array(words, np.uint32).reshape(rows, -1),
        np.array(scales, np.float32).reshape(rows, -1),
        np.array(biases, np.float32).reshape(rows, -1),
    )


def _integers(weight: np.ndarray, bits: int) -> np.ndarray:
    shifted = [(np.asarray(weight).astype(np.uint64) >> np.uint64(start)) % 2**bits for start in range(0, 32, bits)]
    return np.stack(shifted, -1).reshape(*weight.shape[:-1], -1)


def unpack(weight: Any, scales: Any, biases: Any, bits: int = 4, group_size: int = 64) -> np.ndarray:
    scales, biases = (np.repeat(np.asarray(x).astype(np.longdouble), group_size, -1) for x in (scales, biases))
    return _integers(np.asarray(weight), bits) * scales + biases


def _sizes(weight: Any, scales: Any, biases: Any, bits: int = 4, group_size: int = 64) -> np.ndarray:
    return unpack(weight, abs(np.asarray(scales)), abs(np.asarray(biases)), bits, group_size)


def _linear(x: Any, *packed: Any, **sizes: Any) -> np.ndarray:
    return np.asarray(x).astype(np.longdouble) @ unpack(*packed, **sizes).T


def _linear_sizes(x: Any, *packed: Any, **sizes: Any) -> np.ndarray:
    return abs(np.asarray(x).astype(np.longdouble)) @ _sizes(*packed, **sizes).T


def _packed(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    bits, group_size = draw(st.sampled_from((4, 8))), draw(st.sampled_from((32, 64, 128)))
    rows, groups = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    limits: dict[str, Any] = {"finite": True, "low": -2.0, "high": 2.0}
    return {
        "weight": draw(arrays("uint32", (rows, groups * group_size * bits // 32))),
        "scales": draw(arrays(dtype, (rows, groups), **limits)),
        "biases": draw(arrays(dtype, (rows, groups), **limits)),
        "bits": bits,
        "group_size": group_size,
    }


def _product(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    packed = _packed(draw, dtype)
    width = packed["scales"].shape[1] * packed["group_size"]
    shape = (*draw(st.sampled_from(((), (2,), (1, 2)))), width)
    return {"x": draw(arrays(dtype, shape, finite=True, low=-2.0, high=2.0)), **packed}


spec("dequantize", _packed, unpack, ulps=4, scale=_sizes)
spec("quantized_linear", _product, _linear, ulps=8, scale=_linear_sizes)


def _quietly(function: Any, *args: Any, **settings: Any) -> Any:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return function(*args, **settings)


def logits_of_mlx_lm(folder: Path, tokens: list[list[int]]) -> np.ndarray:
    """Open a folder with mlx-lm, which has a model without its tokenizer too; return the logits."""
    import mlx.core as mx
    from mlx_lm.utils import load_model

    model, _ = _quietly(load_model, folder)
    return np.array(model(mx.array(tokens)).astype(mx.float32))


def convert_with_mlx_lm(original: Path, folder: Path, tokens: list[list[int]]) -> np.ndarray:
    """Quantize a folder with mlx-lm to 4 bits, one map to 8, and write it; return the logits."""
    import mlx.core as mx
    from mlx_lm import utils

    model, config = _quietly(utils.load_model, original)

    def choose(path: str, module: Any) -> Any:
        return {"bits": 8, "group_size": 32} if path.endswith("layers.1.mlp.up_proj") else True

    model, config = _quietly(utils.quantize_model, model, config, 64, 4, quant_predicate=choose)
    folder.mkdir()
    _quietly(utils.save_model, folder, model)
    (folder / "config.json").write_text(json.dumps(config))
    return np.array(model(mx.array(tokens)).astype(mx.float32))
