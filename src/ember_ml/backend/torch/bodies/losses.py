"""Losses on PyTorch, where it has a kernel for them."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from ember_ml.backend import value_checks as checks
from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.shapes import check_classes
from ember_ml.backend.common.special import LEAST_PROBABILITY
from ember_ml.backend.torch.bodies.indexing import in_range

_NO_CLASS = -(2**62)  # torch 2.13: ignores the class -100 by default; this one never occurs


def _is_checked_by_torch(target: torch.Tensor) -> bool:
    return checks.enabled and target.device.type == "cpu" and not torch.compiler.is_compiling()


def sparse_categorical_crossentropy(
    target: torch.Tensor, output: torch.Tensor, from_logits: bool, axis: int
) -> torch.Tensor:
    is_usual = from_logits and output.ndim == 2 and (axis == -1 or axis == 1) and target.dtype is torch.int64
    if is_usual and output.dtype is torch.float32 and target.ndim == 1 and _is_checked_by_torch(target):
        return F.cross_entropy(output, target, reduction="none", ignore_index=_NO_CLASS)
    axis = axis_of(axis, output.ndim)
    check_classes(target.shape, output.shape, axis)
    wide = output.to(torch.float32) if output.dtype.itemsize < 4 else output
    classes = in_range(target, output.shape[axis], wraps=False)
    rows = wide.movedim(axis, -1)
    if from_logits:
        loss = F.cross_entropy(rows.reshape(-1, rows.shape[-1]), classes.reshape(-1), reduction="none")
        return loss.reshape(target.shape).to(output.dtype)
    picked = rows.gather(-1, classes.unsqueeze(-1)).squeeze(-1) / rows.sum(-1)
    return -torch.log(torch.clamp(picked, min=LEAST_PROBABILITY)).to(output.dtype)
