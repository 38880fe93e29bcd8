"""What NumPy's own views do: the reference for programs of views and changes in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.reference import numpy_dtype

__all__ = ["COPIES", "VIEWS", "array", "is_same", "item_view"]


def array(values: list[Any], shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.array(values).astype(numpy_dtype(dtype)).reshape(shape).copy()


def _as_own(result: Any) -> np.ndarray:
    """A computed tensor counts as lying row by row, whatever order NumPy chose."""
    return np.array(result, order="C", copy=True)


def item_view(x: np.ndarray, key: Any) -> np.ndarray:
    """``x[key]``, which is a 0-d view where NumPy would make a scalar."""
    items = key if type(key) is tuple else (key,)
    return x[items if any(item is Ellipsis for item in items) else (*items, ...)]


def _diagonal(x: np.ndarray, offset: int, axis1: int, axis2: int) -> np.ndarray:
    found = np.diagonal(x, offset, axis1, axis2)  # NumPy's is read-only for the time being, PyTorch's is not
    if x.flags.writeable:
        found.flags.writeable = True
    return found


def _broadcast_to(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return np.broadcast_to(x, shape)


def _view(x: np.ndarray, dtype: str) -> np.ndarray:
    try:
        return x.view(numpy_dtype(dtype))
    except ValueError:
        if np.ascontiguousarray(x).shape != x.shape:
            raise
        return np.array(x, order="C", copy=True).view(numpy_dtype(dtype))


VIEWS: dict[str, Callable[..., Any]] = {
    "get_item": item_view,
    "transpose": lambda x, axes: np.transpose(x, axes),
    "matrix_transpose": lambda x: np.swapaxes(x, -2, -1),
    "swapaxes": np.swapaxes,
    "moveaxis": np.moveaxis,
    "expand_dims": np.expand_dims,
    "squeeze": lambda x, axis: np.squeeze(x, axis),
    "flip": lambda x, axis: x[(slice(None, None, -1),) * x.ndim + (...,)] if axis is None else np.flip(x, axis),
    "fliplr": lambda x: x[:, ::-1],
    "flipud": lambda x: x[::-1, ...],
    "rot90": np.rot90,
    "reshape": lambda x, shape: np.reshape(x, shape),
    "ravel": np.ravel,
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "diagonal": _diagonal,
    "broadcast_to": _broadcast_to,
    "view": _view,
    "split": lambda x, parts, axis: np.split(x, parts, axis),
    "array_split": lambda x, parts, axis: np.array_split(x, parts, axis),
    "unstack": lambda x, axis: [item_view(np.moveaxis(x, axis, 0), i) for i in range(x.shape[axis])],
    "iterate": lambda x: [item_view(x, i) for i in range(len(x))],
}

COPIES: dict[str, Callable[..., Any]] = {
    "copy": _as_own,
    "flatten": lambda x: x.flatten(),
    "positive": lambda x: _as_own(+x) if x.dtype != bool else _as_own(x),
    "roll": lambda x: _as_own(np.roll(x, 1)),
    "select": lambda x, index: _as_own(x[index]),
    "mask": lambda x: _as_own(x[np.ones(x.shape, bool)]),
}


def is_same(found: Any, expected: np.ndarray) -> bool:
    """Whether two arrays have the same dtype, shape and elements, NaN included."""
    found = np.asarray(found)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    equal = found == expected
    return bool(np.all(equal | ((found != found) & (expected != expected))))
