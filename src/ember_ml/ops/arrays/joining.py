"""Joining tensors, splitting them, and making them longer by repeating or padding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.shapes import pad_pairs, sections
from ember_ml.dispatch.declare import derived, gradient, primitive, views
from ember_ml.dispatch.dtype_rules import SAME
from ember_ml.ops.arrays.gradient_rules import helpers
from ember_ml.ops.arrays.shape import reshape
from ember_ml.tensor.in_place import RULES, link_view
from ember_ml.typing import Tensor, TensorLike, ValueLike

__all__ = [
    "append",
    "array_split",
    "column_stack",
    "concat",
    "concatenate",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "pad",
    "repeat",
    "split",
    "stack",
    "tile",
    "unstack",
    "vsplit",
    "vstack",
]

_PARTS = SAME.giving("own")  # the results are tuples


@primitive(SAME, "concat")
def concatenate(x: Sequence[TensorLike], axis: int | None = 0) -> Tensor:
    """The tensors one after the other along an axis that they have; with ``axis=None``, all their elements as a vector.

    Their dtypes are promoted. Shapes that differ elsewhere raise ``ValueError``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.concatenate([ops.array([1, 2]), ops.array([3])])).tolist()
    [1, 2, 3]
    """
    ...


gradient(concatenate, x=lambda g, _x, axis: _split_gradient(g, [part.shape for part in _x], axis))


@primitive(SAME)
def stack(x: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """The tensors, all of one shape, one after the other along a new axis.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.stack([ops.array([1, 2]), ops.array([3, 4])], axis=1)).tolist()
    [[1, 3], [2, 4]]
    """
    ...


gradient(stack, x=lambda g, axis: unstack(g, axis))


@primitive(_PARTS)
def unstack(x: TensorLike, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts of ``x`` along ``axis``, without that axis.

    >>> from ember_ml import ops
    >>> [ops.to_numpy(part).tolist() for part in ops.unstack([[1, 2], [3, 4]], axis=1)]
    [[1, 3], [2, 4]]
    """
    ...


gradient(unstack, x=lambda g, axis: stack(g, axis))


def _link_parts(x: Any, axis: int, items: Sequence[Any], result: Sequence[Any]) -> None:
    """Link the parts of ``x`` that ``items``, indices or slices, select along an axis."""
    whole = (slice(None),) * (axis % len(x.shape))
    for item, part in zip(items, result, strict=True):
        link_view(x, RULES["get_item"], ((*whole, item),), part)


def _link_sections(args: tuple[Any, ...], result: Sequence[Any], axis: int | None = None) -> None:
    x, along = args[0], args[2] if axis is None else axis
    if type(x) is type(result[0]):
        _link_parts(x, along, sections(args[1], x.shape[along], False), result)


def _link_stacked(args: tuple[Any, ...], result: Sequence[Any]) -> None:
    if result:
        _link_parts(args[0], args[1], range(len(result)), result)


views(unstack, _link_stacked)


@derived(SAME)
def vstack(x: Sequence[TensorLike]) -> Tensor:
    """The tensors below each other: joined along the first axis, vectors as rows.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.vstack([ops.array([1, 2]), ops.array([3, 4])])).tolist()
    [[1, 2], [3, 4]]
    """
    return concatenate([reshape(part, _at_least_2d(part.shape)) for part in x], 0)


@derived(SAME)
def hstack(x: Sequence[TensorLike]) -> Tensor:
    """The tensors beside each other: joined along the second axis, vectors along their only one.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.hstack([ops.array([[1], [2]]), ops.array([[3], [4]])])).tolist()
    [[1, 3], [2, 4]]
    """
    parts = [part if part.shape else reshape(part, (1,)) for part in x]
    return concatenate(parts, 1 if parts and len(parts[0].shape) > 1 else 0)


