"""What holds of factorizations and of the solutions of linear systems, measured in double precision.

The matrices are far from singular, so that every result is accurate to a few units of its precision.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg
from hypothesis import strategies as st

from tests.reference import EPS, numpy_dtype
from tests.reference.spec import law, spec

_STACKS = st.sampled_from([(), (), (2,), (0,), (2, 1)])
_SIDES = st.integers(0, 4)


def _generator(draw: st.DrawFn) -> np.random.Generator:
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1)))


def _any(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers between -1 and 1; of integers and bools 0 and 1."""
    if dtype.startswith(("int", "uint", "bool")):
        return rng.integers(0, 2, shape).astype(dtype)
    values: Any = rng.uniform(-1, 1, shape)
    if dtype.startswith("complex"):
        values = values + 1j * rng.uniform(-1, 1, shape)
    return values.astype(numpy_dtype(dtype))


def _regular(rng: np.random.Generator, dtype: str, stack: tuple[int, ...], n: int) -> np.ndarray:
    """Square matrices far from singular, whose largest elements are not on the diagonal."""
    x = _any(rng, dtype, (*stack, n, n))
    if dtype == "bool":
        return np.tril(x, -1) | np.eye(n, dtype=bool)
    x = (x / max(n, 1)).astype(x.dtype) if x.dtype.kind in "fc" else x
    x = x + (np.eye(n) * (2 if x.dtype.kind in "fc" else n + 1)).astype(x.dtype)
    return np.take(x, rng.permutation(n), axis=-2)


def _definite(rng: np.random.Generator, dtype: str, stack: tuple[int, ...], n: int) -> np.ndarray:
    if dtype == "bool":
        return np.broadcast_to(np.eye(n, dtype=bool), (*stack, n, n)).copy()
    x = _any(rng, dtype, (*stack, n, n))
    if x.dtype.kind in "iu":
        x = np.triu(x, 1)
        return x + x.swapaxes(-2, -1) + (n + 1) * np.eye(n, dtype=x.dtype)
    return (x @ x.conj().swapaxes(-2, -1) / max(n, 1) + np.eye(n)).astype(x.dtype)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _adjoint(x: np.ndarray) -> np.ndarray:
    return x.conj().swapaxes(-2, -1)


def _eps(*results: np.ndarray) -> float:
    return max(EPS[part.dtype.name] for part in results if part.dtype.kind in "fc")


