"""Move the channels of tensors to where PyTorch's functions for images expect them: second.

A permuted tensor with the channels last has the memory format that PyTorch calls "channels last": nothing is copied,
and its kernels for that format are the fast ones. The format exists for two and three dimensions only, so a sequence
becomes an image of height 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

__all__ = ["images_of", "per_image", "restore_layout", "sides"]


def images_of(x: torch.Tensor, channels_first: bool) -> torch.Tensor:
    """Return ``x`` in PyTorch's order, with two or three spatial dimensions."""
    x = x if channels_first else x.movedim(-1, 1)
    # torch 2.13: infers a wrong memory format from the stride of a single channel, which is arbitrary (pytorch#24090)
    x = x.squeeze(1).unsqueeze(1) if x.shape[1] == 1 else x
    return x.unsqueeze(2) if x.ndim == 3 else x


def restore_layout(result: torch.Tensor, ndim: int, channels_first: bool) -> torch.Tensor:
    """Undo :func:`images_of` for a tensor of ``ndim`` dimensions."""
    result = result.squeeze(2) if ndim == 3 else result
    return result if channels_first else result.movedim(1, -1)


def per_image(values: Sequence[int], more: int) -> list[int]:
    """Return one number per spatial dimension; ``more`` for the height of a sequence."""
    return [more, *values] if len(values) == 1 else list(values)


def sides(pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Flatten pairs (before, after) in PyTorch's order, which begins with the last dimension."""
    return [side for pair in reversed(pairs) for side in pair]
