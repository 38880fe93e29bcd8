"""Matrices of complex numbers on MLX.

A complex matrix is also a real one of twice the size: each number a+bi becomes the block [[a, -b], [b, a]]. Products,
inverses and Cholesky factors of the one are those of the other.
"""

# MLX 0.32: few functions of linear algebra take complex matrices

from __future__ import annotations

import mlx.core as mx

from ember_ml.backend.mlx.empty_reductions import sum_along

__all__ = ["adjoint", "as_complex", "columns_as_complex", "columns_as_real", "embed", "extract", "householder", "lu"]


def adjoint(x: mx.array) -> mx.array:
    return mx.conj(mx.swapaxes(x, -2, -1))


def as_complex(real: mx.array, imaginary: mx.array) -> mx.array:
    # not real + 1j * imaginary: that turns infinities into NaN
    return mx.squeeze(mx.view(mx.stack([real, imaginary], axis=-1), mx.complex64), -1)


def embed(x: mx.array) -> mx.array:
    """Return the real matrix of 2m rows and 2n columns that represents a complex one of m and n."""
    real, imaginary = mx.real(x), mx.imag(x)
    upper = mx.stack([real, -imaginary], axis=-1)
    lower = mx.stack([imaginary, real], axis=-1)
    blocks = mx.stack([upper, lower], axis=-3)  # (..., m, 2, n, 2)
    return blocks.reshape(*x.shape[:-2], 2 * x.shape[-2], 2 * x.shape[-1])


def extract(x: mx.array) -> mx.array:
    """Undo :func:`embed`."""
    return columns_as_complex(x[..., ::2])


def columns_as_real(x: mx.array) -> mx.array:
    """Return complex columns as real ones of twice the length."""
    return mx.stack([mx.real(x), mx.imag(x)], axis=-2).reshape(*x.shape[:-2], 2 * x.shape[-2], x.shape[-1])


def columns_as_complex(x: mx.array) -> mx.array:
    """Undo :func:`columns_as_real`."""
    return as_complex(x[..., ::2, :], x[..., 1::2, :])


def lu(x: mx.array) -> tuple[mx.array, mx.array, mx.array]:
    """Decompose into factors in one matrix, the exchanges of rows, and the order in which they leave the rows."""
    rows, columns = x.shape[-2:]
    row, column = mx.arange(rows)[:, None], mx.arange(columns)[None, :]
    places = mx.arange(rows)
    rows_in_order = mx.broadcast_to(places, x.shape[:-1])
    pivots = []
    for k in range(min(rows, columns)):
        largest = k + mx.argmax(mx.abs(x[..., k:, k]), axis=-1, keepdims=True).astype(mx.int32)
        pivots.append(largest)
        order = mx.where(places == k, largest, mx.where(places == largest, k, places))
        x = mx.take_along_axis(x, mx.broadcast_to(order[..., None], x.shape), axis=-2)
        rows_in_order = mx.take_along_axis(rows_in_order, order, axis=-1)
        pivot = x[..., k : k + 1, k : k + 1]
        factors = x[..., k : k + 1] / mx.where(pivot == 0, 1, pivot)
        reduced = mx.where(column > k, x - factors * x[..., k : k + 1, :], factors)
        x = mx.where(mx.logical_and(row > k, column >= k), reduced, x)
    return x, mx.concatenate(pivots, axis=-1), rows_in_order


def householder(x: mx.array, complete: bool) -> tuple[mx.array, mx.array]:
    """Return the QR decomposition by Householder reflections."""
    rows, columns = x.shape[-2:]
    steps = min(rows, columns)
    places = mx.arange(rows)
    reflections = []
    for k in range(steps):
        column = mx.where(places >= k, x[..., k], 0)
        largest = mx.max(mx.abs(column), axis=-1, keepdims=True)
        column = column / mx.where(largest == 0, 1, largest)  # the squares of small elements would underflow
        head = column[..., k : k + 1]
        size = mx.sqrt(sum_along(mx.square(mx.abs(column)), axis=-1, keepdims=True))
        phase = mx.where(mx.abs(head) == 0, 1, head / mx.where(head == 0, 1, mx.abs(head)))
        vector = mx.where(places == k, column + phase * size, column)
        square = sum_along(mx.square(mx.abs(vector)), axis=-1, keepdims=True)
        unit = (vector / mx.where(square == 0, 1, mx.sqrt(square)))[..., None]
        if x.dtype != mx.complex64:  # no reflection where nothing is below the diagonal, as LAPACK has it
            below = sum_along(mx.where(places > k, mx.abs(column), 0), axis=-1, keepdims=True)
            unit = mx.where(below[..., None] == 0, 0, unit)
        x = x - 2 * mx.matmul(unit, mx.matmul(adjoint(unit), x))
        reflections.append(unit)
    width = rows if complete else steps
    q = mx.broadcast_to(mx.eye(rows, width).astype(x.dtype), (*x.shape[:-2], rows, width))
    for unit in reversed(reflections):
        q = q - 2 * mx.matmul(unit, mx.matmul(adjoint(unit), q))
    return q, mx.triu(x[..., :width, :])
