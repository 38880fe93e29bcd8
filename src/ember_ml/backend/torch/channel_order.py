"""Tensors with spatial dimensions as PyTorch's functions for images want them: the channels second.

A permuted tensor with the channels last is what PyTorch calls the memory format "channels last": nothing is copied, and
its kernels for that format are the fast ones. It knows the format for two and three dimensions only, so a sequence
becomes an image of height 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

__all__ = ["images_of", "per_image", "restored", "sides"]


def images_of(x: torch.Tensor, channels_first: bool) -> torch.Tensor:
    """``x`` as PyTorch's images, of two or three dimensions."""
    x = x if channels_first else x.movedim(-1, 1)
    # the stride of a single channel says nothing, but PyTorch 2.13 infers the memory format from it, wrongly
    x = x.squeeze(1).unsqueeze(1) if x.shape[1] == 1 else x
    return x.unsqueeze(2) if x.ndim == 3 else x


def restored(result: torch.Tensor, ndim: int, channels_first: bool) -> torch.Tensor:
    """Images in the form of the tensor, of ``ndim`` dimensions, that they were made of."""
    result = result.squeeze(2) if ndim == 3 else result
    return result if channels_first else result.movedim(1, -1)


def per_image(values: Sequence[int], more: int) -> list[int]:
    """One number per dimension of an image; ``more`` for the height of a sequence."""
    return [more, *values] if len(values) == 1 else list(values)


def sides(pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Pairs (before, after) in PyTorch's order, which begins with the last dimension."""
    return [side for pair in reversed(pairs) for side in pair]
