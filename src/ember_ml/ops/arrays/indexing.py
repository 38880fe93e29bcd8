"""Reading and replacing parts of tensors."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.shapes import NO_LISTS
from ember_ml.backend.host_arrays import as_host
from ember_ml.dispatch.declare import derived, gradient, primitive, view, views
from ember_ml.dispatch.dtype_rules import KEEP
from ember_ml.dispatch.index_arguments import read_basic_key
from ember_ml.ops.arrays.gradient_rules import helpers
from ember_ml.tensor.in_place import RULES, link_view
from ember_ml.typing import IndexLike, KeyLike, Tensor, TensorLike, ValueLike

__all__: list[str] = [
    "argwhere",
    "gather",
    "get_item",
    "index_update",
    "nonzero",
    "put_along_axis",
    "ravel_multi_index",
    "slice",
    "slice_update",
    "take",
    "take_along_axis",
    "unravel_index",
]


@primitive(KEEP)
def get_item(x: TensorLike, key: KeyLike) -> Tensor:
    """What ``x[key]`` selects: integers, slices, ``None``, ``...``, masks, index tensors, tuples of them, as in NumPy.

    An index out of range, a float index and too many indices raise ``IndexError``. A mask selects the elements where
    it is true, so the shape of the result depends on its values.

    >>> from ember_ml import ops
    >>> x = ops.array([[1.0, 2.0], [3.0, 4.0]])
    >>> ops.to_numpy(ops.get_item(x, (..., [1, 0]))).tolist()
    [[2.0, 1.0], [4.0, 3.0]]
    """
    ...


gradient(get_item, x=lambda g, _x, key: _item_vjp(g, _x, key))


@primitive(KEEP)
def index_update(x: TensorLike, key: KeyLike, values: ValueLike) -> Tensor:
    """A copy of ``x`` in which ``x[key]`` is ``values``, broadcast; where a place is named twice, the last value stays.

    The result has the dtype of ``x``; values that it cannot hold without loss, such as a float for an integer tensor,
    raise ``TypeError``. ``x`` itself does not change.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.index_update([1.0, 2.0, 3.0], [True, False, True], 0.0)).tolist()
    [0.0, 2.0, 0.0]
    """
    ...


gradient(
    index_update,
    x=lambda g, key: index_update(g, key, 0),
    values=lambda g, key: _written_vjp(g, key, lambda x: get_item(x, key), lambda x, v: index_update(x, key, v)),
)


def _link_item(args: tuple[Any, ...], result: Any) -> None:
    key = read_basic_key(args[1])
    if key is not None:
        link_view(args[0], RULES["get_item"], (key,), result)


view(get_item, lambda v, x, key: index_update(x, key, v))
views(get_item, _link_item)  # a key with masks or index tensors selects a copy


@primitive(KEEP)
def take(x: TensorLike, indices: IndexLike, axis: int | None = None) -> Tensor:
    """The parts of ``x`` at ``indices`` along ``axis``; without an axis, the elements of the flattened tensor.

    The dimensions of ``indices`` take the place of the axis. Negative indices count from the end; one that is out of
    range raises ``IndexError``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.take([10.0, 20.0, 30.0], [0, -1])).tolist()
    [10.0, 30.0]
    """
    ...


gradient(take, x=lambda g, _x, indices, axis: helpers.take_vjp(g, _x, indices, axis))


@primitive(KEEP)
def take_along_axis(x: TensorLike, indices: IndexLike, axis: int = -1) -> Tensor:
    """The elements of ``x`` that ``indices`` name along ``axis``, each in its own row: what ``argsort`` gives, applied.

    ``x`` and ``indices`` have as many dimensions and broadcast in all but ``axis``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.take_along_axis([[1.0, 2.0], [3.0, 4.0]], [[1], [0]])).tolist()
    [[2.0], [3.0]]
    """
    ...


gradient(
    take_along_axis,
    x=lambda g, _x, indices, axis: helpers.selection_vjp(g, _x, lambda places: take_along_axis(places, indices, axis)),
)


@primitive(KEEP)
def put_along_axis(x: TensorLike, indices: IndexLike, values: ValueLike, axis: int = -1) -> Tensor:
    """A copy of ``x`` in which the elements that ``indices`` name along ``axis`` are ``values``.

    ``indices`` broadcast to ``x`` in all but ``axis``, ``values`` to ``indices``. The result has the dtype of ``x``;
    values that it cannot hold without loss raise ``TypeError``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.put_along_axis([[1.0, 2.0], [3.0, 4.0]], [[1], [0]], 0.0)).tolist()
    [[1.0, 0.0], [0.0, 4.0]]
    """
    ...


gradient(
    put_along_axis,
    x=lambda g, indices, axis: put_along_axis(g, indices, 0, axis),
    values=lambda g, indices, axis: _written_vjp(
        g,
        (indices,),
        lambda x: take_along_axis(x, indices, axis),
        lambda x, v: put_along_axis(x, indices, v, axis),
    ),
)


@derived(KEEP)
def gather(x: TensorLike, axis: int, indices: IndexLike) -> Tensor:
    """The elements of ``x`` that ``indices`` name along ``axis``, in a result of the shape of ``indices``.

    As in PyTorch, ``indices`` may be shorter than ``x`` in the other dimensions: the leading part of ``x`` is read.
    :func:`take` selects whole slices instead.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.gather([[1.0, 2.0], [3.0, 4.0]], 1, [[1, 0]])).tolist()
    [[2.0, 1.0]]
    """
    if not -len(x.shape) <= axis < len(x.shape):
        raise IndexError(f"axis {axis} is out of bounds for {len(x.shape)} dimensions")
    limits = list(x.shape)
    limits[axis] = indices.shape[axis] if len(indices.shape) == len(limits) else 0
    if len(indices.shape) != len(limits) or any(size > own for size, own in zip(indices.shape, limits, strict=True)):
        raise ValueError(f"indices of shape {tuple(indices.shape)} do not fit into {tuple(x.shape)} beside axis {axis}")
    key = [builtins.slice(size) for size in indices.shape]
    key[axis] = builtins.slice(None)
    return take_along_axis(get_item(x, tuple(key)), indices, axis)


def _make_box_key(x: Tensor, start: Tensor, sizes: Sequence[int]) -> tuple[builtins.slice, ...]:
    """Return the key of a box inside ``x`` from its first corner and sizes; dimensions that are not named are whole."""
    corner = as_host(start).reshape(-1).tolist()  # their values decide whether the box lies within
    if len(corner) != len(sizes) or len(sizes) > len(x.shape):
        raise ValueError(
            f"a tensor of {len(x.shape)} dimensions needs as many starts and sizes, got {corner} and {tuple(sizes)}"
        )
    for first, size, whole in zip(corner, sizes, x.shape, strict=False):
        if first < 0 or size < 0 or first + size > whole:
            raise IndexError(f"{size} elements from {first} do not lie within a dimension of size {whole}")
    return tuple(builtins.slice(first, first + size) for first, size in zip(corner, sizes, strict=True))


@derived(KEEP)
def slice(x: TensorLike, start_indices: IndexLike, shape: Sequence[int]) -> Tensor:
    """The box of ``shape`` in ``x`` whose first corner is ``start_indices``.

    A box that does not lie within ``x`` raises ``IndexError``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.slice([[1.0, 2.0], [3.0, 4.0]], (1, 0), (1, 2))).tolist()
    [[3.0, 4.0]]
    """
    if isinstance(shape, NO_LISTS):
        raise TypeError(f"the sizes of a box are a sequence of ints, not {shape!r}")
    return get_item(x, _make_box_key(x, start_indices, shape))


@derived(KEEP)
def slice_update(x: TensorLike, start_indices: IndexLike, updates: ValueLike) -> Tensor:
    """A copy of ``x`` in which the box of the shape of ``updates``, from the corner ``start_indices``, is ``updates``.

    A box that does not lie within ``x`` raises ``IndexError``. The result has the dtype of ``x``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.slice_update([1.0, 2.0, 3.0], (1,), [8.0, 9.0])).tolist()
    [1.0, 8.0, 9.0]
    """
    return index_update(x, _make_box_key(x, start_indices, updates.shape), updates)


@primitive(KEEP.giving("int64"))
def nonzero(x: TensorLike) -> tuple[Tensor, ...]:
    """The indices of the elements that are not zero: a tuple of int64 tensors, one for each dimension of ``x``.

    The shape of the result depends on the values. A tensor without dimensions raises ``ValueError``.

    >>> from ember_ml import ops
    >>> [ops.to_numpy(i).tolist() for i in ops.nonzero([[0, 1], [2, 0]])]
    [[0, 1], [1, 0]]
    """
    ...


@primitive(KEEP.giving("int64"))
def argwhere(x: TensorLike) -> Tensor:
    """The indices of the elements that are not zero, one row for each element, one column for each dimension of ``x``.

    The shape of the result depends on the values. A tensor without dimensions raises ``ValueError``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.argwhere([[0, 1], [2, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    ...


@primitive(KEEP.giving("int64"))
def unravel_index(indices: IndexLike, shape: Sequence[int]) -> tuple[Tensor, ...]:
    """The coordinates of flat positions in a tensor of ``shape``: a tuple of int64 tensors, one for each dimension.

    A position out of range raises ``IndexError``.

    >>> from ember_ml import ops
    >>> [ops.to_numpy(i).tolist() for i in ops.unravel_index([1, 5], (2, 3))]
    [[0, 1], [1, 2]]
    """
    ...


@primitive(KEEP.giving("int64"))
def ravel_multi_index(multi_index: Sequence[IndexLike], dims: Sequence[int]) -> Tensor:
    """The flat positions of coordinates in a tensor of the shape ``dims``, in int64.

    A coordinate that is negative or too large raises ``IndexError``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.ravel_multi_index(([0, 1], [1, 2]), (2, 3))).tolist()
    [1, 5]
    """
    ...


def _is_basic(key: Any) -> bool:
    """Return whether a key names no element twice because it has no index tensors."""
    return all(item is None or item is Ellipsis or isinstance(item, int | builtins.slice) for item in key)


def _written_vjp(g: Tensor, key: Any, read: Any, write: Any) -> Tensor:
    """Return the gradient of values that were written where ``key`` says; what was overwritten has none."""
    found = read(g)
    if _is_basic(key):
        return found
    numbers = ops.reshape(ops.arange(math.prod(found.shape)), found.shape)
    last = read(write(ops.zeros(g.shape, dtype=ops.dtype(numbers)), numbers))
    return ops.multiply(found, ops.equal(last, numbers))


def _item_vjp(g: Tensor, x: Any, key: Any) -> Tensor:
    """Return the gradient where the key selected; what it selected twice is added."""
    if _is_basic(key):
        return index_update(ops.zeros(x.shape, x.dtype), key, g)
    return helpers.selection_vjp(g, x, lambda places: get_item(places, key))
