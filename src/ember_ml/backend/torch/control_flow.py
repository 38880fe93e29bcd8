"""Control flow inside functions that torch.compile traces, by PyTorch's own branches and loops."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._guards import TracingContext
from torch._higher_order_ops.scan import scan as torch_scan
from torch._higher_order_ops.while_loop import while_loop as torch_while_loop

from ember_ml.backend.torch.compilation import mark_constant
from ember_ml.core.trees import map_tree

Step = Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]


def read(x: torch.Tensor) -> Any:
    """Return the value of a 0-d tensor, or None while it is traced or vectorized."""
    if torch.compiler.is_compiling():
        return None
    try:
        return x.item()
    except RuntimeError:  # vmap has no single value
        return None


_NOTHING = "nothing, as Ember ML writes it"  # torch 2.13: cond and loops cannot return None


def _prepare_output(tree: Any) -> Any:
    """Prepare a tree to be returned from a branch or loop: copy the tensors, sort the keys of dicts."""
    # torch 2.13: results must not alias each other or the arguments; the compiler removes the copies
    if tree is None:
        return {_NOTHING: ()}
    if isinstance(tree, torch.Tensor):
        return tree.clone()
    if type(tree) in (dict, OrderedDict):
        return type(tree)([(key, _prepare_output(tree[key])) for key in sorted(tree, key=str)])
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[_prepare_output(part) for part in tree])
    if type(tree) in (list, tuple):
        return type(tree)([_prepare_output(part) for part in tree])
    raise TypeError(
        "in functions that PyTorch compiles, branches and loops give tensors in dicts, lists and tuples, "
        f"not in a {type(tree).__name__}"
    )


def _restore_output(tree: Any) -> Any:
    if type(tree) in (dict, OrderedDict):
        return None if _NOTHING in tree else type(tree)([(key, _restore_output(part)) for key, part in tree.items()])
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[_restore_output(part) for part in tree])
    return type(tree)([_restore_output(part) for part in tree]) if type(tree) in (list, tuple) else tree


def _clone_all(leaves: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [x.clone() for x in leaves]


def cond(pred: torch.Tensor, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    found = torch.cond(pred, lambda: _prepare_output(true_fn()), lambda: _prepare_output(false_fn()), ())
    return _restore_output(found)


def while_loop(
    test: Callable[[Sequence[torch.Tensor]], torch.Tensor], step: Step, leaves: Sequence[torch.Tensor]
) -> Sequence[torch.Tensor]:
    found = torch_while_loop(lambda *x: test(x), lambda *x: tuple(_clone_all(step(x))), tuple(_clone_all(leaves)))
    # torch 2.13: where gradients are recorded, the results are views at an unknown offset among those of all steps
    return _clone_all(found)


@mark_constant
def _prepare_loop() -> bool:
    """Let PyTorch's compiler make a loop of a scan, and return whether it can; called while a program is traced."""
    # torch 2.13: the loop may read its index only in programs without breaks (fullgraph), and fails otherwise
    context: Any = TracingContext.try_get()
    if context is not None and context.fake_mode is not None:
        object.__setattr__(context.fake_mode.shape_env.settings, "allow_scalar_outputs", True)
    # torch 2.12: the gradient of a scan lacks the part that passes through what is carried
    # torch 2.13: fails on a scan that is differentiated inside of the program
    transforms: Any = torch._C._functorch  # pyright: ignore[reportAttributeAccessIssue]
    derivatives = (transforms.TransformType.Grad, transforms.TransformType.Jvp)
    is_differentiated = any(layer.key() in derivatives for layer in transforms.get_interpreter_stack() or ())
    return torch.__version__ >= "2.13" and not is_differentiated


def scan(
    step: Callable[[Sequence[torch.Tensor], Sequence[torch.Tensor]], tuple[list[torch.Tensor], Any]],
    leaves: Sequence[torch.Tensor],
    xs: Sequence[torch.Tensor],
    length: int,
    reverse: bool,
) -> tuple[Sequence[torch.Tensor], Any]:
    if not _prepare_loop():  # so each step is written into the program
        last, rows = list(leaves), []
        for place in reversed(range(length)) if reverse else range(length):
            last, y = step(last, [x[place] for x in xs])
            rows.append(y)
        return last, map_tree(lambda *parts: torch.stack(parts), *(reversed(rows) if reverse else rows))
    # torch 2.13: scan needs at least one carried tensor, one input and one output
    nothing = torch.zeros((), device=next((x.device for x in (*leaves, *xs)), None))
    parts = [nothing.expand(length), *xs]

    def counted(carry: list[torch.Tensor], parts: list[torch.Tensor]) -> tuple[list[torch.Tensor], Any]:
        new, y = step(carry[1:], parts[1:])
        return _clone_all([carry[0], *new]), (carry[0].clone(), _prepare_output(y))

    carry, (_, ys) = torch_scan(counted, _clone_all([nothing, *leaves]), parts, dim=0, reverse=reverse)
    return carry[1:], _restore_output(ys)
