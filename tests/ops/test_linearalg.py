"""Factorizations and linear systems: they reconstruct what they decompose, and agree with NumPy in double precision."""

from __future__ import annotations

import math
from typing import Any

import pytest

import ember_ml
from ember_ml import dtypes, ops
from ember_ml.errors import LinAlgError, UnsupportedDType
from ember_ml.tensor import EmberTensor
from tests.reference.matrices import (
    definite,
    difference,
    exact_expm,
    expm,
    linalg,
    mixed,
    numpy,
    random,
    regular,
    solve_triangular,
    unit,
    wide,
)

ALL = ("float32", "float64", "complex64", "complex128")
REAL = {"complex64": "float32", "complex128": "float64"}
COMPLEX = {"float32": "complex64", "float64": "complex128"}
RECTANGLES = [
    (3, 3),
    (5, 3),
    (3, 5),
    (30, 4),
    (4, 30),
    (2, 6, 4),
    (2, 3, 3, 3),
    (1, 1),
    (0, 3),
    (3, 0),
    (0, 0),
    (0, 2, 2),
    (2, 0, 0),
]
SQUARES = [(3, 3), (5, 5), (1, 1), (8, 8), (2, 4, 4), (2, 3, 3, 3), (0, 0), (0, 2, 2), (2, 0, 0)]


@pytest.fixture(params=ALL)
def dtype(request: pytest.FixtureRequest, backend: str) -> str:
    if dtypes.as_dtype(request.param) not in ember_ml.backend.load(backend).dtypes:
        pytest.skip(f"{backend} has no {request.param}")
    return request.param


def _adjoint(x: Any) -> Any:
    return x.conj().swapaxes(-2, -1)


def _host(*tensors: Any) -> Any:
    found = [ops.to_numpy(x) for x in tensors]
    return found[0] if len(found) == 1 else found


def _agree(got: Any, want: Any, ulps: float = 64) -> None:
    assert difference(got, want) <= ulps


@pytest.mark.parametrize("shape", RECTANGLES)
@pytest.mark.parametrize("full", [True, False])
def test_svd(backend: str, dtype: str, shape: tuple[int, ...], full: bool) -> None:
    x = random(shape, dtype, 1)
    result = ops.svd(ops.asarray(x), full_matrices=full)
    assert type(result)._fields == ("U", "S", "Vh")
    u, s, vh = _host(*result)
    assert (u.dtype, s.dtype, vh.dtype) == (dtype, REAL.get(dtype, dtype), dtype)
    rows, columns = shape[-2:]
    size = min(rows, columns)
    assert u.shape == (*shape[:-1], rows if full else size)
    assert vh.shape == (*shape[:-2], columns if full else size, columns)
    _agree(u[..., :size] * s[..., None, :] @ vh[..., :size, :], wide(x))
    _agree(_adjoint(u) @ u, unit(u))
    _agree(vh @ _adjoint(vh), unit(_adjoint(vh)))
    _agree(s, linalg.svdvals(wide(x)))
    assert (s[..., :-1] >= s[..., 1:]).all()
    values = ops.svdvals(ops.asarray(x))
    assert ops.dtype(values) == REAL.get(dtype, dtype)
    _agree(_host(values), linalg.svdvals(wide(x)))


def test_svd_of_a_matrix_without_full_rank(backend: str, dtype: str) -> None:
    for x in (numpy.zeros((12, 3), dtype), numpy.ones((12, 3), dtype), random((12, 1), dtype) @ random((1, 3), dtype)):
        u, s, vh = _host(*ops.svd(ops.asarray(x), full_matrices=False))
        _agree(_adjoint(u) @ u, unit(u))
        assert numpy.abs(u * s @ vh - x).max() <= 1e-5


