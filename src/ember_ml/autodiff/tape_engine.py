"""The tape as an engine of gradients for backends that bring none; same functions as ``backend/<name>/gradients``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ember_ml.autodiff.recorder import Outline, Plan
from ember_ml.autodiff.reverse_pass import Slots, backpropagate, mark, propagate, sources_of
from ember_ml.autodiff.tape import Tape, make_leaves, tape_for
from ember_ml.backend.contract import Backend
from ember_ml.core.dtypes import as_dtype
from ember_ml.dispatch.declare import OPS
from ember_ml.tensor.var import Node, Var

__all__ = ["TapeEngine"]

_level: ContextVar[int] = ContextVar("ember_ml_tape_level", default=0)


class TapeEngine:
    """Gradients of functions of a backend's tensors, recorded on tapes."""

    def __init__(self, base: Backend) -> None:
        self.base = base

    @contextmanager
    def _recording(self) -> Iterator[Tape]:
        level = _level.get() + 1
        token = _level.set(level)
        try:
            yield tape_for(self.base, level)
        finally:
            _level.reset(token)

    def value_and_gradients(
        self, function: Callable[..., Any], leaves: Sequence[Any]
    ) -> tuple[Any, list[Any], list[Any]]:
        level = _level.get() + 1
        token = _level.set(level)  # a context manager would cost as much as recording an op
        try:
            tape = tape_for(self.base, level)
            variables = make_leaves(leaves, tape)
            value, rest = function(*variables)
        finally:
            _level.reset(token)
        rest = [_below(x, tape) for x in rest] if rest else rest
        if type(value) is not Var or value.tape is not tape or value.node is None:
            return _below(value, tape), rest, [_zeros_like(x) for x in leaves]
        one = _one_like(value.value, self.base)
        found = backpropagate([(value.node, value.index, one)], self.base, retain=False)
        return value.value, rest, _gradients_of(variables, found)

    def pullback(
        self, function: Callable[..., Any], leaves: Sequence[Any]
    ) -> tuple[list[Any], Callable[[Sequence[Any]], list[Any]]]:
        """The outputs of ``function`` and the function that takes their gradients back to the leaves."""
        with self._recording() as tape:
            variables = make_leaves(leaves, tape)
            outputs = function(*variables)

        def pull(gradients: Sequence[Any]) -> list[Any]:
            seeds = [
                (y.node, y.index, g)
                for y, g in zip(outputs, gradients, strict=True)
                if type(y) is Var and y.tape is tape and y.node is not None
            ]
            found = backpropagate(seeds, self.base)
            return _gradients_of(variables, found)

        return [_below(y, tape) for y in outputs], pull

    def pushforward(
        self, function: Callable[..., Any], leaves: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """The outputs and their derivatives along ``tangents``: the pullback is linear, and so is its own pullback."""
        outputs, pull = self.pullback(function, leaves)
        _, push = self.pullback(lambda *seeds: pull(seeds), [_zeros_like(y) for y in outputs])
        return outputs, push(tangents)

    def jacobian(self, function: Callable[..., Any], leaves: Sequence[Any]) -> list[list[Any]]:
        """For each output the derivatives with respect to each leaf, of shape output + leaf."""
        outputs, pull = self.pullback(function, leaves)
        found = []
        for place, output in enumerate(outputs):
            shape, size = tuple(output.shape), OPS["size"].function(output)
            basis = OPS["reshape"].function(OPS["eye"].function(size, dtype=as_dtype(output.dtype)), (size, *shape))
            rows = [
                pull([basis[index] if other == place else _zeros_like(y) for other, y in enumerate(outputs)])
                for index in range(size)
            ]
            found.append([_stacked([row[column] for row in rows], shape, x) for column, x in enumerate(leaves)])
        return found

    def vmap(
        self, function: Callable[..., Any], leaves: Sequence[Any], axes: Sequence[int | None], out_axis: int
    ) -> list[Any]:
        """One call per index: a library without transforms has no other way."""
        take, stack = OPS["take"].function, OPS["stack"].function
        size = next(x.shape[axis] for x, axis in zip(leaves, axes, strict=True) if axis is not None)
        if not size:  # called once, on zeros, to learn what it would give
            parts = function(*(_zero_slice(x, axis) for x, axis in zip(leaves, axes, strict=True)))
            return [_none_of(part, out_axis) for part in parts]
        calls = [
            function(*(x if axis is None else take(x, i, axis) for x, axis in zip(leaves, axes, strict=True)))
            for i in range(size)
        ]
        return [stack(list(parts), out_axis) for parts in zip(*calls, strict=True)]

    def checkpoint(self, function: Callable[..., Any], leaves: Sequence[Any], is_complete: bool) -> Sequence[Any]:
        """What ``function`` gives; its inner values are let go, and computed again when the gradient asks for them.

        What it was computed from is found in the record itself, so that values which the function closes over count,
        whether or not the leaves are complete.
        """
        start = mark()
        outputs = function(*leaves)
        recorded = [y for y in outputs if type(y) is Var and y.node is not None]
        if not recorded:
            return outputs
        tape = max((y.tape for y in recorded), key=lambda found: found.level)
        roots: list[Any] = [y.node for y in recorded if y.tape is tape]
        sources = sources_of(roots, start)
        plan = Plan([(_rerun, None, place) for place in range(len(sources))])
        node = Node(_CUSTOM, sources, len(outputs), plan, [function, leaves, sources, _level.get(), self.base])
        node.parts = self._outlines(outputs)
        return [_attached(y, tape, node, index) for index, y in enumerate(outputs)]

    def custom(self, function: Callable[..., Any], leaves: Sequence[Any]) -> Sequence[Any]:
        """The outputs of ``function``, which also gives its own pullback; what it closes over is constant to it."""
        recorded = [x for x in leaves if type(x) is Var]
        if not recorded:
            return [_unrecorded(y) for y in function(*leaves)[0]]
        tape = max((x.tape for x in recorded), key=lambda found: found.level)
        below = [_below(x, tape) for x in leaves]
        outputs, pull = self._custom_below(function, below)
        outputs = [_beneath(y, tape) for y in outputs]
        places = [place for place, x in enumerate(leaves) if type(x) is Var and x.tape is tape and x.node is not None]
        if not places:
            return [tape.constant(y) for y in outputs]
        parents = [(leaves[place].node, leaves[place].index, leaves[place].shape) for place in places]
        plan = Plan([(_pull, None, place) for place in places])
        node = Node(_CUSTOM, parents, len(outputs), plan, [pull, tape, _level.get()])
        node.parts = self._outlines(outputs)
        return [Var(y, tape, tape.constant(y).dtype, node, index) for index, y in enumerate(outputs)]

    def _outlines(self, outputs: Sequence[Any]) -> list[Outline]:
        return [Outline(tuple(y.shape), y.dtype if type(y) is Var else self.base.dtype_of(y)) for y in outputs]

    def _custom_below(self, function: Callable[..., Any], leaves: Sequence[Any]) -> tuple[Sequence[Any], Any]:
        """The outputs one floor below, where they may be recorded in turn, and the pullback there."""
        if not any(type(x) is Var for x in leaves):
            return function(*leaves)
        return self.custom(function, leaves), lambda gradients: function(*leaves)[1](gradients)


class _CustomOp:
    """Stands for the op in the node of a function that brings its own pullback."""

    name = "custom_gradient"
    is_holomorphic = False


_CUSTOM = _CustomOp()


@contextmanager
def _at_least(depth: int) -> Iterator[None]:
    """A block that is inside so many gradients: those taken in it are told from those that were taken around it."""
    token = _level.set(max(_level.get(), depth))
    try:
        yield
    finally:
        _level.reset(token)


def _pull(gradients: Any, pull: Any, tape: Tape, depth: int) -> Any:
    """The gradients that a caller's rule gives; those that it takes itself are inside all that it closes over."""
    with _at_least(depth):
        found = pull(gradients)
    if any(type(g) is Var and g.tape.level >= tape.level for g in gradients):  # a later gradient goes through this one
        return found
    return [_beneath(x, tape) for x in found]  # the rule may close over values of the tape


def _rerun(gradients: Any, function: Any, leaves: Any, sources: Any, depth: int, base: Backend) -> list[Any]:
    """The gradients of what a checkpointed function was computed from: it runs again, now recorded to its end."""
    start = mark()
    with _at_least(depth):
        outputs = function(*leaves)
    seeds = [
        (y.node, y.index, g)
        for y, g in zip(outputs, gradients, strict=True)
        if type(y) is Var and y.node is not None and y.node.order >= start
    ]
    found = propagate(seeds, start, False, base)
    return [found[node][index] if node in found else None for node, index, _ in sources]


def _attached(x: Any, tape: Tape, node: Node, index: int) -> Any:
    return Var(x.value, tape, x.dtype, node, index) if type(x) is Var and x.tape is tape and x.node else x


def _below(x: Any, tape: Tape) -> Any:
    """What ``x`` is outside of the tape."""
    return x.value if type(x) is Var and x.tape is tape else x


def _beneath(x: Any, tape: Tape) -> Any:
    """What ``x`` is below the tape and all those inside it."""
    while type(x) is Var and x.tape.level >= tape.level:
        x = x.value
    return x


def _unrecorded(x: Any) -> Any:
    """``x`` as a constant of the tape that it is on."""
    return Var(_unrecorded(x.value), x.tape, x.dtype) if type(x) is Var else x


def _zero_slice(x: Any, axis: int | None) -> Any:
    if axis is None:
        return x
    shape = list(x.shape)
    del shape[axis]
    return OPS["zeros"].function(tuple(shape), as_dtype(x.dtype))


def _none_of(part: Any, axis: int) -> Any:
    """No slices like ``part``, stacked."""
    shape = list(part.shape)
    shape.insert(axis % (len(shape) + 1), 0)
    return OPS["zeros"].function(tuple(shape), as_dtype(part.dtype))


def _one_like(x: Any, base: Backend) -> Any:
    """The number 1 like the number ``x``."""
    return OPS["ones_like"].function(x) if type(x) is Var else base.scalar(1.0, x.dtype, base.device_of(x))


def _zeros_like(x: Any) -> Any:
    return OPS["zeros_like"].function(x)


def _gradients_of(variables: Sequence[Any], found: Slots) -> list[Any]:
    return [found[x.node][0] if x.node in found else _zeros_like(x.value) for x in variables]


def _stacked(rows: list[Any], shape: tuple[int, ...], x: Any) -> Any:
    whole = (*shape, *x.shape)
    if not rows:
        return OPS["zeros"].function(whole, as_dtype(x.dtype))
    return OPS["reshape"].function(OPS["stack"].function(rows), whole)
