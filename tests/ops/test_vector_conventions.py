"""Signs, phases and order of what factorizations return: one convention on every backend, against NumPy alone."""

from __future__ import annotations

from typing import Any

import pytest

from ember_ml import ops
from ember_ml.backend import load
from ember_ml.dispatch.gaps import gap_reason
from tests.reference.conventions import (
    canonical_columns,
    canonical_eig,
    canonical_qr,
    canonical_svd,
    random_matrices,
    same_numbers,
)

SHAPES = [(3, 3), (5, 5), (4, 2), (2, 4), (2, 6, 6), (3, 7, 3)]
DTYPES = ["float32", "float64", "complex64", "complex128"]


def _is_missing(backend: str, name: str, dtype: str) -> bool:
    return gap_reason(load(backend), name, dtype) is not None


def _all(result: Any) -> list[Any]:
    return [ops.to_numpy(part) for part in result]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_singular_vectors(backend: str, shape: tuple[int, ...], dtype: str) -> None:
    if _is_missing(backend, "svd", dtype):
        pytest.skip("the backend has no such dtype")
    x = random_matrices(shape, dtype, seed=1)
    for full in (False, True):
        got = _all(ops.svd(ops.asarray(x), full))
        size = min(shape[-2:])
        u, s, vh = canonical_svd(x)
        assert same_numbers(got[0][..., :size], u)
        assert same_numbers(got[1], s)
        assert same_numbers(got[2][..., :size, :], vh)
        whole = got[0][..., :size] * got[1][..., None, :] @ got[2][..., :size, :]
        assert same_numbers(whole, x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (3, 5, 5)])
def test_eigenvectors_of_hermitian_matrices(backend: str, shape: tuple[int, ...], dtype: str) -> None:
    if _is_missing(backend, "eigh", dtype):
        pytest.skip("the backend has no such dtype")
    x = random_matrices(shape, dtype, seed=2, hermitian=True)
    values, vectors = _all(ops.eigh(ops.asarray(x)))
    assert same_numbers(vectors, canonical_columns(x))
    assert same_numbers(x @ vectors, vectors * values[..., None, :])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (3, 5, 5)])
def test_eigenvalues_in_one_order(backend: str, shape: tuple[int, ...], dtype: str) -> None:
    if _is_missing(backend, "eig", dtype) or (backend == "mlx" and dtype == "float64"):
        pytest.skip("the backend has no such dtype")
    x = random_matrices(shape, dtype, seed=3)
    values, vectors = canonical_eig(x)
    got = _all(ops.eig(ops.asarray(x)))
    assert same_numbers(got[0], values)
    assert same_numbers(got[1], vectors)
    assert same_numbers(ops.to_numpy(ops.eigvals(ops.asarray(x))), values)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_diagonal_of_r(backend: str, shape: tuple[int, ...], dtype: str) -> None:
    if _is_missing(backend, "qr", dtype):
        pytest.skip("the backend has no such dtype")
    x = random_matrices(shape, dtype, seed=4)
    q, r = canonical_qr(x)
    got = _all(ops.qr(ops.asarray(x)))
    assert same_numbers(got[0], q)
    assert same_numbers(got[1], r)
    whole, upper = _all(ops.qr(ops.asarray(x), mode="complete"))
    assert same_numbers(whole @ upper, x)


def test_nearly_equal_components(backend: str) -> None:
    """The first of components that are equal but for rounding decides, whichever rounding made larger."""
    vectors = ops.to_numpy(ops.eigh(ops.array([[2.0, 1.0], [1.0, 2.0]])).eigenvectors)
    assert (vectors[0] > 0).all()
    assert vectors[1, 0] < 0 < vectors[1, 1]
