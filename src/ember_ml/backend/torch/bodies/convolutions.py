"""Convolutions, on PyTorch, whose functions take the channels second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from ember_ml.backend.common.convolution import convolution, is_channels_first, transposed_convolution
from ember_ml.backend.torch.channel_order import images_of, per_image, restore_layout, sides
from ember_ml.backend.torch.readable_values import is_mapped

# torch 2.11 on CUDA: rounds the arguments of convolutions, and of nothing else, to TF32's 10 bits by default. The
# backward pass reads the switch too, hence it is not set for the length of one call.
torch.backends.cudnn.allow_tf32 = False


def conv(
    x: torch.Tensor,
    kernel: torch.Tensor,
    strides: int | Sequence[int],
    padding: Any,
    data_format: str,
    dilation_rate: int | Sequence[int],
) -> torch.Tensor:
    sliding, groups = convolution(x.shape, kernel.shape, strides, padding, data_format, dilation_rate)
    if _has_no_kernel(x):
        return conv(x.float(), kernel.float(), strides, padding, data_format, dilation_rate).half()
    first = is_channels_first(data_format, x.ndim)
    images, weights = images_of(x, first), _weights(kernel, first)
    if groups > 1 and x.dtype is not torch.float32 and x.device.type == "cpu":
        # torch 2.13 on the CPU: leaves parts uninitialized where the channels come last, in bfloat16 of the result, in
        # float64 of the gradient by the kernel, in programs that take one sequence
        images, weights = images.contiguous(), weights.contiguous()
    even = [min(pair) for pair in sliding.padding]
    if any(before != after for before, after in sliding.padding):
        images = F.pad(images, sides([(b - e, a - e) for (b, a), e in zip(sliding.padding, even, strict=True)]))
    function = F.conv3d if images.ndim == 5 else F.conv2d
    result = function(
        images,
        weights,
        None,
        per_image(sliding.strides, 1),
        per_image(even, 0),
        per_image(sliding.dilations, 1),
        groups,
    )
    return restore_layout(result, x.ndim, first)


def conv_transpose(
    x: torch.Tensor,
    kernel: torch.Tensor,
    strides: int | Sequence[int],
    padding: Any,
    output_padding: int | Sequence[int] | None,
    data_format: str,
    dilation_rate: int | Sequence[int],
) -> torch.Tensor:
    plan = transposed_convolution(x.shape, kernel.shape, strides, padding, output_padding, data_format, dilation_rate)
    if _has_no_kernel(x) or _adds_in_halves(x):
        wide = conv_transpose(x.float(), kernel.float(), strides, padding, output_padding, data_format, dilation_rate)
        return wide.to(x.dtype)
    first = is_channels_first(data_format, x.ndim)
    images, weights = images_of(x, first), _weights(kernel, first)
    even = [max(min(crop), 0) for crop in plan.crops]
    function = F.conv_transpose3d if images.ndim == 5 else F.conv_transpose2d
    result = function(
        images,
        weights,
        None,
        per_image(plan.strides, 1),
        per_image(even, 0),
        0,
        1,
        per_image(plan.dilations, 1),
    )
    rest = sides([(e - before, e - after) for (before, after), e in zip(plan.crops, even, strict=True)])
    return restore_layout(F.pad(result, rest) if any(rest) else result, x.ndim, first)


def _has_no_kernel(x: torch.Tensor) -> bool:
    # torch 2.13: on the CPU, float16 takes 30 times as long as float32, and is accumulated in float16
    return x.dtype is torch.float16 and x.device.type == "cpu"


def _adds_in_halves(x: torch.Tensor) -> bool:
    # torch 2.13: without oneDNN's kernels, which need AVX-512, what meets in a pixel is added in bfloat16
    return x.dtype is torch.bfloat16 and x.device.type == "cpu" and not torch.ops.mkldnn._is_mkldnn_bf16_supported()


def _weights(kernel: torch.Tensor, first: bool) -> torch.Tensor:
    """Return the kernel in PyTorch's order and in the memory format of the images."""
    weights = kernel.movedim((-1, -2), (0, 1))
    weights = weights.unsqueeze(2) if weights.ndim == 3 else weights
    is_plain = first or weights.shape[1] == 1 or is_mapped(kernel)  # torch 2.13: no vmap of such a clone
    last = torch.channels_last if weights.ndim == 4 else torch.channels_last_3d
    order = torch.contiguous_format if is_plain else last
    # torch 2.13: gradients raise for views of a kernel whose lengths of 1 have other strides than those of a new tensor
    is_usual = first or (weights.ndim == 4 and min(weights.shape) > 1)
    if is_usual and weights.is_contiguous(memory_format=order) and not is_mapped(kernel):
        return weights  # as layers, or optimizers, store it
    return weights.clone(memory_format=order)
