"""Compile functions on PyTorch by torch.compile; run them uncompiled where there is no C++ compiler."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import count
from types import FunctionType
from typing import Any

import torch

from ember_ml.errors import UnsupportedOp

__all__ = [
    "argument",
    "build",
    "compiles_steps",
    "differentiates_programs",
    "follows_python",
    "from_python",
    "run_uncompiled",
]

compiles_steps = False
differentiates_programs = True
_numbers = count(1)
follows_python = torch.compiler.is_dynamo_compiling


def from_python(data: Any, dtype: torch.dtype | None, device: str | None) -> torch.Tensor:
    return torch.tensor(data, dtype=dtype, device=device)  # torch.compile traces no way over NumPy


def argument(numbers: list[float], last: torch.Tensor) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float32, device=last.device)


def run_uncompiled(function: Callable[..., None], *args: Any) -> None:
    torch.compiler.disable(function)(*args)


# what torch.compiler.disable does to a function; that call would import the compiler
run_uncompiled._torchdynamo_disable = True  # type: ignore[attr-defined]


def build(function: FunctionType, donated: int = 0) -> Callable[..., Any]:
    """Compile a ``function`` of tensors; without a C++ compiler it runs uncompiled, with one warning."""
    # torch 2.13: counts recompilations per code object and learns which lengths vary per name; hence one per program
    code = function.__code__.replace(co_name=f"{function.__name__}_{next(_numbers)}")
    function = FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)
    program: Callable[..., Any] = function
    is_new = True

    def run(*tensors: torch.Tensor) -> Any:
        nonlocal program, is_new
        if not is_new:
            return program(*tensors)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # torch 2.13: warns of its own use of torch
                warnings.filterwarnings("ignore", message="TensorFloat32")  # it is off for accuracy
                # torch 2.13: warns of a gradient inside a loop before it refuses it
                warnings.filterwarnings("ignore", message=".*_top_saved_tensors_default_hooks")
                # torch 2.13: reads .grad of tensors that have none where it leaves a rule of one's own untraced
                warnings.filterwarnings("ignore", message="The .grad attribute of a Tensor that is not a leaf")
                program = torch.compile(function)
                result = program(*tensors)
        except Exception as error:
            if type(error).__name__ == "UncapturedHigherOrderOpError":  # the class itself would import the compiler
                raise UnsupportedOp(
                    "torch.compile cannot trace what a branch or a loop of this function computes, such as a gradient; "
                    "compute it outside of the branch or loop, use ops.fori_loop with Python integers, or do not "
                    "compile the function"
                ) from error
            if not _lacks_compiler(error):
                raise
            program = function
            warnings.warn(
                "torch.compile found no C++ compiler here, so that the function runs uncompiled; "
                "install g++ or clang to compile it",
                stacklevel=4,
            )
            result = function(*tensors)
        is_new = False
        return result

    return run


def _lacks_compiler(error: BaseException | None) -> bool:
    while error is not None:
        if type(error).__name__ == "InvalidCxxCompiler" or "InvalidCxxCompiler" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
