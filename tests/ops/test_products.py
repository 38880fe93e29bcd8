"""Products of tensors, norms and distances, against NumPy and SciPy in double precision."""

from __future__ import annotations

import math
from typing import Any

import pytest

import ember_ml
from ember_ml import dtypes, ops
from tests.reference.matrices import difference, distances, integer_product, integers, linalg, numpy, random, wide

FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.fixture(params=FLOATS)
def dtype(request: pytest.FixtureRequest, backend: str) -> str:
    if dtypes.as_dtype(request.param) not in ember_ml.backend.load(backend).dtypes:
        pytest.skip(f"{backend} has no {request.param}")
    return request.param


def _agree(got: Any, want: Any, dtype: str, ulps: float = 16) -> None:
    assert ops.dtype(got) == dtype
    assert difference(ops.to_numpy(got), want) <= ulps


MATMUL_SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (4, 3, 1)),
    ((3,), (5, 3, 2)),
    ((5, 2, 3), (3,)),
    ((2, 0), (0, 3)),
    ((0, 3), (3, 2)),
    ((0, 2, 3), (3, 1)),
    ((1, 200), (200, 1)),
]


@pytest.mark.parametrize(("left", "right"), MATMUL_SHAPES)
def test_matmul(backend: str, dtype: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x, y = random(left, dtype, 1), random(right, dtype, 2)
    want = numpy.matmul(wide(x), wide(y))
    got = ops.matmul(ops.asarray(x), ops.asarray(y))
    assert ops.dtype(got) == dtype
    # errors grow with the sizes of the products, which may cancel
    size = numpy.matmul(abs(wide(x)), abs(wide(y))).max(initial=0) / max(abs(want).max(initial=0), 1e-30)
    assert difference(ops.to_numpy(got), want) <= 4 * max(size, 1)


@pytest.mark.parametrize("integer", INTEGERS)
@pytest.mark.parametrize(
    ("left", "right", "subscripts"),
    [
        ((3, 4), (4, 5), "ij,jk->ik"),
        ((2, 1, 3, 4), (5, 4, 2), "abij,bjk->abik"),
        ((7,), (7,), "i,i->"),
        ((2, 300), (300,), "ij,j->i"),
    ],
)
def test_product_of_integers_is_exact(
    backend: str, integer: str, left: tuple[int, ...], right: tuple[int, ...], subscripts: str
) -> None:
    x, y = integers(left, integer, 1), integers(right, integer, 2)
    got = ops.matmul(ops.asarray(x), ops.asarray(y))
    if subscripts.startswith("ab"):  # the stack of the second operand is broadcast over the first
        x = numpy.broadcast_to(x, (2, 5, 3, 4))
    want = integer_product(subscripts, x, y)
    assert ops.dtype(got) == integer
    assert ops.to_numpy(got).tolist() == want.tolist()


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("...ij,...jk->...ik", (2, 3, 4), (4, 5)),
    ("i,j->ij", (2,), (3,)),
    ("i,i->", (4,), (4,)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("ijk->kji", (2, 3, 4)),
    ("ij->", (2, 3)),
    ("...i->...", (2, 3, 4)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
    ("ij,ij->ij", (2, 3), (2, 3)),
    ("iij,j->i", (3, 3, 2), (2,)),
    ("ab,cd->abcd", (2, 2), (2, 3)),
    ("ij,kj->ik", (2, 1), (3, 4)),
    ("ij,k->j", (2, 3), (4,)),
    (" i j , j -> i ", (2, 3), (3,)),
    ("ij,jk->ik", (0, 3), (3, 4)),
    ("ij,jk->ik", (2, 0), (0, 4)),
]


@pytest.mark.parametrize("case", EINSUMS, ids=lambda case: case[0])
def test_einsum(backend: str, dtype: str, case: tuple[Any, ...]) -> None:
    subscripts, *shapes = case
    operands = [random(shape, dtype, k) for k, shape in enumerate(shapes)]
    got = ops.einsum(subscripts, *map(ops.asarray, operands))
    _agree(got, numpy.einsum(subscripts, *map(wide, operands)), dtype, ulps=40)


@pytest.mark.parametrize("case", EINSUMS, ids=lambda case: case[0])
@pytest.mark.parametrize("integer", ["int64", "uint16", "uint64"])
def test_einsum_of_integers_is_exact(backend: str, integer: str, case: tuple[Any, ...]) -> None:
    subscripts, *shapes = case
    operands = [integers(shape, integer, k) for k, shape in enumerate(shapes)]
    got = ops.einsum(subscripts, *map(ops.asarray, operands))
    assert ops.dtype(got) == integer
    assert ops.to_numpy(got).tolist() == integer_product(subscripts, *operands).tolist()


@pytest.mark.parametrize("subscripts", ["ij,jk->iz", "ij,jk->ii", "ij->i", "ijk,jk->i", "i?,jk->i", "ij,kj->ik"])
def test_einsum_refuses_subscripts_that_do_not_fit(backend: str, subscripts: str) -> None:
    for dtype in ("float32", "int32"):
        with pytest.raises(ValueError, match="einsum"):
            ops.einsum(subscripts, ops.ones((2, 3), dtype=dtype), ops.ones((2, 4), dtype=dtype))


BINARY = [
    ("dot", {}, (), (3,)),
    ("dot", {}, (3,), (3,)),
    ("dot", {}, (2, 3), (3, 4)),
    ("dot", {}, (3,), (2, 3, 4)),
    ("dot", {}, (5, 2, 3), (4, 3, 2)),
    ("inner", {}, (), (2, 2)),
    ("inner", {}, (3,), (3,)),
    ("inner", {}, (2, 3), (4, 3)),
    ("inner", {}, (2, 3), (5, 4, 3)),
    ("vdot", {}, (2, 3), (3, 2)),
    ("vecdot", {}, (3,), (3,)),
    ("vecdot", {}, (2, 3), (3,)),
    ("vecdot", {}, (5, 1, 3), (2, 3)),
    ("vecdot", {"axis": -2}, (3, 2), (3, 1)),
    ("vecdot", {"axis": 0}, (3, 2), (3, 2)),
    ("outer", {}, (2,), (3,)),
    ("outer", {}, (0,), (3,)),
    ("tensordot", {}, (2, 3, 4), (3, 4, 5)),
    ("tensordot", {"axes": 0}, (2, 3), (4,)),
    ("tensordot", {"axes": 1}, (2, 3), (3, 4)),
    ("tensordot", {"axes": ((0, -1), (1, 0))}, (2, 3, 4), (4, 2, 5)),
    ("tensordot", {"axes": ((0,), (0,))}, (0, 2), (0, 3)),
    ("kron", {}, (2, 3), (3, 2)),
    ("kron", {}, (2,), (3, 2, 1)),
    ("kron", {}, (), (2,)),
    ("cross", {}, (3,), (3,)),
    ("cross", {}, (2, 3), (5, 1, 3)),
    ("cross", {"axis": 0}, (3, 2), (3, 2)),
    ("cross", {"axis": -2}, (3, 2), (4, 3, 1)),
]


@pytest.mark.parametrize(("name", "options", "left", "right"), BINARY)
def test_product(
    backend: str, dtype: str, name: str, options: dict[str, Any], left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    x, y = random(left, dtype, 1), random(right, dtype, 2)
    reference = linalg.cross if name == "cross" else getattr(numpy, name)
    want = reference(wide(x), wide(y), **options)
    got = getattr(ops, name)(ops.asarray(x), ops.asarray(y), **options)
    assert tuple(got.shape) == want.shape
    _agree(got, want, dtype)


@pytest.mark.parametrize(
    ("name", "left", "right"),
    [
        ("matmul", (), (2,)),
        ("matmul", (2, 3), (2, 3)),
        ("matmul", (2, 2, 3), (3, 3, 2)),
        ("vecdot", (1,), (3,)),
        ("vdot", (2,), (3,)),
        ("inner", (2,), (3,)),
        ("dot", (2,), (3,)),
        ("outer", (2, 2), (2,)),
        ("cross", (2,), (2,)),
        ("cross", (3,), (1,)),
        ("tensordot", (2, 3), (1, 3)),
    ],
)
@pytest.mark.parametrize("kind", ["float32", "int32", "uint16"])
def test_product_refuses_shapes_that_do_not_fit(
    backend: str, kind: str, name: str, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match=name):
        getattr(ops, name)(ops.ones(left, dtype=kind), ops.ones(right, dtype=kind))


@pytest.mark.parametrize(
    ("x", "weight", "bias"),
    [
        ((2, 3), (4, 2), (4,)),
        ((2, 3), (4, 3), (1,)),
        ((2, 3), (4, 3), ()),
        ((2, 3), (4, 3), (2, 4)),
        ((4, 3), (4, 3), (3,)),
        ((3,), (3,), None),
        ((2, 3), (1, 4, 3), None),
        ((), (4, 3), (4,)),
    ],
)
@pytest.mark.parametrize("kind", ["float32", "float16", "int32", "uint16"])
def test_linear_refuses_shapes_that_do_not_fit(backend: str, kind: str, x: Any, weight: Any, bias: Any) -> None:
    given = [None if shape is None else ops.ones(shape, dtype=kind) for shape in (x, weight, bias)]
    with pytest.raises(ValueError, match="linear"):
        ops.linear(*given)


@pytest.mark.parametrize("shape", [(512,), (1, 512), (3, 512), (2, 1, 512), (0, 512)])
@pytest.mark.parametrize("has_steps", [False, True])
def test_linear_with_a_large_weight(backend: str, shape: tuple[int, ...], has_steps: bool) -> None:
    """Libraries may have other kernels for these, which must read steps between elements and be differentiated."""
    step = 2 if has_steps else 1
    x, weight, bias = random(shape, "float32", 1), random((256 * step, 512), "float32", 2), random((512,), "float32", 3)
    of_weight, of_bias = ops.asarray(weight)[::step], ops.asarray(bias)[: 256 * step : step]
    want = wide(x) @ wide(weight)[::step].T + wide(bias)[: 256 * step : step]
    _agree(ops.linear(ops.asarray(x), of_weight, of_bias), want, "float32", 64)
    got = ember_ml.grad(lambda x: ops.sum(ops.linear(x, of_weight, of_bias)))(ops.asarray(x))
    _agree(got, numpy.broadcast_to(wide(weight)[::step].sum(0), shape), "float32", 64)
    if shape[0] > 1 and len(shape) > 1:
        _agree(ember_ml.vmap(lambda row: ops.linear(row, of_weight, of_bias))(ops.asarray(x)), want, "float32", 64)


@pytest.mark.parametrize("name", ["linear", "matmul", "dot", "vdot", "vecdot", "inner", "tensordot"])
@pytest.mark.parametrize(("left", "right"), [("float16", "float32"), ("bfloat16", "float64"), ("float16", "bfloat16")])
def test_contraction_refuses_to_mix_half_precision(backend: str, name: str, left: str, right: str) -> None:
    x, y = ops.ones((2, 2), dtype=left), ops.ones((2, 2), dtype=right)
    with pytest.raises(TypeError, match="half precision"):
        getattr(ops, name)(x, y)
    with pytest.raises(TypeError, match="half precision"):
        ops.einsum("ij,jk->ik", x, y)
    with pytest.raises(TypeError, match="bool"):
        getattr(ops, name)(ops.ones((2, 2), dtype="bool"), ops.ones((2, 2), dtype="bool"))


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (2, 3, 4), (0, 3), (3, 0)])
@pytest.mark.parametrize("offset", [0, 1, -1, 9, -9])
def test_diagonal_and_trace(backend: str, shape: tuple[int, ...], offset: int) -> None:
    for dtype in ("float32", "int8", "uint16", "bool"):
        x = integers(shape, "int8", 3).astype(dtype)
        want = numpy.diagonal(x, offset, -2, -1)
        got = ops.diagonal(ops.asarray(x), offset=offset)
        assert ops.dtype(got) == dtype
        assert ops.to_numpy(got).tolist() == want.tolist()
        if dtype != "bool":
            total = ops.trace(ops.asarray(x), offset=offset)
            assert ops.dtype(total) == {"float32": "float32", "int8": "int64", "uint16": "uint64"}[dtype]
            assert (
                ops.to_numpy(total).tolist() == want.astype("int64" if dtype != "float32" else dtype).sum(-1).tolist()
            )


@pytest.mark.parametrize("order", [2, 1, 0, 3, 0.5, -1, -2, math.inf, -math.inf])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_vector_norm(backend: str, dtype: str, order: float, axis: Any, keepdims: bool) -> None:
    x = random((2, 3, 4), dtype, 5)
    got = ops.vector_norm(ops.asarray(x), axis=axis, keepdims=keepdims, ord=order)
    want = linalg.vector_norm(wide(x), axis=axis, keepdims=keepdims, ord=order)
    _agree(got, want, {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype))


@pytest.mark.parametrize("order", ["fro", "nuc", 2, -2, 1, -1, math.inf, -math.inf])
@pytest.mark.parametrize("keepdims", [False, True])
def test_matrix_norm(backend: str, dtype: str, order: Any, keepdims: bool) -> None:
    if dtype in ("float16", "bfloat16") and order in ("nuc", 2, -2):
        pytest.skip("needs singular values, which half precision does not have")
    x = random((2, 3, 4), dtype, 6)
    real = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    got = ops.matrix_norm(ops.asarray(x), ord=order, keepdims=keepdims)
    _agree(got, linalg.matrix_norm(wide(x), ord=order, keepdims=keepdims), real)
    crossed = ops.norm(ops.asarray(x), ord=order, axis=(2, 0), keepdims=keepdims)
    _agree(crossed, linalg.norm(wide(x), ord=order, axis=(2, 0), keepdims=keepdims), real)


def test_norm_follows_the_number_of_dimensions(backend: str) -> None:
    x = random((3, 3), "float32")
    assert difference(ops.to_numpy(ops.norm(ops.asarray(x), 1)), linalg.norm(wide(x), 1)) < 8
    assert difference(ops.to_numpy(ops.norm(ops.asarray(x[0]), 1)), linalg.norm(wide(x[0]), 1)) < 8
    assert difference(ops.to_numpy(ops.norm(ops.ones((2, 2, 2)))), math.sqrt(8)) < 2
    assert tuple(ops.norm(ops.ones((2, 3)), keepdims=True).shape) == (1, 1)
    assert ops.to_numpy(ops.vector_norm(ops.zeros((0, 3)), axis=0)).tolist() == [0.0, 0.0, 0.0]
    for arguments, options in (
        ((ops.ones((2, 2, 2)), 1), {}),
        ((ops.ones((2,)), "fro"), {}),
        ((ops.ones((2, 2)), "who"), {}),
    ):
        with pytest.raises(ValueError, match="norm"):
            ops.norm(*arguments, **options)
    with pytest.raises(IndexError):
        ops.norm(ops.ones((2, 2)), axis=2)
    with pytest.raises(ValueError, match="vector_norm"):
        ops.vector_norm(ops.zeros((0,)), ord=math.inf)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.5, math.inf])
