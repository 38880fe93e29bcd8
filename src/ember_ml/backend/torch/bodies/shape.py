"""Reshape, reorder and broadcast, on PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.shapes import as_axes, as_shape, broadcast, new_shape, roll_pairs
from ember_ml.backend.contract import ByDType
from ember_ml.backend.torch.unsigned import moved

# torch 2.13: takes no single int for a shape
reshape = ByDType(torch.reshape, general=lambda x, shape: torch.reshape(x, new_shape(shape)))


def _swapaxes(x: torch.Tensor, axis1: int, axis2: int) -> torch.Tensor:
    # torch 2.13: finds the axes 0 and -1 in 0-d tensors
    return torch.swapaxes(x, axis_of(axis1, x.ndim), axis_of(axis2, x.ndim))


swapaxes = ByDType(torch.swapaxes, general=_swapaxes, when="x.ndim")


def transpose(x: torch.Tensor, axes: Any) -> torch.Tensor:
    return torch.permute(x, tuple(range(x.ndim - 1, -1, -1)) if axes is None else axes)


def _expand_dims(x: torch.Tensor, axis: Any) -> torch.Tensor:
    # torch 2.13: adds one axis at a time
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for one in sorted(as_axes(axes, x.ndim + len(axes))):
        x = torch.unsqueeze(x, one)
    return x


expand_dims = ByDType(torch.unsqueeze, general=_expand_dims)


def squeeze(x: torch.Tensor, axis: Any) -> torch.Tensor:
    # torch 2.13: silently keeps an axis whose length is not 1
    if axis is None:
        return torch.squeeze(x)
    axes = as_axes(axis, x.ndim)
    if any(x.shape[one] != 1 for one in axes):
        raise ValueError(f"the axes {axis} of shape {tuple(x.shape)} are not all of length 1")
    return torch.squeeze(x, axes)


def broadcast_to(x: torch.Tensor, shape: Any) -> torch.Tensor:
    return torch.broadcast_to(x, as_shape(shape))


def broadcast_arrays(arrays: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    shape = broadcast([x.shape for x in arrays])
    return tuple(torch.broadcast_to(x, shape) for x in arrays)


def _flip(x: torch.Tensor, axis: Any) -> torch.Tensor:
    return torch.flip(x, tuple(range(x.ndim)) if axis is None else as_axes(axis, x.ndim))


def _roll(x: torch.Tensor, shift: Any, axis: Any) -> torch.Tensor:
    if type(shift) is int and axis == -1 and x.ndim:  # as rotary positions have it, for each token
        return torch.roll(x, shift, -1)
    if axis is None:
        return torch.roll(x.reshape(-1), sum(roll_pairs(shift, 0, 1)[0])).reshape(x.shape)
    shifts, axes = roll_pairs(shift, axis, x.ndim)
    return torch.roll(x, shifts, axes) if axes else torch.positive(x)


flip = ByDType(_flip, moved(_flip))
roll = ByDType(_roll, moved(_roll))
