"""Update parameters on NumPy: in place, in blocks that stay in the cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

__all__ = ["is_in_place", "kernels", "takes_halves"]

Arrays = Sequence[np.ndarray]
is_in_place = True
takes_halves = False  # NumPy 2.4: rounds every step of the rule to half precision
_PIECE = 1 << 15


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


def _own_arrays(column: Arrays) -> Arrays:
    """Copy the arrays that have no flat view to write through."""
    return [x if x.flags.c_contiguous and x.flags.writeable else np.array(x, order="C") for x in column]


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
) -> list[Arrays]:
    parameters, first, second = _own_arrays(parameters), _own_arrays(first), _own_arrays(second)
    rest1, rest2 = 1.0 - beta1, 1.0 - beta2
    for p, g, m, v in _pieces(parameters, gradients, first, second):
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
    return [parameters, first, second]


def _sgd(
    parameters: Arrays,
    gradients: Arrays,
    *slots: Arrays,
    rate: float,
    momentum: float,
    nesterov: bool,
    weight_decay: float,
) -> list[Arrays]:
    parameters, velocities = _own_arrays(parameters), [_own_arrays(slot) for slot in slots]
    for p, g, *velocity in _pieces(parameters, gradients, *velocities):
        if weight_decay:
            g = g + weight_decay * p
        if velocity:
            v = velocity[0]
            v *= momentum
            v += g
            g = g + momentum * v if nesterov else v
        p -= rate * g
    return [parameters, *velocities]


kernels = {"adam": _adam, "sgd": _sgd}
