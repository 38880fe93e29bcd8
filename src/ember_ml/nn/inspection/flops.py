"""How many floating-point operations an op takes: those of products and convolutions, next to which others are few.

A multiplication and the addition of its result count as two, as in PyTorch's counter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ember_ml import ops
from ember_ml.dispatch.declare import Op

__all__ = ["count_flops"]


def count_flops(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the number of operations of a call of ``op``; 0 for those that are no products."""
    rule = _RULES.get(op.name)
    if rule is None:
        return 0
    named = dict(zip(op.parameters, args, strict=False)) | kwargs
    if op.name == "einsum":
        return _of_einsum(args[0], [ops.shape(x) for x in args[1:]])
    return rule(named, result)


def _size(x: Any) -> int:
    return math.prod(ops.shape(x))


def _of_matmul(named: dict[str, Any], result: Any) -> int:
    return 2 * _size(result) * ops.shape(named["x"])[-1]


def _of_contraction(named: dict[str, Any], result: Any) -> int:
    """Of a product that sums over all axes that the result lacks: x, y and result have a·k, k·b and a·b elements."""
    x, y = _size(named["x"]), _size(named["y"])
    return 2 * math.isqrt(x * y * _size(result))


def _of_vecdot(named: dict[str, Any], result: Any) -> int:
    return 2 * _size(result) * ops.shape(named["x"])[named.get("axis", -1)]


def _of_einsum(subscripts: str, shapes: Sequence[Sequence[int]]) -> int:
    """Each combination of all indices takes a product of the operands and an addition."""
    lengths: dict[str, int] = {}
    for term, shape in zip(subscripts.replace(" ", "").partition("->")[0].split(","), shapes, strict=True):
        before, dots, after = term.partition("...")
        many = len(shape) - len(before) - len(after)
        letters = [*before, *(f"...{place}" for place in range(-many, 0) if dots), *after]
        for letter, length in zip(letters, shape, strict=True):
            lengths[letter] = max(lengths.get(letter, 1), length)
    return len(shapes) * math.prod(lengths.values()) if len(shapes) > 1 else 0


def _of_conv(named: dict[str, Any], result: Any) -> int:
    kernel = ops.shape(named["kernel"])  # (window..., channels of a group, results)
    return 2 * _size(result) * math.prod(kernel[:-1])


def _of_depthwise(named: dict[str, Any], result: Any) -> int:
    return 2 * _size(result) * math.prod(ops.shape(named["kernel"])[:-2])


def _of_separable(named: dict[str, Any], result: Any) -> int:
    window, points = ops.shape(named["depthwise_kernel"]), ops.shape(named["pointwise_kernel"])
    between = _size(result) // points[-1] * points[-2]  # the elements that the depthwise part gives
    return 2 * between * math.prod(window[:-2]) + 2 * _size(result) * points[-2]


def _of_transpose(named: dict[str, Any], result: Any) -> int:
    kernel = ops.shape(named["kernel"])  # (window..., results, channels)
    return 2 * _size(named["x"]) * math.prod(kernel[:-1])


def _of_attention(named: dict[str, Any], result: Any) -> int:
    query, key, value = ops.shape(named["query"]), ops.shape(named["key"]), ops.shape(named["value"])
    return 2 * math.prod(query[:-1]) * key[-3] * (query[-1] + value[-1])


_RULES: dict[str, Callable[[dict[str, Any], Any], int]] = {
    "conv": _of_conv,
    "conv_transpose": _of_transpose,
    "depthwise_conv": _of_depthwise,
    "dot": _of_contraction,
    "dot_product_attention": _of_attention,
    "einsum": lambda named, result: 0,
    "inner": _of_contraction,
    "linear": _of_matmul,
    "matmul": _of_matmul,
    "separable_conv": _of_separable,
    "tensordot": _of_contraction,
    "vdot": _of_contraction,
    "vecdot": _of_vecdot,
}
