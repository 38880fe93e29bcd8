"""Functions that MLX 0.32 refuses under ``vmap`` or maps wrongly, with a rule of their own.

Its bitwise functions read foreign memory where one operand is not mapped, ``not_equal`` forgets where the mapped axis
went, and the gradient of an index writes to foreign memory. Outside ``vmap`` MLX's own functions are called: a function
with a rule costs four microseconds more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx

from ember_ml.backend.mlx.graph_probe import is_vectorizing

__all__ = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "map_over_stacks",
    "mappable",
    "not_equal",
    "right_shift",
]


def map_over_stacks(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function``, of arrays to one array, with a rule for ``vmap``: call it once on arrays with one more axis.

    It must treat leading axes as a stack, each entry of which it computes by itself.
    """

    def call(*arrays: mx.array) -> Any:
        return _with_rule(function)(*arrays) if is_vectorizing() else function(*arrays)

    return call


def _with_rule(function: Callable[..., Any]) -> Callable[..., Any]:
    ruled: Any = mx.custom_function(function)

    @ruled.vmap
    def _(arrays: Any, axes: Any) -> tuple[Any, Any]:
        arrays, axes = (arrays, axes) if isinstance(arrays, list | tuple) else ((arrays,), (axes,))
        count = next(x.shape[axis] for x, axis in zip(arrays, axes, strict=True) if axis is not None)
        stacks = [
            mx.broadcast_to(x, (count, *x.shape)) if axis is None else mx.moveaxis(x, axis, 0)
            for x, axis in zip(arrays, axes, strict=True)
        ]
        results: Any = ruled(*stacks)
        return results, 0

    return ruled


def mappable(found: mx.array) -> mx.array:
    """Return ``found``, which an index made, such that it has a gradient that can be mapped."""
    if not found.size:  # MLX 0.32: fails in the gradient of an empty one
        return mx.zeros(found.shape, dtype=found.dtype)
    # MLX 0.32: the gradient is a scatter, which writes to foreign memory where the mapped axis of the updates comes
    # behind those of the indices; reshape puts it first
    return mx.squeeze(mx.reshape(found, (1, *found.shape)), 0) if is_vectorizing() else found


def _map_elements(native: Callable[..., mx.array]) -> Callable[..., mx.array]:
    ruled = map_over_stacks(native)

    def call(x: mx.array, y: mx.array | int) -> mx.array:
        if not is_vectorizing():
            return native(x, y)
        if not isinstance(y, mx.array):
            y = mx.array(y, dtype=x.dtype)
        return ruled(*mx.broadcast_arrays(x, y))

    return call


bitwise_and = _map_elements(mx.bitwise_and)
bitwise_or = _map_elements(mx.bitwise_or)
bitwise_xor = _map_elements(mx.bitwise_xor)
left_shift = _map_elements(mx.left_shift)
right_shift = _map_elements(mx.right_shift)
not_equal = _map_elements(mx.not_equal)