@derived(SAME)
def dstack(x: Sequence[TensorLike]) -> Tensor:
    """The tensors behind each other: joined along the third axis, vectors as rows of a matrix.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.dstack([ops.array([1, 2]), ops.array([3, 4])])).tolist()
    [[[1, 3], [2, 4]]]
    """
    return concatenate([reshape(part, (*_at_least_2d(part.shape), 1)[: max(3, len(part.shape))]) for part in x], 2)


@derived(SAME)
def column_stack(x: Sequence[TensorLike]) -> Tensor:
    """The tensors as columns beside each other: vectors as columns, matrices as they are.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.column_stack([ops.array([1, 2]), ops.array([3, 4])])).tolist()
    [[1, 3], [2, 4]]
    """
    columns = [part if len(part.shape) > 1 else reshape(part, (part.shape[0] if part.shape else 1, 1)) for part in x]
    return concatenate(columns, 1)


def _at_least_2d(shape: Sequence[int]) -> tuple[int, ...]:
    return (*(1,) * (2 - len(shape)), *shape)


@primitive(_PARTS)
def split(x: TensorLike, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """The parts of ``x`` along ``axis``, as a list: a number of equal ones, or those between the positions given.

    A number of parts that does not divide the length raises ``ValueError``; :func:`array_split` takes it.

    >>> from ember_ml import ops
    >>> [ops.to_numpy(part).tolist() for part in ops.split([1, 2, 3, 4], 2)]
    [[1, 2], [3, 4]]
    >>> [ops.to_numpy(part).tolist() for part in ops.split([1, 2, 3, 4], [1, 3])]
    [[1], [2, 3], [4]]
    """
    ...


gradient(split, x=lambda g, axis: concatenate(g, axis))
views(split, _link_sections)


@primitive(_PARTS)
def array_split(x: TensorLike, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """:func:`split`, where a number of parts need not divide the length: the first parts are then one longer.

    >>> from ember_ml import ops
    >>> [ops.to_numpy(part).tolist() for part in ops.array_split([1, 2, 3, 4, 5], 2)]
    [[1, 2, 3], [4, 5]]
    """
    ...


gradient(array_split, x=lambda g, axis: concatenate(g, axis))
views(array_split, _link_sections)


@derived(_PARTS)
def vsplit(x: TensorLike, indices_or_sections: Any) -> list[Tensor]:
    """The parts of ``x``, of at least two dimensions, along its first axis; see :func:`split`.

    >>> from ember_ml import ops
    >>> [ops.to_numpy(part).tolist() for part in ops.vsplit([[1, 2], [3, 4]], 2)]
    [[[1, 2]], [[3, 4]]]
    """
    return split(_with_dimensions(x, 2), indices_or_sections, 0)


views(vsplit, lambda args, result: _link_sections(args, result, 0))


@derived(_PARTS)
def hsplit(x: TensorLike, indices_or_sections: Any) -> list[Tensor]:
    """The parts of ``x`` along its second axis, of a vector along its only one; see :func:`split`.

    >>> from ember_ml import ops
    >>> [ops.to_numpy(part).tolist() for part in ops.hsplit([[1, 2], [3, 4]], 2)]
    [[[1], [3]], [[2], [4]]]
    """
    return split(_with_dimensions(x, 1), indices_or_sections, 1 if len(x.shape) > 1 else 0)


views(hsplit, lambda args, result: _link_sections(args, result, 1 if len(result[0].shape) > 1 else 0))


@derived(_PARTS)
def dsplit(x: TensorLike, indices_or_sections: Any) -> list[Tensor]:
    """The parts of ``x``, of at least three dimensions, along its third axis; see :func:`split`.

    >>> from ember_ml import ops
    >>> [ops.to_numpy(part).tolist() for part in ops.dsplit([[[1, 2], [3, 4]]], 2)]
    [[[[1], [3]]], [[[2], [4]]]]
    """
    return split(_with_dimensions(x, 3), indices_or_sections, 2)


views(dsplit, lambda args, result: _link_sections(args, result, 2))


def _with_dimensions(x: Tensor, least: int) -> Tensor:
    if len(x.shape) < least:
        raise ValueError(f"a tensor of {least} or more dimensions is needed")
    return x


@primitive(SAME)
def tile(x: TensorLike, reps: Any) -> Tensor:
    """``x`` repeated as a whole: ``reps`` says how often along each axis, of which new ones come first.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.tile([1, 2], 2)).tolist(), ops.to_numpy(ops.tile([1, 2], (2, 1))).tolist()
    ([1, 2, 1, 2], [[1, 2], [1, 2]])
    """
    ...


gradient(tile, x=lambda g, _x, reps: helpers.selection_vjp(g, _x, lambda places: tile(places, reps)))


@primitive(SAME)
def repeat(x: TensorLike, repeats: Any, axis: int | None = None) -> Tensor:
    """``x`` with each element along ``axis`` repeated so often, or each as often as its own number in ``repeats`` says.

    Without ``axis`` the elements are taken in the order of ``ravel``. Numbers in a tensor are read, since the shape of
    the result depends on them.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.repeat([1, 2], 2)).tolist(), ops.to_numpy(ops.repeat([1, 2], [1, 3])).tolist()
    ([1, 1, 2, 2], [1, 2, 2, 2])
    """
    ...


gradient(
    repeat,
    x=lambda g, _x, repeats, axis: helpers.selection_vjp(g, _x, lambda places: repeat(places, repeats, axis)),
)


@primitive(SAME)
def pad(x: TensorLike, pad_width: Any, mode: str = "constant", constant_values: ValueLike | None = None) -> Tensor:
    """``x`` with more elements before and after along each axis.

    ``pad_width`` is one number for all sides, a pair (before, after) for all axes, or one pair per axis. ``mode`` says
    what the new elements are: "constant" (one value, 0 by default), "edge" (the outermost element), "reflect" (the
    tensor mirrored at its outermost element), "symmetric" (mirrored at its edge) or "wrap" (the tensor again from its
    other end).

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.pad([1, 2, 3], (1, 2))).tolist(), ops.to_numpy(ops.pad([1, 2, 3], 2, mode="reflect")).tolist()
    ([0, 1, 2, 3, 0, 0], [3, 2, 1, 2, 3, 2, 1])
    """
    ...


gradient(
    pad,
    x=lambda g, _x, pad_width, mode: _pad_vjp(g, _x, pad_width, mode),
    constant_values=lambda g, _x, pad_width, mode: _pad_value_vjp(g, _x, pad_width, mode),
)


concat = concatenate


@derived(SAME)
def append(x: TensorLike, values: TensorLike, axis: int | None = None) -> Tensor:
    """``x`` and ``values`` one after the other along ``axis``; without an axis both are flattened first.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.append([1, 2], [[3], [4]])).tolist()
    [1, 2, 3, 4]
    """
    return concatenate([x, values], axis)


def _split_gradient(g: Tensor, shapes: list[tuple[int, ...]], axis: int | None) -> list[Tensor]:
    """Return the parts of the gradient that belong to the tensors which were joined."""
    lengths = [math.prod(shape) if axis is None else shape[axis] for shape in shapes]
    parts = split(g, list(accumulate(lengths))[:-1], axis or 0)
    return [ops.reshape(part, shape) if axis is None else part for part, shape in zip(parts, shapes, strict=True)]


def _pad_vjp(g: Tensor, x: Any, pad_width: Any, mode: str) -> Tensor:
    """Return the gradient without the padding; what the padding repeated is added where it came from."""
    if mode != "constant":
        return helpers.selection_vjp(g, x, lambda places: pad(places, pad_width, mode))
    pairs = pad_pairs(pad_width, len(x.shape))
    return g[tuple(slice(before, before + length) for (before, _), length in zip(pairs, x.shape, strict=True))]


def _pad_value_vjp(g: Tensor, x: Any, pad_width: Any, mode: str) -> Tensor | None:
    """Return the gradient of the one value of which the padding consists."""
    if mode != "constant":
        return None
    is_padding = pad(ops.zeros(x.shape, "bool"), pad_width, mode, True)
    return ops.sum(ops.where(is_padding, g, 0))
