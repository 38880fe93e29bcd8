"""Where the elements of a view lie in the tensor that it shows, computed by NumPy on arrays without memory.

A library may store a tensor in any order, and MLX hides the strides that it uses. Whether a reshape needs a copy must
not depend on that, so a tensor that is not a view counts as lying row by row, and NumPy computes the strides of its
views. The arrays here describe strides only: nothing may read or write their elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

__all__ = ["Layout", "describe", "outline", "positions", "trace"]

_NO_MEMORY = np.empty(16, np.uint8)


class Layout(NamedTuple):
    """The place of a view's elements, counted in elements of the tensor that it shows, which lies row by row."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def outline(shape: tuple[int, ...], itemsize: int) -> np.ndarray:
    """An array of that shape, row by row, of elements of that many bytes, without memory."""
    strides, step = [], itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return as_strided(_NO_MEMORY[:itemsize].view(f"V{itemsize}"), shape, strides[::-1])


def describe(part: np.ndarray, whole: np.ndarray) -> Layout:
    """Return where the elements of ``part`` lie in ``whole``."""
    itemsize = whole.itemsize
    offset = part.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return Layout(offset // itemsize, part.shape, tuple(step // itemsize for step in part.strides))


def positions(layout: Layout, size: int) -> np.ndarray:
    """The index of each element of a view in the flattened tensor of ``size`` elements."""
    if 0 in layout.shape:
        return np.empty(layout.shape, np.int64)
    numbers = np.arange(size)
    steps = tuple(step * numbers.itemsize for step in layout.strides)
    return as_strided(numbers[layout.offset :], layout.shape, steps).copy()


def _index(array: np.ndarray, shape: tuple[int, ...], key: tuple[Any, ...]) -> np.ndarray:
    # a key without "..." may select one element, which NumPy would read
    return array[key if any(item is Ellipsis for item in key) else (*key, ...)]


def _flip(array: np.ndarray, shape: tuple[int, ...], axis: Any) -> np.ndarray:
    return np.flip(array, axis) if array.ndim else array


def _part(name: str) -> Callable[..., np.ndarray]:
    def select(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        half = f"V{array.itemsize // 2}"
        return array.view(np.dtype([("real", half), ("imag", half)]))[name]

    return select


def _reshape(array: np.ndarray, shape: tuple[int, ...], *args: Any) -> np.ndarray:
    return np.reshape(array, shape, copy=False)


def _ravel(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    # NumPy's and PyTorch's promise contiguous elements, and so copy where reshape would not
    return np.reshape(array, shape, copy=False) if array.flags.c_contiguous else None


def _view(array: np.ndarray, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    own, other = math.prod(array.shape[-1:]), math.prod(shape[-1:])
    return array if own == other or not own else array.view(f"V{array.itemsize * own // other}")


def _strided(array: np.ndarray, shape: tuple[int, ...], layout: Layout) -> np.ndarray:
    return as_strided(
        _moved(array, layout.offset * array.itemsize),
        layout.shape,
        tuple(step * array.itemsize for step in layout.strides),
    )


def _moved(array: np.ndarray, offset: int) -> Any:
    """An array whose first element lies ``offset`` bytes behind that of ``array``."""
    if not offset:
        return array
    first = as_strided(array, (2,), (offset,))
    return first[1:]


_TRACES: dict[str, Callable[..., np.ndarray | None]] = {
    "asarray": lambda array, shape: array,
    "broadcast_to": lambda array, shape, *_: np.broadcast_to(array, shape),
    "diagonal": lambda array, shape, *args: np.diagonal(array, *args),
    "expand_dims": _reshape,
    "flip": _flip,
    "fliplr": lambda array, shape: array[:, ::-1],
    "flipud": lambda array, shape: array[::-1],
    "get_item": _index,
    "imag": _part("imag"),
    "matrix_transpose": lambda array, shape: array.swapaxes(-2, -1),
    "moveaxis": lambda array, shape, source, destination: np.moveaxis(array, source, destination),
    "ravel": _ravel,
    "real": _part("real"),
    "reshape": _reshape,
    "rot90": lambda array, shape, turns, axes: np.rot90(array, turns, axes),
    "squeeze": _reshape,
    "strided": _strided,
    "swapaxes": lambda array, shape, *axes: array.swapaxes(*axes),
    "transpose": lambda array, shape, axes: array.transpose(axes),
    "view": _view,
}


def trace(name: str, array: np.ndarray, shape: tuple[int, ...], args: tuple[Any, ...]) -> np.ndarray | None:
    """Apply the view op ``name`` to an outline; None where that needs a copy. ``shape`` is that of the result."""
    try:
        return _TRACES[name](array, shape, *args)
    except ValueError:
        return None
