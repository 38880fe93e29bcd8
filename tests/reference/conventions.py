"""The convention for signs, phases and order of vectors, one matrix at a time on NumPy in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "canonical_columns",
    "canonical_eig",
    "canonical_qr",
    "canonical_svd",
    "random_matrices",
    "same_numbers",
]


def random_matrices(shape: tuple[int, ...], dtype: str, seed: int, hermitian: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.normal(size=shape)
    if hermitian:
        x = x + np.conj(np.swapaxes(x, -2, -1))
    return x.astype(dtype)


def _phase(vector: np.ndarray) -> Any:
    size = np.abs(vector)
    place = next(i for i, length in enumerate(size) if length >= 0.999 * size.max())
    return vector[place] / size[place]


def _each(function: Any, x: np.ndarray) -> tuple[np.ndarray, ...]:
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    found = [function(matrix) for matrix in wide.reshape(-1, *x.shape[-2:])]
    return tuple(np.stack(parts).reshape(*x.shape[:-2], *parts[0].shape) for parts in zip(*found, strict=True))


def canonical_svd(x: np.ndarray) -> tuple[np.ndarray, ...]:
    def one(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        u, s, vh = np.linalg.svd(matrix, full_matrices=False)
        for k in range(len(s)):
            phase = _phase(u[:, k])
            u[:, k] /= phase
            vh[k] *= phase
        return u, s, vh

    return _each(one, x)


def canonical_columns(x: np.ndarray) -> np.ndarray:
    def one(matrix: np.ndarray) -> tuple[np.ndarray]:
        vectors = np.linalg.eigh(matrix)[1]
        return (np.stack([column / _phase(column) for column in vectors.T], axis=1),)

    return _each(one, x)[0]


def canonical_eig(x: np.ndarray) -> tuple[np.ndarray, ...]:
    def one(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        values, vectors = np.linalg.eig(matrix.astype(np.complex128))
        order = sorted(range(len(values)), key=lambda k: (round(values[k].real, 4), values[k].imag))
        return values[order], np.stack([vectors[:, k] / _phase(vectors[:, k]) for k in order], axis=1)

    return _each(one, x)


def canonical_qr(x: np.ndarray) -> tuple[np.ndarray, ...]:
    def one(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        q, r = np.linalg.qr(matrix)
        if matrix.dtype.kind == "c":
            for k in range(min(matrix.shape)):
                phase = r[k, k] / abs(r[k, k])
                q[:, k] *= phase
                r[k] /= phase
        return q, r

    return _each(one, x)


def same_numbers(got: np.ndarray, want: np.ndarray) -> bool:
    tolerance = 1e-9 if got.dtype in (np.float64, np.complex128) else 2e-3
    return got.shape == want.shape and bool(
        np.abs(got - want).max(initial=0) <= tolerance * (1 + np.abs(want).max(initial=0))
    )