@pytest.mark.parametrize("shape", RECTANGLES)
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr(backend: str, dtype: str, shape: tuple[int, ...], mode: str) -> None:
    for x in (random(shape, dtype, 2), numpy.zeros(shape, dtype), numpy.ones(shape, dtype)):
        result = ops.qr(ops.asarray(x), mode=mode)
        assert type(result)._fields == ("Q", "R")
        q, r = _host(*result)
        assert q.dtype == r.dtype == dtype
        size = min(shape[-2:]) if mode == "reduced" else shape[-2]
        assert q.shape == (*shape[:-1], size)
        assert r.shape == (*shape[:-2], size, shape[-1])
        _agree(_adjoint(q) @ q, unit(q))
        assert numpy.array_equal(r, numpy.triu(r))
        assert numpy.abs(q @ r - x).max(initial=0) <= 1e-5


@pytest.mark.parametrize("shape", [(5, 2), (2, 4, 3), (3, 1), (4, 4)])
def test_the_columns_that_complete_q_are_those_of_reflections(backend: str, shape: tuple[int, ...]) -> None:
    """LAPACK's reflections say which; a column that needs no reflection is as they leave it."""
    x = random(shape, "float64", 4)
    for matrix in (x, numpy.where(numpy.arange(shape[-1]) == 0, numpy.eye(*shape[-2:]), x)):
        wanted = linalg.qr(matrix, "complete")
        for got, want in zip(_host(*ops.qr(ops.asarray(matrix), mode="complete")), wanted, strict=True):
            assert numpy.abs(got - want).max() <= 1e-12
        mapped = ops.vmap(lambda y: tuple(ops.qr(y, mode="complete")))(ops.asarray(matrix[None]))
        for got, want in zip(_host(*mapped), wanted, strict=True):
            assert numpy.abs(got[0] - want).max() <= 1e-12


@pytest.mark.parametrize("mapped", [(None, 0), (0, None), (0, 0)])
@pytest.mark.parametrize("shape", [(3, 2), (4, 3, 2), (2, 3, 1)])
def test_mapped_systems_with_stacks_of_columns(backend: str, shape: tuple[int, ...], mapped: Any) -> None:
    a, b = random((2, 3, 3), "float64", 5), random((2, *shape), "float64", 6)
    pairs = [(a[0 if mapped[0] is None else i], b[0 if mapped[1] is None else i]) for i in range(2)]
    given = [x[0] if axis is None else x for x, axis in zip((a, b), mapped, strict=True)]
    got = _host(ops.vmap(ops.solve, in_axes=mapped)(*map(ops.asarray, given)))
    assert numpy.abs(got - numpy.stack([linalg.inv(left) @ right for left, right in pairs])).max() <= 1e-10


@pytest.mark.parametrize("shapes", [((), ()), ((1,), ()), ((), (1,))])
def test_vecdot_of_numbers_has_no_axis(backend: str, shapes: Any) -> None:
    with pytest.raises(IndexError, match=r"ops\.vecdot"):
        ops.vecdot(*map(ops.ones, shapes))


@pytest.mark.parametrize("name", ["eigh", "svd"])
def test_the_first_of_nearly_equal_components_decides_the_sign(backend: str, name: str) -> None:
    """All components of the first vectors are of one size; those of the others are random."""
    size = 128
    places = numpy.arange(size)
    signs = numpy.where(numpy.bitwise_count(places[:, None] & places) % 2, -1.0, 1.0)  # orthogonal, of signs alone
    x = numpy.matmul(signs * numpy.linspace(1.0 / size, 1.0, size), signs.T)
    vectors = _host(getattr(ops, name)(ops.asarray(x))[1 if name == "eigh" else 0])
    assert (vectors[0] > 0).all()
    y = random((size, size), "float64", 7)
    for matrix in (y, y[:, :100]) if name == "svd" else (y + y.T,):
        found = _host(getattr(ops, name)(ops.asarray(matrix), *([False] if name == "svd" else []))[name == "eigh"])
        sizes = numpy.abs(found)
        first = (sizes >= 0.999 * sizes.max(0)).argmax(0)
        assert (found[first, numpy.arange(found.shape[1])] > 0).all()


