"""Compiling functions on PyTorch: torch.compile, and plain execution where the platform cannot."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["build", "is_tracing"]


def is_tracing() -> bool:
    return torch.compiler.is_compiling()


def build(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` of tensors, compiled; it is run as it is, with one warning, where there is no compiler for it."""
    compiled = torch.compile(function)
    is_possible = True

    def run(*tensors: torch.Tensor) -> Any:
        nonlocal is_possible
        if not is_possible:
            return function(*tensors)
        try:
            return compiled(*tensors)
        except Exception as error:
            if not _is_for_want_of_a_compiler(error):
                raise
            is_possible = False
            warnings.warn(
                "torch.compile found no C++ compiler here, so that the function runs uncompiled; "
                "install g++ or clang to compile it",
                stacklevel=4,
            )
            return function(*tensors)

    return run


def _is_for_want_of_a_compiler(error: BaseException | None) -> bool:
    while error is not None:
        if type(error).__name__ == "InvalidCxxCompiler" or "InvalidCxxCompiler" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
