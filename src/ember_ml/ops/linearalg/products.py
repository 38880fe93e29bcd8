"""Products of tensors: matrix, inner, outer and general contractions, and what is read off a diagonal.

Contractions compute in the dtype of their operands: float32 with float64 gives float64, integers give the exact
integer product (wrapping like every integer), and half precision with a wider float is a ``TypeError``, because the
precision of such a product is the caller's choice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.einsum import read_subscripts
from ember_ml.backend.common.linalg import check_linear
from ember_ml.backend.common.shapes import NO_LISTS
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import as_dtype
from ember_ml.dispatch.declare import derived, gradient, primitive, view
from ember_ml.dispatch.dtype_rules import CONTRACTION, KEEP, NUMERIC
from ember_ml.ops.arrays.gradient_rules import helpers
from ember_ml.typing import DTypeLike, Tensor, TensorLike

__all__ = [
    "cross",
    "diagonal",
    "dot",
    "einsum",
    "inner",
    "kron",
    "linear",
    "matmul",
    "outer",
    "tensordot",
    "trace",
    "vdot",
    "vecdot",
]


_LONG = 1 << 12  # torch 2.13: rows times columns beyond that lose digits in stacks of them
_PRECISE = (dt.FLOATS | dt.COMPLEX) - dt.HALVES
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@primitive(CONTRACTION)
def matmul(x: TensorLike, y: TensorLike) -> Tensor:
    """The matrix product of ``x`` and ``y``; leading dimensions broadcast as stacks of matrices.

    A 1-D operand is a row on the left and a column on the right, and its dimension is not in the result. 0-d operands
    and inner sizes that differ raise ``ValueError``; an inner size of 0 gives zeros. How long sums are rounded is left
    to the library: PyTorch loses digits where one row of millions of elements meets one column; :func:`dot` does not.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.matmul([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0])).tolist()
    [3.0, 7.0]
    """
    ...


gradient(matmul, x=lambda g, _x, y: _left_vjp(g, _x, y), y=lambda g, x, _y: _right_vjp(g, x, _y))


@derived(CONTRACTION)
def linear(x: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """``x @ weight.T + bias``: what a layer of ``out`` neurons with ``weight`` of shape ``(out, in)`` computes.

    ``x`` has ``in`` as its last dimension and any others before it; ``bias`` has shape ``(out,)``. Other shapes raise
    ``ValueError``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.linear([[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], [0.5, 0.0, -1.0])).tolist()
    [[11.5, 17.0, 22.0]]
    """
    check_linear(weight, bias)
    product = matmul(x, ops.matrix_transpose(weight))
    return product if bias is None else ops.add(product, bias)


gradient(
    linear,
    x=lambda g, weight: linear(g, ops.matrix_transpose(weight)),
    weight=lambda g, x: matmul(ops.matrix_transpose(_rows(g)), _rows(x)),
    bias=lambda g: ops.sum(g, 0) if g.ndim == 2 else ops.sum(_rows(g), 0),
)


@derived(CONTRACTION)
def dot(x: TensorLike, y: TensorLike) -> Tensor:
    """The sum of products over the last dimension of ``x`` and the second to last (or only) one of ``y``.

    For vectors and matrices this is :func:`matmul`; a 0-d operand multiplies; the other dimensions of stacks do not
    broadcast, all of them are in the result.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.dot([1.0, 2.0], [3.0, 4.0])).tolist()
    11.0
    """
    if x.ndim == 0 or y.ndim == 0:
        return ops.multiply(x, y)
    if y.ndim == 1 or (x.ndim <= 2 and y.ndim == 2):
        return matmul(x, y)
    return tensordot(x, y, ((-1,), (-2,)))


@derived(CONTRACTION)
def vdot(x: TensorLike, y: TensorLike) -> Tensor:
    """The sum of all products of the elements of ``x``, conjugated, with those of ``y``, as a 0-d tensor.

    Both are flattened first, so shapes may differ but not sizes.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.vdot([1j, 2.0], [1j, 3.0])).tolist()
    (7+0j)
    """
    return matmul(ops.conj(ops.reshape(x, (-1,))), ops.reshape(y, (-1,)))


@derived(CONTRACTION)
def vecdot(x: TensorLike, y: TensorLike, axis: int = -1) -> Tensor:
    """The dot products of the vectors along ``axis``, those of ``x`` conjugated; other dimensions broadcast.

    ``axis`` counts in each operand. Vectors of different sizes raise ``ValueError``, also of size 1.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.vecdot([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0])).tolist()
    [3.0, 7.0]
    """
    x, y = ops.moveaxis(x, axis, -1), ops.moveaxis(y, axis, -1)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"the vectors along axis {axis} have {x.shape[-1]} and {y.shape[-1]} elements")
    if x.ndim == y.ndim == 1:
        return matmul(ops.conj(x), y)
    if x.shape[-1] >= _LONG and as_dtype(x.dtype) in _PRECISE:
        return ops.sum(ops.multiply(ops.conj(x), y), -1)
    products = matmul(ops.expand_dims(ops.conj(x), -2), ops.expand_dims(y, -1))
    return ops.reshape(products, products.shape[:-2])


@derived(CONTRACTION)
def inner(x: TensorLike, y: TensorLike) -> Tensor:
    """The sum of products over the last dimensions of ``x`` and ``y``; all other dimensions are in the result.

    A 0-d operand multiplies.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.inner([[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    if x.ndim == 0 or y.ndim == 0:
        return ops.multiply(x, y)
    return tensordot(x, y, ((-1,), (-1,)))


@derived(NUMERIC)
def outer(x: TensorLike, y: TensorLike) -> Tensor:
    """The matrix of all products of an element of ``x`` with one of ``y``; both must be 1-D, else ``ValueError``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.outer([1, 2], [3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"outer takes two 1-D tensors, not {x.ndim}-D and {y.ndim}-D; flatten them first")
    return ops.multiply(ops.expand_dims(x, 1), ops.expand_dims(y, 0))


@derived(CONTRACTION)
def tensordot(x: TensorLike, y: TensorLike, axes: int | Sequence[Sequence[int]] = 2) -> Tensor:
    """The sum of products over the dimensions that ``axes`` pairs; the others follow in order, those of ``x`` first.

    ``axes`` is a number (the last ones of ``x`` with the first ones of ``y``) or two sequences of equal length. Sizes
    must agree exactly; nothing broadcasts.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.tensordot([[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]], axes=1)).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    summed_x, summed_y = _pair_axes(axes, x.ndim, y.ndim)
    sizes = [x.shape[a] for a in summed_x]
    if sizes != [y.shape[b] for b in summed_y]:
        raise ValueError(
            f"the sizes along axes {summed_x} of {tuple(x.shape)} and {summed_y} of {tuple(y.shape)} differ"
        )
    kept_x = [a for a in range(x.ndim) if a not in summed_x]
    kept_y = [b for b in range(y.ndim) if b not in summed_y]
    rows, columns = [x.shape[a] for a in kept_x], [y.shape[b] for b in kept_y]
    if not rows and not columns:  # torch 2.13: as matrices of one row and one column, long vectors lose digits
        return matmul(ops.ravel(ops.permute_dims(x, summed_x)), ops.ravel(ops.permute_dims(y, summed_y)))
    left = _as_matrix(x, (*kept_x, *summed_x), math.prod(rows), math.prod(sizes))
    right = _as_matrix(y, (*summed_y, *kept_y), math.prod(sizes), math.prod(columns))
    product = matmul(left, right)
    return product if len(rows) == len(columns) == 1 else ops.reshape(product, (*rows, *columns))


def _as_matrix(x: Tensor, order: tuple[int, ...], rows: int, columns: int) -> Tensor:
    x = x if order == tuple(range(x.ndim)) else ops.permute_dims(x, order)
    return x if x.ndim == 2 and tuple(x.shape) == (rows, columns) else ops.reshape(x, (rows, columns))


def _pair_axes(axes: int | Sequence[Sequence[int]], x_ndim: int, y_ndim: int) -> tuple[list[int], list[int]]:
    """Return the dimensions that ``axes`` pairs, counted from the front."""
    if isinstance(axes, int):
        if not 0 <= axes <= min(x_ndim, y_ndim):
            raise ValueError(f"axes={axes} asks for more dimensions than a {x_ndim}-D and a {y_ndim}-D tensor share")
        return list(range(x_ndim - axes, x_ndim)), list(range(axes))
    if len(axes) != 2 or isinstance(axes, NO_LISTS):
        raise ValueError(f"axes must be a number or two sequences, not {axes!r}")
    first, second = ([a] if isinstance(a, int) else list(a) for a in axes)
    if len(first) != len(second):
        raise ValueError(f"axes must name as many dimensions of x as of y, not {len(first)} and {len(second)}")
    return _count_from_front(first, x_ndim), _count_from_front(second, y_ndim)


def _count_from_front(axes: Sequence[int], ndim: int) -> list[int]:
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise IndexError(f"axis {axis} is out of range for a {ndim}-D tensor")
    found = [axis % ndim for axis in axes]
    if len(set(found)) != len(found):
        raise ValueError(f"axes {tuple(axes)} name a dimension twice")
    return found


@primitive(CONTRACTION)
def einsum(subscripts: str, *operands: TensorLike) -> Tensor:
    """The sum of products that ``subscripts`` describe: ``"ij,jk->ik"`` is the matrix product.

    Letters that are not in the output are summed over; without ``->`` the output has the letters that occur once, in
    alphabetical order. ``...`` stands for dimensions that broadcast; a letter twice in one operand takes its diagonal.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.einsum("ij,j->i", [[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0])).tolist()
    [3.0, 7.0]
    """
    ...


gradient(einsum, operands=lambda g, subscripts, operands: _EinsumBack(g, subscripts, operands))


@derived(NUMERIC)
def kron(x: TensorLike, y: TensorLike) -> Tensor:
    """The Kronecker product: every element of ``x`` times the whole of ``y``, laid out in blocks.

    The operand with fewer dimensions gets leading ones.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.kron([1, 10], [1, 2])).tolist()
    [1, 2, 10, 20]
    """
    ndim = max(x.ndim, y.ndim)
    first = (1,) * (ndim - x.ndim) + tuple(x.shape)
    second = (1,) * (ndim - y.ndim) + tuple(y.shape)
    blocks = ops.reshape(x, tuple(size for side in first for size in (side, 1)))
    inside = ops.reshape(y, tuple(size for side in second for size in (1, side)))
    return ops.reshape(ops.multiply(blocks, inside), tuple(a * b for a, b in zip(first, second, strict=True)))


@derived(NUMERIC)
def cross(x: TensorLike, y: TensorLike, axis: int = -1) -> Tensor:
    """The cross products of the vectors along ``axis``, which must have 3 elements; other dimensions broadcast.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.cross([1, 0, 0], [0, 1, 0])).tolist()
    [0, 0, 1]
    """
    for name, value in (("x", x), ("y", y)):
        if not -value.ndim <= axis < value.ndim:
            raise IndexError(f"axis {axis} is out of range for {name}, which is {value.ndim}-D")
        if value.shape[axis] != 3:
            raise ValueError(f"cross takes vectors of 3 elements; {name} has {value.shape[axis]} along axis {axis}")
    (a, b, c), (d, e, f) = ops.unstack(x, axis=axis), ops.unstack(y, axis=axis)
    parts = ((b, f, c, e), (c, d, a, f), (a, e, b, d))
    found = [ops.subtract(ops.multiply(p, q), ops.multiply(r, s)) for p, q, r, s in parts]
    return ops.stack(found, axis=axis if axis < 0 else axis + max(x.ndim, y.ndim) - x.ndim)


@primitive(KEEP)
def diagonal(x: TensorLike, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Tensor:
    """The diagonals of the matrices in the last two dimensions (or ``axis1`` and ``axis2``), as the last dimension.

    A positive ``offset`` means above the main diagonal, a negative one below; beyond the matrix the result is empty.
    The result may share memory with ``x``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.diagonal([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    ...


gradient(
    diagonal,
    x=lambda g, _x, offset, axis1, axis2: helpers.selection_vjp(
        g, _x, lambda places: diagonal(places, offset, axis1, axis2)
    ),
)


def _write_diagonal(v: Tensor, x: Tensor, offset: int, axis1: int, axis2: int) -> Tensor:
    rows, columns = (range(max(-offset, 0), x.shape[axis1]), range(max(offset, 0), x.shape[axis2]))
    length = min(len(rows), len(columns))
    matrices = ops.moveaxis(x, (axis1, axis2), (-2, -1))
    changed = ops.index_update(matrices, (..., list(rows[:length]), list(columns[:length])), v)
    return ops.moveaxis(changed, (-2, -1), (axis1, axis2))


view(diagonal, _write_diagonal)


@derived(NUMERIC.giving("wide"))
def trace(x: TensorLike, offset: int = 0, axis1: int = -2, axis2: int = -1, dtype: DTypeLike | None = None) -> Tensor:
    """The sums of the diagonals of the matrices in the last two dimensions; integers add up in 64 bits.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.trace([[1, 2], [3, 4]])).tolist()
    5
    """
    return ops.sum(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)


def _rows(x: Tensor) -> Tensor:
    """Return ``x`` as a matrix: its last dimension, and all others as one."""
    return x if x.ndim == 2 else ops.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))


def _left_vjp(g: Tensor, x: Any, y: Tensor) -> Tensor:
    """Return the gradient of the left factor of a matrix product; vectors count as matrices of one row or column."""
    if y.ndim == 1:
        return ops.multiply(ops.expand_dims(g, -1), y)
    if len(x.shape) == 1:
        return ops.sum(matmul(ops.expand_dims(g, -2), ops.matrix_transpose(y)), tuple(range(y.ndim - 1)))
    return matmul(g, ops.matrix_transpose(y))


def _right_vjp(g: Tensor, x: Tensor, y: Any) -> Tensor:
    if len(y.shape) == 1:
        if x.ndim == 1:
            return ops.multiply(g, x)
        return matmul(ops.reshape(g, (-1,)), _rows(x))
    if x.ndim == 1:
        return ops.multiply(ops.expand_dims(x, -1), ops.expand_dims(g, -2))
    if len(y.shape) == 2 and x.ndim > 2:  # one product over all rows instead of one for each matrix
        x, g = _rows(x), _rows(g)
    return matmul(ops.matrix_transpose(x), g)


class _EinsumBack:
    """The gradients of the operands of an Einstein sum, each computed when it is asked for.

    That of one operand is the Einstein sum of the gradient with all others. A letter that the operand has twice, of
    which the sum took the diagonal, meets an identity; one that neither the output nor another operand has, or has with
    a size of 1, meets ones.
    """

    def __init__(self, g: Tensor, subscripts: str, operands: Sequence[Tensor]) -> None:
        self.g, self.operands = g, operands
        labels, output = read_subscripts(subscripts, [tuple(x.shape) for x in operands])
        letters = iter(_LETTERS)
        names = {label: next(letters) for label in dict.fromkeys(label for part in labels for label in part)}
        self.labels = [[names[label] for label in part] for part in labels]
        self.output = [names[label] for label in output]
        self.unused = list(letters)

    def __getitem__(self, place: int) -> Tensor:
        own, shape = list(self.labels[place]), tuple(self.operands[place].shape)
        terms = [(self.output, self.g)]
        terms += [(self.labels[k], x) for k, x in enumerate(self.operands) if k != place]
        unused = iter(self.unused)
        options: dict[str, Any] = {"dtype": as_dtype(self.g.dtype), "device": ops.get_device(self.g)}
        for k, letter in enumerate(own):
            if letter in own[:k]:
                own[k] = next(unused)
                terms.append(([letter, own[k]], ops.eye(shape[k], **options)))
        for letter, size in zip(own, shape, strict=True):
            sizes = [x.shape[labels.index(letter)] for labels, x in terms if letter in labels]
            if size not in sizes and (size != 1 or not sizes):
                terms.append(([letter], ops.ones((size,), **options)))
        text = ",".join("".join(labels) for labels, _ in terms)
        return einsum(f"{text}->{''.join(own)}", *(x for _, x in terms))