@pytest.mark.parametrize("shape", SQUARES)
def test_eigh(backend: str, dtype: str, shape: tuple[int, ...]) -> None:
    x = definite(shape, dtype, 3)
    result = ops.eigh(ops.asarray(numpy.tril(x)))  # the upper triangle is not read
    assert type(result)._fields == ("eigenvalues", "eigenvectors")
    values, vectors = _host(*result)
    assert (values.dtype, vectors.dtype) == (REAL.get(dtype, dtype), dtype)
    _agree(values, linalg.eigvalsh(wide(x)))
    _agree(_host(ops.eigvalsh(ops.asarray(numpy.tril(x)))), linalg.eigvalsh(wide(x)))
    _agree(vectors * values[..., None, :] @ _adjoint(vectors), wide(x))
    _agree(_adjoint(vectors) @ vectors, unit(vectors))


@pytest.mark.parametrize("shape", SQUARES)
def test_eig(backend: str, dtype: str, shape: tuple[int, ...]) -> None:
    x = regular(shape, dtype, 4)
    if backend == "mlx" and dtype == "float64":
        for name in ("eig", "eigvals"):
            with pytest.raises(UnsupportedDType, match="complex128"):
                getattr(ops, name)(ops.asarray(x))
        return
    result = ops.eig(ops.asarray(x))
    assert type(result)._fields == ("eigenvalues", "eigenvectors")
    values, vectors = _host(*result)
    assert values.dtype == vectors.dtype == COMPLEX.get(dtype, dtype)
    _agree(vectors * values[..., None, :], wide(x) @ vectors, 200)
    _agree(linalg.norm(vectors, axis=-2), numpy.ones(shape[:-1]))
    want = numpy.sort_complex(linalg.eigvals(wide(x)))
    _agree(numpy.sort_complex(_host(ops.eigvals(ops.asarray(x)))), want, 200)


@pytest.mark.parametrize("shape", SQUARES)
def test_cholesky(backend: str, dtype: str, shape: tuple[int, ...]) -> None:
    x = definite(shape, dtype, 5)
    lower = ops.cholesky(ops.asarray(numpy.tril(x)))
    assert ops.dtype(lower) == dtype
    _agree(_host(lower), linalg.cholesky(wide(x)))
    upper = ops.cholesky(ops.asarray(numpy.tril(x)), upper=True)
    _agree(_host(upper), _adjoint(linalg.cholesky(wide(x))))
    _agree(_host(ops.cholesky_inverse(lower)), linalg.inv(wide(x)), 200)
    _agree(_host(ops.cholesky_inverse(upper, upper=True)), linalg.inv(wide(x)), 200)


@pytest.mark.parametrize("shape", [*SQUARES, (4, 3), (3, 4), (2, 5, 3), (3, 0)])
def test_lu_factor(backend: str, dtype: str, shape: tuple[int, ...]) -> None:
    x = random(shape, dtype, 6)
    result = ops.lu_factor(ops.asarray(x))
    assert type(result)._fields == ("lu", "pivots")
    lu, pivots = _host(*result)
    assert (lu.dtype, pivots.dtype) == (dtype, "int64")
    assert (lu.shape, pivots.shape) == (shape, (*shape[:-2], min(shape[-2:])))
    size = min(shape[-2:])
    for place in numpy.ndindex(shape[:-2]):
        rows = wide(x[place]).copy()
        for k, other in enumerate(pivots[place]):
            rows[[k, other]] = rows[[other, k]]
        lower = numpy.tril(lu[place], -1)[:, :size] + numpy.eye(shape[-2], size)
        _agree(numpy.matmul(lower, numpy.triu(lu[place])[:size]).astype(dtype), rows)
        below = numpy.tril(lu[place], -1)  # LAPACK compares the sums of the parts of complex numbers
        assert (numpy.maximum(abs(below.real), abs(below.imag)) <= 1.4143).all()


