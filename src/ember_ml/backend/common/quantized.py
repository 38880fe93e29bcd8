"""What packed weights look like, for all backends."""

from __future__ import annotations

from typing import Any

from ember_ml.core.dtypes import as_dtype

__all__ = ["check_quantized", "check_quantized_linear"]


def check_quantized(weight: Any, scales: Any, biases: Any, bits: int, group_size: int) -> None:
    """Raise where packed integers, scales and offsets do not fit together."""
    if bits not in (4, 8):
        raise ValueError(f"quantized weights have 4 or 8 bits, not {bits!r}")
    if group_size not in (32, 64, 128):
        raise ValueError(f"a group of quantized weights has 32, 64 or 128 numbers, not {group_size!r}")
    if as_dtype(weight.dtype).name != "uint32":
        raise TypeError(f"quantized weights are packed into uint32, not {as_dtype(weight.dtype)}")
    words, groups = tuple(weight.shape), tuple(scales.shape)
    if (
        not words
        or len(words) != len(groups)
        or words[:-1] != groups[:-1]
        or tuple(biases.shape) != groups
        or words[-1] * 32 != groups[-1] * group_size * bits
    ):
        raise ValueError(
            f"words of shape {words}, scales of shape {groups} and biases of shape {tuple(biases.shape)} do not fit "
            f"together with {bits} bits and groups of {group_size}"
        )


def check_quantized_linear(x: Any, weight: Any, scales: Any, biases: Any, bits: int, group_size: int) -> None:
    """Raise where packed weights do not fit together, or do not fit ``x``."""
    check_quantized(weight, scales, biases, bits, group_size)
    if len(weight.shape) != 2 or not x.shape or x.shape[-1] * bits != weight.shape[1] * 32:
        raise ValueError(
            f"x of shape {tuple(x.shape)} does not fit packed weights of shape {tuple(weight.shape)} with {bits} bits"
        )
