"""Control flow inside functions that torch.compile traces: PyTorch's own branches and loops."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._higher_order_ops.scan import scan as torch_scan
from torch._higher_order_ops.while_loop import while_loop as torch_while_loop

Step = Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]


def read(x: torch.Tensor) -> Any:
    """The value of a 0-d tensor, or None while a compiled function is traced, or vectorized over it."""
    if torch.compiler.is_compiling():
        return None
    try:
        return x.item()
    except RuntimeError:  # vmap has no single value
        return None


_NOTHING = "nothing, as Ember ML writes it"  # PyTorch's branches and loops give no None


def _given_out(tree: Any) -> Any:
    """A tree as branches and loops may give it: of tensors that share memory with no others, in sorted containers.

    The compiler leaves out the copies.
    """
    if tree is None:
        return {_NOTHING: ()}
    if isinstance(tree, torch.Tensor):
        return tree.clone()
    if type(tree) in (dict, OrderedDict):
        return type(tree)([(key, _given_out(tree[key])) for key in sorted(tree, key=str)])
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[_given_out(part) for part in tree])
    if type(tree) in (list, tuple):
        return type(tree)([_given_out(part) for part in tree])
    raise TypeError(
        "in functions that PyTorch compiles, branches and loops give tensors in dicts, lists and tuples, "
        f"not in a {type(tree).__name__}"
    )


def _taken_back(tree: Any) -> Any:
    if type(tree) in (dict, OrderedDict):
        return None if _NOTHING in tree else type(tree)([(key, _taken_back(part)) for key, part in tree.items()])
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[_taken_back(part) for part in tree])
    return type(tree)([_taken_back(part) for part in tree]) if type(tree) in (list, tuple) else tree


def _own_all(leaves: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [x.clone() for x in leaves]


def cond(pred: torch.Tensor, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    found = torch.cond(pred, lambda: _given_out(true_fn()), lambda: _given_out(false_fn()), ())
    return _taken_back(found)


def while_loop(
    test: Callable[[Sequence[torch.Tensor]], torch.Tensor], step: Step, leaves: Sequence[torch.Tensor]
) -> Sequence[torch.Tensor]:
    found = torch_while_loop(lambda *x: test(x), lambda *x: tuple(_own_all(step(x))), tuple(_own_all(leaves)))
    return _own_all(found)  # which lie, where gradients are recorded, at an unknown place among those of all steps


def scan(
    step: Callable[[Sequence[torch.Tensor], Sequence[torch.Tensor]], tuple[list[torch.Tensor], Any]],
    leaves: Sequence[torch.Tensor],
    xs: Sequence[torch.Tensor],
    length: int,
    reverse: bool,
) -> tuple[Sequence[torch.Tensor], Any]:
    # PyTorch wants something to carry, something to go over and something to give
    nothing = torch.zeros((), device=next((x.device for x in (*leaves, *xs)), None))
    parts = [nothing.expand(length), *xs]

    def counted(carry: list[torch.Tensor], parts: list[torch.Tensor]) -> tuple[list[torch.Tensor], Any]:
        new, y = step(carry[1:], parts[1:])
        return _own_all([carry[0], *new]), (carry[0].clone(), _given_out(y))

    carry, (_, ys) = torch_scan(counted, _own_all([nothing, *leaves]), parts, dim=0, reverse=reverse)
    return carry[1:], _taken_back(ys)
