"""Derivatives where formulas divide by zero, branches meet or values coincide, against closed forms and mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import pytest

import ember_ml
from ember_ml import ops
from ember_ml.errors import LostGradient

LOG2 = math.log(2.0)


def rows(x: Any) -> list[Any]:
    """The elements of a tensor, flat, as Python numbers."""
    return ops.to_numpy(ops.ravel(x)).tolist()


def assert_close(found: Any, wanted: Sequence[float], tolerance: float = 1e-5) -> None:
    got = [value for part in (found if isinstance(found, tuple | list) else [found]) for value in rows(part)]
    assert len(got) == len(wanted), (got, wanted)
    for a, b in zip(got, wanted, strict=True):
        assert abs(a - b) <= tolerance * max(1.0, abs(b)), (got, wanted)


def gradient_of_sum(function: Callable[..., Any], *args: Any, by: Any = 0) -> Any:
    return ops.grad(lambda *given: ops.sum(function(*given)), by)(*args)


def differences(function: Callable[[Any], Any], at: Sequence[Any], along: Sequence[Any]) -> list[float]:
    """Central differences in float64 of what ``function`` computes of an array moved along another."""
    step = 1e-6
    with ember_ml.use_backend("numpy"):
        x, d = ops.array(at, dtype="float64"), ops.array(along, dtype="float64")
        ends = [rows(function(ops.add(x, ops.multiply(d, s)))) for s in (step, -step)]
    return [(a - b) / (2 * step) for a, b in zip(*ends, strict=True)]


# Functions of one number at points where their formulas change


UNARY: list[tuple[str, list[float], Callable[[float], Any]]] = [
    ("erf", [-1.0, 1.0, 0.0, 0.5, 2.0], lambda x: 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-(x**2))),
    ("erfc", [-1.0, 1.0, 0.0, 0.5, 2.0], lambda x: -2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-(x**2))),
    ("lgamma", [1.0, 2.0, 3.0, 4.0, 0.5, 2.5, 10.0], mpmath.digamma),
    ("digamma", [1.0, 2.0, 3.0, 0.5, 2.5, 10.0, -0.5], lambda x: mpmath.psi(1, x)),
    ("i0", [0.0, 1.0, 3.75, 8.0, -8.0, 9.0], lambda x: mpmath.besseli(1, x)),
    ("erfinv", [0.0, 0.5, -0.5, 0.9], lambda x: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(mpmath.erfinv(x) ** 2)),
    ("sin", [0.0, 1.0, 100.0], mpmath.cos),
    ("cos", [0.0, 1.0, 100.0], lambda x: -mpmath.sin(x)),
    ("tan", [0.0, 1.0, -1.25], lambda x: 1 / mpmath.cos(x) ** 2),
    ("sinc", [0.0, 1.0, 0.5, 0.3], lambda x: mpmath.diff(mpmath.sincpi, x)),
    ("expm1", [0.0, 1.0, -1.0], mpmath.exp),
    ("log1p", [0.0, 1.0], lambda x: 1 / (1 + x)),
    ("tanh", [0.0, 1.0, -1.0], lambda x: mpmath.sech(x) ** 2),
    ("softplus", [0.0, 20.0, -40.0], lambda x: 1 / (1 + mpmath.exp(-x))),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "points", "slope"), UNARY, ids=[name for name, _, _ in UNARY])
def test_slopes_of_functions_of_one_number(name: str, points: Any, slope: Any, dtype: str, backend: str) -> None:
    found = gradient_of_sum(getattr(ops, name), ops.array(points, dtype=dtype))
    assert ops.dtype(found) == dtype
    # torch 2.13 has the trigamma function of 9 digits
    tolerance = 2e-6 if dtype == "float32" else 1e-9 if name == "digamma" else 1e-12
    assert_close(found, [float(slope(mpmath.mpf(x))) for x in points], tolerance)


@pytest.mark.parametrize(("name", "points", "slope"), UNARY[:5], ids=[name for name, _, _ in UNARY[:5]])
def test_second_slopes_of_functions_of_one_number(name: str, points: Any, slope: Any, backend: str) -> None:
    function = getattr(ops, name)
    found = gradient_of_sum(lambda x: gradient_of_sum(function, x), ops.array(points, dtype="float64"))
    assert_close(found, [float(mpmath.diff(slope, x)) for x in points], 1e-8)


AT_ZERO: dict[str, Callable[[Any], Any]] = {
    "abs": ops.abs,
    "hypot": lambda x: ops.hypot(x, x),
    "arctan2": lambda x: ops.arctan2(x, x),
    "xlogy": lambda x: ops.xlogy(x, x),
    "vector_norm": ops.vector_norm,
    "norm": ops.norm,
    "std": ops.std,
    "std of one": lambda x: ops.std(x[0]),
}


@pytest.mark.parametrize("name", AT_ZERO)
def test_derivatives_at_zero_are_zero_in_each_way(name: str, backend: str) -> None:
    """There the formulas divide 0 by 0, forward and backward, once and twice."""

    def f(x: Any) -> Any:
        return ops.logaddexp(ops.sum(AT_ZERO[name](x)), ops.sum(ops.square(x)))

    x = ops.zeros((2,), dtype="float64")
    assert_close(ops.grad(f)(x), [0.0, 0.0])
    assert_close(ops.jvp(f, (x,), (ops.ones((2,), dtype="float64"),))[1], [0.0])
    second = 0.5 * 2.0  # half of the second derivative of the squares
    assert_close(ops.hessian(f)(x), [second, 0.0, 0.0, second])
    assert_close(gradient_of_sum(lambda y: ops.grad(f)(y), x), [second, second])


def test_standard_deviation_of_equal_elements_has_no_slope(backend: str) -> None:
    """The mean of equal elements may be off in the last bit, and then the deviation is not exactly 0."""
    x = ops.array([0.1] * 3, dtype="float64")
    assert_close(gradient_of_sum(ops.std, x), [0.0] * 3)
    y = ember_ml.nn.tensor.convert_to_tensor(x)
    y.requires_grad = True
    ops.std(y).backward()
    assert_close(y.grad, [0.0] * 3)


@pytest.mark.parametrize("shape", [(0, 2), (2, 0), (3, 2)])
def test_an_empty_diagonal_has_a_gradient(shape: Any, backend: str) -> None:
    found = gradient_of_sum(lambda x: ops.diagonal(x, offset=2), ops.ones(shape))
    assert ops.to_numpy(found).tolist() == ops.to_numpy(ops.zeros(shape)).tolist()


@pytest.mark.parametrize("indices", [[], [[]]])
def test_nothing_taken_from_nothing_has_a_gradient(indices: Any, backend: str) -> None:
    for take in (ops.take, lambda x, places: ops.get_item(x, places), lambda x, _: ops.get_item(x, x > 0.0)):
        found = gradient_of_sum(lambda x, f=take: f(x[3:], ops.array(indices, dtype="int64")), ops.ones((2,)))
        assert rows(found) == [0.0, 0.0]


@pytest.mark.parametrize("x", [-0.5, -2.96, -3.0, -5.0, 1.0])
def test_gelu_keeps_the_digits_of_small_results(x: float, backend: str) -> None:
    with mpmath.workdps(30):
        want = float(mpmath.mpf(x) * mpmath.ncdf(x))
    on_cuda = ops.get_default_device().startswith("cuda")  # where torch has one kernel; see docs/neural.md
    digits = 4e-7 * abs(x) if on_cuda and backend == "torch" else 3e-6 * abs(want)
    for shape in ((), (40,)):
        found = rows(ops.gelu(ops.full(shape, x), approximate=False))
        assert all(abs(value - want) <= digits for value in found), (found, want)


def _root_by_eigenvectors(a: Any) -> Any:
    values, vectors = ops.eigh(a)
    return (vectors * ops.sqrt(values)) @ ops.swapaxes(vectors, 0, 1)


def _root_by_singular_vectors(a: Any) -> Any:
    u, s, vh = ops.svd(a, full_matrices=False)
    return (u * ops.sqrt(s)) @ vh


@pytest.mark.parametrize("root", [_root_by_eigenvectors, _root_by_singular_vectors])
def test_vectors_of_equal_values_have_no_gradient_rather_than_a_wrong_one(root: Any, backend: str) -> None:
    """The derivative of a root at 1 is 1/2, in each direction; the terms of the two vectors cancel to 0 / 0."""
    found = rows(ops.ravel(ops.grad(lambda a: root(a)[0, 1])(ops.eye(2))))
    assert all(math.isnan(x) for x in found)


def test_values_that_are_equal_have_a_gradient_and_no_second_one(backend: str) -> None:
    cubes = lambda a: ops.sum(ops.eigvalsh(a) ** 3)  # noqa: E731
    assert rows(ops.ravel(ops.grad(cubes)(ops.eye(2)))) == pytest.approx([3.0, 0.0, 0.0, 3.0], abs=1e-5)
    second = rows(ops.ravel(ops.grad(lambda a: ops.grad(cubes)(a)[0, 1])(ops.eye(2))))
    assert all(math.isnan(x) for x in second)


# Powers


def test_powers_of_zero(backend: str) -> None:
    exponents = ops.array([0.0, 1.0, 2.0])
    assert_close(gradient_of_sum(lambda x: ops.power(x, exponents), ops.array(0.0)), [1.0])
    assert_close(gradient_of_sum(lambda x: ops.vander(x, 3), ops.array([0.0, 1.0])), [1.0, 3.0])


@pytest.mark.parametrize(
    ("at", "wanted"),
    [
        ((2.0, 0.0), [0.0, 0.5, 0.5, LOG2**2]),
        ((2.0, 1.0), [0.0, 1 + LOG2, 1 + LOG2, 2 * LOG2**2]),
        ((2.0, 3.0), [12.0, 4 + 12 * LOG2, 4 + 12 * LOG2, 8 * LOG2**2]),
    ],
)
def test_second_derivatives_of_powers(at: Any, wanted: list[float], backend: str) -> None:
    assert_close(ops.hessian(lambda v: ops.power(v[0], v[1]))(ops.array(at)), wanted)


def test_second_derivatives_of_fixed_powers(backend: str) -> None:
    x = ops.array([0.0, 2.0])
    for exponent, wanted in ((0.0, [0.0, 0.0]), (1.0, [0.0, 0.0]), (2.0, [2.0, 2.0]), (3.0, [0.0, 12.0])):
        twice = gradient_of_sum(lambda x, p=exponent: gradient_of_sum(lambda x: ops.power(x, p), x), x)
        assert_close(twice, wanted)


@pytest.mark.parametrize(("at", "share"), [((200.0, 0.0), 0.0), ((0.0, 0.0), 0.25), ((-1e30, 0.5), 0.0)])
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_second_derivatives_of_sums_of_powers(name: str, at: Any, share: float, backend: str) -> None:
    share *= LOG2 if "2" in name else 1.0
    found = ops.hessian(lambda v: getattr(ops, name)(v[0], v[1]))(ops.array(at))
    assert_close(found, [share, -share, -share, share])


# Ties


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_ties_of_two_are_shared(name: str, backend: str) -> None:
    x, y = ops.array([1.0, 3.0, -2.0]), ops.array([1.0, 2.0, 5.0])
    first = [0.5, 1.0, 0.0] if "max" in name else [0.5, 0.0, 1.0]
    assert_close(gradient_of_sum(getattr(ops, name), x, y, by=(0, 1)), [*first, *(1 - v for v in first)])


@pytest.mark.parametrize("name", ["fmax", "fmin"])
def test_nan_beside_a_number_has_no_part(name: str, backend: str) -> None:
    x, y = ops.array([math.nan, 1.0]), ops.array([2.0, math.nan])
    assert_close(gradient_of_sum(getattr(ops, name), x, y, by=(0, 1)), [0.0, 1.0, 1.0, 0.0])


def test_clip_at_its_bounds_and_outside(backend: str) -> None:
    x = ops.array([-1.0, 0.0, 0.5, 1.0, 2.0])
    assert_close(gradient_of_sum(lambda x: ops.clip(x, 0.0, 1.0), x), [0.0, 1.0, 1.0, 1.0, 0.0])
    low, high = ops.array([0.0] * 5), ops.array([1.0] * 5)
    assert_close(gradient_of_sum(ops.clip, x, low, high, by=1), [1.0, 0.0, 0.0, 0.0, 0.0])
    assert_close(gradient_of_sum(ops.clip, x, low, high, by=2), [0.0, 0.0, 0.0, 0.0, 1.0])


def test_clip_whose_minimum_is_above_its_maximum(backend: str) -> None:
    """The maximum wins, so it alone has a gradient."""
    for x in (0.0, 1.5, 3.0):
        found = ops.grad(lambda x, low, high: ops.clip(x, low, high), (0, 1, 2))(
            ops.array(x), ops.array(2.0), ops.array(1.0)
        )
        assert_close(found, [0.0, 0.0, 1.0])


def test_clip_by_bounds_of_more_axes(backend: str) -> None:
    x = ops.array([0.3, 0.7])
    assert_close(gradient_of_sum(lambda x: ops.clip(x, -2.0, ops.array([[0.5], [0.6]])), x), [2.0, 0.0])


def test_largest_distances_that_are_equal_share(backend: str) -> None:
    x, y = ops.array([[1.0, 1.0], [2.0, -3.0]]), ops.array([[0.0, 0.0]])
    assert_close(gradient_of_sum(lambda x: ops.cdist(x, y, p=math.inf), x), [0.5, 0.5, 0.0, -1.0])


def test_remainders_of_multiples(backend: str) -> None:
    x, y = ops.array([2.0, 2.25, -2.0]), ops.array([0.5, 0.5, 0.5])
    assert_close(gradient_of_sum(ops.mod, x, y, by=(0, 1)), [1.0, 1.0, 1.0, -4.0, -4.0, 4.0])
    assert_close(gradient_of_sum(ops.fmod, x, y, by=(0, 1)), [1.0, 1.0, 1.0, -4.0, -4.0, 4.0])


# Products with zeros


@pytest.mark.parametrize("values", [[2.0, 0.0, 3.0], [0.0, 0.0, 3.0], [2.0, 5.0, 3.0]])
def test_second_derivatives_of_running_products(values: list[float], backend: str) -> None:
    a, b, c = values
    assert_close(
        ops.hessian(lambda x: ops.sum(ops.cumprod(x, axis=0)))(ops.array(values)),
        [0.0, 1 + c, b, 1 + c, 0.0, a, b, a, 0.0],
    )


@pytest.mark.parametrize("values", [[2.0, 0.0, 3.0], [0.0, 0.0, 3.0], [2.0, 5.0, 3.0]])
def test_second_derivatives_of_products(values: list[float], backend: str) -> None:
    a, b, c = values
    assert_close(ops.hessian(ops.prod)(ops.array(values)), [0.0, c, b, c, 0.0, a, b, a, 0.0])


# Elements that are overwritten


def test_only_the_value_that_stays_has_a_gradient(backend: str) -> None:
    weights, v = ops.array([3.0, 1.0, 7.0]), ops.array([1.0, 2.0])
    twice = ops.array([0, 0])

    def by_key(v: Any) -> Any:
        return ops.multiply(ops.index_update(ops.zeros(3), twice, v), weights)

    def along_axis(v: Any) -> Any:
        return ops.multiply(ops.put_along_axis(ops.zeros(3), twice, v, 0), weights)

    def by_rows(v: Any) -> Any:
        return ops.multiply(ops.scatter_update(ops.zeros(3), ops.array([[0], [0]]), v), weights)

    for function in (by_key, along_axis, by_rows):
        assert_close(gradient_of_sum(function, v), [0.0, 3.0])


def test_repeated_indices_beside_single_ones(backend: str) -> None:
    v = ops.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    weights = ops.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    found = gradient_of_sum(
        lambda v: ops.multiply(ops.index_update(ops.zeros((4, 2)), ops.array([3, 1, -1]), v), weights), v
    )
    assert_close(found, [0.0, 0.0, 3.0, 4.0, 7.0, 8.0])


# Complex numbers


def test_polar_of_negative_lengths(backend: str) -> None:
    r, angle = ops.array([-2.0, 2.0, 0.0]), ops.array([0.0, math.pi / 3, 0.5])
    found = gradient_of_sum(lambda r: ops.real(ops.polar(r, angle)), r)
    assert_close(found, [1.0, 0.5, math.cos(0.5)])
    found = gradient_of_sum(lambda angle: ops.imag(ops.polar(r, angle)), angle)
    assert_close(found, [-2.0, 1.0, 0.0])


# Few elements, or none


def test_the_deviation_of_single_elements_is_flat(backend: str) -> None:
    assert_close(gradient_of_sum(lambda x: ops.std(x, axis=()), ops.array([1.0, 2.0])), [0.0, 0.0])
    assert_close(gradient_of_sum(lambda x: ops.std(x, axis=1), ops.array([[1.0], [2.0]])), [0.0, 0.0])


@pytest.mark.parametrize("name", ["segment_max", "segment_min"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extremes_of_segments_of_one(name: str, dtype: str, backend: str) -> None:
    x = ops.array([1.0], dtype=dtype)
    found = gradient_of_sum(lambda x: getattr(ops, name)(x, ops.array([0]), num_segments=1), x)
    assert_close(found, [1.0])
    assert ops.dtype(found) == dtype


@pytest.mark.parametrize("name", ["scatter_max", "scatter_min"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extremes_scattered_into_one(name: str, dtype: str, backend: str) -> None:
    x = ops.array([1.0], dtype=dtype)
    assert_close(gradient_of_sum(lambda x: getattr(ops, name)(x, ops.array([0]), 1), x), [1.0])


def test_sorting_a_number(backend: str) -> None:
    assert_close(ops.grad(ops.sort)(ops.array(2.0)), [1.0])


@pytest.mark.parametrize("name", ["matmul", "dot", "vecdot"])
def test_products_over_an_empty_axis(name: str, backend: str) -> None:
    shapes = {"matmul": ((2, 3, 0), (0, 4)), "dot": ((3, 0), (0, 4)), "vecdot": ((3, 0), (0,))}[name]
    x, y = (ops.ones(shape) for shape in shapes)
    found = gradient_of_sum(getattr(ops, name), x, y, by=(0, 1))
    assert [ops.shape(part) for part in found] == list(shapes)


def test_reshaping_to_one_number(backend: str) -> None:
    assert_close(ops.grad(lambda x: ops.reshape(ops.square(x), ()))(ops.array([3.0])), [6.0])
    assert_close(ops.grad(lambda x: ops.sum(ops.reshape(ops.square(x), (1, 1, 1))))(ops.array(3.0)), [6.0])


def test_transposing_by_negative_axes(backend: str) -> None:
    x = ops.array([[1.0, 2.0], [3.0, 4.0]])
    assert_close(gradient_of_sum(lambda x: ops.multiply(ops.transpose(x, (-1, -2)), x), x), [2.0, 6.0, 4.0, 8.0], 10.0)
    weights = ops.array([[1.0, 2.0], [3.0, 4.0]])
    assert_close(gradient_of_sum(lambda x: ops.multiply(ops.transpose(x, (-1, -2)), weights), x), [1.0, 3.0, 2.0, 4.0])


def test_group_normalization_by_part_of_its_parameters(backend: str) -> None:
    x = ops.reshape(ops.arange(16, dtype="float32"), (2, 4, 2))
    beta = ops.array([1.0, 2.0])
    by_x, by_beta = gradient_of_sum(
        lambda x, beta: ops.square(ops.group_normalization(x, 2, beta=beta)), x, beta, by=(0, 1)
    )
    # the normalized elements sum to 0, so that of the squares only beta's part is left
    assert_close(by_beta, [16.0, 32.0], 1e-3)
    assert ops.shape(by_x) == (2, 4, 2)


def test_a_label_of_no_symbols(backend: str) -> None:
    """The loss is that of blanks alone: its second derivative is that of the sum of log-softmax."""
    logits = [[[0.1, 0.2], [0.3, 0.4]]]
    found = rows(ops.hessian(lambda x: ops.sum(ops.ctc_loss([[1]], x, [0], [2])))(ops.array(logits)))
    wanted = rows(ops.hessian(lambda x: ops.negative(ops.sum(ops.log_softmax(x)[..., 0])))(ops.array(logits)))
    assert_close(ops.array(found), wanted)


# Forward derivatives


def _matrix_function(name: str, x: Any) -> Any:
    """A function of a matrix by its factors, which does not depend on the signs of their vectors."""
    if name.startswith("svd"):
        size = min(x.shape)
        u, s, vh = ops.svd(x, full_matrices="full" in name)
        return ops.matmul(ops.multiply(u[:, :size], ops.exp(ops.negative(s))), vh[:size, :])
    if name == "eigh":
        w, v = ops.eigh(x)
        return ops.matmul(ops.multiply(v, ops.sin(w)), ops.matrix_transpose(v))
    w, v = ops.eig(x)
    return ops.real(ops.matmul(ops.multiply(v, ops.exp(ops.negative(w))), ops.inv(v)))


MATRIX, DIRECTION = (
    [[1.0, 0.7, -0.3], [0.2, 2.0, 0.5], [-0.4, 0.3, 3.0]],
    [[0.3, -0.2, 0.5], [0.1, 0.7, -0.4], [0.2, 0.2, 0.1]],
)


@pytest.mark.parametrize("name", ["svd", "svd wide", "svd wide full", "eigh", "eig"])
def test_forward_derivatives_of_factorizations(name: str, backend: str) -> None:
    rows_used = 2 if "wide" in name else 3
    at, along = MATRIX[:rows_used], DIRECTION[:rows_used]
    if name == "eigh":
        at, along = ([[m[i][j] + m[j][i] for j in range(3)] for i in range(3)] for m in (at, along))
    dtype = "float32" if name == "eig" and backend == "mlx" else "float64"
    _, found = ops.jvp(
        lambda x: _matrix_function(name, x), (ops.array(at, dtype=dtype),), (ops.array(along, dtype=dtype),)
    )
    assert_close(found, differences(lambda x: _matrix_function(name, x), at, along), 1e-4)


def test_forward_derivatives_of_eigenvectors(backend: str) -> None:
    at, along = [[2.0, 0.5], [0.5, 1.0]], [[0.0, 1.0], [1.0, 0.0]]

    def squares(x: Any) -> Any:
        return ops.square(ops.eigh(x)[1])

    _, found = ops.jvp(squares, (ops.array(at, dtype="float64"),), (ops.array(along, dtype="float64"),))
    assert_close(found, differences(squares, at, along), 1e-5)


IDS = [0, 0, 1]
FORWARD: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "segment_prod": (lambda x: ops.segment_prod(x, ops.array(IDS), num_segments=2), [3.0, 1.0]),
    "segment_sum": (lambda x: ops.segment_sum(x, ops.array(IDS), num_segments=2), [1.0, 1.0]),
    "segment_max": (lambda x: ops.segment_max(x, ops.array(IDS), num_segments=2), [0.0, 1.0]),
    "cumprod": (lambda x: ops.cumprod(x, axis=0), [1.0, 3.0, 18.0]),
    "index_update": (lambda x: ops.index_update(x, ops.array([0]), 5.0), [0.0, 0.0, 1.0]),
    "slice": (lambda x: ops.slice(x, [1], (2,)), [0.0, 1.0]),
    "slice_update": (lambda x: ops.slice_update(x, [1], ops.array([9.0])), [1.0, 0.0, 1.0]),
    "repeat": (lambda x: ops.repeat(x, [1, 0, 2]), [1.0, 1.0, 1.0]),
    "mask": (lambda x: ops.get_item(x, ops.array([True, False, True])), [1.0, 1.0]),
    "scatter_add": (lambda x: ops.scatter_add(x, ops.array([0, 1, 0]), 2), [2.0, 0.0]),
    "cdist": (lambda x: ops.cdist(ops.reshape(x, (1, 3)), ops.zeros((1, 3))), [6.0 / math.sqrt(29.0)]),
}


@pytest.mark.parametrize("name", FORWARD)
def test_forward_derivatives(name: str, backend: str) -> None:
    function, wanted = FORWARD[name]
    _, found = ops.jvp(function, (ops.array([2.0, 3.0, 4.0]),), (ops.array([1.0, 0.0, 1.0]),))
    assert_close(found, wanted)


@pytest.mark.parametrize("name", ["slice", "slice_update", "repeat"])
def test_gradients_of_each_sample(name: str, backend: str) -> None:
    function, _ = FORWARD[name]
    x = ops.array([[2.0, 3.0, 4.0], [5.0, 6.0, 7.0]])
    found = ops.vmap(ops.grad(lambda x: ops.sum(ops.square(function(x)))))(x)
    wanted = {
        "slice": [0.0, 6.0, 8.0, 0.0, 12.0, 14.0],
        "slice_update": [4.0, 0.0, 8.0, 10.0, 0.0, 14.0],
        "repeat": [4.0, 0.0, 16.0, 10.0, 0.0, 28.0],
    }[name]
    assert_close(found, wanted)


def test_second_derivatives_of_distances(backend: str) -> None:
    def slope(x: Any) -> Any:
        return gradient_of_sum(lambda x: ops.square(ops.cdist(x, ops.array([[0.0, 0.0]]))), x)

    assert_close(gradient_of_sum(slope, ops.array([[1.0, 2.0]])), [2.0, 2.0])


def test_second_derivatives_through_a_root(backend: str) -> None:
    """The root y of y**3 + y = x has the slope 1 / (3 y**2 + 1) and the curvature -6 y / (3 y**2 + 1)**3."""
    y = float(mpmath.findroot(lambda y: y**3 + y - 0.5, 0.4))

    def root(x: Any) -> Any:
        return ops.sum(ops.newton_root(lambda y: y**3 + y - x, ops.array([0.1], dtype="float64"), tol=1e-13)[0])

    x = ops.array([0.5], dtype="float64")
    assert_close(ops.grad(root)(x), [1 / (3 * y**2 + 1)], 1e-9)
    if backend == "mlx":  # which is differentiable once, as the docstring of newton_root says
        with pytest.raises(LostGradient, match="inner derivative"):
            ops.hessian(root)(x)
        return
    assert_close(ops.hessian(root)(x), [-6 * y / (3 * y**2 + 1) ** 3], 1e-8)


def test_a_root_inside_checkpoint(backend: str) -> None:
    y = float(mpmath.findroot(lambda y: y**3 + y - 0.5, 0.4))

    def root(x: Any) -> Any:
        return ops.newton_root(lambda y: y**3 + y - x, ops.array([0.1], dtype="float64"), tol=1e-13)[0]

    x = ops.array([0.5], dtype="float64")
    found = ops.grad(lambda x: ops.sum(ops.checkpoint(root)(x)))(x)
    assert_close(found, [1 / (3 * y**2 + 1)], 1e-9)


def _slopes(function: Any, x: Any) -> list[list[float]]:
    """Return the gradient, and the derivative forward along each element."""
    size = ops.size(x)
    rows = [ops.reshape(ops.one_hot(i, size), ops.shape(x)) for i in range(size)]
    forward = [ops.item(ops.jvp(function, (x,), (row,))[1]) for row in rows]
    return [ops.to_numpy(ops.ravel(ops.grad(function)(x))).tolist(), forward]


@pytest.mark.parametrize("name", ["median", "quantile"])
def test_order_statistics_of_equal_elements(backend: str, name: str) -> None:
    """Whichever of the equal elements in the middle get the gradient, the others get none."""
    call = ops.median if name == "median" else lambda x: ops.quantile(x, 0.5)
    for slopes in _slopes(call, ops.array([0.9, 0.0, 0.0, -1.2, 0.0, 0.0])):
        assert slopes[0] == slopes[3] == 0.0
        assert sum(slopes) == 1.0


def test_the_angle_of_0_has_gradient_0(backend: str) -> None:
    def angle(x: Any) -> Any:
        return ops.arctan2(ops.get_item(x, 0), ops.get_item(x, 1))

    assert _slopes(angle, ops.array([0.0, 0.0])) == [[0.0, 0.0], [0.0, 0.0]]
    value, slope = ops.jvp(angle, (ops.array([1.0, 2.0]),), (ops.array([1.0, 0.0]),))
    assert ops.dtype(value) == ops.dtype(slope) == "float32"


@pytest.mark.parametrize(
    ("name", "x", "slope"), [("erf", 1.0, 0.41510749742), ("lgamma", 2.0, 0.42278433509), ("i0", 8.0, 399.873136782)]
)
def test_special_points_inside_a_checkpoint(backend: str, name: str, x: float, slope: float) -> None:
    """The slopes are those of mpmath."""
    got = ops.item(ops.grad(ops.checkpoint(getattr(ops, name)))(ops.array(x)))
    assert got == pytest.approx(slope, rel=1e-5)


def test_float64_inside_a_checkpoint(backend: str) -> None:
    got = ops.item(ops.grad(ops.checkpoint(ops.sin))(ops.array(1.7, dtype="float64")))
    assert got == pytest.approx(math.cos(1.7), rel=1e-14)


def test_a_complete_factorization_of_a_tall_matrix_has_no_gradient(backend: str) -> None:
    with pytest.raises(TypeError, match="mode='reduced'"):
        ops.grad(lambda x: ops.sum(ops.qr(x, mode="complete")[1]))(ops.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]))
