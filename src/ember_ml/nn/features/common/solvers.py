"""Solvers for the singular values of a matrix and their right singular vectors."""

from __future__ import annotations

from typing import NamedTuple

from ember_ml import ops
from ember_ml.ops.random import Generator
from ember_ml.typing import Tensor

__all__ = ["SOLVERS", "Spectrum", "choose_solver", "decompose", "full_spectrum", "randomized_spectrum"]

SOLVERS = ("auto", "full", "covariance_eigh", "randomized")


class Spectrum(NamedTuple):
    """The largest singular values of a matrix first, and a row for the direction of each."""

    lengths: Tensor
    directions: Tensor


def choose_solver(solver: str, shape: tuple[int, ...], wanted: int | float) -> str:
    """Return the solver that is meant; for "auto" by the shape of the data, as scikit-learn chooses."""
    if solver != "auto":
        return solver
    rows, columns = shape
    if columns <= 1_000 and rows >= 10 * columns:
        return "covariance_eigh"
    if max(shape) > 500 and 1 <= wanted < 0.8 * min(shape):
        return "randomized"
    return "full"


def decompose(
    x: Tensor, solver: str, wanted: int | float, oversamples: int, power: int | str, seed: int | Generator | None
) -> Spectrum:
    """Return the spectrum of the centered data ``x``, by the named solver."""
    if solver == "full":
        return full_spectrum(x)
    if solver == "covariance_eigh":
        return _covariance_spectrum(x)
    return randomized_spectrum(x, int(wanted), oversamples, power, seed)


def full_spectrum(x: Tensor) -> Spectrum:
    """Return all singular values of ``x``."""
    _, lengths, directions = ops.svd(x, full_matrices=False)
    return _fix_signs(lengths, directions)


def _covariance_spectrum(x: Tensor) -> Spectrum:
    """Return the spectrum from the eigenvalues of ``x.T @ x``, which ascend; rounding may make some negative."""
    values, vectors = ops.eigh(ops.matmul(ops.matrix_transpose(x), x))
    lengths = ops.sqrt(ops.maximum(ops.flip(values, axis=0), 0.0))
    return _fix_signs(lengths, ops.flip(ops.matrix_transpose(vectors), axis=0))


def randomized_spectrum(
    x: Tensor, count: int, oversamples: int, power: int | str, seed: int | Generator | None
) -> Spectrum:
    """Return the ``count`` largest singular values of ``x``, found in the range of ``x`` times random vectors.

    Halko, Martinsson and Tropp, "Finding structure with randomness" (2011): ``oversamples`` vectors more than asked
    for, and ``power`` multiplications by ``x.T`` and ``x``, which turn the vectors towards the largest singular values.
    """
    is_wide = x.shape[0] < x.shape[1]
    tall = ops.matrix_transpose(x) if is_wide else x
    flat = x if is_wide else ops.matrix_transpose(x)
    short = tall.shape[1]
    if power == "auto":
        power = 7 if count < 0.1 * short else 4
    if not isinstance(power, int) or power < 0:
        raise ValueError(f'iterated_power is a number of steps from 0, or "auto", not {power!r}')
    if oversamples < 0:
        raise ValueError(f"n_oversamples is a number of directions from 0, not {oversamples!r}")
    width = min(count + oversamples, short)
    start = ops.random_normal((short, width), dtype=ops.dtype(x), device=ops.get_device(x), seed=seed)
    basis = _orthonormalize(ops.matmul(tall, start))
    for _ in range(power):
        basis = _orthonormalize(ops.matmul(tall, _orthonormalize(ops.matmul(flat, basis))))
    # tall is nearly basis @ small, and so its singular vectors are the basis times those of the small matrix
    left, lengths, right = ops.svd(ops.matmul(ops.matrix_transpose(basis), tall), full_matrices=False)
    directions = ops.matrix_transpose(ops.matmul(basis, left)) if is_wide else right
    return _fix_signs(lengths[:count], directions[:count])


def _orthonormalize(x: Tensor) -> Tensor:
    return ops.qr(x)[0]


def _fix_signs(lengths: Tensor, directions: Tensor) -> Spectrum:
    """Flip directions whose largest element is negative, so that signs do not depend on the solver."""
    places = ops.expand_dims(ops.argmax(ops.abs(directions), axis=1), 1)
    largest = ops.take_along_axis(directions, places, axis=1)
    return Spectrum(lengths, ops.multiply(directions, ops.sign(largest)))
