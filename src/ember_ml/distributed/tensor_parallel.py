"""Let each process of a group compute its part of the layers that a plan splits.

Between the split layers all processes of the group have equal tensors, and compute the same loss. So where a whole
tensor goes into split layers, its gradients are sums over the processes; where parts are summed or gathered, the
gradients are already whole.

Or they have parts of the sequence there, which are gathered before a column and summed and scattered behind a row: as
many bytes are moved, and what is computed and kept between the layers is split as well (Korthikanti et al., 2022). The
gradients of all parameters that are not cut are then sums over the processes.
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

    def __init__(
        self, shape: tuple[int, ...], cut: Cut | None, group: Group, flat: Any = None, is_summed: bool = False
    ) -> None:
        self.shape, self.size, self.cut, self._group = shape, prod(shape), cut, group
        self._flat = flat
        self.share = prod(local_shape(shape, cut, group)) if flat is None else flat.share
        self.is_local = False
        """Whether a layer that computes with a part reads now."""
        self.is_summed = is_summed
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
        if self.is_summed and self.cut is None:
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


class _Equal:
    """Between split layers all processes have equal tensors."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def compute_column(self, module: Module, inner: Callable[..., Any], x: Tensor) -> Tensor:
        return inner(_copy_in(x, self._group))

    def compute_row(self, x: Tensor, weight: Tensor) -> Tensor:
        return self.sum_parts(ops.linear(x, weight))

    def sum_parts(self, x: Tensor) -> Tensor:
        """Return the sum of the processes' tensors, of which each is used by all: its gradient is that of the sum."""

        def total(given: Tensor) -> tuple[Tensor, Callable[[Any], Any]]:
            return collectives.all_reduce(ops.stop_gradient(given), group=self._group), lambda gradient: gradient

        return _run(total, x)


class _AlongSequence:
    """Between split layers each process has its part of the positions, along the last axis but one.

    Nothing of the whole sequence is kept for the gradients but what lies between a column and a row: the input of a
    column is gathered again, and the sum behind a row needs no input.
    """

    def __init__(self, group: Group) -> None:
        self._group = group
        self._gathered: tuple[Any, Any] = None, None
        """The last part and the whole of it: queries, keys and values are computed from one."""

    def compute_column(self, module: Module, inner: Callable[..., Any], x: Tensor) -> Tensor:
        def multiply(part: Tensor, weight: Tensor) -> tuple[Tensor, Callable[[Any], Any]]:
            def pull(gradient: Any) -> Any:
                return self._scatter(ops.matmul(gradient, weight)), _gradient_of_weight(gradient, self._gather(part))

            return ops.linear(self._gather(part), weight), pull

        found = _run(multiply, x, module.weight)
        return found if module.bias is None else ops.add(found, module.bias)

    def compute_row(self, x: Tensor, weight: Tensor) -> Tensor:
        self._gathered = None, None

        def multiply(part: Tensor, weight: Tensor) -> tuple[Tensor, Callable[[Any], Any]]:
            def pull(gradient: Any) -> Any:
                whole = self._join(gradient)
                return ops.matmul(whole, weight), _gradient_of_weight(whole, part)

            return self._scatter(ops.linear(part, weight)), pull

        return _run(multiply, x, weight)

    def sum_parts(self, x: Tensor) -> Tensor:
        return _run(lambda given: (self._scatter(given), self._join), x)

    def _gather(self, x: Tensor) -> Tensor:
        if self._gathered[0] is not x:
            self._gathered = x, self._join(x)
        return self._gathered[1]

    def _join(self, x: Tensor) -> Tensor:
        parts = collectives.all_gather(ops.stop_gradient(ops.moveaxis(x, -2, 0)), self._group)
        return ops.moveaxis(parts, 0, -2)

    def _scatter(self, x: Tensor) -> Tensor:
        self._check_length(x)
        rows = ops.stop_gradient(ops.moveaxis(x, -2, 0))
        return ops.moveaxis(collectives.reduce_scatter(rows, group=self._group), 0, -2)

    def take(self, x: Tensor) -> Tensor:
        """Return this process's part of a tensor that all have."""
        return take_part(x, self._cut(x, self._check_length(x)), self._group)

    def join(self, x: Tensor) -> Tensor:
        """Return the whole of which each process has a part, and with which all compute the same."""
        return join_parts(x, self._cut(x, x.shape[-2] * self._group.size), self._group)

    def _cut(self, x: Tensor, length: int) -> Cut:
        return Cut(x.ndim - 2, (length,))

    def _check_length(self, x: Tensor) -> int:
        length = x.shape[-2]
        if length % self._group.size:
            raise ValueError(
                f"a sequence of {length} positions does not split into {self._group.size} equal parts: pad the "
                "sequences, or leave out splits_sequence"
            )
        return length


