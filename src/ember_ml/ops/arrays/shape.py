"""Other shapes and orders of the same elements."""

from __future__ import annotations

import math
from typing import Any

from ember_ml.backend.common.shapes import as_axes, as_shape, broadcast
from ember_ml.dispatch.declare import derived, gradient, plain, primitive, view, views
from ember_ml.dispatch.dtype_rules import KEEP, SAME
from ember_ml.ops.arrays.gradient_rules import helpers
from ember_ml.tensor.in_place import RULES, link_view
from ember_ml.typing import AxisLike, ShapeLike, Tensor, TensorLike

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "expand_dims",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "ravel",
    "reshape",
    "roll",
    "rot90",
    "squeeze",
    "swapaxes",
    "transpose",
]


@primitive(SAME)
def reshape(x: TensorLike, shape: ShapeLike) -> Tensor:
    """The elements of ``x``, in their order, in another shape; one length may be -1 and is then whatever is left.

    A shape for another number of elements raises ``ValueError``, and so does -1 where there are none to count.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.reshape([1, 2, 3, 4], (2, -1))).tolist()
    [[1, 2], [3, 4]]
    """
    ...


gradient(reshape, x=lambda g, _x: reshape(g, _x.shape))
view(reshape, lambda v, x, _shape: reshape(v, tuple(x.shape)), may_copy=True)


@derived(SAME)
def ravel(x: TensorLike) -> Tensor:
    """The elements of ``x``, row by row, as a vector.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.ravel([[1, 2], [3, 4]])).tolist()
    [1, 2, 3, 4]
    """
    return reshape(x, (math.prod(x.shape),))


view(ravel, lambda v, x: reshape(v, tuple(x.shape)), may_copy=True)


@derived(SAME)
def flatten(x: TensorLike) -> Tensor:
    """The elements of ``x``, row by row, as a vector of its own: :func:`ravel` that is never a view.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.flatten([[1, 2], [3, 4]])).tolist()
    [1, 2, 3, 4]
    """
    return reshape(x, (math.prod(x.shape),))


@primitive(SAME, "permute_dims")
def transpose(x: TensorLike, axes: Any = None) -> Tensor:
    """``x`` with its axes in the order of ``axes``, or in the opposite order where none is given.

    >>> from ember_ml import ops
    >>> ops.shape(ops.transpose(ops.zeros((2, 3, 4)))), ops.shape(ops.transpose(ops.zeros((2, 3, 4)), (1, 0, 2)))
    ((4, 3, 2), (3, 2, 4))
    """
    ...


gradient(transpose, x=lambda g, axes: transpose(g, None if axes is None else helpers.inverse_order(axes)))
view(transpose, lambda v, _x, axes: transpose(v, None if axes is None else helpers.inverse_order(axes)))


