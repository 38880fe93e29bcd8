"""Convolutions turned around: what :func:`conv_transpose` and the gradients of both convolutions are made of.

Tensors have their channels last. A kernel is that of the convolution which is turned around: its channels, then its
results. Everything is a convolution again, so it is as fast as those are, and can itself be differentiated.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ember_ml import ops
from ember_ml.backend.common.convolution import Convolution, Transposed
from ember_ml.typing import Tensor

__all__ = ["input_gradient", "kernel_gradient", "spread_by"]


def spread_by(x: Tensor, kernel: Tensor, plan: Transposed, groups: int = 1) -> Tensor:
    """Return each element of ``x`` times the kernel, added up where the multiples overlap.

    It is one convolution, whose channels are then laid out in space: weight ``j * stride + r`` of element i reaches
    place r of those that follow element i + j and precede the next one. So the weights of one r are a kernel of their
    own, and all these kernels together give the places between two elements as channels.
    """
    steps, dimensions = plan.strides, x.ndim - 2
    for axis, (stride, dilation) in enumerate(zip(steps, plan.dilations, strict=True)):
        if stride > 1:
            kernel = _pad_kernel(kernel, axis, stride, dilation)
    inside, outside = kernel.shape[-2], kernel.shape[-1] // groups
    counts = [size // step for size, step in zip(kernel.shape[:-2], steps, strict=True)]
    split = ops.reshape(kernel, (*itertools.chain(*zip(counts, steps, strict=True)), inside, groups, outside))
    taps, places, rest = range(0, 2 * dimensions, 2), range(1, 2 * dimensions, 2), 2 * dimensions
    turned = ops.flip(
        ops.permute_dims(split, (*taps, rest + 2, rest + 1, *places, rest)), axis=tuple(range(dimensions))
    )
    turned = ops.reshape(turned, (*counts, outside, groups * math.prod(steps) * inside))
    dilations = [dilation if step == 1 else 1 for dilation, step in zip(plan.dilations, steps, strict=True)]
    edges = [((count - 1) * dilation,) * 2 for count, dilation in zip(counts, dilations, strict=True)]
    result = ops.conv(x, turned, 1, edges, "channels_last", dilations)
    if math.prod(steps) > 1:
        result = _laid_out(result, steps, groups)
    return cut_out(result, [before for before, _ in plan.crops], plan.results)


def _pad_kernel(kernel: Tensor, axis: int, stride: int, dilation: int) -> Tensor:
    """Write the dilation of the kernel out as zeros, and pad its length to a multiple of stride."""
    shape = list(kernel.shape)
    if dilation > 1:
        pairs = [(0, 0)] * (kernel.ndim + 1)
        pairs[axis + 1] = (0, dilation - 1)
        shape[axis] *= dilation
        kernel = ops.reshape(ops.pad(ops.expand_dims(kernel, axis + 1), pairs), shape)
    pairs = [(0, 0)] * kernel.ndim
    pairs[axis] = (0, -shape[axis] % stride)
    return ops.pad(kernel, pairs) if pairs[axis][1] else kernel


def _laid_out(x: Tensor, steps: tuple[int, ...], groups: int) -> Tensor:
    """Channels that are (groups, steps..., channels) as that many neighbours in space, with (groups, channels)."""
    batch, *lengths, channels = x.shape
    dimensions = len(steps)
    each = channels // groups // math.prod(steps)
    split = ops.reshape(x, (batch, *lengths, groups, *steps, each))
    pairs = ((1 + i, 2 + dimensions + i) for i in range(dimensions))
    woven = ops.permute_dims(split, (0, *itertools.chain(*pairs), 1 + dimensions, 2 + 2 * dimensions))
    return ops.reshape(woven, (batch, *(n * step for n, step in zip(lengths, steps, strict=True)), groups * each))


def cut_out(x: Tensor, firsts: Sequence[int], lengths: Sequence[int]) -> Tensor:
    """So many elements of each spatial dimension from the first one on; zeros where ``x`` has none."""
    ends = [first + length for first, length in zip(firsts, lengths, strict=True)]
    before = [max(-first, 0) for first in firsts]
    after = [max(end - size, 0) for end, size in zip(ends, x.shape[1:-1], strict=True)]
    if any(before) or any(after):
        x = ops.pad(x, [(0, 0), *zip(before, after, strict=True), (0, 0)])
    cuts = (slice(first + more, end + more) for first, end, more in zip(firsts, ends, before, strict=True))
    return x[(slice(None), *cuts)]


def input_gradient(g: Tensor, kernel: Tensor, plan: Convolution, sizes: Sequence[int]) -> Tensor:
    """Return the gradient of a convolution by its input, whose spatial sizes are given."""
    sliding, groups = plan
    back = Transposed(sliding.strides, sliding.dilations, sliding.padding, tuple(sizes))
    return spread_by(g, kernel, back, groups)


def kernel_gradient(g: Tensor, x: Tensor, plan: Convolution) -> Tensor:
    """Return the gradient of a convolution by its kernel: for each weight the product of its inputs and ``g``."""
    sliding, groups = plan
    if sliding.is_padded:
        x = ops.pad(x, sliding.pairs())
    inside, outside = x.shape[-1] // groups, g.shape[-1]
    places, leading = math.prod(g.shape[:-1]), tuple(range(g.ndim - 1))
    if groups > 1 and inside == 1:
        x = ops.repeat(x, outside // groups, axis=-1) if outside > groups else x
        found = [ops.sum(ops.multiply(x[cut], g), axis=leading) for cut in sliding.cuts()]
    else:
        rows = ops.moveaxis(ops.reshape(g, (places, groups, outside // groups)), 1, 0)
        columns = (ops.reshape(x[cut], (places, groups, inside)) for cut in sliding.cuts())
        products = (ops.matmul(ops.permute_dims(column, (1, 2, 0)), rows) for column in columns)
        found = [ops.moveaxis(product, 0, 1) for product in products]
    return ops.reshape(ops.stack(found), (*sliding.window, inside, outside))