def _run(function: Callable[..., Any], *args: Tensor) -> Tensor:
    """Return what a function gives that gives its rule for gradients too."""
    return ops.custom_gradient(function)(*args) if any(map(is_recorded, args)) else function(*args)[0]


def _gradient_of_weight(gradient: Tensor, x: Tensor) -> Tensor:
    """Return the gradient of the weight of a linear map from that of its result and its input."""
    rows, inputs = (ops.reshape(y, (-1, y.shape[-1])) for y in (gradient, x))
    return ops.matmul(ops.matrix_transpose(rows), inputs)


def split_layers(
    model: Module, layout: Layout, splits: Mapping[int, MeshSplit], group: Group, splits_sequence: bool = False
) -> None:
    """Let the layers of ``layout`` compute with this process's part; ``splits`` are by the ``id`` of parameters."""
    between = _AlongSequence(group) if splits_sequence else _Equal(group)
    for path, module in model.named_modules():
        style = layout.styles.get(path)
        if style is not None and style != "whole":
            own = [splits[id(x)] for _, x in module.own_variables() if id(x) in splits]
            add_hook(module, "around", _Around(_WAYS[style], own, group, between))


class _Around:
    """The hook around a layer that is split."""

    def __init__(self, way: Callable[..., Any], splits: Sequence[MeshSplit], group: Group, between: Any) -> None:
        self._way, self._splits, self._group, self._between = way, splits, group, between

    def __call__(self, module: Module, inner: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._way(self, module, inner, *args, **kwargs)

    @contextmanager
    def reading(self, attribute: str) -> Iterator[None]:
        """A block in which the layer's parameters are read in its way."""
        before = [getattr(split, attribute) for split in self._splits]
        for split in self._splits:
            setattr(split, attribute, True)
        try:
            yield
        finally:
            for split, value in zip(self._splits, before, strict=True):
                setattr(split, attribute, value)

    def compute_column(self, module: Module, inner: Callable[..., Any], x: Any) -> Any:
        with self.reading("is_local"):
            return self._between.compute_column(module, inner, ops.asarray(x))

    def compute_gathered(self, module: Module, inner: Callable[..., Any], x: Any) -> Any:
        part = self.compute_column(module, inner, x)
        axis = part.ndim - 1
        return join_parts(part, Cut(axis, (part.shape[axis] * self._group.size,)), self._group)

    def compute_row(self, module: Module, inner: Callable[..., Any], x: Any) -> Any:
        # without the bias, which is added once
        with self.reading("is_local"):
            found = self._between.compute_row(ops.asarray(x), module.weight)
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
        return self._between.sum_parts(ops.where(ops.expand_dims(is_here, -1), found, 0.0))

    def compute_summed(self, module: Module, inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with self.reading("is_summed"):
            return inner(*args, **kwargs)

    def compute_sequence(self, module: Module, inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._between.take(inner(*args, **kwargs))

    def compute_sequence_gathered(self, module: Module, inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._between.join(inner(*args, **kwargs))


_WAYS: dict[str, Callable[..., Any]] = {
    "column": _Around.compute_column,
    "column, gathered": _Around.compute_gathered,
    "row": _Around.compute_row,
    "vocabulary": _Around.compute_vocabulary,
    "summed": _Around.compute_summed,
    "sequence": _Around.compute_sequence,
    "sequence, gathered": _Around.compute_sequence_gathered,
}
