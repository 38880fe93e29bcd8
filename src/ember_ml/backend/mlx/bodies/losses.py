"""Losses on MLX, fused into one body."""

from __future__ import annotations

import mlx.core as mx

from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.shapes import check_classes
from ember_ml.backend.common.special import LEAST_PROBABILITY
from ember_ml.backend.mlx.bodies.indexing import in_range
from ember_ml.backend.mlx.bodies.reductions import log_sum_exp


def sparse_categorical_crossentropy(target: mx.array, output: mx.array, from_logits: bool, axis: int) -> mx.array:
    shape = output.shape
    axis = axis_of(axis, len(shape))
    check_classes(target.shape, shape, axis)
    classes = mx.expand_dims(in_range(target, shape[axis], wraps=False), axis)
    if not output.size:
        return mx.zeros(target.shape, output.dtype)
    is_half = output.itemsize == 2
    wide = output.astype(mx.float32) if is_half else output
    picked = mx.take_along_axis(wide, classes, axis)
    if from_logits:
        # MLX 0.32: logsumexp computes float64 in float32 (mlx#3047)
        whole = mx.logsumexp(wide, axis, True) if wide.itemsize == 4 else log_sum_exp(wide, axis, True)
        loss = mx.squeeze(whole - picked, axis)
    else:
        share = mx.squeeze(picked, axis) / mx.sum(wide, axis)
        loss = -mx.log(mx.maximum(share, LEAST_PROBABILITY))
    return loss.astype(output.dtype) if is_half else loss