@pytest.mark.parametrize("shape", SQUARES)
@pytest.mark.parametrize("right", [None, 1, 3, 0])
def test_solve(backend: str, dtype: str, shape: tuple[int, ...], right: int | None) -> None:
    a, size = mixed(shape, dtype, 7), shape[-1]
    b = random((size,) if right is None else (*shape[:-2], size, right), dtype, 8)
    columns = wide(b)[:, None] if right is None else wide(b)
    want = linalg.solve(wide(a), numpy.broadcast_to(columns, (*shape[:-1], columns.shape[-1])))
    want = want[..., 0] if right is None else want
    got = ops.solve(ops.asarray(a), ops.asarray(b))
    assert ops.dtype(got) == dtype
    _agree(_host(got), want)
    _agree(_host(ops.lu_solve(*ops.lu_factor(ops.asarray(a)), ops.asarray(b))), want)
    a = regular(shape, dtype, 7)
    for lower in (False, True):
        triangle = numpy.tril(a) if lower else numpy.triu(a)
        wanted = linalg.solve(wide(triangle), numpy.broadcast_to(columns, (*shape[:-1], columns.shape[-1])))
        found = ops.solve_triangular(ops.asarray(a), ops.asarray(b), lower=lower)
        _agree(_host(found), wanted[..., 0] if right is None else wanted)


@pytest.mark.parametrize(
    ("left", "right"), [((2, 1, 3, 3), (4, 3, 2)), ((3, 3), (4, 3, 2)), ((4, 3, 3), (3, 2)), ((3, 3, 3), (3, 3))]
)
def test_stacks_of_systems_broadcast(backend: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = mixed(left, "float32", 1), random(right, "float32", 2)
    want = linalg.solve(wide(a), wide(b))
    _agree(_host(ops.solve(ops.asarray(a), ops.asarray(b))), want)
    lu, pivots = ops.lu_factor(ops.asarray(a))
    _agree(_host(ops.lu_solve(lu, pivots, ops.asarray(b))), want)
    a = regular(left, "float32", 1)
    upper = linalg.solve(wide(numpy.triu(a)), wide(b))
    _agree(_host(ops.solve_triangular(ops.asarray(a), ops.asarray(b))), upper)


def test_large_triangle(backend: str) -> None:
    a, b = regular((150, 150), "float64", 1), random((150, 2), "float64", 2)
    for lower in (False, True):
        got = _host(ops.solve_triangular(ops.asarray(a), ops.asarray(b), lower=lower))
        _agree(got, solve_triangular(a, b, lower=lower))


@pytest.mark.parametrize("shape", SQUARES)
def test_inverse_and_determinant(backend: str, dtype: str, shape: tuple[int, ...]) -> None:
    x = mixed(shape, dtype, 9)
    inverse = ops.inv(ops.asarray(x))
    assert ops.dtype(inverse) == dtype
    _agree(_host(inverse), linalg.inv(wide(x)))
    determinant = ops.det(ops.asarray(x))
    assert ops.dtype(determinant) == dtype
    _agree(_host(determinant), linalg.det(wide(x)))
    result = ops.slogdet(ops.asarray(x))
    assert type(result)._fields == ("sign", "logabsdet")
    sign, size = _host(*result)
    assert (sign.dtype, size.dtype) == (dtype, REAL.get(dtype, dtype))
    _agree(sign, linalg.slogdet(wide(x))[0])
    assert numpy.abs(size - linalg.slogdet(wide(x))[1]).max(initial=0) <= 1e-5
    logarithm = _host(ops.logdet(ops.asarray(definite(shape, dtype, 9))))
    assert logarithm.dtype == dtype
    assert numpy.abs(logarithm - linalg.slogdet(wide(definite(shape, dtype, 9)))[1]).max(initial=0) <= 1e-5


def test_determinants_that_are_special(backend: str) -> None:
    zero, negative = [[1.0, 2.0], [2.0, 4.0]], [[0.0, 1.0], [1.0, 0.0]]
    assert _host(ops.det(zero)).tolist() == 0.0
    assert [_host(part).tolist() for part in ops.slogdet(zero)] == [0.0, -math.inf]
    assert _host(ops.logdet(zero)).tolist() == -math.inf
    assert math.isnan(_host(ops.logdet(negative)).tolist())
    unknown = [[math.nan, 1.0], [1.0, 1.0]]
    assert math.isnan(_host(ops.det(unknown)).tolist())
    assert all(math.isnan(_host(part).tolist()) for part in ops.slogdet(unknown))
    precise = ops.det(ops.asarray([[1.0, 1e-9], [1.0, 1.0]], dtype="float64"))
    assert abs(_host(precise).tolist() - (1 - 1e-9)) < 1e-15


@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (2, 5, 3), (0, 3), (3, 0), (2, 0, 3)])
def test_pseudo_inverse_and_rank(backend: str, dtype: str, shape: tuple[int, ...]) -> None:
    x = random(shape, dtype, 10)
    _agree(_host(ops.pinv(ops.asarray(x))), linalg.pinv(wide(x)), 200)
    rank = ops.matrix_rank(ops.asarray(x))
    assert ops.dtype(rank) == "int64"
    assert _host(rank).tolist() == linalg.matrix_rank(wide(x)).tolist()


