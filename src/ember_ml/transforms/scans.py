"""Apply functions along the first dimension of tensors: scan, map, vectorized_map, associative_scan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ember_ml import ops
from ember_ml.backend.contract import Backend
from ember_ml.backend.selection import active
from ember_ml.core.trees import flatten, map_tree
from ember_ml.dispatch.declare import plain
from ember_ml.errors import UnsupportedOp
from ember_ml.transforms.loop_state import (
    LoopState,
    Tree,
    device_of,
    is_portable,
    to_tensor,
    traced_control_flow,
    wrap_portable,
)

__all__ = ["associative_scan", "map", "scan", "vectorized_map"]


class _Slices:
    """The slices of the tensors in a tree along their common first dimension."""

    __slots__ = ("backend", "device", "leaves", "length", "portable", "structure")

    def __init__(self, op: str, tree: Tree, length: int | None, backend: Backend, portable: bool) -> None:
        leaves, self.structure = flatten(tree)
        self.device = device_of(leaves, backend)
        self.leaves = [to_tensor(leaf, backend, None, self.device) for leaf in leaves]
        self.backend, self.portable = backend, portable
        if any(leaf.ndim == 0 for leaf in self.leaves):
            raise ValueError(f"ops.{op} goes over the first dimension, and one of the tensors has none")
        lengths = [leaf.shape[0] for leaf in self.leaves]
        if length is not None:
            lengths.insert(0, length)
        if not lengths:
            raise ValueError(f"ops.{op} needs tensors to go over{', or length' if op == 'scan' else ''}")
        if lengths[0] < 0:
            raise ValueError(f"ops.{op} goes over a length of 0 or more, not {length}")
        if any(other != lengths[0] for other in lengths):
            raise ValueError(
                f"ops.{op} goes over dimensions of one length, not of {', '.join(str(n) for n in lengths)}"
            )
        self.length = lengths[0]

    def tree(self, leaves: Sequence[Any]) -> Tree:
        return self.structure([wrap_portable(x, self.backend) for x in leaves] if self.portable else leaves)

    def each(self, reverse: bool = False) -> Iterator[Tree]:
        """Return the slices one by one: a length without tensors needs no memory, however large it is."""
        columns = [ops.unstack(leaf) for leaf in self.leaves]
        places = range(self.length)
        return (self.tree([column[i] for column in columns]) for i in (reversed(places) if reverse else places))

    def zeros(self) -> Tree:
        """Return a slice of zeros, to learn the outputs of a function where there are no slices."""
        return self.tree([ops.zeros(tuple(x.shape)[1:], dtype=x.dtype, device=self.device) for x in self.leaves])


def _check_pair(result: Any) -> Any:
    if type(result) in (tuple, list) and len(result) == 2:
        return result
    raise TypeError(f"ops.scan: the function must give a pair of the carried value and an output, not {result!r}")


@plain
def scan(
    f: Callable[[Tree, Tree], tuple[Tree, Tree]],
    init: Tree,
    xs: Tree = None,
    length: int | None = None,
    reverse: bool = False,
) -> Any:
    """The last carried value, and the outputs stacked, of ``carry, y = f(carry, x)`` over the slices ``x`` of ``xs``.

    ``carry`` begins as ``init`` and keeps its structure, dtypes and shapes. Without ``xs``, ``f`` gets None and is
    called ``length`` times. With ``reverse`` the slices are taken from the last to the first, and the outputs lie in
    the places of their slices. Where there is nothing to go over, ``f`` is called once on zeros, to learn the shapes of
    the empty outputs. A function that PyTorch compiles holds one loop; one that MLX compiles holds every step.

    >>> from ember_ml import ops
    >>> total, sums = ops.scan(lambda carry, x: (carry + x, carry + x), 0.0, ops.array([1.0, 2.0, 4.0]))
    >>> ops.item(total), ops.to_numpy(sums).tolist()
    (7.0, [1.0, 3.0, 7.0])
    """
    backend = active()
    portable = is_portable(init, xs)
    slices = _Slices("scan", xs, length, backend, portable)
    device = device_of((xs, init), backend)
    carried = LoopState("scan", "carried value", init, backend, portable, device)
    if slices.length == 0:
        return carried.tree(carried.leaves), _make_empty(
            "scan", _check_pair(f(carried.tree(carried.leaves), slices.zeros()))[1], slices
        )
    form = traced_control_flow(backend)
    if form is not None:

        def step(leaves: Sequence[Any], parts: Sequence[Any]) -> tuple[list[Any], Tree]:
            carry, y = _check_pair(f(carried.tree(leaves), slices.tree(parts)))
            return carried.keep(carry), map_tree(lambda leaf: to_tensor(leaf, backend, None, device), y)

        leaves, ys = form.scan(step, carried.leaves, slices.leaves, slices.length, reverse)
        return carried.tree(leaves), map_tree(lambda x: wrap_portable(x, backend), ys) if portable else ys
    leaves, outputs = carried.leaves, _Outputs("scan", slices)
    for x in slices.each(reverse):
        carry, y = _check_pair(f(carried.tree(leaves), x))
        leaves = carried.keep(carry)
        outputs.add(y)
    return carried.tree(leaves), outputs.stack_results(reverse)


class _Outputs:
    """The outputs of a function for all slices: trees of the same structure, dtypes and shapes."""

    __slots__ = ("op", "rows", "shared", "slices")

    def __init__(self, op: str, slices: _Slices) -> None:
        self.op, self.slices, self.shared, self.rows = op, slices, None, []

    def add(self, tree: Tree) -> None:
        if self.shared is None:
            slices = self.slices
            self.shared = LoopState(self.op, "output", tree, slices.backend, slices.portable, slices.device)
            self.rows.append(self.shared.leaves)
        else:
            self.rows.append(self.shared.keep(tree))

    def stack_results(self, reverse: bool = False) -> Tree:
        assert self.shared is not None
        rows = self.rows[::-1] if reverse else self.rows
        return self.shared.tree([ops.stack(column) for column in zip(*rows, strict=True)])


def _make_empty(op: str, output: Tree, slices: _Slices) -> Tree:
    """Return an empty stack of outputs like ``output``."""
    like = LoopState(op, "output", output, slices.backend, slices.portable, slices.device)
    return like.tree([ops.zeros((0, *x.shape), dtype=x.dtype, device=like.device) for x in like.leaves])


@plain
def map(f: Callable[[Tree], Tree], xs: Tree) -> Any:
    """The outputs of ``f`` for each slice of ``xs`` along the first dimension, one slice after the other, stacked.

    ``f`` gives the same structure, dtypes and shapes for every slice. :func:`vectorized_map` is faster where memory
    allows it.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.map(ops.sum, ops.array([[1.0, 2.0], [3.0, 4.0]]))).tolist()
    [3.0, 7.0]
    """
    backend = active()
    slices = _Slices("map", xs, None, backend, is_portable(xs))
    if slices.length == 0:
        return _make_empty("map", f(slices.zeros()), slices)
    if traced_control_flow(backend) is not None:
        return scan(lambda carry, x: (carry, f(x)), None, xs)[1]
    outputs = _Outputs("map", slices)
    for x in slices.each():
        outputs.add(f(x))
    return outputs.stack_results()


@plain
def vectorized_map(function: Callable[[Tree], Tree], elements: Tree) -> Any:
    """The outputs of ``function`` for each slice of ``elements`` along the first dimension, all at once, stacked.

    The same as :func:`map`, computed by the vectorizing transform of PyTorch or MLX; on NumPy by a loop. The function
    must not depend on values in its control flow, except through :func:`cond` and :func:`switch`.

    >>> from ember_ml import ops
    >>> x = {"v": ops.array([[1.0, 2.0], [3.0, 4.0]]), "w": ops.array([2.0, 3.0])}
    >>> ops.to_numpy(ops.vectorized_map(lambda x: ops.sum(x["v"]) * x["w"], x)).tolist()
    [6.0, 21.0]
    """
    slices = _Slices("vectorized_map", elements, None, active(), is_portable(elements))
    if slices.length == 0:
        return _make_empty("vectorized_map", function(slices.zeros()), slices)
    try:
        return ops.vmap(function)(slices.tree(slices.leaves))
    except (RuntimeError, ValueError) as error:
        if "vmap" not in str(error):
            raise
        raise UnsupportedOp(f"{slices.backend.name} cannot vectorize this function ({error}); use ops.map") from error


@plain
def associative_scan(f: Callable[[Tree, Tree], Tree], elems: Tree, reverse: bool = False, axis: int = 0) -> Any:
    """The running results of an associative function along ``axis``: ``a, f(a, b), f(f(a, b), c), ...``.

    ``f`` takes two trees like ``elems``, of any length along ``axis``, and combines them element by element; it must
    not matter how the calls are nested, since they are, in about twice the logarithm of the length. With ``reverse``
    the results run from the end to the front.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.associative_scan(ops.multiply, ops.array([1, 2, 3, 4]))).tolist()
    [1, 2, 6, 24]
    >>> ops.to_numpy(ops.associative_scan(ops.maximum, ops.array([3, 1, 2]), reverse=True)).tolist()
    [3, 2, 2]
    """
    backend = active()
    whole = LoopState("associative_scan", "result", elems, backend, is_portable(elems))
    if any(not -leaf.ndim <= axis < leaf.ndim for leaf in whole.leaves):
        raise IndexError(f"ops.associative_scan: axis {axis} is out of range for one of the tensors")
    axes = [axis % leaf.ndim for leaf in whole.leaves]
    lengths = {leaf.shape[place] for leaf, place in zip(whole.leaves, axes, strict=True)}
    if len(lengths) != 1:
        raise ValueError(f"ops.associative_scan goes along dimensions of one length, not of {sorted(lengths)}")

    def part(leaves: Sequence[Any], start: int | None, stop: int | None, step: int = 1) -> list[Any]:
        """Return every ``step``-th element along the axis."""
        keys = [(slice(None),) * place + (slice(start, stop, step),) for place in axes]
        return [ops.get_item(leaf, key) for leaf, key in zip(leaves, keys, strict=True)]

    def combine(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
        expected = LoopState("associative_scan", "result", whole.structure(second), backend, whole.portable)
        return expected.keep(f(whole.tree(first), whole.tree(second)))

    def running(leaves: Sequence[Any], length: int) -> Sequence[Any]:
        if length < 2:
            return leaves
        pairs = combine(part(leaves, 0, length - 1, 2), part(leaves, 1, length, 2))
        odd = running(pairs, length // 2)
        even = part(leaves, 0, 1)
        if length > 2:
            later = combine(part(odd, 0, (length - 1) // 2), part(leaves, 2, length, 2))
            even = [ops.concatenate([x, y], axis=place) for x, y, place in zip(even, later, axes, strict=True)]
        return [_interleave(x, y, place) for x, y, place in zip(even, odd, axes, strict=True)]

    leaves: Sequence[Any] = whole.leaves
    if reverse:
        leaves = [ops.flip(leaf, place) for leaf, place in zip(leaves, axes, strict=True)]
    leaves = running(leaves, lengths.pop())
    if reverse:
        leaves = [ops.flip(leaf, place) for leaf, place in zip(leaves, axes, strict=True)]
    return whole.tree(leaves)


def _interleave(even: Any, odd: Any, axis: int) -> Any:
    """Return the elements of both in turn; ``even`` has as many as ``odd``, or one more."""
    shape = list(odd.shape)
    front = (slice(None),) * axis
    both = ops.stack([ops.get_item(even, (*front, slice(0, shape[axis]))), odd], axis=axis + 1)
    shape[axis] *= 2
    both = ops.reshape(both, shape)
    if even.shape[axis] == odd.shape[axis]:
        return both
    return ops.concatenate([both, ops.get_item(even, (*front, slice(-1, None)))], axis=axis)
