"""Let each process of a group compute its part of the layers that a plan splits.

Between the split layers all processes of the group have equal tensors, and compute the same loss. So where a whole
tensor goes into split layers, its gradients are sums over the processes; where parts are summed or gathered, the
gradients are already whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

from ember_ml import ops
from ember_ml.backend.processes.group import Group
from ember_ml.backend.tensor_pieces import Region
from ember_ml.distributed import collectives
from ember_ml.distributed.pieces import Piece, vector_piece
from ember_ml.distributed.tensor_plan import Cut, Layout
from ember_ml.nn.modules.hooks import add_hook, is_recorded
from ember_ml.nn.modules.module import Module
from ember_ml.typing import Tensor

__all__ = ["MeshSplit", "local_shape", "split_layers"]


class MeshSplit:
    """How a parameter is split over a mesh: cut over ``tensor``, and what is left as a vector over ``shard``.

    The parameter is read as a whole, which gathers it, but for the layer that computes with this process's part.
    """

    cut: Cut | None
    shape: tuple[int, ...]
    size: int
    share: int
    """The number of elements that this process has."""

    def __init__(self, shape: tuple[int, ...], cut: Cut | None, group: Group, flat: Any = None) -> None:
        self.shape, self.size, self.cut, self._group = shape, prod(shape), cut, group
        self._flat = flat
        self.share = prod(local_shape(shape, cut, group)) if flat is None else flat.share
        self.is_local = False
        """Whether a layer that computes with a part reads now."""
        self.is_summed = False
        """Whether the layer that reads now computes a part of the gradient."""

    def belong_to(self, parameter: Any) -> None:
        """Let ``parameter`` be gathered with its neighbours."""
        if self._flat is not None:
            self._flat.belong_to(parameter)

    def part_of(self, whole: Tensor) -> Tensor:
        """Copy this process's part of a whole parameter."""
        local = whole if self.cut is None else take_part(whole, self.cut, self._group)
        return ops.copy(local) if self._flat is None else self._flat.part_of(local)

    def whole_of(self, part: Tensor) -> Tensor:
        """Return what is read of the parameter now."""
        local = part if self._flat is None else self._flat.whole_of(part)
        if self.is_summed:
            return _copy_in(local, self._group)
        return local if self.cut is None or self.is_local else join_parts(local, self.cut, self._group)

    def piece_of(self, part: Tensor) -> Piece:
        """Return a tensor of this process, of the parameter or of the optimizer's state, and where it lies."""
        start, count = (0, self.share) if self._flat is None else self._flat.span()
        if self.cut is None:
            return vector_piece(ops.reshape(part, (-1,)), self.shape, (start, count))
        bounds = tuple(self.cut.bounds(self._group.rank, self._group.size))
        return Piece(ops.reshape(part, (-1,))[:count], Region(self.shape, self.cut.axis, bounds, start))

    def gather_whole(self, part: Tensor) -> Tensor:
        """Return a whole tensor of the parameter's shape, as of the optimizer's state, from the parts of it."""
        local = part if self._flat is None else self._flat.gather_whole(part)
        return local if self.cut is None else join_parts(local, self.cut, self._group)