def test_tolerance_of_pseudo_inverse_and_rank(backend: str) -> None:
    x = ops.asarray([[1.0, 0.0], [0.0, 0.01]])
    assert _host(ops.matrix_rank(x)).tolist() == 2
    assert _host(ops.matrix_rank(x, rtol=0.1)).tolist() == 1
    assert _host(ops.pinv(x, rtol=0.1)).tolist() == [[1.0, 0.0], [0.0, 0.0]]
    stack = ops.stack([x, x])
    assert _host(ops.matrix_rank(stack, rtol=ops.asarray([0.1, 0.001]))).tolist() == [1, 2]
    found = _host(ops.pinv(stack, rtol=ops.asarray([0.1, 0.001])))
    assert difference(found, [[[1, 0], [0, 0]], [[1, 0], [0, 100]]]) < 8
    assert _host(ops.matrix_rank(ops.zeros((3, 3)))).tolist() == 0


@pytest.mark.parametrize("n", [-3, -1, 0, 1, 2, 3, 7])
def test_matrix_power(backend: str, dtype: str, n: int) -> None:
    for shape in ((3, 3), (2, 2, 2), (0, 0)):
        x = regular(shape, dtype, 11)
        got = ops.matrix_power(ops.asarray(x), n)
        assert ops.dtype(got) == dtype
        _agree(_host(got), linalg.matrix_power(wide(x), n), 200)


def test_matrix_power_of_integers(backend: str) -> None:
    fibonacci = ops.matrix_power(ops.asarray([[1, 1], [1, 0]]), 60)
    assert ops.dtype(fibonacci) == "int64"
    assert _host(fibonacci).tolist() == [[2504730781961, 1548008755920], [1548008755920, 956722026041]]
    with pytest.raises(TypeError, match="cast"):
        ops.matrix_power(ops.asarray([[1, 1], [1, 0]]), -1)


@pytest.mark.parametrize("scale", [0.0, 0.1, 3.0, 10.0])
def test_expm(backend: str, dtype: str, scale: float) -> None:
    for shape in ((3, 3), (2, 4, 4), (1, 1), (0, 0)):
        x = (random(shape, dtype, 14) * scale).astype(dtype)
        got = ops.expm(ops.asarray(x))
        assert ops.dtype(got) == dtype
        _agree(_host(got), expm(wide(x)) if x.size else x, 32 + 64 * scale)
    assert numpy.isnan(_host(ops.expm(ops.asarray([[math.nan, 0.0], [0.0, 1.0]])))).any()
    with pytest.raises(ValueError, match="expm"):
        ops.expm(ops.ones((2, 3)))


@pytest.mark.parametrize("shape", [(5, 3), (3, 3), (3, 5), (40, 4), (0, 3), (3, 0)])
@pytest.mark.parametrize("right", [None, 2])
def test_lstsq(backend: str, dtype: str, shape: tuple[int, int], right: int | None) -> None:
    a = random(shape, dtype, 12)
    b = random((shape[0],) if right is None else (shape[0], right), dtype, 13)
    result = ops.lstsq(ops.asarray(a), ops.asarray(b))
    assert type(result)._fields == ("solution", "residuals", "rank", "singular_values")
    solution, residuals, rank, values = _host(*result)
    wanted = linalg.lstsq(wide(a), wide(b), rcond=None)
    assert (solution.dtype, values.dtype, rank.dtype) == (dtype, REAL.get(dtype, dtype), "int64")
    _agree(solution, wanted[0], 200)
    assert residuals.shape == wanted[1].shape
    _agree(residuals, wanted[1], 200)
    assert rank.tolist() == wanted[2]
    _agree(values, wanted[3])


