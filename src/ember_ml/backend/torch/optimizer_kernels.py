"""Update parameters on PyTorch: all at once, in place, by fused kernels and kernels for lists of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

__all__ = ["is_in_place", "kernels", "takes_halves"]

Tensors = Sequence[torch.Tensor]
_torch: Any = torch  # torch 2.13: no type stubs of its kernels for lists
is_in_place = True
takes_halves = True


def _group_rows(*columns: Tensors) -> list[tuple[list[torch.Tensor], ...]]:
    """Group the rows of the columns by dtype and device of their parameters, as the kernels require.

    Rows without elements are left out, such as the parts of parameters that another process has whole.
    """
    parameters = columns[0]
    first = parameters[0]
    if all(x.dtype is first.dtype and x.device == first.device and x.numel() for x in parameters):
        return [tuple(list(column) for column in columns)]
    groups: dict[tuple[torch.dtype, torch.device], list[tuple[torch.Tensor, ...]]] = {}
    for row in zip(*columns, strict=True):
        if row[0].numel():  # torch 2.11 on CUDA: refuses empty tensors of other strides
            groups.setdefault((row[0].dtype, row[0].device), []).append(row)
    return [tuple(list(column) for column in zip(*rows, strict=True)) for rows in groups.values()]


_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def _are_contiguous(columns: Sequence[Tensors]) -> bool:
    return all(all(map(torch.Tensor.is_contiguous, column)) for column in columns)


def _align(*columns: Tensors) -> list[Tensors]:
    """Give the tensors of each row one order in memory: that with the channels last where a gradient comes in it."""
    rows = []
    for row in zip(*columns, strict=True):
        order = torch.contiguous_format
        last = _LAST.get(row[0].ndim)
        if last is not None and any(not x.is_contiguous() and x.is_contiguous(memory_format=last) for x in row[:2]):
            order = last  # from then on the parameter has it too, and a convolution takes it without a copy
        rows.append([x.contiguous(memory_format=order) for x in row])
    return [list(column) for column in zip(*rows, strict=True)]


def _in_memory_order(tensors: Tensors) -> Tensors:
    """Return views of aligned tensors whose axes have the order of memory."""
    return [x if x.is_contiguous() else x.movedim(1, -1) for x in tensors]


@torch.no_grad()
def _adam(
    parameters: Tensors,
    gradients: Tensors,
    first: Tensors,
    second: Tensors,
    *,
    rate: float,
    factor: float,
    scaled_epsilon: float,
    step: int,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
    is_decoupled: bool,
) -> list[Tensors]:
    kernel = _torch._fused_adamw_ if is_decoupled else _torch._fused_adam_
    are_contiguous = _are_contiguous((parameters, gradients, first, second))
    if not are_contiguous:
        # torch 2.13: the kernels ignore strides, by which gradients of convolutions differ
        parameters, gradients, first, second = _align(parameters, gradients, first, second)
    for columns in _group_rows(parameters, gradients, first, second) if parameters else ():
        # torch 2.13: the kernels copy gradients with the channels last, and make no use of the copies
        p, g, m, v = columns if are_contiguous else map(_in_memory_order, columns)
        count = torch.full((), step, dtype=torch.float32, device=p[0].device)
        kernel(
            p, g, m, v, [], [count] * len(p), lr=rate, beta1=beta1, beta2=beta2, weight_decay=weight_decay, eps=epsilon,
            amsgrad=False, maximize=False,
        )  # fmt: skip
    return [parameters, first, second]


def _add_decay(parameters: Tensors, gradients: Tensors, weight_decay: float) -> Tensors:
    return _torch._foreach_add(gradients, parameters, alpha=weight_decay) if weight_decay else gradients


@torch.no_grad()
def _sgd(
    parameters: Tensors,
    gradients: Tensors,
    velocity: Tensors | None = None,
    *,
    rate: float,
    momentum: float,
    nesterov: bool,
    weight_decay: float,
) -> list[Tensors]:
    gradients = _add_decay(parameters, gradients, weight_decay)
    if velocity is None:
        _torch._foreach_add_(parameters, gradients, alpha=-rate)
        return [parameters]
    _torch._foreach_mul_(velocity, momentum)
    _torch._foreach_add_(velocity, gradients)
    step = _torch._foreach_add(gradients, velocity, alpha=momentum) if nesterov else velocity
    _torch._foreach_add_(parameters, step, alpha=-rate)
    return [parameters, velocity]


@torch.no_grad()
def _lion(
    parameters: Tensors,
    gradients: Tensors,
    mean: Tensors,
    *,
    rate: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
) -> list[Tensors]:
    step = _torch._foreach_mul(mean, beta1)
    _torch._foreach_add_(step, gradients, alpha=1.0 - beta1)
    _torch._foreach_sign_(step)
    if weight_decay:
        _torch._foreach_add_(step, parameters, alpha=weight_decay)
    _torch._foreach_add_(parameters, step, alpha=-rate)
    _torch._foreach_mul_(mean, beta2)
    _torch._foreach_add_(mean, gradients, alpha=1.0 - beta2)
    return [parameters, mean]


@torch.no_grad()
def _rmsprop(
    parameters: Tensors,
    gradients: Tensors,
    square: Tensors,
    velocity: Tensors | None = None,
    *,
    rate: float,
    decay: float,
    epsilon: float,
    momentum: float,
    weight_decay: float,
) -> list[Tensors]:
    gradients = _add_decay(parameters, gradients, weight_decay)
    _torch._foreach_mul_(square, decay)
    _torch._foreach_addcmul_(square, gradients, gradients, value=1.0 - decay)
    size = _torch._foreach_sqrt(square)
    _torch._foreach_add_(size, epsilon)
    if velocity is None:
        _torch._foreach_addcdiv_(parameters, gradients, size, value=-rate)
        return [parameters, square]
    _torch._foreach_mul_(velocity, momentum)
    _torch._foreach_addcdiv_(velocity, gradients, size)
    _torch._foreach_add_(parameters, velocity, alpha=-rate)
    return [parameters, square, velocity]


@torch.no_grad()
def _adagrad(
    parameters: Tensors, gradients: Tensors, square: Tensors, *, rate: float, epsilon: float, weight_decay: float
) -> list[Tensors]:
    gradients = _add_decay(parameters, gradients, weight_decay)
    _torch._foreach_addcmul_(square, gradients, gradients, value=1.0)
    size = _torch._foreach_sqrt(square)
    _torch._foreach_add_(size, epsilon)
    _torch._foreach_addcdiv_(parameters, gradients, size, value=-rate)
    return [parameters, square]


kernels = {"adagrad": _adagrad, "adam": _adam, "lion": _lion, "rmsprop": _rmsprop, "sgd": _sgd}
