"""Whether the values of a tensor can be read now, on PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend import value_checks as checks

__all__ = ["is_mapped", "values_are_read"]


def values_are_read(x: torch.Tensor) -> bool:
    """Whether the values of ``x`` are checked: not while a compiled function is traced, nor under vmap."""
    return checks.enabled and not torch.compiler.is_compiling() and not is_mapped(x)


def is_mapped(x: torch.Tensor) -> bool:
    """Whether ``x`` stands for the samples of a vmap."""
    if torch.compiler.is_compiling():  # torch 2.13: the compiler cannot trace the question
        return False
    transforms: Any = torch._C._functorch  # pyright: ignore[reportAttributeAccessIssue]
    while transforms.is_functorch_wrapped_tensor(x):
        if transforms.is_batchedtensor(x):
            return True
        x = transforms.get_unwrapped(x)
    return False