def test_lstsq_without_full_rank(backend: str) -> None:
    a = numpy.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]], "float32")
    solution, residuals, rank, _ = _host(*ops.lstsq(ops.asarray(a), ops.asarray([1.0, 2.0, 3.0])))
    _agree(solution, [0.5, 0.5])
    assert (residuals.shape, rank.tolist()) == ((0,), 1)
    scaled = numpy.array([[1.0, 0.0], [0.0, 0.01], [0.0, 0.0]], "float32")
    cut = ops.lstsq(ops.asarray(scaled), ops.asarray([1.0, 1.0, 0.0]), rcond=0.1)
    assert _host(cut.rank).tolist() == 1
    _agree(_host(cut.solution), [1.0, 0.0])


FINITE = ("svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals", "pinv", "matrix_rank")


@pytest.mark.parametrize("name", FINITE)
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_matrix_that_is_not_finite_has_no_factorization(backend: str, name: str, bad: float) -> None:
    stack = ops.asarray([[[1.0, 0.0], [0.0, 1.0]], [[1.0, bad], [bad, 1.0]]])
    with pytest.raises(LinAlgError, match=name):
        getattr(ops, name)(stack)
    if name in ("pinv", "matrix_rank"):
        return
    with ember_ml.value_checks(False):
        result = getattr(ops, name)(stack)
    for part in result if isinstance(result, tuple) else (result,):
        found = _host(part)
        assert numpy.isfinite(found[0]).all()
        assert numpy.isnan(found[1]).all()


@pytest.mark.parametrize("kind", ["float32", "complex64"])
def test_singular_matrices(backend: str, kind: str) -> None:
    good, bad = [[2.0, 0.0], [0.0, 4.0]], [[1.0, 2.0], [2.0, 4.0]]
    triangle = [[1.0, 1.0], [0.0, 0.0]]
    right = ops.asarray([[1.0], [2.0]], dtype=kind)
    calls = {
        "solve": lambda x: ops.solve(x, right),
        "inv": ops.inv,
        "cholesky": ops.cholesky,
        "solve_triangular": lambda x: ops.solve_triangular(x, right),
    }
    for name, call in calls.items():
        second = triangle if name == "solve_triangular" else bad
        stack = ops.asarray([good, second], dtype=kind)
        with pytest.raises(LinAlgError, match=name):
            call(stack)
        with ember_ml.value_checks(False):
            found = _host(call(stack))
        assert numpy.isfinite(found[0]).all(), name
        assert numpy.isnan(found[1]).all(), name
    with pytest.raises(LinAlgError, match="lstsq"):
        ops.lstsq([[math.nan, 1.0], [1.0, 1.0]], [1.0, 1.0])


def test_nan_in_a_system_gives_nan(backend: str) -> None:
    stack = ops.asarray([[[2.0, 0.0], [0.0, 4.0]], [[math.nan, 1.0], [1.0, 1.0]]])
    for found in (_host(ops.inv(stack)), _host(ops.solve(stack, ops.asarray([1.0, 1.0])))):
        assert numpy.isfinite(found[0]).all()
        assert numpy.isnan(found[1]).all()


