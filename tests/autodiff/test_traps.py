"""Where the formula of a gradient divides 0 by 0, the gradient is the limit, or the one that helps: never NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from ember_ml import ops

ZEROS = [[0.0, 0.0, 0.0], [3.0, 0.0, 4.0]]


def _gradient(function: Callable[[Any], Any], values: Any, dtype: str = "float32") -> list[float]:
    """The gradient of the sum of what ``function`` gives, in a row."""
    found = ops.grad(lambda x: ops.sum(function(x)))(ops.array(values, dtype=dtype))
    return ops.to_numpy(ops.ravel(found)).tolist()


def _near(got: list[float], want: list[float]) -> bool:
    return len(got) == len(want) and all(
        math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6) for a, b in zip(got, want, strict=True)
    )


@pytest.mark.parametrize("order", [1, 2, 3, 1.5, 0.5, math.inf, -math.inf, 0, -1])
def test_the_norm_of_a_zero_vector_has_gradient_0(backend: str, order: float) -> None:
    assert _gradient(lambda x: ops.vector_norm(x, axis=-1, ord=order), [[0.0, 0.0, 0.0]]) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("order", [1, 2, 3, math.inf])
def test_the_norms_of_vectors_beside_a_zero_vector(backend: str, order: float) -> None:
    size = 5.0 if order == 2 else (27.0 + 64.0) ** (1 / 3)
    wanted = {1: [1.0, 0.0, 1.0], math.inf: [0.0, 0.0, 1.0]}.get(order)
    wanted = wanted or [(3.0 / size) ** (order - 1), 0.0, (4.0 / size) ** (order - 1)]
    got = _gradient(lambda x: ops.vector_norm(x, axis=-1, ord=order), ZEROS)
    assert _near(got, [0.0, 0.0, 0.0, *wanted])


def test_the_norm_of_half_precision(backend: str) -> None:
    assert _gradient(ops.norm, [0.0, 0.0], "float16") == [0.0, 0.0]
    assert _near(_gradient(ops.norm, [0.0, 2.0], "bfloat16"), [0.0, 1.0])


def test_the_norm_of_complex_zeros(backend: str) -> None:
    gradient = ops.grad(ops.norm)(ops.array([0.0, 0.0], dtype="complex64"))
    assert ops.to_numpy(gradient).tolist() == [0.0, 0.0]
    gradient = ops.grad(lambda x: ops.sum(ops.abs(x)))(ops.array([0.0, 3.0 + 4.0j], dtype="complex64"))
    assert ops.item(ops.allclose(gradient, ops.array([0.0, 0.6 + 0.8j], dtype="complex64")))


def test_the_second_derivative_of_the_norm_beside_a_zero_vector(backend: str) -> None:
    def of_gradient(x: Any) -> Any:
        return ops.grad(lambda y: ops.sum(ops.vector_norm(y, axis=-1)))(x)[1]

    got = _gradient(of_gradient, ZEROS)
    assert _near(got[3:], [16 / 125 - 12 / 125, 1 / 5, 9 / 125 - 12 / 125])
    assert got[:3] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("order", [2, 3])
def test_the_second_derivative_of_a_norm_that_stays_0(backend: str, order: float) -> None:
    def zero(x: Any) -> Any:
        return ops.sum(ops.vector_norm(ops.subtract(x, x), ord=order))

    x = ops.array([1.0, -2.0])
    twice = ops.grad(lambda y: ops.sum(ops.multiply(ops.grad(zero)(y), ops.array([0.3, 0.7]))))
    assert ops.to_numpy(twice(x)).tolist() == [0.0, 0.0]


def test_the_second_derivative_of_the_distance_from_itself(backend: str) -> None:
    def zero(x: Any) -> Any:
        return ops.get_item(ops.square(ops.cdist(x, x)), (0, 0))

    twice = ops.grad(lambda y: ops.sum(ops.grad(zero)(y)))(ops.array([[1.0, 2.0], [3.0, 5.0]]))
    assert ops.to_numpy(twice).tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("name", ["norm", "vector_norm", "matrix_norm"])
def test_every_norm_of_zeros(backend: str, name: str) -> None:
    assert _gradient(getattr(ops, name), [[0.0, 0.0], [0.0, 0.0]]) == [0.0] * 4


@pytest.mark.parametrize("order", ["nuc", 2, -2, 1, -1, math.inf])
def test_matrix_norms_of_zeros_have_a_gradient(backend: str, order: Any) -> None:
    assert all(
        abs(value) <= 1.0 for value in _gradient(lambda x: ops.matrix_norm(x, ord=order), [[0.0, 0.0], [0.0, 0.0]])
    )


def test_distances_of_equal_points(backend: str) -> None:
    points = [[1.0, 2.0], [3.0, 4.0]]
    other = ops.array(points)
    assert _gradient(lambda x: ops.euclidean_distance(x, other), points) == [0.0] * 4
    for p in (1.0, 2.0, 3.0, math.inf):
        got = _gradient(lambda x, p=p: ops.cdist(x, other, p), points)
        assert all(math.isfinite(value) for value in got)
    root = math.sqrt(0.5)
    assert _near(_gradient(lambda x: ops.cdist(x, other), points), [-root, -root, root, root])


def test_points_compared_with_themselves(backend: str) -> None:
    got = _gradient(lambda x: ops.cdist(x, x), [[0.0, 0.0], [3.0, 4.0]])
    assert _near(got, [-1.2, -1.6, 1.2, 1.6])


def test_cosine_similarity_of_a_zero_vector(backend: str) -> None:
    other = ops.array([1.0, 2.0])
    assert all(math.isfinite(value) for value in _gradient(lambda x: ops.cosine_similarity(x, other), [0.0, 0.0]))
    assert _gradient(lambda x: ops.cosine_similarity(other, x), [2.0, 4.0]) == pytest.approx([0.0, 0.0], abs=1e-6)


@pytest.mark.parametrize("name", ["std", "nanstd"])
def test_the_deviation_of_constants_has_gradient_0(backend: str, name: str) -> None:
    assert _gradient(getattr(ops, name), [2.0, 2.0, 2.0]) == [0.0, 0.0, 0.0]
    got = _gradient(lambda x: getattr(ops, name)(x, axis=1), [[2.0, 2.0], [1.0, 3.0]])
    assert _near(got, [0.0, 0.0, -0.5, 0.5])


def test_nan_statistics_pass_no_gradient_to_nan(backend: str) -> None:
    values = [1.0, math.nan, 3.0]
    assert _near(_gradient(ops.nansum, values), [1.0, 0.0, 1.0])
    assert _near(_gradient(ops.nanmean, values), [0.5, 0.0, 0.5])
    assert _near(_gradient(ops.nanprod, values), [3.0, 0.0, 1.0])
    assert _near(_gradient(ops.nanvar, values), [-1.0, 0.0, 1.0])
    assert _near(_gradient(ops.nanstd, values), [-0.5, 0.0, 0.5])
    assert _near(_gradient(ops.nanmax, values), [0.0, 0.0, 1.0])
    assert _near(_gradient(ops.nanmin, values), [1.0, 0.0, 0.0])
    assert _near(_gradient(ops.nancumsum, values), [3.0, 0.0, 1.0])
    assert _near(_gradient(ops.nanmedian, values), [0.5, 0.0, 0.5])


def test_roots_of_0_have_an_infinite_gradient(backend: str) -> None:
    assert _gradient(ops.sqrt, [0.0, 4.0]) == [math.inf, 0.25]
    assert _gradient(lambda x: ops.power(x, 0.5), [0.0, 4.0]) == [math.inf, 0.25]
    assert _gradient(ops.cbrt, [0.0, -0.0]) == [math.inf, math.inf]


def test_the_cube_root_keeps_the_sign_of_zero(backend: str) -> None:
    signs = [math.copysign(1.0, x) for x in ops.to_numpy(ops.cbrt([0.0, -0.0, 8.0, -8.0])).tolist()]
    assert signs == [1.0, -1.0, 1.0, -1.0]


def test_powers_of_0(backend: str) -> None:
    assert _gradient(lambda x: ops.power(x, 2.0), [0.0, 3.0]) == [0.0, 6.0]
    assert _gradient(lambda x: ops.power(x, 1.0), [0.0, 3.0]) == [1.0, 1.0]
    if backend != "mlx":  # whose gradients are NaN where 0 is raised to 0, and by the exponent where the base is 0
        assert _gradient(lambda x: ops.power(x, 0.0), [0.0, 3.0]) == [0.0, 0.0]
        assert _gradient(lambda y: ops.power(ops.array([0.0, 1.0]), y), [2.0, 3.0]) == [0.0, 0.0]
    assert _near(_gradient(lambda x: ops.power(x, 3), [-2.0, 0.0]), [12.0, 0.0])


def test_what_where_does_not_choose_has_gradient_0(backend: str) -> None:
    def guarded(x: Any) -> Any:
        is_positive = ops.greater(x, 0)
        return ops.where(is_positive, ops.log(ops.where(is_positive, x, 1.0)), 0.0)

    assert _gradient(guarded, [0.0, -1.0, 2.0]) == [0.0, 0.0, 0.5]


def test_functions_that_guard_themselves(backend: str) -> None:
    assert _gradient(lambda x: ops.divide_no_nan(1.0, x), [0.0, 2.0]) == [0.0, -0.25]
    assert _gradient(lambda x: ops.divide_no_nan(x, ops.array([0.0, 2.0])), [1.0, 1.0]) == [0.0, 0.5]
    assert _gradient(lambda y: ops.xlogy(0.0, y), [0.0, 2.0]) == [0.0, 0.0]
    assert _near(_gradient(lambda x: ops.xlogy(x, ops.array([3.0, 2.0])), [0.0, 1.0]), [math.log(3.0), math.log(2.0)])
    assert _near(_gradient(ops.sinc, [0.0, 0.5]), [0.0, -4 / math.pi])
    assert _gradient(ops.abs, [0.0, -2.0]) == [0.0, -1.0]
    assert _gradient(lambda x: ops.hypot(x, 0.0), [0.0, 2.0]) == [0.0, 1.0]
    if backend != "mlx":  # whose gradient of the angle of 0 is NaN
        assert _gradient(lambda x: ops.arctan2(x, 0.0), [0.0, 2.0]) == [0.0, 0.0]


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_masked_entries(backend: str, name: str) -> None:
    """Of a softmax whose entry is minus infinity, that entry has gradient 0 and the others are as if without it."""
    weights = {"softmax": [[1.0, 2.0, 5.0]], "log_softmax": [[1.0, 2.0, 0.0]]}.get(name)

    def weighted(x: Any) -> Any:
        result = getattr(ops, name)(x, axis=-1)
        if weights is None:
            return result
        chosen = ops.where(ops.isfinite(result), result, 0.0)
        return ops.multiply(chosen, ops.array(weights, dtype="float32")[:, : x.shape[-1]])

    alone = _gradient(weighted, [[0.5, 1.0]])
    assert _near(_gradient(weighted, [[0.5, 1.0, -math.inf]]), [*alone, 0.0])


def test_a_sum_of_powers_of_nothing_but_minus_infinity(backend: str) -> None:
    got = _gradient(lambda x: ops.logsumexp(x, axis=-1), [[-math.inf, -math.inf], [0.0, 0.0]])
    assert not any(math.isnan(value) for value in got)
    assert _near(got[2:], [0.5, 0.5])
    got = _gradient(lambda x: ops.logaddexp(x, -math.inf), [-math.inf, 1.0])
    assert not any(math.isnan(value) for value in got)
    assert got[1] == 1.0


def test_extremes_that_are_equal_share_the_gradient(backend: str) -> None:
    assert _gradient(ops.max, [2.0, 1.0, 2.0]) == [0.5, 0.0, 0.5]
    assert _near(_gradient(lambda x: ops.vector_norm(x, ord=math.inf), [2.0, -2.0]), [0.5, -0.5])


def test_products_with_zeros(backend: str) -> None:
    assert _gradient(ops.prod, [0.0, 2.0, 3.0]) == [6.0, 0.0, 0.0]
    assert _gradient(ops.prod, [0.0, 0.0, 3.0]) == [0.0, 0.0, 0.0]
    assert _gradient(ops.cumprod, [2.0, 0.0, 3.0]) == [1.0, 8.0, 0.0]


def test_determinants_of_singular_matrices(backend: str) -> None:
    assert _near(_gradient(ops.det, [[1.0, 2.0], [2.0, 4.0]]), [4.0, -2.0, -2.0, 1.0])
    got = _gradient(ops.det, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    assert got == pytest.approx([-3.0, 6.0, -3.0, 6.0, -12.0, 6.0, -3.0, 6.0, -3.0], abs=1e-3)


def test_matrices_with_equal_values(backend: str) -> None:
    """Values alone, and functions of the whole matrix, are smooth where eigenvalues or singular values are equal."""
    identity = [[1.0, 0.0], [0.0, 1.0]]
    weights = ops.array([[1.0, 2.0], [3.0, 4.0]])
    assert _near(_gradient(lambda x: ops.sum(ops.svdvals(x)), identity), [1.0, 0.0, 0.0, 1.0])
    assert _near(_gradient(lambda x: ops.sum(ops.eigvalsh(x)), identity), [1.0, 0.0, 0.0, 1.0])
    assert _near(_gradient(lambda x: ops.sum(ops.eigh(x).eigenvalues), identity), [1.0, 0.0, 0.0, 1.0])
    assert _near(_gradient(lambda x: ops.sum(ops.svd(x).S), identity), [1.0, 0.0, 0.0, 1.0])
    assert _near(_gradient(lambda x: ops.multiply(ops.pinv(x), weights), identity), [-1.0, -2.0, -3.0, -4.0])
    assert _near(
        _gradient(lambda x: ops.multiply(ops.expm(x), weights), [[0.0, 0.0], [0.0, 0.0]]), [1.0, 2.0, 3.0, 4.0]
    )
    solution = lambda x: ops.lstsq(x, ops.array([1.0, 2.0])).solution  # noqa: E731
    assert _near(_gradient(solution, identity), [-1.0, -2.0, -1.0, -2.0])
