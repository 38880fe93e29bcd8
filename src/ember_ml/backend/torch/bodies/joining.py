"""Joining, splitting, repeating and padding, on PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.padding import margins, pad_indices, repeat_indices
from ember_ml.backend.common.shapes import as_shape, pad_pairs, sections
from ember_ml.backend.contract import ByDType
from ember_ml.backend.torch.unsigned import moved, unsigned


def _concatenate(x: list[torch.Tensor], axis: int | None) -> torch.Tensor:
    if axis is None:
        return torch.cat([part.reshape(-1) for part in x])
    if len({part.ndim for part in x}) > 1:  # torch 2.13: skips empty vectors among matrices
        raise ValueError("the tensors have different numbers of dimensions")
    return torch.cat(x, axis)


concatenate = ByDType(torch.cat, general=_concatenate)
# torch 2.13: promotes no uint16, uint32 and uint64; the general body gets what dispatch promoted
stack = ByDType(torch.stack, general=lambda x, axis: torch.stack(x, axis))


def unstack(x: torch.Tensor, axis: int) -> tuple[torch.Tensor, ...]:
    return torch.unbind(x, axis_of(axis, x.ndim))


def split(x: torch.Tensor, indices_or_sections: Any, axis: int) -> list[torch.Tensor]:
    return _parts(x, indices_or_sections, axis, True)


def array_split(x: torch.Tensor, indices_or_sections: Any, axis: int) -> list[torch.Tensor]:
    return _parts(x, indices_or_sections, axis, False)


def _parts(x: torch.Tensor, parts: Any, axis: int, equal: bool) -> list[torch.Tensor]:
    place = axis_of(axis, x.ndim)
    slices = sections(parts, x.shape[place], equal)
    sizes = [part.stop - part.start for part in slices]
    if min(sizes) >= 0:  # one after the other: the gradients are joined, where those of slices are padded and added
        return list(torch.split_with_sizes(x, sizes, place))
    front = (slice(None),) * place
    return [x[(*front, part)] for part in slices]


def tile(x: torch.Tensor, reps: Any) -> torch.Tensor:
    return torch.tile(x, as_shape(reps))


def _take_positions(x: torch.Tensor, positions: np.ndarray, axis: int) -> torch.Tensor:
    return torch.index_select(x, axis, torch.from_numpy(positions).to(x.device))


def _repeat(x: torch.Tensor, repeats: Any, axis: int | None) -> torch.Tensor:
    if axis is None:
        x, axis = x.reshape(-1), 0
    if type(repeats) is int and repeats >= 0:
        return torch.repeat_interleave(x, repeats, axis_of(axis, x.ndim))
    return _take_positions(x, repeat_indices(x.shape[axis_of(axis, x.ndim)], repeats), axis)


repeat = ByDType(_repeat, moved(_repeat))


def _pad(x: torch.Tensor, pad_width: Any, mode: str, constant_values: torch.Tensor | None) -> torch.Tensor:
    pairs = pad_pairs(pad_width, x.ndim)
    if mode == "constant":
        widths = [width for pair in reversed(pairs) for width in pair]  # torch 2.13: begins with the last axis
        result = torch.nn.functional.pad(x, widths)
        if constant_values is None:
            return result
        inside = torch.nn.functional.pad(torch.ones(x.shape, dtype=torch.bool, device=x.device), widths)
        return torch.where(inside, result, constant_values)
    for axis, (before, after) in enumerate(pairs):
        x = _extend_axis(x, axis, before, after, mode)
    return x


def _extend_axis(x: torch.Tensor, axis: int, before: int, after: int, mode: str) -> torch.Tensor:
    ends = margins(x.shape[axis], before, after, mode)
    if not (before or after):
        return x
    if ends is None:
        return _take_positions(x, pad_indices(x.shape[axis], before, after, mode), axis)
    parts = [x.narrow(axis, end.start, end.stop - end.start) for end in ends]
    first, last = parts if mode == "wrap" else (part.flip(axis) for part in parts)
    return torch.cat((first, x, last), axis)


pad = ByDType(_pad, unsigned(_pad))