def _apart(found: Any, wanted: Any, allowed: float, what: str) -> str | None:
    """What is wrong where two arrays differ by more than ``allowed``, measured against the largest of the second."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape:
        return f"{what} has shape {found.shape}, not {wanted.shape}"
    if not found.size:
        return None
    distance = float(np.abs(found - wanted).max())
    size = max(float(np.abs(wanted).max()), 1.0)
    return None if distance <= allowed * size else f"{what} is off by {distance:.3g}, of {size:.3g}"


def _first(*faults: str | None) -> str | None:
    return next((fault for fault in faults if fault), None)


def _matrices(kind: Any, **options: Any) -> Any:
    def draw(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
        x = kind(_generator(draw), dtype, draw(_STACKS), draw(_SIDES))
        return {"x": x} | {name: draw(choice) for name, choice in options.items()}

    return draw


def _rectangles(**options: Any) -> Any:
    def draw(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
        shape = (*draw(_STACKS), draw(_SIDES), draw(_SIDES))
        return {"x": _any(_generator(draw), dtype, shape)} | {name: draw(choice) for name, choice in options.items()}

    return draw


_ROUGH = 100  # units of precision that a factorization of a small matrix may lose


def _orthonormal(q: np.ndarray, allowed: float, what: str) -> str | None:
    q = wide(q)
    return _apart(
        _adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], *q.shape[-1:] * 2)), allowed, what
    )


# Factorizations


def _qr_fault(results: list[np.ndarray], x: np.ndarray, mode: str) -> str | None:
    q, r = results
    rows, columns = x.shape[-2:]
    inner = rows if mode == "complete" else min(rows, columns)
    if q.shape[-2:] != (rows, inner) or r.shape[-2:] != (inner, columns):
        return f"Q and R have shapes {q.shape} and {r.shape}"
    allowed = _ROUGH * _eps(q)
    return _first(
        _apart(wide(q) @ wide(r), wide(x), allowed, "Q @ R"),
        _orthonormal(q, allowed, "Q^H @ Q"),
        _apart(np.tril(wide(r), -1), np.zeros(r.shape), 0, "R below its diagonal"),
    )


def _svd_fault(results: list[np.ndarray], x: np.ndarray, full_matrices: bool) -> str | None:
    u, s, vh = results
    rows, columns = x.shape[-2:]
    k = min(rows, columns)
    sides = (rows, columns) if full_matrices else (k, k)
    if (u.shape[-1], vh.shape[-2]) != sides:
        return f"U and Vh have shapes {u.shape} and {vh.shape}"
    allowed = _ROUGH * _eps(u, s)
    product = (wide(u)[..., :k] * wide(s)[..., None, :]) @ wide(vh)[..., :k, :]
    return _first(
        _apart(product, wide(x), allowed, "U @ diag(S) @ Vh"),
        _orthonormal(u, allowed, "U^H @ U"),
        _orthonormal(_adjoint(vh), allowed, "Vh @ Vh^H"),
        None if s.dtype.kind == "f" and (np.diff(s, axis=-1) <= 0).all() and (s >= 0).all() else f"S is {s.tolist()}",
    )


def _hermitian(x: np.ndarray) -> np.ndarray:
    """The matrix whose lower triangle is that of ``x``."""
    x = wide(x)
    lower = np.tril(x, -1)
    return lower + _adjoint(lower) + np.real(np.einsum("...ii->...i", x))[..., None] * np.eye(x.shape[-1])


def _eigh_fault(results: list[np.ndarray], x: np.ndarray) -> str | None:
    values, vectors = results
    exact, allowed = _hermitian(x), _ROUGH * _eps(*results)
    product = wide(vectors) * wide(values)[..., None, :]
    return _first(
        _apart(exact @ wide(vectors), product, allowed, "x @ v"),
        _orthonormal(vectors, allowed, "v^H @ v"),
        _apart(values, np.linalg.eigvalsh(exact), allowed, "the eigenvalues"),
    )


def _eig_fault(results: list[np.ndarray], x: np.ndarray) -> str | None:
    values, vectors = results
    allowed = _ROUGH * _eps(*results)
    lengths = np.sqrt(np.sum(np.abs(wide(vectors)) ** 2, axis=-2))
    return _first(
        _apart(wide(x) @ wide(vectors), wide(vectors) * wide(values)[..., None, :], allowed, "x @ v"),
        _apart(lengths, np.ones(lengths.shape), allowed, "the length of the eigenvectors"),
        _eigvals_fault([values], x),
    )


def _eigvals_fault(results: list[np.ndarray], x: np.ndarray) -> str | None:
    """The eigenvalues are those whose elementary symmetric functions are the characteristic polynomial."""
    (values,) = results
    if values.shape != x.shape[:-1] or values.dtype.kind != "c":
        return f"the eigenvalues are {values.dtype} of shape {values.shape}"
    flat = wide(x).reshape(-1, *x.shape[-2:]) if x.size else []
    rows = wide(values).reshape(-1, x.shape[-1]) if x.size else []
    pairs = [(np.poly(row), np.poly(matrix)) for row, matrix in zip(rows, flat, strict=True)]
    return _first(*(_apart(a, b, 10 * _ROUGH * _eps(values), "the polynomial of the eigenvalues") for a, b in pairs))


def _cholesky_fault(results: list[np.ndarray], x: np.ndarray, upper: bool) -> str | None:
    (factor,) = results
    lower = _adjoint(wide(factor)) if upper else wide(factor)
    return _first(
        _apart(lower @ _adjoint(lower), _hermitian(x), _ROUGH * _eps(factor), "the product of the factors"),
        _apart(np.triu(lower, 1), np.zeros(lower.shape), 0, "the other triangle"),
        None if (np.real(np.einsum("...ii->...i", lower)) > 0).all() else "the diagonal is not positive",
    )


def _unpacked(lu: np.ndarray, pivots: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The order of the rows and both triangles of one LU decomposition."""
    rows, columns = lu.shape
    order = np.arange(rows)
    for row, other in enumerate(pivots):
        order[[row, other]] = order[[other, row]]
    k = min(rows, columns)
    return order, np.tril(wide(lu)[:, :k], -1) + np.eye(rows, k), np.triu(wide(lu)[:k])


def _lu_fault(results: list[np.ndarray], x: np.ndarray) -> str | None:
    lu, pivots = results
    rows, columns = x.shape[-2:]
    if lu.shape != x.shape or pivots.shape != (*x.shape[:-2], min(rows, columns)) or pivots.dtype != np.int64:
        return f"the decomposition has shape {lu.shape}, the pivots {pivots.dtype} {pivots.shape}"
    faults = []
    for index in np.ndindex(x.shape[:-2]):
        order, lower, upper = _unpacked(lu[index], pivots[index])
        faults += [
            _apart(lower @ upper, wide(x[index])[order], _ROUGH * _eps(lu), "L @ U"),
            # LAPACK measures complex pivots by the sum of their parts
            None if (np.abs(lower) <= math.sqrt(2) + 1e-6).all() else "L is larger than its pivots",
        ]
    return _first(*faults)


