"""Gradients that go back through what a tape recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any

from ember_ml.autodiff.recorder import Outline
from ember_ml.backend import selection
from ember_ml.backend.contract import Backend
from ember_ml.core.dtypes import as_dtype
from ember_ml.dispatch.autocast import autocast
from ember_ml.dispatch.declare import OPS
from ember_ml.tensor.var import Node, next_order

__all__ = ["Slots", "backpropagate", "conjugated", "mark", "propagate", "sources_of", "unbroadcast"]

Slots = dict[Node, list[Any]]
"""For each node the gradients of its outputs."""


def backpropagate(seeds: Sequence[tuple[Node, int, Any]], base: Backend, retain: bool = True) -> Slots:
    """The gradients that reach each leaf, of the outputs named by (node, index, gradient), computed on ``base``.

    Without ``retain`` the tape is used up: what each call kept is let go as soon as it was used.
    """
    if selection.is_active(base) and selection.half_here() is None:
        return propagate(seeds, 0, retain, base)
    with selection.use_backend(base.name), autocast(None):
        return propagate(seeds, 0, retain, base)


def propagate(seeds: Sequence[tuple[Node, int, Any]], until: int, retain: bool, base: Backend) -> Slots:
    """The gradients that reach each leaf, and each node recorded before ``until``, at which it stops."""
    accumulate = base.tape_kernels.accumulate if base.tape_kernels is not None else None
    native = base.tensor_type
    pending: Slots = {}
    reached: Slots = {}
    waiting: list[tuple[int, Node]] = []  # the nodes of ``pending``, the one that was recorded last before all others
    sums: set[tuple[Node, int]] = set()  # the gradients that were added up here, in memory that nobody else knows
    parents: Any = seeds
    found: Any = [gradient for _, _, gradient in seeds]
    while True:
        for parent, gradient in zip(parents, found, strict=True):
            if gradient is None:
                continue
            node, index, _ = parent
            is_end = node.op is None or node.order < until
            known = reached if is_end else pending
            slots = known.get(node)
            if slots is None:
                if node.outputs == 1:
                    known[node] = [gradient]
                else:
                    slots = known[node] = [None] * node.outputs
                    slots[index] = gradient
                if not is_end:
                    heappush(waiting, (-node.order, node))
            elif slots[index] is None:
                slots[index] = gradient
            elif accumulate and (node, index) in sums and type(slots[index]) is native is type(gradient):
                slots[index] = accumulate(slots[index], gradient)
            else:
                slots[index] = OPS["add"].function(slots[index], gradient)
                sums.add((node, index))
        if not waiting:
            return reached
        node = heappop(waiting)[1]
        slots = pending.pop(node)
        parents = node.parents
        if parents is None:
            raise RuntimeError("this part of the graph was differentiated already and let go; compute it again")
        plan = node.plan
        found = NotImplemented
        if plan.vjp is not None and type(slots[0]) is plan.native:
            found = plan.vjp(slots[0], parents, *node.residuals[: plan.vjp_reads])
        if found is NotImplemented:
            found = _by_rules(node, slots)
        if not retain:
            node.residuals = node.parents = None


def _by_rules(node: Node, gradients: list[Any]) -> list[Any]:
    """The gradients of the parents, by the rules beside the op, which leave undoing a broadcast to this function."""
    plan, residuals = node.plan, node.residuals
    if plan.shapes:
        residuals = list(residuals)
        for index in plan.shapes:
            if isinstance(residuals[index], tuple):
                residuals[index] = Outline(tuple(residuals[index]), node.dtype)  # type: ignore[arg-type]
    gradient = gradients[0]
    if node.parts is not None:
        gradient = [_zeros_of(part) if g is None else g for g, part in zip(gradients, node.parts, strict=True)]
    if node.is_complex and node.op.is_holomorphic:
        # the derivative of a holomorphic function at the conjugate is the conjugate of its derivative
        residuals = conjugated(residuals)
    shared: Any = None  # a rule for a list of tensors returns all their gradients in one call
    found: list[Any] = []
    for parent, (rule, reads, place) in zip(node.parents, plan.rules, strict=True):
        if parent is None:
            found.append(None)
            continue
        if place is None:
            own = rule(gradient, *(residuals if reads is None else [residuals[index] for index in reads]))
        else:
            if shared is None or shared[0] is not rule:
                read = residuals if reads is None else [residuals[index] for index in reads]
                shared = rule, rule(gradient, *read)
            own = shared[1][place]
        is_repeated = own is not None and own.shape != parent[2]
        found.append(unbroadcast(own, tuple(parent[2])) if is_repeated else own)
    return found


def mark() -> int:
    """A place in the order of recording: nodes made from now on come after it."""
    return next_order()


def _all_below(roots: Iterable[Node], until: int) -> list[Node]:
    """Every node below the roots, in the order of recording, and no further than those recorded before ``until``."""
    seen: set[Node] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            if node.order >= until:
                stack.extend([parent[0] for parent in node.parents or () if parent is not None])
    return sorted(seen, key=_order_of, reverse=True)


_order_of = attrgetter("order")


def sources_of(roots: Iterable[Node], until: int) -> list[tuple[Node, int, tuple[int, ...]]]:
    """The outputs of nodes recorded before ``until`` from which the roots were computed: node, index and shape."""
    found: dict[tuple[Node, int], tuple[int, ...]] = {}
    for node in _all_below(roots, until):
        if node.order >= until:
            before = [parent for parent in node.parents if parent is not None and parent[0].order < until]
            found.update({(parent, index): shape for parent, index, shape in before})
    return [(node, index, shape) for (node, index), shape in found.items()]


def conjugated(x: Any) -> Any:
    """Tensors, in lists and tuples too, with their complex numbers conjugated."""
    if isinstance(x, Outline):
        return x
    if isinstance(x, list | tuple):
        parts = [conjugated(item) for item in x]
        return tuple(parts) if type(x) is tuple else parts  # the key of an element is a tuple
    is_complex = hasattr(x, "dtype") and as_dtype(x.dtype).kind == "complex"
    return OPS["conj"].function(x) if is_complex else x


def _zeros_of(part: Any) -> Any:
    return OPS["zeros"].function(part.shape, part.dtype)


def unbroadcast(gradient: Any, shape: tuple[int, ...]) -> Any:
    """The gradient of what was broadcast: summed over the axes along which it was repeated."""
    extra = len(gradient.shape) - len(shape)
    if extra == 1 and gradient.shape[1:] == shape:  # a bias that was added to rows
        return OPS["sum"].function(gradient, 0)
    axes = tuple(
        axis for axis, length in enumerate(gradient.shape) if axis < extra or (shape[axis - extra] == 1 and length != 1)
    )
    summed = OPS["sum"].function(gradient, axes[0] if len(axes) == 1 else axes) if axes else gradient
    return summed if tuple(summed.shape) == shape else OPS["reshape"].function(summed, shape)