def test_cdist(backend: str, p: float) -> None:
    x, y = random((7, 5), "float32", 1), random((6, 5), "float32", 2)
    metric: dict[str, Any] = {"metric": "chebyshev"} if p == math.inf else {"metric": "minkowski", "p": p}
    want = (x[:, None] != y[None]).sum(-1) if p == 0 else distances.cdist(wide(x), wide(y), **metric)
    _agree(ops.cdist(ops.asarray(x), ops.asarray(y), p), want, "float32")
    stacked = ops.cdist(ops.asarray(x[None]), ops.asarray(numpy.stack([y, y])), p)
    assert difference(ops.to_numpy(stacked)[1], want) <= 16


def test_cdist_keeps_the_precision_of_close_rows(backend: str) -> None:
    x = numpy.full((40, 3), 1e4, "float32")
    y = x + numpy.float32(1 / 64)
    want = distances.cdist(wide(x), wide(y))
    assert difference(ops.to_numpy(ops.cdist(ops.asarray(x), ops.asarray(y))), want) <= 4
    assert tuple(ops.cdist(ops.ones((0, 3)), ops.ones((2, 3))).shape) == (0, 2)
    with pytest.raises(ValueError, match="cdist"):
        ops.cdist(ops.ones((2, 3)), ops.ones((2, 4)))


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_distance_and_similarity(backend: str, kind: str) -> None:
    x, y = random((4, 3), kind, 1), random((3,), kind, 2)
    a, b = wide(x), wide(y)
    _agree(ops.euclidean_distance(ops.asarray(x), ops.asarray(y)), linalg.norm(a - b, axis=-1), kind)
    want = (a @ b) / (linalg.norm(a, axis=-1) * linalg.norm(b))
    _agree(ops.cosine_similarity(ops.asarray(x), ops.asarray(y)), want, kind)
    zero = ops.cosine_similarity(ops.zeros((3,), dtype=kind), ops.asarray(y))
    assert ops.to_numpy(zero).tolist() == 0.0


