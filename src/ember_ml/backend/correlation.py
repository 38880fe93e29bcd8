"""What the modes of a correlation mean, for the backends that compute it themselves."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["overhang"]


def overhang(x_shape: Sequence[int], y_shape: Sequence[int], mode: str) -> tuple[int, int]:
    """By how many elements the shorter one reaches over the start and the end of the longer one."""
    if len(x_shape) != 1 or len(y_shape) != 1 or not x_shape[0] or not y_shape[0]:
        raise ValueError(f"two 1-D tensors that are not empty are needed, not {tuple(x_shape)} and {tuple(y_shape)}")
    shorter = min(x_shape[0], y_shape[0])
    if mode == "valid":
        return 0, 0
    if mode == "same":
        return shorter // 2, shorter - shorter // 2 - 1
    if mode == "full":
        return shorter - 1, shorter - 1
    raise ValueError(f"mode must be 'valid', 'same' or 'full', not {mode!r}")