def local_shape(shape: tuple[int, ...], cut: Cut | None, group: Group) -> tuple[int, ...]:
    """Return the shape of this process's part of a tensor."""
    if cut is None:
        return shape
    return (*shape[: cut.axis], shape[cut.axis] // group.size, *shape[cut.axis + 1 :])


def take_part(whole: Tensor, cut: Cut, group: Group) -> Tensor:
    """Return this process's part of a tensor."""
    before = (slice(None),) * cut.axis
    pieces = [ops.get_item(whole, (*before, slice(*ends))) for ends in cut.bounds(group.rank, group.size)]
    return pieces[0] if len(pieces) == 1 else ops.concatenate(pieces, cut.axis)


def join_parts(part: Tensor, cut: Cut, group: Group) -> Tensor:
    """Return the whole tensor of which each process has a part; the gradient of a part is that part of the gradient."""

    def join(given: Tensor) -> Tensor:
        rows = ops.moveaxis(given, cut.axis, 0)
        length = rows.shape[0]
        gathered = collectives.all_gather(ops.stop_gradient(rows), group)
        pieces, start = [], 0
        for section in cut.sections:  # those of one section, of all processes
            share = section // group.size
            pieces += [gathered[length * rank + start : length * rank + start + share] for rank in range(group.size)]
            start += share
        whole = gathered if len(cut.sections) == 1 else ops.concatenate(pieces, 0)
        return ops.moveaxis(whole, 0, cut.axis)

    if not is_recorded(part):
        return join(part)
    return ops.custom_gradient(lambda given: (join(given), lambda gradient: take_part(gradient, cut, group)))(part)


def _copy_in(x: Tensor, group: Group) -> Tensor:
    """Return ``x``, with which each process computes another part: its gradient is the sum of theirs."""
    if not is_recorded(x):
        return x
    return ops.custom_gradient(lambda given: (given, lambda gradient: collectives.all_reduce(gradient, group=group)))(x)


def _sum_parts(x: Tensor, group: Group) -> Tensor:
    """Return the sum of the processes' tensors, of which each is used by all: its gradient is that of the sum."""
    if not is_recorded(x):
        return collectives.all_reduce(x, group=group)

    def forward(given: Tensor) -> tuple[Tensor, Callable[[Any], Any]]:
        return collectives.all_reduce(ops.stop_gradient(given), group=group), lambda gradient: gradient

    return ops.custom_gradient(forward)(x)


def split_layers(model: Module, layout: Layout, splits: Mapping[int, MeshSplit], group: Group) -> None:
    """Let the layers of ``layout`` compute with this process's part; ``splits`` are by the ``id`` of parameters."""
    for path, module in model.named_modules():
        style = layout.styles.get(path)
        if style is not None:
            own = [splits[id(x)] for _, x in module.own_variables() if id(x) in splits]
            add_hook(module, "around", _Around(_WAYS[style], own, group))


class _Around:
    """The hook around a layer that is split."""

    def __init__(self, way: Callable[..., Any], splits: Sequence[MeshSplit], group: Group) -> None:
        self._way, self._splits, self._group = way, splits, group

    def __call__(self, module: Module, inner: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._way(self, module, inner, *args, **kwargs)

    @contextmanager
    def reading(self, attribute: str) -> Iterator[None]:
        """A block in which the layer's parameters are read in its way."""
        for split in self._splits:
            setattr(split, attribute, True)
        try:
            yield
        finally:
            for split in self._splits:
                setattr(split, attribute, False)

    def compute_column(self, module: Module, inner: Callable[..., Any], x: Any) -> Any:
        with self.reading("is_local"):
            return inner(_copy_in(ops.asarray(x), self._group))

    def compute_gathered(self, module: Module, inner: Callable[..., Any], x: Any) -> Any:
        part = self.compute_column(module, inner, x)
        axis = part.ndim - 1
        return join_parts(part, Cut(axis, (part.shape[axis] * self._group.size,)), self._group)

    def compute_row(self, module: Module, inner: Callable[..., Any], x: Any) -> Any:
        # without the bias, which is added once
        with self.reading("is_local"):
            part = ops.linear(x, module.weight)
        found = _sum_parts(part, self._group)
        return found if module.bias is None else ops.add(found, module.bias)

    def compute_vocabulary(self, module: Module, inner: Callable[..., Any], indices: Any) -> Any:
        rows = module.variable("weight").shape[0]
        share = rows // self._group.size
        wanted = ops.asarray(indices)
        wanted = ops.where(ops.less(wanted, 0), ops.add(wanted, rows), wanted)
        local = ops.subtract(wanted, share * self._group.rank)
        is_here = ops.logical_and(ops.greater_equal(local, 0), ops.less(local, share))
        is_known = ops.logical_and(ops.greater_equal(wanted, 0), ops.less(wanted, rows))
        with self.reading("is_local"):
            # what is not in the table is not in a part either, so that the same error is raised
            found = inner(ops.where(is_known, ops.where(is_here, local, 0), ops.add(wanted, rows)))
        return _sum_parts(ops.where(ops.expand_dims(is_here, -1), found, 0.0), self._group)

    def compute_summed(self, module: Module, inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with self.reading("is_summed"):
            return inner(*args, **kwargs)


_WAYS: dict[str, Callable[..., Any]] = {
    "column": _Around.compute_column,
    "column, gathered": _Around.compute_gathered,
    "row": _Around.compute_row,
    "vocabulary": _Around.compute_vocabulary,
    "summed": _Around.compute_summed,
}
