"""Update parameters on NumPy: in place, in blocks that stay in the cache, short ones all at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ember_ml.backend.capabilities import Joined

__all__ = ["is_in_place", "kernels", "takes_halves"]

Arrays = Sequence[np.ndarray]
is_in_place = True
takes_halves = False  # NumPy 2.4: rounds every step of the rule to half precision
_PIECE = 1 << 15


def _rows(gradients: Arrays, *columns: Any) -> tuple[Sequence[Arrays], Iterable[tuple[np.ndarray, ...]]]:
    """Return the columns as arrays that can be changed, and rows of vectors, of the gradients first, to change them by.

    Each row is of one parameter, or a piece of a long one. Short parameters share one row: on these NumPy's calls cost
    more than what they compute.
    """
    if not isinstance(columns[0], Joined):
        columns = tuple([_own_arrays(column) for column in columns])
        columns = _join(columns) if _are_short(columns) else columns
    first = columns[0]
    if isinstance(first, Joined) and first.shapes == [g.shape for g in gradients]:
        return columns, [(np.concatenate(gradients, None), *[column.whole for column in columns])]
    return columns, _pieces(gradients, *columns)


def _own_arrays(column: Arrays) -> Arrays:
    """Copy the arrays that have no flat view to write through."""
    return [x if x.flags.c_contiguous and x.flags.writeable else np.array(x, order="C") for x in column]


def _are_short(columns: Sequence[Arrays]) -> bool:
    """Return whether all elements of a column fit into one piece, and the columns differ in nothing but these."""
    if len(columns[0]) < 2 or sum(x.size for x in columns[0]) > _PIECE:
        return False
    kinds = [(x.shape, x.dtype) for x in columns[0]]
    is_even = all([(x.shape, x.dtype) for x in column] == kinds for column in columns)
    return is_even and len({dtype for _, dtype in kinds}) == 1


def _join(columns: Sequence[Arrays]) -> tuple[Joined, ...]:
    """Copy the arrays of each column into one, of which they become parts."""
    shapes = [x.shape for x in columns[0]]
    ends = np.cumsum([x.size for x in columns[0]])
    found = []
    for column in columns:
        whole = np.concatenate(column, None)
        parts = Joined(x.reshape(shape) for x, shape in zip(np.split(whole, ends[:-1]), shapes, strict=True))
        parts.whole, parts.shapes = whole, shapes
        found.append(parts)
    return tuple(found)


def _pieces(*columns: Arrays) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield the arrays of each row as vectors, cut where they are long; writing to them writes to the arrays."""
    for row in zip(*columns, strict=True):
        flat = [x.reshape(-1) for x in row]
        size = flat[0].size
        if size <= _PIECE:
            yield tuple(flat)
        else:
            for start in range(0, size, _PIECE):
                yield tuple([x[start : start + _PIECE] for x in flat])


def _adam(
    parameters: Arrays,
    gradients: Arrays,
    first: Arrays,
    second: Arrays,
    *,
    rate: float,
    factor: float,
    scaled_epsilon: float,
    step: int,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
    is_decoupled: bool,
) -> Sequence[Arrays]:
    columns, rows = _rows(gradients, parameters, first, second)
    rest1, rest2 = 1.0 - beta1, 1.0 - beta2
    for g, p, m, v in rows:
        if weight_decay and is_decoupled:
            p *= 1.0 - rate * weight_decay
        elif weight_decay:
            g = g + weight_decay * p
        scratch = np.multiply(g, rest1)
        m *= beta1
        m += scratch
        np.multiply(g, g, out=scratch)
        scratch *= rest2
        v *= beta2
        v += scratch
        np.sqrt(v, out=scratch)
        scratch += scaled_epsilon
        np.divide(m, scratch, out=scratch)
        scratch *= factor
        p -= scratch
    return columns


def _sgd(
    parameters: Arrays,
    gradients: Arrays,
    *slots: Arrays,
    rate: float,
    momentum: float,
    nesterov: bool,
    weight_decay: float,
) -> Sequence[Arrays]:
    columns, rows = _rows(gradients, parameters, *slots)
    for g, p, *velocity in rows:
        if weight_decay:
            g = g + weight_decay * p
        if velocity:
            v = velocity[0]
            v *= momentum
            v += g
            g = g + momentum * v if nesterov else v
        p -= rate * g
    return columns


kernels = {"adam": _adam, "sgd": _sgd}
