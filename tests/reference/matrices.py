"""Matrices, signals and what NumPy and SciPy find for them in double precision."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import scipy.fft
import scipy.linalg
import scipy.spatial.distance
from numpy.typing import ArrayLike

from tests.reference import EPS, array_of, numpy_dtype

__all__ = [
    "definite",
    "difference",
    "distances",
    "exact_expm",
    "expm",
    "integer_product",
    "integers",
    "linalg",
    "mixed",
    "numpy",
    "random",
    "regular",
    "signals",
    "solve_triangular",
    "unit",
    "wide",
]

numpy: Any = np
linalg: Any = np.linalg
signals: Any = scipy.fft
distances: Any = scipy.spatial.distance
solve_triangular = scipy.linalg.solve_triangular
expm = scipy.linalg.expm


def exact_expm(x: np.ndarray) -> np.ndarray:
    """The exponential of one real matrix, computed with fifty digits."""
    with mpmath.workdps(50):
        found = mpmath.expm(mpmath.matrix(x.tolist()), method="taylor")
    return np.array(found.tolist(), dtype=object).astype(np.float64)


def random(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> np.ndarray:
    """Normally distributed numbers."""
    generator = np.random.default_rng([seed, *shape])
    values: Any = generator.normal(size=shape)
    if dtype.startswith("complex"):
        values = values + 1j * generator.normal(size=shape)
    return array_of(dtype, values)


def wide(x: np.ndarray) -> np.ndarray:
    """The same values in double precision."""
    return x.astype(complex if x.dtype.kind == "c" else float)


def regular(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> np.ndarray:
    """Square matrices that are far from singular."""
    return (random(shape, dtype, seed) / max(shape[-1], 1) + 2 * np.eye(shape[-1])).astype(dtype)


def mixed(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> np.ndarray:
    """Square matrices that are far from singular and whose LU decomposition exchanges rows, in no simple order."""
    order = np.random.default_rng([seed, *shape]).permuted(np.broadcast_to(np.arange(shape[-1]), shape[:-1]), axis=-1)
    return np.take_along_axis(regular(shape, dtype, seed), order[..., None], axis=-2)


def definite(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> np.ndarray:
    """Positive definite matrices."""
    x = random(shape, dtype, seed)
    return (x @ x.conj().swapaxes(-2, -1) / max(shape[-1], 1) + np.eye(shape[-1])).astype(dtype)


def integers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Integers from the whole range of the dtype."""
    info = np.iinfo(dtype)
    return np.random.default_rng([seed, *shape]).integers(
        info.min, info.max, shape, dtype=numpy_dtype(dtype), endpoint=True
    )


def integer_product(subscripts: str, *operands: np.ndarray) -> np.ndarray:
    """The Einstein sum of Python integers, wrapped to the width of the dtype."""
    exact = np.einsum(subscripts, *(x.astype(object) for x in operands))
    dtype = operands[0].dtype
    bits, signed = 8 * dtype.itemsize, dtype.kind == "i"

    def wrap(value: int) -> int:
        value %= 1 << bits
        return value - (1 << bits) if signed and value >= 1 << (bits - 1) else value

    flat = [wrap(int(value)) for value in np.asarray(exact, dtype=object).ravel()]
    return np.array(flat, dtype=dtype).reshape(np.shape(exact))


def difference(got: ArrayLike, want: ArrayLike) -> float:
    """The largest difference in units of the precision of ``got``, measured against the largest magnitude of ``want``.

    Infinite where the shapes differ, or where one has NaN or infinity and the other not.
    """
    found, wanted = np.asarray(got), np.asarray(want)
    if found.shape != wanted.shape:
        return math.inf
    if not found.size:
        return 0.0
    if found.dtype.kind in "biu":
        return 0.0 if np.array_equal(found, wanted) else math.inf
    eps = EPS[found.dtype.name]
    wide = found.astype(np.complex128 if found.dtype.kind == "c" else np.float64)
    special = ~np.isfinite(wanted)
    if not np.array_equal(wide[special], wanted[special], equal_nan=True) or not np.isfinite(wide[~special]).all():
        return math.inf
    if special.all():
        return 0.0
    return float(np.abs(wide - wanted)[~special].max() / (eps * max(np.abs(wanted[~special]).max(), 1e-300)))


def unit(x: np.ndarray) -> np.ndarray:
    """The identity of the size of the last dimension, for each matrix of the stack."""
    return np.broadcast_to(np.eye(x.shape[-1]), (*x.shape[:-2], x.shape[-1], x.shape[-1]))
