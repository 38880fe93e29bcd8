"""Compile functions on PyTorch by torch.compile; run them uncompiled where there is no C++ compiler."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from importlib import import_module
from itertools import count
from types import FunctionType
from typing import Any

import torch

from ember_ml.errors import UnsupportedOp

__all__ = [
    "arguments",
    "build",
    "compiles_steps",
    "differentiates_programs",
    "direct",
    "follows_python",
    "from_python",
    "mark_constant",
    "may_leave_program",
    "repeat",
    "replace_rows",
    "run_uncompiled",
]

compiles_steps = False
differentiates_programs = True
direct = None
_numbers = count(1)
follows_python = torch.compiler.is_dynamo_compiling


def mark_constant(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let the compiler call ``function`` while it traces a program, and take the answer for a constant of the program.

    As ``torch.compiler.assume_constant_result``, which would import the compiler.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


def from_python(data: Any, dtype: torch.dtype | None, device: str | None) -> torch.Tensor:
    return torch.tensor(data, dtype=dtype, device=device)  # torch.compile traces no way over NumPy


def arguments(rows: list[list[float]], last: torch.Tensor) -> list[torch.Tensor]:
    return [torch.tensor(row, dtype=last.dtype, device=last.device) for row in rows]


def run_uncompiled(function: Callable[..., Any], *args: Any) -> Any:
    return torch.compiler.disable(function)(*args)


# what torch.compiler.disable does to a function; that call would import the compiler
run_uncompiled._torchdynamo_disable = True  # type: ignore[attr-defined]


def may_leave_program() -> bool:
    return follows_python() and _may_stop()


@mark_constant
def _may_stop() -> bool:
    """Whether the traced program may stop here: some must be whole, none stops in a transform, a branch or a loop."""
    tracer: Any = import_module("torch._dynamo.symbolic_convert").InstructionTranslator.current_tx()
    if tracer.one_graph or tracer.error_on_graph_break or tracer.output.current_tracer is not tracer.output.root_tracer:
        return False
    return torch._C._functorch.peek_interpreter_stack() is None  # pyright: ignore[reportAttributeAccessIssue]


def build(function: FunctionType, donates: bool = False) -> Callable[..., Any]:
    """Compile a ``function`` of tensors; without a C++ compiler it runs uncompiled, with one warning."""
    compiled = _compile(function)
    return lambda state, tensors: compiled(*state, *tensors)


def _compile(function: FunctionType, **settings: Any) -> Callable[..., Any]:
    """Compile a function when it is first called, with these settings of torch.compile."""
    # torch 2.13: counts recompilations per code object and learns which lengths vary per name; hence one per program
    code = function.__code__.replace(co_name=f"{function.__name__}_{next(_numbers)}")
    function = FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)
    program: Callable[..., Any] = function
    is_new = True

    def run(*tensors: Any) -> Any:
        nonlocal program, is_new
        if not is_new:
            return program(*tensors)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # torch 2.13: warns of its own use of torch
                warnings.filterwarnings("ignore", message="TensorFloat32")  # it is off for accuracy
                # torch 2.13: warns of a gradient inside a loop before it refuses it
                warnings.filterwarnings("ignore", message=".*_top_saved_tensors_default_hooks")
                # torch 2.13: warns of its own name for a check of linear algebra
                warnings.filterwarnings("ignore", message="`torch._prims_common.check` is deprecated")
                # torch 2.13: reads .grad of tensors that have none where it leaves a rule of one's own untraced
                warnings.filterwarnings("ignore", message="The .grad attribute of a Tensor that is not a leaf")
                program = torch.compile(function, backend=_compile_graph, **settings)
                result = program(*tensors)
        except Exception as error:
            # the first class itself would import the compiler; torch 2.13: the second where a loop is differentiated
            if type(error).__name__ == "UncapturedHigherOrderOpError" or "Expected FakeTensor" in str(error):
                raise UnsupportedOp(
                    "torch.compile cannot trace what a branch or a loop of this function computes, such as a gradient, "
                    "or the gradient of such a loop; compute it outside of the branch or loop, use ops.fori_loop with "
                    "Python integers, or do not compile the function"
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


def _compile_graph(graph: Any, inputs: list[Any], options: dict[str, Any] | None = None) -> Callable[..., Any]:
    """Compile a traced graph by PyTorch's default compiler, with settings for images whose channels come last.

    torch 2.13: takes all tensors on the way to a convolution for images whose channels come second, and transposes them
    for it; and it keeps a moved tensor and a mask for the backward pass, not the one tensor that both come from.
    """
    compile_fx = import_module("torch._inductor.compile_fx").compile_fx
    with import_module("torch._functorch.config").patch(recompute_views=True):
        return compile_fx(graph, inputs, config_patches={"layout_optimization": False, **(options or {})})


def replace_rows(x: torch.Tensor, axis: int, position: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    # torch 2.11: copies all of a tensor twice where a program replaces it by a changed one, not where it changes it
    places = position if rows.shape[axis] == 1 else position + torch.arange(rows.shape[axis], device=x.device)
    return x.index_copy_(axis, places, rows)


class _Captured:
    """A compiled step that CUDA has recorded, with the tensors whose addresses the record has."""

    def __init__(self, program: Callable[..., Any], fixed: list[torch.Tensor], state: list[torch.Tensor]) -> None:
        self.fixed, self.state = fixed, [x.clone() for x in state]
        here, aside = torch.cuda.current_stream(), torch.cuda.Stream()
        aside.wait_stream(here)
        with torch.cuda.stream(aside):  # libraries set themselves up in the first runs, which cannot be recorded
            for _ in range(2):
                program(self.fixed, self.state)
        here.wait_stream(aside)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            program(self.fixed, self.state)

    def serves(self, fixed: list[torch.Tensor], state: list[torch.Tensor]) -> bool:
        """Whether the record reads these tensors, and has others for such a state."""
        is_same = len(fixed) == len(self.fixed) and all(map(operator.is_, fixed, self.fixed))
        return is_same and [(x.shape, x.dtype) for x in state] == [(x.shape, x.dtype) for x in self.state]

    def begin(self, state: list[torch.Tensor]) -> Callable[[], list[torch.Tensor]]:
        """Start from another state."""
        for own, given in zip(self.state, state, strict=True):
            own.copy_(given)

        def advance() -> list[torch.Tensor]:
            self.graph.replay()
            return self.state

        return advance


# torch 2.11: writes a product with one row as a kernel of its own, at the speed of the memory, only with this setting
_ONE_ROW = {"coordinate_descent_tuning": True}


def repeat(function: Callable[..., list[torch.Tensor]]) -> Callable[..., Callable[[], list[torch.Tensor]]]:
    """Compile a step that changes a state in place; on CUDA it is recorded once, and a call starts the record."""

    def step(fixed: list[torch.Tensor], state: list[torch.Tensor]) -> None:
        for old, new in zip(state, function(fixed, state), strict=True):
            if new is not old:
                old.copy_(new)

    programs: dict[str, Callable[..., Any]] = {}
    captured: _Captured | None = None

    def begin(fixed: list[torch.Tensor], state: list[torch.Tensor]) -> Callable[[], list[torch.Tensor]]:
        nonlocal captured
        kind = state[0].device.type
        if kind not in programs:
            programs[kind] = _compile(step, **({"options": _ONE_ROW} if kind == "cuda" else {}))
        program = programs[kind]
        if kind == "cuda":
            if captured is None or not captured.serves(fixed, state):
                captured = None  # whose memory the next may need
                captured = _Captured(program, fixed, state)
            return captured.begin(state)

        def advance() -> list[torch.Tensor]:
            program(fixed, state)
            return state

        return advance

    return begin


def _lacks_compiler(error: BaseException | None) -> bool:
    while error is not None:
        if type(error).__name__ == "InvalidCxxCompiler" or "InvalidCxxCompiler" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
