"""Updates of parameters on PyTorch: all at once, in place, by its fused kernels and by those for lists of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

__all__ = ["adagrad", "adam", "lion", "rmsprop", "sgd"]

Tensors = Sequence[torch.Tensor]
_kernels: Any = torch  # which does not tell the types of its kernels for lists
IS_IN_PLACE = True
TAKES_HALVES = True
"""Whether the parameters and slots that are passed are changed, rather than new ones given."""


def _grouped(*columns: Tensors) -> list[tuple[list[torch.Tensor], ...]]:
    """The rows of the columns, those apart whose parameters differ in dtype or device, as the kernels need them."""
    parameters = columns[0]
    first = parameters[0]
    if all(x.dtype is first.dtype and x.device == first.device for x in parameters):
        return [tuple(list(column) for column in columns)]
    groups: dict[tuple[torch.dtype, torch.device], list[tuple[torch.Tensor, ...]]] = {}
    for row in zip(*columns, strict=True):
        groups.setdefault((row[0].dtype, row[0].device), []).append(row)
    return [tuple(list(column) for column in zip(*rows, strict=True)) for rows in groups.values()]


def _in_order(column: Tensors) -> Tensors:
    return [x if x.is_contiguous() else x.contiguous() for x in column]


@torch.no_grad()
def adam(
    parameters: Tensors,
    gradients: Tensors,
    first: Tensors,
    second: Tensors,
    rate: float,
    factor: float,
    scaled_epsilon: float,
    step: int,
    beta1: float,
    beta2: float,
    epsilon: float,
    decay: float,
    is_decoupled: bool,
) -> list[Tensors]:
    kernel = _kernels._fused_adamw_ if is_decoupled else _kernels._fused_adam_
    # the kernels walk through memory: what lies in another order, as the gradients of convolutions, is put in order
    parameters, gradients, first, second = (_in_order(x) for x in (parameters, gradients, first, second))
    for p, g, m, v in _grouped(parameters, gradients, first, second) if parameters else ():
        count = torch.full((), step, dtype=torch.float32, device=p[0].device)
        kernel(
            p, g, m, v, [], [count] * len(p), lr=rate, beta1=beta1, beta2=beta2, weight_decay=decay, eps=epsilon,
            amsgrad=False, maximize=False,
        )  # fmt: skip
    return [parameters, first, second]


def _decayed(parameters: Tensors, gradients: Tensors, decay: float) -> Tensors:
    return _kernels._foreach_add(gradients, parameters, alpha=decay) if decay else gradients


@torch.no_grad()
def sgd(
    parameters: Tensors,
    gradients: Tensors,
    *rest: Any,
) -> list[Tensors]:
    *slots, rate, momentum, nesterov, decay = rest
    gradients = _decayed(parameters, gradients, decay)
    if not slots:
        _kernels._foreach_add_(parameters, gradients, alpha=-rate)
        return [parameters]
    (velocity,) = slots
    _kernels._foreach_mul_(velocity, momentum)
    _kernels._foreach_add_(velocity, gradients)
    step = _kernels._foreach_add(gradients, velocity, alpha=momentum) if nesterov else velocity
    _kernels._foreach_add_(parameters, step, alpha=-rate)
    return [parameters, velocity]


@torch.no_grad()
def lion(
    parameters: Tensors,
    gradients: Tensors,
    mean: Tensors,
    rate: float,
    beta1: float,
    beta2: float,
    decay: float,
) -> list[Tensors]:
    step = _kernels._foreach_mul(mean, beta1)
    _kernels._foreach_add_(step, gradients, alpha=1.0 - beta1)
    _kernels._foreach_sign_(step)
    if decay:
        _kernels._foreach_add_(step, parameters, alpha=decay)
    _kernels._foreach_add_(parameters, step, alpha=-rate)
    _kernels._foreach_mul_(mean, beta2)
    _kernels._foreach_add_(mean, gradients, alpha=1.0 - beta2)
    return [parameters, mean]


@torch.no_grad()
def rmsprop(
    parameters: Tensors,
    gradients: Tensors,
    square: Tensors,
    *rest: Any,
) -> list[Tensors]:
    *slots, rate, smoothing, epsilon, momentum, decay = rest
    gradients = _decayed(parameters, gradients, decay)
    _kernels._foreach_mul_(square, smoothing)
    _kernels._foreach_addcmul_(square, gradients, gradients, value=1.0 - smoothing)
    size = _kernels._foreach_sqrt(square)
    _kernels._foreach_add_(size, epsilon)
    if not slots:
        _kernels._foreach_addcdiv_(parameters, gradients, size, value=-rate)
        return [parameters, square]
    (velocity,) = slots
    _kernels._foreach_mul_(velocity, momentum)
    _kernels._foreach_addcdiv_(velocity, gradients, size)
    _kernels._foreach_add_(parameters, velocity, alpha=-rate)
    return [parameters, square, velocity]


@torch.no_grad()
def adagrad(
    parameters: Tensors, gradients: Tensors, square: Tensors, rate: float, epsilon: float, decay: float
) -> list[Tensors]:
    gradients = _decayed(parameters, gradients, decay)
    _kernels._foreach_addcmul_(square, gradients, gradients, value=1.0)
    size = _kernels._foreach_sqrt(square)
    _kernels._foreach_add_(size, epsilon)
    _kernels._foreach_addcdiv_(parameters, gradients, size, value=-rate)
    return [parameters, square]