@derived(SAME)
def matrix_transpose(x: TensorLike) -> Tensor:
    """``x`` with its last two axes swapped; ``ValueError`` where it has fewer.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.matrix_transpose([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    if len(x.shape) < 2:
        raise ValueError("a matrix has at least two dimensions")
    return swapaxes(x, -2, -1)


view(matrix_transpose, lambda v, _x: matrix_transpose(v))


@primitive(SAME)
def swapaxes(x: TensorLike, axis1: int, axis2: int) -> Tensor:
    """``x`` with two of its axes in each other's place.

    >>> from ember_ml import ops
    >>> ops.shape(ops.swapaxes(ops.zeros((2, 3, 4)), 0, 2))
    (4, 3, 2)
    """
    ...


gradient(swapaxes, x=lambda g, axis1, axis2: swapaxes(g, axis1, axis2))
view(swapaxes, lambda v, _x, axis1, axis2: swapaxes(v, axis1, axis2))


@derived(SAME)
def moveaxis(x: TensorLike, source: AxisLike, destination: AxisLike) -> Tensor:
    """``x`` with the axes ``source`` in the places ``destination``, the others in their order.

    >>> from ember_ml import ops
    >>> ops.shape(ops.moveaxis(ops.zeros((2, 3, 4)), 0, -1))
    (3, 4, 2)
    """
    ndim = len(x.shape)
    sources, destinations = as_axes(source, ndim), as_axes(destination, ndim)
    if len(sources) != len(destinations):
        raise ValueError(f"{len(sources)} axes cannot go to {len(destinations)} places")
    order = [axis for axis in range(ndim) if axis not in sources]
    for place, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, axis)
    return transpose(x, tuple(order))


view(moveaxis, lambda v, _x, source, destination: moveaxis(v, destination, source))


@primitive(SAME)
def expand_dims(x: TensorLike, axis: AxisLike) -> Tensor:
    """``x`` with a new axis of length 1 at each place that ``axis`` names in the result.

    >>> from ember_ml import ops
    >>> ops.shape(ops.expand_dims(ops.zeros((2, 3)), 1)), ops.shape(ops.expand_dims(ops.zeros(2), (0, -1)))
    ((2, 1, 3), (1, 2, 1))
    """
    ...


gradient(expand_dims, x=lambda g, _x: reshape(g, _x.shape))
view(expand_dims, lambda v, x, _axis: reshape(v, tuple(x.shape)))


@primitive(SAME)
def squeeze(x: TensorLike, axis: AxisLike | None = None) -> Tensor:
    """``x`` without the axes named, which must be of length 1 (else ``ValueError``); without all such axes by default.

    >>> from ember_ml import ops
    >>> ops.shape(ops.squeeze(ops.zeros((1, 2, 1)))), ops.shape(ops.squeeze(ops.zeros((1, 2, 1)), axis=0))
    ((2,), (2, 1))
    """
    ...


gradient(squeeze, x=lambda g, _x: reshape(g, _x.shape))
view(squeeze, lambda v, x, _axis: reshape(v, tuple(x.shape)))


@primitive(SAME)
def broadcast_to(x: TensorLike, shape: ShapeLike) -> Tensor:
    """``x`` repeated along new leading dimensions and those of length 1 until it has ``shape``.

    It may share memory with ``x``; a portable one shows changes of ``x``, and raises where it is changed in place.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.broadcast_to([1, 2], (2, 2))).tolist()
    [[1, 2], [1, 2]]
    """
    ...


gradient(broadcast_to, x=lambda g: g)
view(broadcast_to, None, keeps_elements=False)


@primitive(KEEP.giving("own"))
def broadcast_arrays(*arrays: TensorLike) -> tuple[Tensor, ...]:
    """The tensors, each broadcast to the shape that they have in common.

    >>> from ember_ml import ops
    >>> x, y = ops.broadcast_arrays(ops.array([[1], [2]]), ops.array([3, 4]))
    >>> ops.to_numpy(x).tolist(), ops.to_numpy(y).tolist()
    ([[1, 1], [2, 2]], [[3, 4], [3, 4]])
    """
    ...


gradient(broadcast_arrays, arrays=lambda g: g)


def _link_broadcast(args: tuple[Any, ...], result: tuple[Any, ...]) -> None:
    rule = RULES["broadcast_to"]
    for source, part in zip(args[0], result, strict=True):
        link_view(source, rule, (tuple(part.shape),), part)


views(broadcast_arrays, _link_broadcast)


@plain
def broadcast_shapes(*shapes: ShapeLike) -> tuple[int, ...]:
    """The shape to which tensors of these shapes broadcast; ``ValueError`` where they do not.

    >>> from ember_ml import ops
    >>> ops.broadcast_shapes((2, 1), (3,), 1)
    (2, 3)
    """
    return broadcast([as_shape(shape) for shape in shapes])


@primitive(SAME)
def flip(x: TensorLike, axis: AxisLike | None = None) -> Tensor:
    """``x`` with the elements along the axes named, all by default, in the opposite order.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.flip([[1, 2], [3, 4]])).tolist(), ops.to_numpy(ops.flip([1, 2, 3], axis=0)).tolist()
    ([[4, 3], [2, 1]], [3, 2, 1])
    """
    ...


gradient(flip, x=lambda g, axis: flip(g, axis))
view(flip, lambda v, _x, axis: flip(v, axis))


@derived(SAME)
def fliplr(x: TensorLike) -> Tensor:
    """``x`` with its second axis in the opposite order: left and right change places.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.fliplr([[1, 2], [3, 4]])).tolist()
    [[2, 1], [4, 3]]
    """
    if len(x.shape) < 2:
        raise ValueError("left and right need at least two dimensions")
    return flip(x, 1)


view(fliplr, lambda v, _x: fliplr(v))


@derived(SAME)
def flipud(x: TensorLike) -> Tensor:
    """``x`` with its first axis in the opposite order: top and bottom change places.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.flipud([[1, 2], [3, 4]])).tolist()
    [[3, 4], [1, 2]]
    """
    if not x.shape:
        raise ValueError("top and bottom need at least one dimension")
    return flip(x, 0)


view(flipud, lambda v, _x: flipud(v))


@derived(SAME)
def rot90(x: TensorLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """``x`` turned ``k`` times by a right angle in the plane of two axes, from the first towards the second.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.rot90([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    plane = as_axes(axes, len(x.shape))
    if len(plane) != 2:
        raise ValueError(f"a plane has two axes, not {axes}")
    turns = k % 4
    if turns == 0:
        return x
    if turns == 2:
        return flip(x, plane)
    if turns == 1:
        return swapaxes(flip(x, plane[1]), *plane)
    return flip(swapaxes(x, *plane), plane[1])


view(rot90, lambda v, _x, k, axes: rot90(v, -k, axes))


@primitive(SAME)
def roll(x: TensorLike, shift: Any, axis: AxisLike | None = None) -> Tensor:
    """``x`` with its elements moved on by ``shift`` places along ``axis``, those at the end coming in at the front.

    Several axes take one shift each, or all the same one. Without ``axis`` the elements move in the order of
    :func:`ravel`.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.roll([1, 2, 3, 4], 1)).tolist()
    [4, 1, 2, 3]
    """
    ...


gradient(
    roll,
    x=lambda g, shift, axis: roll(g, tuple(-s for s in shift) if isinstance(shift, tuple | list) else -shift, axis),
)


permute_dims = transpose
