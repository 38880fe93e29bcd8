"""Warping of images: what is at each place of the result is looked up at another place of the image.

Images are (height, width, channels) or (batch, height, width, channels); ``data_format="channels_first"`` takes and
gives (channels, height, width) instead. Coordinates count from the centre of the first element: 0 is that element, 1
the next. ``interpolation`` is "bilinear" or "nearest". Integers are computed in float32, rounded to the nearest, ties
to even, and cut off at the range of their dtype; half precision is computed in float32. ``fill_mode`` says what is
outside of an image: "constant" (``fill_value``), "nearest" (the outermost element), "wrap" (the image again from its
other end), "mirror" (the image mirrored at the centre of its outermost element) or "reflect" (mirrored at its edge).
Within one element of the edge, "constant" passes over linearly to ``fill_value``, as SciPy's "grid-constant" does;
"wrap" is SciPy's "grid-wrap".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.images import FILL_MODES, check_choice, image_axes
from ember_ml.core.dtypes import int64
from ember_ml.dispatch.declare import derived
from ember_ml.dispatch.dtype_rules import KEEP_REAL
from ember_ml.ops.image.pixels import as_filler, dtype_of, from_float, to_float
from ember_ml.typing import Tensor, TensorLike

__all__ = ["affine_transform", "map_coordinates", "perspective_transform", "rotate"]

_ORDERS = {"nearest": 0, "bilinear": 1}
_FAR = 2.0**30
"""Beyond it no image has elements, and floats are no longer rounded to the right integer."""


@derived(KEEP_REAL)
def map_coordinates(
    inputs: TensorLike, coordinates: TensorLike, order: int, fill_mode: str = "constant", fill_value: float = 0.0
) -> Tensor:
    """The elements of ``inputs`` at ``coordinates``, which have a tensor of places for each dimension of ``inputs``.

    ``coordinates`` are of shape (dimensions, places, ...), and the result of the shape (places, ...). ``order`` 1
    interpolates linearly between the neighbours, 0 takes the nearest one, of two equally near the later. The gradient
    reaches ``coordinates`` too where ``order`` is 1.

    >>> from ember_ml import ops
    >>> x = ops.array([[0.0, 1.0], [2.0, 3.0]])
    >>> ops.to_numpy(ops.map_coordinates(x, [[0.5, 1.0], [0.5, 0.0]], order=1)).tolist()
    [1.5, 2.0]
    >>> ops.to_numpy(ops.map_coordinates([1, 2, 3], [[-1.0, 5.0]], order=0, fill_mode="wrap")).tolist()
    [3, 3]
    """
    if len(coordinates.shape) < 2 or coordinates.shape[0] != len(inputs.shape):
        raise ValueError(
            f"coordinates have a tensor of places for each of the {len(inputs.shape)} dimensions of inputs: the shape "
            f"({len(inputs.shape)}, places, ...), not {tuple(coordinates.shape)}"
        )
    if order not in (0, 1):
        raise ValueError(f"order must be 0 (nearest) or 1 (linear), not {order!r}")
    rows = [ops.get_item(coordinates, axis) for axis in range(len(inputs.shape))]
    flat = ops.reshape(inputs, (-1,))
    return _look_up(flat, tuple(inputs.shape), rows, None, order, fill_mode, fill_value)


def _look_up(
    flat: Tensor,
    sizes: Sequence[int],
    coordinates: Sequence[Tensor],
    start: Tensor | None,
    order: int,
    fill_mode: str,
    fill_value: float,
) -> Tensor:
    """Return the parts of ``flat`` along axis 0 at coordinates in a grid of ``sizes``.

    ``start`` is where the grid of each coordinate begins, None where there is one grid.
    """
    check_choice(fill_mode, FILL_MODES, "fill_mode")
    if 0 in sizes:
        raise ValueError(f"there is nothing to look up in a tensor of {' x '.join(map(str, sizes))} elements")
    dtype = dtype_of(flat)
    taps = [_find_taps(to_float(row), size, order, fill_mode) for row, size in zip(coordinates, sizes, strict=True)]
    is_deep = len(flat.shape) > 1
    x = flat if order == 0 else to_float(flat)
    filler = fill_value if order else as_filler(fill_value, dtype)
    total: Any = None
    for corner in product(*taps):
        place: Any = start
        known: Any = None
        weight: Any = None
        for (index, is_known, share), size in zip(corner, sizes, strict=True):
            place = index if place is None else ops.add(ops.multiply(place, size), index)
            if is_known is not None:
                known = is_known if known is None else ops.logical_and(known, is_known)
            if share is not None:
                weight = share if weight is None else ops.multiply(weight, share)
        value = ops.take(x, place, 0)
        if known is not None:
            value = ops.where(ops.expand_dims(known, -1) if is_deep else known, value, filler)
        if weight is not None:
            weight = ops.cast(ops.expand_dims(weight, -1) if is_deep else weight, x.dtype)
            value = ops.multiply(value, weight)
        total = value if total is None else ops.add(total, value)
    return total if order == 0 else from_float(total, dtype)


def _find_taps(c: Tensor, size: int, order: int, fill_mode: str) -> list[tuple[Tensor, Tensor | None, Tensor | None]]:
    """Return the elements of an axis that a coordinate is made of: index, whether it exists, and weight.

    The second is None where all exist, the third where there is one element alone.
    """
    c = ops.clip(c, -_FAR, _FAR)  # also infinities, which are further than any image
    if order == 0:
        return [(*_settle(ops.floor(ops.add(c, 0.5)), size, fill_mode), None)]
    low = ops.floor(c)
    share = ops.subtract(c, low)
    return [
        (*_settle(low, size, fill_mode), ops.subtract(1.0, share)),
        (*_settle(ops.add(low, 1.0), size, fill_mode), share),
    ]


def _settle(place: Tensor, size: int, fill_mode: str) -> tuple[Tensor, Tensor | None]:
    """Return the index of the element that stands at a whole place, and whether there is one."""
    index = ops.cast(ops.stop_gradient(place), int64)
    if fill_mode == "wrap":
        return ops.mod(index, size), None
    if fill_mode == "mirror" and size > 1:
        return ops.subtract(size - 1, ops.abs(ops.subtract(ops.mod(index, 2 * size - 2), size - 1))), None
    if fill_mode == "reflect":
        index = ops.mod(index, 2 * size)
        return ops.minimum(index, ops.subtract(2 * size - 1, index)), None
    inside = ops.clip(index, 0, size - 1)
    return inside, ops.equal(index, inside) if fill_mode == "constant" else None


@derived(KEEP_REAL)
def affine_transform(
    images: TensorLike,
    transform: TensorLike,
    interpolation: str = "bilinear",
    fill_mode: str = "constant",
    fill_value: float = 0.0,
    data_format: str = "channels_last",
) -> Tensor:
    """The images as an affine or projective transform of places shows them.

    ``transform`` has 8 numbers (a0, a1, a2, b0, b1, b2, c0, c1), for all images or a row for each of a batch. The
    result shows at (x, y), column and row, what the image has at ``((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k)``
    with ``k = c0 x + c1 y + 1``. The gradient reaches ``transform`` too where the interpolation is bilinear.

    >>> from ember_ml import ops
    >>> x = ops.reshape(ops.array([1.0, 2.0, 3.0, 4.0]), (2, 2, 1))
    >>> right = [1.0, 0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0]  # by one column
    >>> ops.to_numpy(ops.affine_transform(x, right))[:, :, 0].tolist()
    [[0.0, 1.0], [0.0, 3.0]]
    """
    check_choice(interpolation, tuple(_ORDERS), "interpolation")
    height, width, channels = image_axes(images.shape, data_format)
    count = images.shape[0] if len(images.shape) == 4 else 1
    if tuple(transform.shape) not in ((8,), (1, 8), (count, 8)):
        raise ValueError(
            f"transform has 8 numbers, or a row of 8 for each image of a batch, and not the shape "
            f"{tuple(transform.shape)} for images of shape {tuple(images.shape)}"
        )
    shape = (count, images.shape[height], images.shape[width], images.shape[channels])
    if 0 in (shape[0], shape[3]):  # no image has anything to look up
        return images
    pixels = ops.reshape(ops.moveaxis(images, channels, -1), (-1, shape[3]))
    rows = ops.reshape(to_float(transform), (-1, 8, 1, 1))
    a0, a1, a2, b0, b1, b2, c0, c1 = (ops.get_item(rows, (slice(None), number)) for number in range(8))
    options: dict[str, Any] = {"dtype": rows.dtype, "device": ops.get_device(rows)}
    x, y = ops.arange(shape[2], **options), ops.reshape(ops.arange(shape[1], **options), (-1, 1))
    k = ops.add(ops.add(ops.multiply(c0, x), ops.multiply(c1, y)), 1.0)
    columns = ops.divide(ops.add(ops.add(ops.multiply(a0, x), ops.multiply(a1, y)), a2), k)
    lines = ops.divide(ops.add(ops.add(ops.multiply(b0, x), ops.multiply(b1, y)), b2), k)
    start = ops.reshape(ops.arange(count, device=ops.get_device(rows)), (-1, 1, 1)) if count > 1 else None
    found = _look_up(pixels, shape[1:3], (lines, columns), start, _ORDERS[interpolation], fill_mode, fill_value)
    found = ops.reshape(ops.broadcast_to(found, shape), (*images.shape[: len(images.shape) - 3], *shape[1:]))
    return ops.moveaxis(found, -1, channels)


@derived(KEEP_REAL)
def perspective_transform(
    images: TensorLike,
    start_points: TensorLike,
    end_points: TensorLike,
    interpolation: str = "bilinear",
    fill_value: float = 0.0,
    data_format: str = "channels_last",
) -> Tensor:
    """The images seen in the perspective that brings four points to four others; outside of them ``fill_value``.

    ``start_points`` and ``end_points`` are of shape (4, 2), or (batch, 4, 2): rows (x, y), column and row, of which no
    three lie on one line. What is at a start point comes to the end point.

    >>> from ember_ml import ops
    >>> x = ops.reshape(ops.array([1.0, 2.0, 3.0, 4.0]), (2, 2, 1))
    >>> corners = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    >>> turned = [[1.0, 0.0], [0.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    >>> ops.to_numpy(ops.round(ops.perspective_transform(x, corners, turned), 4))[:, :, 0].tolist()
    [[2.0, 1.0], [4.0, 3.0]]
    """
    for points in (start_points, end_points):
        if len(points.shape) not in (2, 3) or tuple(points.shape[-2:]) != (4, 2):
            raise ValueError(f"four points are of shape (4, 2) or (batch, 4, 2), not {tuple(points.shape)}")
    start, end = to_float(start_points), to_float(end_points)
    transform = _find_projection(ops.cast(start, end.dtype) if math.prod(end.shape) else start, end)
    return affine_transform(images, transform, interpolation, "constant", fill_value, data_format)


def _find_projection(start: Tensor, end: Tensor) -> Tensor:
    """Return the 8 numbers of the transform that leads from end points back to start points."""
    columns = [ops.get_item(points, (..., number)) for points in (start, end) for number in (0, 1)]
    to_x, to_y, x, y = ops.broadcast_arrays(*columns)
    zero, one = ops.zeros_like(x), ops.ones_like(x)
    # x' (c0 x + c1 y + 1) = a0 x + a1 y + a2, and the same of y': two equations for each of the four points
    first = [x, y, one, zero, zero, zero, ops.negative(ops.multiply(x, to_x)), ops.negative(ops.multiply(y, to_x))]
    second = [zero, zero, zero, x, y, one, ops.negative(ops.multiply(x, to_y)), ops.negative(ops.multiply(y, to_y))]
    matrix = ops.concatenate([ops.stack(first, -1), ops.stack(second, -1)], -2)
    wanted = ops.expand_dims(ops.concatenate([to_x, to_y], -1), -1)
    return ops.squeeze(ops.solve(matrix, wanted), -1)


@derived(KEEP_REAL)
def rotate(
    images: TensorLike,
    angle: TensorLike,
    interpolation: str = "bilinear",
    fill_mode: str = "constant",
    fill_value: float = 0.0,
    data_format: str = "channels_last",
) -> Tensor:
    """The images turned around their centre by ``angle`` degrees, against the clock, in their own size.

    ``angle`` is a number, or one for each image of a batch. The gradient reaches it too where the interpolation is
    bilinear.

    >>> from ember_ml import ops
    >>> x = ops.reshape(ops.array([1.0, 2.0, 3.0, 4.0]), (2, 2, 1))
    >>> ops.to_numpy(ops.rotate(x, 90.0, interpolation="nearest"))[:, :, 0].tolist()
    [[2.0, 4.0], [1.0, 3.0]]
    """
    height, width, _ = image_axes(images.shape, data_format)
    if len(angle.shape) > 1:
        raise ValueError(f"angle is a number, or one for each image of a batch, and not of shape {tuple(angle.shape)}")
    turn = ops.multiply(to_float(angle), math.pi / 180)
    cos, sin = ops.cos(turn), ops.sin(turn)
    x, y = (images.shape[width] - 1) / 2, (images.shape[height] - 1) / 2
    zero = ops.zeros_like(cos)
    # the result shows at (x, y) what was there before the turn, so the places are turned back
    right = ops.subtract(x, ops.subtract(ops.multiply(cos, x), ops.multiply(sin, y)))
    down = ops.subtract(y, ops.add(ops.multiply(sin, x), ops.multiply(cos, y)))
    transform = ops.stack([cos, ops.negative(sin), right, sin, cos, down, zero, zero], -1)
    return affine_transform(images, transform, interpolation, fill_mode, fill_value, data_format)