@pytest.mark.parametrize(
    "name",
    [
        "svd",
        "svdvals",
        "eigh",
        "eigvalsh",
        "eig",
        "eigvals",
        "qr",
        "cholesky",
        "lu_factor",
        "inv",
        "det",
        "slogdet",
        "logdet",
        "pinv",
        "matrix_rank",
    ],
)
def test_what_a_factorization_refuses(backend: str, name: str) -> None:
    op = getattr(ops, name)
    for half in ("float16", "bfloat16"):
        with pytest.raises(UnsupportedDType, match=half):
            op(ops.ones((2, 2), dtype=half))
    with pytest.raises(ValueError, match=name):
        op(ops.ones((3,)))
    if name not in ("svd", "svdvals", "qr", "lu_factor", "pinv", "matrix_rank"):
        with pytest.raises(ValueError, match=name):
            op(ops.ones((2, 3)))
    lifted = op(ops.asarray([[2, 1], [1, 2]], dtype="int32"))
    first = lifted[0] if isinstance(lifted, tuple) else lifted
    assert ops.dtype(first) == {"eig": "complex64", "eigvals": "complex64", "matrix_rank": "int64"}.get(name, "float32")


@pytest.mark.parametrize(
    ("left", "right"),
    [((2, 3), (2,)), ((2, 2), (3,)), ((2, 2), (3, 2)), ((2, 2), ()), ((2,), (2,)), ((3, 2, 2), (2, 2, 1))],
)
@pytest.mark.parametrize("name", ["solve", "solve_triangular"])
def test_systems_that_do_not_fit(backend: str, name: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=name):
        getattr(ops, name)(ops.ones(left), ops.ones(right))
    with pytest.raises(ValueError, match="lstsq"):
        ops.lstsq(ops.ones((2, 2, 2)), ops.ones((2,)))
    with pytest.raises(ValueError, match="mode"):
        ops.qr(ops.ones((2, 2)), mode="raw")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_expm_of_matrices_far_from_normal(dtype: str, backend: str) -> None:
    """The exponential of [[a, c], [0, b]] has c (exp(a) - exp(b)) / (a - b) in its corner, however large c is."""
    if backend == "torch":
        pytest.skip("PyTorch's own halves such matrices too often")
    a, b = 1.0, -1.0
    corner = (math.exp(a) - math.exp(b)) / (a - b)
    stack = [[[a, c], [0.0, b]] for c in (0.5, 1e3, 1e6)]
    got = ops.to_numpy(ops.expm(ops.array(stack, dtype=dtype)))
    for matrix, (row, _) in zip(got, stack, strict=True):
        assert difference(matrix, numpy.array([[math.exp(a), row[1] * corner], [0.0, math.exp(b)]])) < 8


def test_expm_in_a_stack_scales_each_matrix_by_itself(backend: str) -> None:
    x = numpy.stack([scale * random((4, 4), seed=3) for scale in (1e-8, 1.0, 5.0)])
    got = ops.to_numpy(ops.expm(ops.asarray(x)))
    for matrix, one in zip(got, x, strict=True):
        assert difference(matrix, exact_expm(one)) < 40


def test_the_tolerance_of_a_pseudo_inverse_may_be_portable(backend: str) -> None:
    x = EmberTensor([[[2.0, 0.0], [0.0, 1e-3]]])
    found = ops.pinv(x, rtol=EmberTensor([0.1]))
    assert ops.to_numpy(found).tolist() == [[[0.5, 0.0], [0.0, 0.0]]]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_least_squares_refuse_what_is_not_finite(backend: str, value: float) -> None:
    a = ops.array([[1.0, 0.0], [2.0, 1.0], [0.0, 1.0]])
    for left, right in ((a, [1.0, value, 3.0]), (ops.multiply(a, value), [1.0, 2.0, 3.0])):
        with pytest.raises(LinAlgError, match="lstsq"):
            ops.lstsq(left, ops.array(right))


def test_distances_of_rows_without_elements(backend: str) -> None:
    for p in (0.0, 1.0, 2.0, 3.0, math.inf):
        assert ops.to_numpy(ops.cdist(ops.zeros((2, 0)), ops.zeros((1, 0)), p)).tolist() == [[0.0], [0.0]]
        slope = ops.grad(lambda x, p=p: ops.sum(ops.cdist(x, ops.zeros((3, 0)), p)))(ops.zeros((2, 0)))
        assert tuple(slope.shape) == (2, 0)