law("qr", _rectangles(mode=st.sampled_from(["reduced", "complete"])), _qr_fault)
law("svd", _rectangles(full_matrices=st.booleans()), _svd_fault)
law("eigh", _matrices(lambda rng, dtype, stack, n: _any(rng, dtype, (*stack, n, n))), _eigh_fault)
law("eig", _matrices(_regular), _eig_fault)
law("eigvals", _matrices(_regular), _eigvals_fault)
law("cholesky", _matrices(_definite, upper=st.booleans()), _cholesky_fault)
law("lu_factor", _rectangles(), _lu_fault)


def _largest(found: Any) -> Any:
    return max(float(np.abs(found).max(initial=0.0)), 1.0)


def _spec(name: str, draw: Any, reference: Any, ulps: float = _ROUGH) -> None:
    """A result that is unique, measured against its largest element."""
    spec(name, draw, reference, ulps, lambda **arguments: _largest(reference(**arguments)))


_spec("svdvals", _rectangles(), lambda x: np.linalg.svd(wide(x), compute_uv=False))
_spec(
    "eigvalsh",
    _matrices(lambda rng, dtype, stack, n: _any(rng, dtype, (*stack, n, n))),
    lambda x: np.linalg.eigvalsh(_hermitian(x)),
)

# Linear systems


def _system(kind: Any, **options: Any) -> Any:
    def draw(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
        rng, n = _generator(draw), draw(_SIDES)
        stacks = draw(st.sampled_from([((), ()), ((2,), ()), ((), (2,)), ((2, 1), (3,)), ((0,), ())]))
        shape = draw(st.sampled_from([(n,), (*stacks[1], n, 1), (*stacks[1], n, 3), (n, 0)]))
        arguments = {"a": kind(rng, dtype, stacks[0], n), "b": _any(rng, dtype, shape)}
        return arguments | {name: draw(choice) for name, choice in options.items()}

    return draw


def _solved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if b.ndim == 1:
        return _solved(a, b[:, None])[..., 0]
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])
    return np.linalg.solve(wide(a), wide(b)) if math.prod(shape) else np.zeros(shape)


def _triangular(a: np.ndarray, lower: bool) -> np.ndarray:
    return np.tril(wide(a)) if lower else np.triu(wide(a))


def _dominant(rng: np.random.Generator, dtype: str, stack: tuple[int, ...], n: int) -> np.ndarray:
    """Matrices with a large diagonal: both of their triangles are far from singular."""
    if dtype == "bool":
        return _any(rng, dtype, (*stack, n, n)) | np.eye(n, dtype=bool)
    return _any(rng, dtype, (*stack, n, n)) + (np.eye(n) * (n + 1)).astype(dtype)


_spec("solve", _system(_regular), _solved)
_spec(
    "solve_triangular",
    _system(_dominant, lower=st.booleans()),
    lambda a, b, lower: _solved(_triangular(a, lower), b),
)
_spec("inv", _matrices(_regular), lambda x: np.linalg.inv(wide(x)))
spec(
    "det",
    _matrices(_regular),
    lambda x: np.linalg.det(wide(x)),
    _ROUGH,
    lambda x: np.prod(np.sqrt(np.sum(np.abs(wide(x)) ** 2, axis=-1)), axis=-1),
)
spec("slogdet", _matrices(_regular), lambda x: tuple(np.linalg.slogdet(wide(x))), _ROUGH, lambda x: max(x.shape[-1], 1))
spec(
    "logdet",
    _matrices(_definite),
    lambda x: np.linalg.slogdet(wide(x)).logabsdet,
    _ROUGH,
    lambda x: max(x.shape[-1], 1),
)
_spec("expm", _matrices(lambda rng, dtype, stack, n: _any(rng, dtype, (*stack, n, n))), lambda x: _expm(wide(x)))


def _expm(x: np.ndarray) -> np.ndarray:
    return scipy.linalg.expm(x) if x.size else x


