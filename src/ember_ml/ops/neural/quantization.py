"""Weights of 4 or 8 bits: groups of numbers that share a scale and an offset, packed into 32-bit words as MLX does.

A row of ``n`` numbers is ``n * bits / 32`` words, the first number in the lowest bits; ``scales`` and ``biases`` have
one element for each group. The number is ``scale * integer + bias``.
"""

from __future__ import annotations

from ember_ml import ops
from ember_ml.backend.common.quantized import check_quantized, check_quantized_linear
from ember_ml.dispatch.declare import derived, gradient
from ember_ml.dispatch.dtype_rules import REAL_CONTRACTION
from ember_ml.typing import IndexLike, Tensor, TensorLike

__all__ = ["dequantize", "quantized_linear"]


@derived(REAL_CONTRACTION)
def dequantize(
    weight: IndexLike, scales: TensorLike, biases: TensorLike, bits: int = 4, group_size: int = 64
) -> Tensor:
    """The numbers that packed integers of ``bits`` bits stand for, ``scale * integer + bias`` of their groups.

    ``weight`` is uint32, (..., words), ``scales`` and ``biases`` are (..., groups), whose dtype the result has.
    ``bits`` is 4 or 8, ``group_size`` 32, 64 or 128. Other sizes and dtypes raise.

    >>> from ember_ml import ops
    >>> words = ops.array([[0x76543210, 0, 0, 0]], dtype="uint32")
    >>> ops.to_numpy(ops.dequantize(words, [[0.5]], [[1.0]], 4, 32))[0, :8].tolist()
    [1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5]
    """
    check_quantized(weight, scales, biases, bits, group_size)
    groups = ops.reshape(ops.cast(_integers(weight, bits), scales.dtype), (*scales.shape, group_size))
    numbers = ops.add(ops.multiply(groups, ops.expand_dims(scales, -1)), ops.expand_dims(biases, -1))
    return ops.reshape(numbers, (*scales.shape[:-1], scales.shape[-1] * group_size))


def _integers(weight: Tensor, bits: int) -> Tensor:
    octets = ops.view(weight, "uint8")
    if bits == 8:
        return octets
    return ops.stack([ops.bitwise_and(octets, 15), ops.bitwise_right_shift(octets, 4)], -1)


@derived(REAL_CONTRACTION)
def quantized_linear(
    x: TensorLike, weight: IndexLike, scales: TensorLike, biases: TensorLike, bits: int = 4, group_size: int = 64
) -> Tensor:
    """``x @ dequantize(weight, scales, biases, bits, group_size).T``, without keeping the numbers of the weight.

    ``weight`` holds integers of ``bits``, 4 or 8, in words of 32; ``group_size`` of them share a scale and a bias.
    ``x`` is (..., in), ``weight`` uint32 of (out, in * bits / 32), ``scales`` and ``biases`` are (out, in / group_size)
    with the dtype of ``x``. The gradient is that of ``x``, ``scales`` and ``biases``.

    >>> from ember_ml import ops
    >>> words = ops.array([[0x76543210, 0, 0, 0]], dtype="uint32")
    >>> ops.to_numpy(ops.quantized_linear(ops.ones((1, 32)), words, [[0.5]], [[1.0]], 4, 32)).tolist()
    [[46.0]]
    """
    check_quantized_linear(x, weight, scales, biases, bits, group_size)
    return ops.linear(x, dequantize(weight, scales, biases, bits, group_size))


def _sum_groups(g: Tensor, x: Tensor, scales: Tensor) -> Tensor:
    """Return the gradient of the dense weight by groups, (out, groups, group_size)."""
    rows = ops.reshape(x, (-1, x.shape[-1]))
    dense = ops.matmul(ops.matrix_transpose(ops.reshape(g, (-1, g.shape[-1]))), rows)
    return ops.reshape(dense, (*scales.shape, -1))


gradient(
    quantized_linear,
    x=lambda g, weight, scales, biases, bits, group_size: ops.matmul(
        g, dequantize(weight, scales, biases, bits, group_size)
    ),
    scales=lambda g, x, weight, _scales, bits: ops.sum(
        ops.multiply(
            _sum_groups(g, x, _scales),
            ops.reshape(ops.cast(_integers(weight, bits), g.dtype), (*_scales.shape, -1)),
        ),
        -1,
    ),
    biases=lambda g, x, _scales: ops.sum(_sum_groups(g, x, _scales), -1),
)
