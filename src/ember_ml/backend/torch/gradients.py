"""Gradients on PyTorch: autograd on detached leaves; ``torch.func`` where a transform needs or surrounds it."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint as _checkpoint
from torch.utils.checkpoint import set_checkpoint_early_stop

from ember_ml.backend.torch.compilation import mark_constant
from ember_ml.core import dtypes as dt

__all__ = [
    "checkpoint",
    "custom",
    "is_differentiating",
    "is_inside_transform",
    "is_recorded_once",
    "jacobian",
    "pullback",
    "pushforward",
    "records_apart",
    "refuses_captured",
    "ruled",
    "ruled_inside_gradients",
    "sees_arguments_only",
    "stop_gradient",
    "unrecorded",
    "value_and_gradients",
    "variable",
    "vmap",
    "watch",
    "without_gradient",
]

stop_gradient = torch.Tensor.detach
sees_arguments_only = False
refuses_captured = False
# torch 2.13: the derivative forward of scattered products is 0, that of least squares wrong, and that of the angle of 0
# NaN and float64; so is its second derivative
_WRONG = dt.FLOATS | dt.COMPLEX
without_gradient: dict[str, frozenset[dt.EmberDType]] = dict.fromkeys(("arctan2", "lstsq", "segment_prod"), _WRONG)
records_apart = False
ruled_inside_gradients = frozenset(without_gradient)

_IS_EARLY = torch.__version__ < "2.12"

_nesting = threading.local()


def _is_nested() -> bool:
    return getattr(_nesting, "depth", 0) > 0


def is_inside_transform() -> bool:
    """Whether torch.func or a compiler traces the call: new leaves are not allowed there."""
    return torch.compiler.is_compiling() or _is_transformed()


def _is_transformed() -> bool:
    """Whether torch.func traces the call."""
    return torch._C._functorch.peek_interpreter_stack() is not None  # pyright: ignore[reportAttributeAccessIssue]


def is_differentiating() -> bool:
    """Whether torch.func or a second gradient differentiates what is computed now; a compiler does so by itself."""
    return may_be_differentiated_again() and not torch.compiler.is_compiling()


def may_be_differentiated_again() -> bool:
    """Whether a second derivative, or another transform, may be applied to what is computed now."""
    return getattr(_nesting, "depth", 0) > 1 or _is_transformed()


@contextmanager
def unrecorded() -> Iterator[None]:
    if is_inside_transform():
        yield
        return
    # torch 2.13: without gradients a call still passes through the layers that would record it and its views, which
    # takes a tenth of the time of a small model; inference_mode would make tensors that can never be trained
    with torch.no_grad(), torch._C._AutoDispatchBelowADInplaceOrView():
        yield


def is_recorded_once(*tensors: torch.Tensor | None) -> bool:
    """Whether autograd records a call with these tensors, and nothing else does: for functions with a backward pass."""
    if not torch.is_grad_enabled() or torch.compiler.is_compiling() or may_be_differentiated_again():
        return False
    return any(x is not None and x.requires_grad for x in tensors)


_has_variables = False  # whether the caller ever made variables, which a function may capture


def variable(x: torch.Tensor) -> torch.Tensor:
    """Return a variable that shares the data of ``x``; ``x`` itself is unchanged."""
    global _has_variables
    _has_variables = True
    return x.detach().requires_grad_()


def _own(leaves: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return the leaves as new variables of this gradient, connected to the outer graph if they belong to one."""
    if torch.is_grad_enabled():
        return [x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in leaves]
    with torch.enable_grad():  # off inside a backward pass
        return _own(leaves)


def _reaches_others(outputs: Sequence[torch.Tensor], own: Sequence[torch.Tensor]) -> bool:
    """Whether the outputs, and hence the gradients, depend on other variables of the caller than ``own``."""
    known = {id(x) for x in own}
    stack = [y.grad_fn for y in outputs if y.grad_fn is not None]
    seen = set(stack)
    while stack:
        for node, _ in stack.pop().next_functions:
            if node is None or node in seen:
                continue
            leaf = getattr(node, "variable", None)
            if leaf is not None and id(leaf) not in known:
                return True
            seen.add(node)
            stack.append(node)
    return False


def _is_kept(leaves: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], own: Sequence[torch.Tensor]) -> bool:
    """Whether the gradients may be differentiated again: then the graph is kept."""
    if getattr(_nesting, "depth", 0) > 0:
        return True
    for x in leaves:
        if x.requires_grad:
            return True
    return _has_variables and _reaches_others(outputs, own)


def _record(function: Callable[..., Any], variables: Sequence[torch.Tensor]) -> Any:
    _nesting.depth = getattr(_nesting, "depth", 0) + 1
    try:
        if torch.is_grad_enabled():
            return function(*variables)
        with torch.enable_grad():
            return function(*variables)
    finally:
        _nesting.depth -= 1