def _power(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    rng, n = _generator(draw), draw(_SIDES)
    least = -3 if dtype in ("float32", "float64", "complex64", "complex128") else 0
    return {"x": _regular(rng, dtype, draw(_STACKS), n), "n": draw(st.integers(least, 4))}


def _powered(x: np.ndarray, n: int) -> np.ndarray:
    base = np.linalg.inv(wide(x)) if n < 0 else wide(x)
    found = np.broadcast_to(np.eye(x.shape[-1]), x.shape)
    for _ in range(abs(n)):
        found = found @ base
    if x.dtype.kind in "iu":
        return found.astype(np.int64).astype(x.dtype)
    return found


_spec("matrix_power", _power, _powered)
_spec(
    "cholesky_inverse",
    _matrices(_dominant, upper=st.booleans()),
    lambda x, upper: np.linalg.inv(
        _adjoint(_triangular(x, False)) @ _triangular(x, False)
        if upper
        else _triangular(x, True) @ _adjoint(_triangular(x, True))
    ),
)


def _lu_system(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    rng, n, stack = _generator(draw), draw(_SIDES), draw(_STACKS)
    pivots = np.stack([rng.integers(row, n, stack) for row in range(n)], axis=-1) if n else np.zeros((*stack, 0))
    shape = draw(st.sampled_from([(n,), (*stack, n, 2)]))
    return {"lu": _dominant(rng, dtype, stack, n), "pivots": pivots.astype(np.int64), "b": _any(rng, dtype, shape)}


def _lu_solved(lu: np.ndarray, pivots: np.ndarray, b: np.ndarray) -> np.ndarray:
    stack, n = lu.shape[:-2], lu.shape[-1]
    if b.ndim == 1:
        return _lu_solved(lu, pivots, np.broadcast_to(b[:, None], (*stack, n, 1)))[..., 0]
    found = np.zeros(b.shape, dtype=wide(lu).dtype if lu.dtype.kind == "c" else wide(b).dtype)
    for index in np.ndindex(stack):
        order, lower, upper = _unpacked(lu[index], pivots[index])
        found[index] = np.linalg.solve(upper, np.linalg.solve(lower, wide(b[index])[order]))
    return found


_spec("lu_solve", _lu_system, _lu_solved, 10 * _ROUGH)


def _of_rank(draw: st.DrawFn, dtype: str) -> tuple[np.ndarray, int]:
    """Matrices of a known rank, whose singular values that are not zero are of one size."""
    rows, columns, stack = draw(_SIDES), draw(_SIDES), draw(_STACKS)
    rank = draw(st.integers(0, min(rows, columns)))
    found = np.zeros((rows, columns))
    found[range(rank), range(rank)] = 1
    rng = _generator(draw)
    found = np.take(np.take(found, rng.permutation(rows), axis=0), rng.permutation(columns), axis=1)
    return np.broadcast_to(found.astype(numpy_dtype(dtype)), (*stack, rows, columns)).copy(), rank


def _ranked(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    return {"x": _of_rank(draw, dtype)[0]}


def _mixed_rank(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    """Matrices of any rank, with more than zeros and ones where the dtype has more."""
    x = _of_rank(draw, dtype)[0]
    if x.dtype.kind in "fc":
        rng = _generator(draw)
        left, right = (_regular(rng, dtype, (), side) for side in x.shape[-2:])
        x = (left @ x @ right).astype(x.dtype)
    return {"x": x}


def _rank(x: np.ndarray) -> Any:
    return np.linalg.matrix_rank(wide(x), rtol=1e-3) if x.size else np.zeros(x.shape[:-2], dtype=np.int64)


_spec("matrix_rank", _mixed_rank, _rank, 0)
_spec("pinv", _mixed_rank, lambda x: np.linalg.pinv(wide(x), rtol=1e-3), 10 * _ROUGH)


def _least_squares(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    rng, rows, columns = _generator(draw), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    a = _any(rng, dtype, (rows, columns))
    if a.dtype.kind in "fc":
        a[range(min(rows, columns)), range(min(rows, columns))] += 2
    return {"a": a, "b": _any(rng, dtype, draw(st.sampled_from([(rows,), (rows, 2)])))}


def _least_squares_fault(results: list[np.ndarray], a: np.ndarray, b: np.ndarray) -> str | None:
    solution, residuals, rank, values = results
    wanted, _, true_rank, true_values = np.linalg.lstsq(wide(a), wide(b), rcond=1e-4)
    allowed = 10 * _ROUGH * _eps(solution)
    left_over = np.sum(np.abs(wide(b) - wide(a) @ wanted) ** 2, axis=0)
    has_residuals = true_rank == a.shape[1] and a.shape[0] > a.shape[1]
    return _first(
        _apart(wide(solution), wanted, allowed, "the solution"),
        _apart(wide(values), true_values, allowed, "the singular values"),
        None if int(rank) == true_rank and rank.dtype == np.int64 else f"the rank is {rank!r}, not {true_rank}",
        _apart(np.ravel(residuals), np.ravel(left_over), allowed, "the residuals")
        if has_residuals
        else (f"there are residuals: {residuals}" if residuals.size else None),
    )


law("lstsq", _least_squares, _least_squares_fault)
