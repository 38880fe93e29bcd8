"""Losses on NumPy, fused into one body."""

from __future__ import annotations

import numpy as np

from ember_ml.backend import value_checks as checks
from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.shapes import check_classes
from ember_ml.backend.common.special import LEAST_PROBABILITY


def sparse_categorical_crossentropy(target: np.ndarray, output: np.ndarray, from_logits: bool, axis: int) -> np.ndarray:
    axis = axis_of(axis, output.ndim)
    check_classes(target.shape, output.shape, axis)
    count = output.shape[axis]
    rows = (output if axis == output.ndim - 1 else np.moveaxis(output, axis, -1)).reshape(-1, count)
    rows = rows.astype(np.float32) if output.dtype.itemsize < 4 else rows
    classes = target.reshape(-1)
    if checks.enabled:
        low, high = (int(classes.min()), int(classes.max())) if classes.size else (0, -1)
        if low < 0 or high >= count:
            raise IndexError(f"index {low if low < 0 else high} is out of bounds for a dimension of size {count}")
    else:
        classes = np.clip(classes, 0, count - 1)
    places = np.arange(classes.size)
    if from_logits:
        shifted = rows - rows.max(axis=1, keepdims=True)
        loss = np.log(np.exp(shifted).sum(axis=1)) - shifted[places, classes]
    else:
        loss = -np.log(np.maximum(rows[places, classes] / rows.sum(axis=1), np.asarray(LEAST_PROBABILITY, rows.dtype)))
    return loss.reshape(target.shape).astype(output.dtype, copy=False)
