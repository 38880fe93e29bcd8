"""Products of tensors, on MLX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx

from ember_ml.backend.common.einsum import contract, read_subscripts
from ember_ml.backend.common.linalg import check_linear
from ember_ml.backend.contract import ByDType
from ember_ml.backend.mlx import blas
from ember_ml.backend.mlx.bodies.reductions import total
from ember_ml.backend.mlx.empty_reductions import sum_along
from ember_ml.backend.mlx.graph_probe import is_vectorizing
from ember_ml.backend.mlx.vmap_rules import bitwise_and, left_shift, mappable, right_shift
from ember_ml.core import dtypes as dt

_PIECE = 16  # bits; products of two pieces add up exactly in float64, 2**21 of them
_MOST_TERMS = 1 << 21


def _matmul_integers(x: mx.array, y: mx.array) -> mx.array:
    """Multiply integers exactly, with wrapping: in pieces of 16 bits, whose products float64 sums exactly."""
    # MLX 0.32: matmul refuses integers
    if x.ndim and x.shape[-1] > _MOST_TERMS:
        middle = x.shape[-1] // 2
        axis = 0 if y.ndim == 1 else y.ndim - 2
        if y.ndim and y.shape[axis] == x.shape[-1]:
            left, right = mx.split(x, [middle], axis=-1), mx.split(y, [middle], axis=axis)
            return _matmul_integers(left[0], right[0]) + _matmul_integers(left[1], right[1])
    count = max(x.dtype.size * 8 // _PIECE, 1)
    total: mx.array | None = None
    for i in range(count):
        for j in range(count - i):  # higher pieces overflow the dtype
            # MLX 0.32: float64 on the CPU only
            product = mx.matmul(_piece(x, i, count), _piece(y, j, count), stream=mx.cpu).astype(mx.int64, stream=mx.cpu)
            part = left_shift(product, _PIECE * (i + j)) if i + j else product
            total = part if total is None else total + part
    assert total is not None
    return total.astype(x.dtype)


def _piece(x: mx.array, number: int, count: int) -> mx.array:
    if count == 1:
        return x.astype(mx.float64, stream=mx.cpu)
    wide = x.astype(mx.int64)
    if number:
        wide = right_shift(wide, _PIECE * number)
    return bitwise_and(wide, 2**_PIECE - 1).astype(mx.float64, stream=mx.cpu)


_BLOCK = 1 << 12


def _matmul_in_blocks(x: mx.array, y: mx.array) -> mx.array:
    """Multiply matrices; long sums of products block by block, so that they keep their digits."""
    # MLX 0.32: the reference BLAS of the wheel for Linux adds one product after the other
    if x.size <= _BLOCK or x.dtype not in (mx.float32, mx.complex64) or not y.ndim:
        return mx.matmul(x, y)
    axis = max(y.ndim - 2, 0)
    length = x.shape[-1]
    if length <= _BLOCK or y.shape[axis] != length:
        return mx.matmul(x, y)
    whole = length - length % _BLOCK
    left, right = mx.split(x, [whole], -1), mx.split(y, [whole], axis)
    blocks = (whole // _BLOCK, _BLOCK)
    rows = mx.unflatten(left[0], -1, blocks)
    columns = mx.unflatten(right[0], axis, blocks)
    rows = mx.swapaxes(rows, -2, -3) if x.ndim > 1 else mx.expand_dims(rows, -2)
    if y.ndim == 1:
        columns = mx.expand_dims(columns, -1)
    product = mx.matmul(rows, columns)
    result = total(product, product.ndim - 3, False)
    if y.ndim == 1:
        result = mx.squeeze(result, -1)
    if x.ndim == 1:
        result = mx.squeeze(result, -1 if y.ndim == 1 else -2)
    return result + mx.matmul(left[1], right[1]) if whole < length else result


_multiply: Any = _matmul_in_blocks if blas.is_reference else mx.matmul
matmul = ByDType(_multiply, dict.fromkeys(dt.INTEGERS, _matmul_integers))


def _linear(x: mx.array, weight: mx.array, bias: mx.array | None) -> mx.array:
    check_linear(weight, bias)
    if bias is None:
        return _multiply(x, weight.T)
    # MLX 0.32: addmm cannot flatten stacks of empty rows, nor broadcast a bias that alone is mapped by vmap
    if not weight.size or is_vectorizing():
        return _multiply(x, weight.T) + bias
    return mx.addmm(bias, x, weight.T) if weight.shape[-1] <= _BLOCK else _multiply(x, weight.T) + bias


def _linear_integers(x: mx.array, weight: mx.array, bias: mx.array | None) -> mx.array:
    check_linear(weight, bias)
    product = _matmul_integers(x, weight.T)
    return product if bias is None else product + bias


linear = ByDType(_linear, dict.fromkeys(dt.INTEGERS, _linear_integers))


class _Floats:
    """The operations by which Einstein sums of floats are computed where MLX cannot, or loses digits."""

    matmul = staticmethod(_multiply)
    transpose = staticmethod(mx.transpose)
    reshape = staticmethod(mx.reshape)
    broadcast_to = staticmethod(mx.broadcast_to)

    @staticmethod
    def sum(x: mx.array, axes: tuple[int, ...]) -> mx.array:
        return total(x, axes, False)

    @staticmethod
    def diagonal(x: mx.array, axis1: int, axis2: int) -> mx.array:
        return mappable(mx.diagonal(x, 0, axis1, axis2))


class _Integers(_Floats):
    """The operations by which Einstein sums of integers are computed."""

    matmul = staticmethod(_matmul_integers)

    @staticmethod
    def sum(x: mx.array, axes: tuple[int, ...]) -> mx.array:
        return sum_along(x.astype(mx.int64), axis=axes).astype(x.dtype)


def _repeats_labels(subscripts: str, operands: Sequence[mx.array]) -> bool:
    """Whether any operand has a label twice."""
    inputs, _ = read_subscripts(subscripts, [x.shape for x in operands])
    return any(len(set(labels)) < len(labels) for labels in inputs)


def einsum(subscripts: str, operands: Sequence[mx.array]) -> mx.array:
    if operands and mx.issubdtype(operands[0].dtype, mx.integer):
        return contract(_Integers(), subscripts, operands)
    # MLX 0.32: does not broadcast 1 to 0; the gradient of a repeated label cannot be mapped
    if any(x.size == 0 for x in operands) or (is_vectorizing() and _repeats_labels(subscripts, operands)):
        return contract(_Floats(), subscripts, operands)
    if len(operands) == 2 and _multiply is not mx.matmul and operands[0].size > _BLOCK < operands[1].size:
        return contract(_Floats(), subscripts, operands)
    return mx.einsum(subscripts, *operands)


def diagonal(x: mx.array, offset: int, axis1: int, axis2: int) -> mx.array:
    if x.ndim < 2:
        raise ValueError(f"a diagonal needs at least 2 dimensions, not {x.ndim}")
    for axis in (axis1, axis2):
        if not -x.ndim <= axis < x.ndim:
            raise IndexError(f"axis {axis} is out of range for a {x.ndim}-D tensor")
    return mappable(mx.diagonal(x, offset, axis1, axis2))