def test_view_is_complete() -> None:
    for name in ("matmul", "svd", "solve", "norm", "diag", "matrix_transpose", "cdist"):
        assert getattr(ops.linearalg, name) is getattr(ops, name)


def test_einsum_broadcasts_to_an_empty_axis(backend: str) -> None:
    assert ops.shape(ops.einsum("...i,...i->...", ops.ones((2, 1, 3)), ops.ones((0, 3)))) == (2, 0)
    assert ops.to_numpy(ops.einsum("ij,jk->ik", ops.ones((2, 0)), ops.ones((0, 1)))).tolist() == [[0.0], [0.0]]


_PATTERN = [(k * 37 % 1009 + 0.5) / 1024 for k in range(1009)]  # exact in float32
_TIMES = 2000
_LONG = {
    "dot": ops.dot,
    "inner": ops.inner,
    "vdot": ops.vdot,
    "tensordot": lambda x, y: ops.tensordot(x, y, 1),
    "einsum": lambda x, y: ops.einsum("i,i->", x, y),
    "row": lambda x, y: ops.matmul(ops.expand_dims(x, 0), y),
    "vecdot": lambda x, y: ops.vecdot(ops.stack([x, y]), ops.stack([y, x])),
    "linear": lambda x, y: ops.linear(ops.expand_dims(x, 0), ops.expand_dims(y, 0)),
}


@pytest.mark.parametrize("name", _LONG)
def test_long_sums_of_products_keep_their_digits(backend: str, name: str) -> None:
    """Two million positive float32: added one after the other, they are wrong by 1e-3."""
    exact = _TIMES * math.fsum(a * b for a, b in zip(_PATTERN, reversed(_PATTERN), strict=True))
    x = ops.tile(ops.array(_PATTERN), _TIMES)
    y = ops.tile(ops.array(_PATTERN[::-1]), _TIMES)
    for found in ops.to_numpy(ops.reshape(_LONG[name](x, y), (-1,))).tolist():
        assert found == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize(
    ("left", "right"),
    [((9001,), (9001,)), ((2, 9001), (9001,)), ((9001,), (9001, 3)), ((2, 1, 2, 8192), (3, 8192, 4))],
)
def test_products_with_long_sums_have_the_usual_shapes(
    backend: str, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    x, y = random(left, "float32", 1), random(right, "float32", 2)
    assert difference(ops.to_numpy(ops.matmul(ops.asarray(x), ops.asarray(y))), wide(x) @ wide(y)) < 64