def watch(watcher: Any) -> Any:
    """Let ``watcher`` follow the gradients that this thread computes from now on; return the previous one, or None.

    Its ``begin(variables, value)`` is called first, and says which variables are signs: where it names some, gradients
    become attributes of the variables, and ``look(variable)`` is called when that of a sign has.
    """
    before = getattr(_nesting, "watcher", None)
    _nesting.watcher = watcher
    return before


def value_and_gradients(
    function: Callable[..., Any], leaves: Sequence[torch.Tensor]
) -> tuple[torch.Tensor, list[Any], Sequence[torch.Tensor]]:
    if is_inside_transform():
        transformed = torch.func.grad_and_value(function, argnums=tuple(range(len(leaves))), has_aux=True)
        gradients, (value, rest) = transformed(*leaves)
        return value, rest, gradients
    variables = _own(leaves)
    value, rest = _record(function, variables)
    keep = _is_kept(leaves, [value], variables)
    if not value.requires_grad:
        return value, rest, [torch.zeros_like(x) for x in leaves]
    if keep:
        gradients = torch.autograd.grad(value, variables, create_graph=True, allow_unused=True, materialize_grads=True)
        return value, rest, gradients
    watcher, signs = getattr(_nesting, "watcher", None), ()
    if watcher is not None:
        signs = watcher.begin(variables, value)
        for place in signs:
            variables[place].register_post_accumulate_grad_hook(watcher.look)
    # torch 2.13: autograd.grad and backward take 25 us and more to prepare what is known here; the engine is called
    # directly
    if _engine is not None:
        arguments = (value,), (torch.ones_like(value),), False, False, tuple(variables), True
        found = _engine.run_backward(*arguments, accumulate_grad=bool(signs))
    elif signs:
        torch.autograd.backward(value, inputs=list(variables))
        found = ()
    else:
        found = torch.autograd.grad(value, variables, allow_unused=True)
    found = [x.grad for x in variables] if signs else found
    gradients = [torch.zeros_like(x) if g is None else g for g, x in zip(found, variables, strict=True)]
    return value.detach(), [_detach(x) for x in rest], gradients


_engine: Any = getattr(torch.autograd.Variable, "_execution_engine", None)


def _detach(x: Any) -> Any:
    return x.detach() if isinstance(x, torch.Tensor) else x


