"""References of products, norms and distances: in long double, and of integers in Python's own, wrapped."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.reference import arrays, broadcastable, shapes
from tests.reference.spec import spec

_INSIDE: dict[str, Any] = {"finite": True, "low": -50.0, "high": 50.0}


def _filled(draw: st.DrawFn, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Integers from the whole range, floats whose products no dtype overflows."""
    limits = {} if dtype.startswith(("int", "uint")) else _INSIDE
    return draw(arrays(dtype, shape, **limits))


def wrapped(exact: Any, dtype: np.dtype) -> np.ndarray:
    """Python integers in the width of a dtype, as integers overflow."""
    bits = 8 * dtype.itemsize
    values = [int(value) % (1 << bits) for value in np.asarray(exact, dtype=object).ravel()]
    if dtype.kind == "i":
        values = [value - (1 << bits) if value >= 1 << (bits - 1) else value for value in values]
    return np.array(values, dtype=dtype).reshape(np.shape(exact))


def _bilinear(function: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A product as reference, and the sum of its absolute terms as scale."""

    def reference(x: np.ndarray, y: np.ndarray, **options: Any) -> Any:
        if x.dtype.kind in "iu":
            return wrapped(function(x.astype(object), y.astype(object), **options), x.dtype)
        return function(x, y, **options)

    def scale(x: np.ndarray, y: np.ndarray, **options: Any) -> Any:
        if x.dtype.kind in "iu":
            return None
        return function(np.abs(x), np.abs(y), **options)

    return reference, scale


def _product(name: str, draw: Any, function: Callable[..., Any], ulps: float = 8.0) -> None:
    reference, scale = _bilinear(function)
    spec(name, draw, reference, ulps, scale)


def _pair(draw: st.DrawFn, dtype: str, first: tuple[int, ...], second: tuple[int, ...]) -> dict[str, Any]:
    return {"x": _filled(draw, dtype, first), "y": _filled(draw, dtype, second)}


SIDE = st.integers(0, 4)


@st.composite
def _matmul_shapes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    rows, inner, columns = draw(SIDE), draw(SIDE), draw(SIDE)
    left, right = draw(broadcastable(2))
    return draw(
        st.sampled_from(
            [
                ((inner,), (inner,)),
                ((rows, inner), (inner,)),
                ((inner,), (*right[:1], inner, columns)),
                ((rows, inner), (inner, columns)),
                ((*left[-2:], rows, inner), (*right[-2:], inner, columns)),
            ]
        )
    )


def _dot(x: np.ndarray, y: np.ndarray) -> Any:
    if not x.ndim or not y.ndim:
        return x * y
    return np.tensordot(x, y, (-1, -1 if y.ndim == 1 else -2))


@st.composite
def _dot_shapes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    inner, rest, more = draw(SIDE), draw(shapes(max_dims=2)), draw(shapes(max_dims=2))
    return draw(
        st.sampled_from(
            [
                ((), rest),
                (rest, ()),
                ((*rest, inner), (inner,)),
                ((*rest, inner), (*more[:1], inner, *more[1:2], 2)[-3:]),
            ]
            if not more
            else [((*rest, inner), (inner,)), ((*rest, inner), (inner, 3)), ((*rest, inner), (2, inner, 3))]
        )
    )


def _same_size(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    shape = draw(shapes())
    return _pair(draw, dtype, shape, draw(st.sampled_from([shape, (math.prod(shape),)])))


def _vectors(draw: st.DrawFn, dtype: str, side: int | None = None) -> dict[str, Any]:
    """Two stacks of vectors, which lie along one axis and broadcast otherwise."""
    first, second = draw(broadcastable(2))
    size = draw(SIDE) if side is None else side
    axis = draw(st.integers(-min(len(first), len(second)) - 1, -1))
    shape = lambda rest: (*rest[: len(rest) + axis + 1], size, *rest[len(rest) + axis + 1 :])  # noqa: E731
    return {**_pair(draw, dtype, shape(first), shape(second)), "axis": axis}


def _vecdot(x: np.ndarray, y: np.ndarray, axis: int) -> Any:
    return np.sum(np.moveaxis(np.conj(x), axis, -1) * np.moveaxis(y, axis, -1), axis=-1)


def _cross(x: np.ndarray, y: np.ndarray, axis: int) -> Any:
    (a, b, c), (d, e, f) = np.moveaxis(x, axis, 0), np.moveaxis(y, axis, 0)
    parts = [np.asarray(part, dtype=x.dtype) for part in (b * f - c * e, c * d - a * f, a * e - b * d)]
    return np.moveaxis(np.stack(np.broadcast_arrays(*parts)), 0, axis)


def _cross_terms(x: np.ndarray, y: np.ndarray, axis: int) -> Any:
    if x.dtype.kind in "iu":
        return None
    (a, b, c), (d, e, f) = np.moveaxis(np.abs(x), axis, 0), np.moveaxis(np.abs(y), axis, 0)
    return np.moveaxis(np.stack(np.broadcast_arrays(b * f + c * e, c * d + a * f, a * e + b * d)), 0, axis)


def _kron(x: np.ndarray, y: np.ndarray) -> Any:
    dims = max(x.ndim, y.ndim)
    first, second = (1,) * (dims - x.ndim) + x.shape, (1,) * (dims - y.ndim) + y.shape
    apart = [side for pair in zip(first, [1] * dims, strict=True) for side in pair]
    between = [side for pair in zip([1] * dims, second, strict=True) for side in pair]
    product = np.asarray(x).reshape(apart) * np.asarray(y).reshape(between)
    return np.asarray(product).reshape([a * b for a, b in zip(first, second, strict=True)])


def _contracted(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    shared = draw(st.lists(SIDE, max_size=2).map(tuple))
    first, second = draw(shapes(max_dims=2)), draw(shapes(max_dims=2))
    if draw(st.booleans()):
        return {**_pair(draw, dtype, first + shared, shared + second), "axes": len(shared)}
    front = tuple(range(len(shared)))
    places = tuple(place - len(shared) for place in front)
    order = draw(st.permutations(front))
    axes = ([places[i] for i in order], [front[i] for i in order])
    return {**_pair(draw, dtype, first + shared, shared + second), "axes": axes}


_product("matmul", lambda draw, dtype: _pair(draw, dtype, *draw(_matmul_shapes())), np.matmul)


def _linear_shapes(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    inside, out = draw(SIDE), draw(SIDE)
    bias = _filled(draw, dtype, (out,)) if draw(st.booleans()) else None
    x, weight = _filled(draw, dtype, (*draw(shapes()), inside)), _filled(draw, dtype, (out, inside))
    return {"x": x, "weight": weight, "bias": bias}


def _linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> Any:
    if x.dtype.kind in "iu":
        return wrapped(_linear(*(None if a is None else a.astype(object) for a in (x, weight, bias))), x.dtype)
    product = np.einsum("...i,oi->...o", x, weight)
    return product if bias is None else product + bias


def _linear_terms(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> Any:
    if x.dtype.kind in "iu":
        return None
    return _linear(np.abs(x), np.abs(weight), None if bias is None else np.abs(bias))


spec("linear", _linear_shapes, _linear, 8.0, _linear_terms)
_product("dot", lambda draw, dtype: _pair(draw, dtype, *draw(_dot_shapes())), _dot)
_product("vdot", _same_size, lambda x, y: np.dot(np.conj(x.ravel()), y.ravel()))
_product("vecdot", _vectors, _vecdot)
_product(
    "inner",
    lambda draw, dtype: _pair(draw, dtype, *((*draw(shapes(max_dims=2)), side) for side in [draw(SIDE)] * 2)),
    lambda x, y: np.tensordot(x, y, (-1, -1)),
)
_product(
    "outer",
    lambda draw, dtype: _pair(draw, dtype, (draw(SIDE),), (draw(SIDE),)),
    lambda x, y: x[:, None] * y,
)
_product("tensordot", _contracted, lambda x, y, axes: np.tensordot(x, y, axes))
_product("kron", lambda draw, dtype: _pair(draw, dtype, draw(shapes(max_dims=2)), draw(shapes(max_dims=2))), _kron)
spec("cross", lambda draw, dtype: _vectors(draw, dtype, 3), _bilinear(_cross)[0], 8.0, _cross_terms)

_SUBSCRIPTS = {
    "ij,jk->ik": ("ij", "jk"),
    "ij,ij->": ("ij", "ij"),
    "ij,kj": ("ij", "kj"),
    "...i,...i->...": ("ki", "i"),
    "ii->i": ("ii",),
    "ii": ("ii",),
    "ij->ji": ("ij",),
    "i,j,k->kji": ("i", "j", "k"),
    "ij,jk,kl->il": ("ij", "jk", "kl"),
}


def _einsum(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    subscripts = draw(st.sampled_from(sorted(_SUBSCRIPTS)))
    sizes = {letter: draw(st.integers(0, 3)) for letter in "ijkl"}
    small = dtype.startswith(("int", "uint"))
    operands = [
        draw(
            arrays(
                dtype,
                tuple(sizes[letter] for letter in term),
                **({} if small else {**_INSIDE, "low": -5.0, "high": 5.0}),
            )
        )
        for term in _SUBSCRIPTS[subscripts]
    ]
    return {"*": [subscripts, *operands]}


def _einsum_reference(subscripts: str, *operands: np.ndarray) -> Any:
    if operands[0].dtype.kind in "iu":
        return wrapped(np.einsum(subscripts, *(x.astype(object) for x in operands)), operands[0].dtype)
    # NumPy's einsum of complex long doubles writes beyond its memory
    return np.einsum(subscripts, *(x.astype(np.complex128) if x.dtype.kind == "c" else x for x in operands))


def _einsum_terms(subscripts: str, *operands: np.ndarray) -> Any:
    if operands[0].dtype.kind in "iu":
        return None
    return np.einsum(subscripts, *(np.abs(x) for x in operands))


spec("einsum", _einsum, _einsum_reference, 12.0, _einsum_terms)


def _diagonals(draw: st.DrawFn, dtype: str, **limits: Any) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=2), **limits))
    first, second = draw(st.permutations(range(x.ndim)))[:2]
    sign = draw(st.sampled_from([0, -x.ndim]))
    return {"x": x, "offset": draw(st.integers(-4, 4)), "axis1": first + sign, "axis2": second}


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.uint64 if x.dtype.kind == "u" else np.int64) if x.dtype.kind in "iu" else x


spec("diagonal", _diagonals, lambda x, offset, axis1, axis2: np.diagonal(x, offset, axis1, axis2), 0)
spec(
    "trace",
    lambda draw, dtype: _diagonals(draw, dtype, **({} if dtype.startswith(("int", "uint")) else _INSIDE)),
    lambda x, offset, axis1, axis2: np.sum(np.diagonal(_wide(x), offset, axis1, axis2), axis=-1),
    8.0,
    lambda x, offset, axis1, axis2: np.sum(np.abs(np.diagonal(x, offset, axis1, axis2)).astype(np.longdouble), axis=-1),
)

# Norms and distances

_ORDERS = [2, 1, math.inf, -math.inf, 0, 3, 0.5]


def _real(x: np.ndarray) -> np.ndarray:
    return np.abs(x.astype(np.longdouble) if x.dtype.kind in "biu" else x)


def vector_norm(x: np.ndarray, axis: Any, keepdims: bool, ord: float) -> Any:
    size = _real(x)
    if ord == math.inf:
        return np.max(size, axis=axis, keepdims=keepdims, initial=0)
    if ord == -math.inf:
        return np.min(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return np.sum(size != 0, axis=axis, keepdims=keepdims)
    return np.sum(size**ord, axis=axis, keepdims=keepdims) ** (1 / np.longdouble(ord))


def _vector_norm(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=1, min_side=1), **_INSIDE))
    one = st.integers(-x.ndim, x.ndim - 1)
    several = st.lists(st.integers(0, x.ndim - 1), unique=True, min_size=1).map(tuple)
    axis = draw(st.one_of(st.none(), one, several))
    return {"x": x, "axis": axis, "keepdims": draw(st.booleans()), "ord": draw(st.sampled_from(_ORDERS))}


def matrix_norm(x: np.ndarray, keepdims: bool, ord: Any) -> Any:
    if ord in ("nuc", 2, -2):
        values = np.linalg.svd(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64), compute_uv=False)
        found = {"nuc": np.sum, 2: np.max, -2: np.min}[ord](values, axis=-1)
    elif ord == "fro":
        found = np.sqrt(np.sum(_real(x) ** 2, axis=(-2, -1)))
    else:
        sums = np.sum(_real(x), axis=-2 if abs(ord) == 1 else -1)
        found = np.max(sums, axis=-1) if ord > 0 else np.min(sums, axis=-1)
    return found[..., None, None] if keepdims else found


def _matrix_norm(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=2, min_side=1), **_INSIDE))
    ord = draw(st.sampled_from(["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf]))
    return {"x": x, "keepdims": draw(st.booleans()), "ord": ord}


def _norm(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    if draw(st.booleans()):
        found = _vector_norm(draw, dtype) | {"ord": None}
        axis = found["axis"]
        return found | {"axis": axis[:2] if isinstance(axis, tuple) else axis}
    found = _matrix_norm(draw, dtype)
    return found | {"axis": draw(st.sampled_from([(-2, -1), (-1, -2), (0, 1), (1, 0)]))}


def _norm_reference(x: np.ndarray, ord: Any, axis: Any, keepdims: bool) -> Any:
    if ord is None:
        return vector_norm(x, axis, keepdims, 2)
    found = matrix_norm(np.moveaxis(x, axis, (-2, -1)), False, ord)
    return np.expand_dims(found, tuple(place % x.ndim for place in axis)) if keepdims else found


def _frobenius(x: np.ndarray, **_: Any) -> Any:
    return np.sqrt(np.sum(_real(x) ** 2))


spec("vector_norm", _vector_norm, vector_norm, 16.0)
spec("matrix_norm", _matrix_norm, matrix_norm, 32.0, _frobenius)
spec("norm", _norm, _norm_reference, 32.0, _frobenius)


def _floating(x: np.ndarray) -> np.ndarray:
    return x.astype(np.longdouble) if x.dtype.kind in "biu" else x


def _spread(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    found = _vectors(draw, dtype, draw(st.integers(1, 4)))
    if dtype.startswith(("int", "uint")):
        found |= {name: np.clip(found[name], 0, 50) for name in ("x", "y")}
    return found


def _cosine(x: np.ndarray, y: np.ndarray, axis: int) -> Any:
    x, y = (np.moveaxis(_floating(part), axis, -1) for part in (x, y))
    norms = [np.maximum(np.sqrt(np.sum(part * part, axis=-1)), 1e-8) for part in (x, y)]
    return np.sum(x * y, axis=-1) / (norms[0] * norms[1])


def _distance(x: np.ndarray, y: np.ndarray, axis: int) -> Any:
    x, y = (np.moveaxis(_floating(part), axis, -1) for part in (x, y))
    return np.sqrt(np.sum((x - y) ** 2, axis=-1))


def _rows(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    first, second = draw(broadcastable(2))
    width = draw(st.integers(1, 3))
    limits = {**_INSIDE, "low": 0.0} if dtype.startswith(("int", "uint")) else _INSIDE
    x = draw(arrays(dtype, (*first[-1:], draw(SIDE), width), **limits))
    y = draw(arrays(dtype, (*second[-1:], draw(SIDE), width), **limits))
    return {"x": x, "y": y, "p": draw(st.sampled_from([2.0, 1.0, 3.0, math.inf]))}


def _cdist(x: np.ndarray, y: np.ndarray, p: float) -> Any:
    apart = np.abs(_floating(x)[..., :, None, :] - _floating(y)[..., None, :, :])
    return np.max(apart, axis=-1) if p == math.inf else np.sum(apart**p, axis=-1) ** (1 / np.longdouble(p))


def _one_of_spread(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    drawn = _spread(draw, dtype)
    order = draw(st.sampled_from([2, 1, 3]))
    return {"x": drawn["x"], "axis": drawn["axis"], "order": order, "epsilon": 1e-3}


def _normalized(x: np.ndarray, axis: int, order: float, epsilon: float) -> Any:
    size = np.abs(_floating(x))
    lengths = np.sum(size**order, axis=axis, keepdims=True) ** (1 / np.longdouble(order))
    return _floating(x) / np.maximum(lengths, epsilon)


spec("normalize", _one_of_spread, _normalized, 16.0, lambda x, axis, order, epsilon: 1.0)
spec("cosine_similarity", _spread, _cosine, 16.0, lambda x, y, axis: 1.0)
spec("euclidean_distance", _spread, _distance, 8.0)
spec("cdist", _rows, _cdist, 16.0)