def pullback(
    function: Callable[..., Any], leaves: Sequence[torch.Tensor]
) -> tuple[list[torch.Tensor], Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]]:
    """Return the outputs of ``function`` and its vjp with respect to the leaves."""
    if is_inside_transform():
        outputs, pull = torch.func.vjp(function, *leaves)[:2]
        return outputs, lambda gradients: pull(list(gradients))
    variables = _own(leaves)
    outputs = _record(function, variables)
    keep = _is_kept(leaves, outputs, variables)

    def pull(gradients: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        again = keep or _is_nested() or any(g.requires_grad for g in gradients)
        live = [(y, g) for y, g in zip(outputs, gradients, strict=True) if y.requires_grad]
        if not live:
            return [torch.zeros_like(x) for x in leaves]
        ys, gs = zip(*live, strict=True)
        return torch.autograd.grad(
            ys, variables, gs, retain_graph=True, create_graph=again, allow_unused=True, materialize_grads=True
        )

    return (outputs if keep else [y.detach() for y in outputs]), pull


@mark_constant
def _load_forward_mode() -> None:
    """Import what the first forward derivative needs, without its warnings."""
    if "torch._decomp.decompositions_for_jvp" in sys.modules:
        return
    # torch 2.13: warns of its own deprecated parts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import_module("torch._decomp.decompositions_for_jvp")


def pushforward(
    function: Callable[..., Any], leaves: Sequence[torch.Tensor], tangents: Sequence[torch.Tensor]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    _load_forward_mode()
    return torch.func.jvp(function, tuple(leaves), tuple(tangents))[:2]


def jacobian(function: Callable[..., Any], leaves: Sequence[torch.Tensor]) -> list[Sequence[torch.Tensor]]:
    """Return for each output the derivatives with respect to each leaf, of shape output + leaf."""
    if _has_hooks():
        return _jacobian_by_rows(function, leaves)
    compute: Any = torch.func.jacrev(function, argnums=tuple(range(len(leaves))))
    if _IS_EARLY and "_dynamo" in vars(torch):  # torch 2.11: inside a compiled function the result is 0
        compute = torch.compiler.disable(compute)
    return compute(*leaves)


@mark_constant
def _has_hooks() -> bool:
    """Whether a surrounding checkpoint keeps what autograd saves."""
    # torch 2.13: torch.func refuses to run there
    return torch._C._autograd._top_saved_tensors_default_hooks(False) is not None  # pyright: ignore


def _jacobian_by_rows(function: Callable[..., Any], leaves: Sequence[torch.Tensor]) -> list[Sequence[torch.Tensor]]:
    outputs, pull = pullback(function, leaves)
    found = []
    for place, output in enumerate(outputs):
        basis = torch.eye(output.numel(), dtype=output.dtype, device=output.device).reshape(-1, *output.shape)
        rows = [
            pull([row if other == place else torch.zeros_like(y) for other, y in enumerate(outputs)]) for row in basis
        ]
        shapes = [(*output.shape, *x.shape) for x in leaves]
        columns = zip(*rows, strict=True) if rows else [()] * len(leaves)
        found.append(
            [
                torch.stack(list(column)).reshape(shape) if column else x.new_zeros(shape)
                for column, shape, x in zip(columns, shapes, leaves, strict=True)
            ]
        )
    return found


def vmap(
    function: Callable[..., Any], leaves: Sequence[torch.Tensor], axes: Sequence[int | None], out_axis: int
) -> list[torch.Tensor]:
    if torch.compiler.is_dynamo_compiling():  # torch 2.13: Dynamo does not trace a change of the filters
        return torch.func.vmap(function, tuple(axes), out_axis)(*leaves)
    with warnings.catch_warnings():  # torch 2.13: tells that it loops over some functions, or copies for others
        warnings.filterwarnings("ignore", "There is a performance drop|torch.searchsorted", UserWarning)
        return torch.func.vmap(function, tuple(axes), out_axis)(*leaves)


def checkpoint(function: Callable[..., Any], leaves: Sequence[Any], is_complete: bool) -> Any:
    if _is_transformed():  # torch 2.13: checkpoint has no effect on torch.func
        return function(*leaves)
    # torch 2.13: stops early by an exception inside an op, which the op would take for a failure of its hot path
    with set_checkpoint_early_stop(False):
        return _checkpoint(_keep_depth(function), *leaves, use_reentrant=False)


def _keep_depth(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs inside as many gradients as now, also when a backward pass calls it.

    The pass itself is outside of them, and torch runs it in another thread where the tensors are on CUDA.
    """
    depth = getattr(_nesting, "depth", 0)

    def nested(*leaves: Any) -> Any:
        before = getattr(_nesting, "depth", 0)
        _nesting.depth = max(before, depth)
        try:
            return function(*leaves)
        finally:
            _nesting.depth = before

    return nested


class _Call:
    """A function with its own vjp, the vjp of its last run, and how to compute both inside of the same gradients."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.pull = function, None
        self.pull_again = _keep_depth(lambda leaves, gradients: function(*leaves)[1](gradients))


class _Custom(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(call: _Call, *leaves: torch.Tensor) -> Any:
        outputs, call.pull = call.function(*leaves)
        # the vjp may hold the outputs; detached ones avoid a reference cycle
        return tuple(y.detach() for y in outputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.call, *leaves = inputs
        ctx.save_for_backward(*leaves)
        ctx.save_for_forward(*leaves)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        if torch.is_grad_enabled() or _is_transformed():  # the rule needs inputs that belong to the graph
            return (None, *ctx.call.pull_again(ctx.saved_tensors, gradients))
        return (None, *ctx.call.pull(gradients))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Transpose the vjp, which is linear, to push the tangents forward."""
        outputs, pull = ctx.call.function(*ctx.saved_tensors)
        live = [place for place, y in enumerate(outputs) if y.is_floating_point() or y.is_complex()]

        def pull_live(*gradients: torch.Tensor) -> tuple[torch.Tensor, ...]:
            seeds = dict(zip(live, gradients, strict=True))
            return tuple(pull([seeds.get(place, y) for place, y in enumerate(outputs)]))

        _, push = torch.func.vjp(pull_live, *(torch.zeros_like(outputs[place]) for place in live))[:2]
        changes = dict(zip(live, push(tangents[1:]), strict=True))
        return tuple(changes.get(place) for place in range(len(outputs)))


def custom(function: Callable[..., Any], leaves: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    """Return the outputs of ``function``, which also returns its own vjp."""
    if _is_transformed() and (torch.compiler.is_compiling() or "_dynamo" in vars(torch)):
        # torch 2.13: its compiler ignores the rule inside torch.func and differentiates the function itself
        apply: Any = torch.compiler.disable(_Custom.apply)
        return apply(_Call(function), *leaves)
    return _Custom.apply(_Call(function), *leaves)


def ruled(
    function: Callable[..., Any],
    pull: Callable[[Any, Any, Any], Sequence[torch.Tensor]],
    leaves: Sequence[torch.Tensor],
) -> Sequence[torch.Tensor]:
    """The list that ``function`` gives; ``pull`` takes gradients of its parts back to the leaves."""

    def both(*variables: torch.Tensor) -> tuple[list[torch.Tensor], Callable[..., Any]]:
        outputs = function(*variables)
        return outputs, lambda gradients: pull(variables, gradients, outputs)

    return custom(both, leaves)
