"""Sorting: stability, ties, NaN, infinities between quantiles, and long inputs, which take ways of their own."""

import math
import random
from fractions import Fraction
from importlib.metadata import version
from typing import Any

import pytest

from ember_ml import ops

NAN, INF = math.nan, math.inf
_COUNT = 5000  # long enough for every way of sorting


def _values(x: Any) -> Any:
    return ops.to_numpy(x).tolist()


def _key(value: float) -> tuple[bool, float]:
    """NaN counts as larger than everything, and all NaN as equal."""
    return (True, 0.0) if value != value else (False, value)


def _elements(dtype: str) -> list[Any]:
    """Many ties, and what the dtype has at its edges."""
    source = random.Random(7)
    if dtype == "bool":
        return [source.random() < 0.5 for _ in range(_COUNT)]
    if dtype.startswith("uint"):
        edges = [0, 2 ** int(dtype[4:]) - 1, 2 ** (int(dtype[4:]) - 1)]
        return [source.choice([*edges, *range(20)]) for _ in range(_COUNT)]
    if dtype.startswith("int"):
        half = 2 ** (int(dtype[3:]) - 1)
        return [source.choice([-half, half - 1, *range(-20, 20)]) for _ in range(_COUNT)]
    return [source.choice([NAN, -NAN, INF, -INF, 0.0, -0.0, source.randrange(-64, 64) / 4]) for _ in range(_COUNT)]


_DTYPES = [
    "bool",
    "int8",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
]


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize("count", [20, _COUNT])
def test_argsort_is_stable(backend: str, dtype: str, count: int) -> None:
    elements = _elements(dtype)[:count]
    x = ops.array(elements, dtype=dtype)
    up = sorted(range(count), key=lambda i: _key(elements[i]))
    down = sorted(range(count), key=lambda i: _key(elements[i]), reverse=True)  # which also keeps equals in order
    assert _values(ops.argsort(x)) == up
    assert _values(ops.argsort(x, descending=True)) == down
    assert ops.dtype(ops.argsort(x)) == "int64"
    assert _same(_values(ops.cast(ops.sort(x), "float64")), [float(elements[i]) for i in up])
    assert _same(_values(ops.cast(ops.sort(x, descending=True), "float64")), [float(elements[i]) for i in down])


def _same(got: list[float], want: list[float]) -> bool:
    return [_key(value) for value in got] == [_key(value) for value in want]


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize("k", [0, 1, 7, 900, _COUNT])
def test_top_k_takes_the_first_of_equals(backend: str, dtype: str, k: int) -> None:
    elements = _elements(dtype)
    x = ops.array(elements, dtype=dtype)
    expected = sorted(range(_COUNT), key=lambda i: _key(elements[i]), reverse=True)[:k]
    values, indices = ops.top_k(x, k)
    assert _values(indices) == expected
    assert (ops.dtype(values), ops.dtype(indices)) == (dtype, "int64")
    assert _same(_values(ops.cast(values, "float64")), [float(elements[i]) for i in expected])


def test_top_k_along_any_axis(backend: str) -> None:
    x = ops.array([[1.0, 5.0, 2.0], [5.0, 5.0, NAN]])
    values, indices = ops.top_k(x, 2)
    assert _values(indices) == [[1, 2], [2, 0]]
    assert _values(values)[0] == [5.0, 2.0]
    values, indices = ops.top_k(x, 1, axis=0)
    assert _values(indices) == [[1, 0, 1]]
    assert ops.top_k(ops.zeros((0, 3)), 2)[0].shape[1] == 2
    for k in (4, -1):
        with pytest.raises(ValueError, match="top_k"):
            ops.top_k(x, k)
    with pytest.raises(IndexError, match="top_k"):
        ops.top_k(x, 1, axis=2)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_sorting_along_any_axis(backend: str, axis: int) -> None:
    source = random.Random(3)
    shape = (3, 40, 12)
    x = ops.reshape(ops.array([source.randrange(9) for _ in range(math.prod(shape))], dtype="float32"), shape)
    order = ops.argsort(x, axis=axis, descending=True)
    assert _values(ops.take_along_axis(x, order, axis=axis)) == _values(ops.sort(x, axis=axis, descending=True))
    steps = ops.diff(ops.sort(x, axis=axis), axis=axis)
    assert ops.all(ops.greater_equal(steps, 0.0)).item()
    assert _values(ops.sum(x, axis=axis)) == _values(ops.sum(ops.sort(x, axis=axis), axis=axis))


def test_sorting_what_hardly_needs_it(backend: str) -> None:
    for op in (ops.sort, ops.argsort):
        assert tuple(ops.shape(op(ops.zeros((0,))))) == (0,)
        assert tuple(ops.shape(op(ops.zeros((2, 0))))) == (2, 0)
        assert op(ops.array(7.0)).item() == (7.0 if op is ops.sort else 0)
        with pytest.raises(IndexError):
            op(ops.zeros((2, 3)), axis=2)


def test_complex_numbers_by_real_then_imaginary_part(backend: str) -> None:
    x = [2 + 1j, 1 + 5j, 1 - 1j, 1 + 5j]
    assert _values(ops.argsort(x)) == [2, 1, 3, 0]
    assert _values(ops.argsort(x, descending=True)) == [0, 1, 3, 2]
    assert _values(ops.sort(x, descending=True)) == [2 + 1j, 1 + 5j, 1 + 5j, 1 - 1j]


@pytest.mark.parametrize("kth", [0, 3, 4999, -1, -5000])
def test_argpartition_divides(backend: str, kth: int) -> None:
    elements = _elements("float32")
    order = _values(ops.argpartition(ops.array(elements, dtype="float32"), kth))
    assert sorted(order) == list(range(_COUNT))
    keys = [_key(elements[i]) for i in order]
    kth %= _COUNT
    assert keys[kth] == sorted(map(_key, elements))[kth]
    assert max(keys[: kth + 1]) == keys[kth] == min(keys[kth:])


def test_argpartition_outside(backend: str) -> None:
    for kth in (3, -4):
        with pytest.raises(IndexError, match="argpartition"):
            ops.argpartition(ops.zeros((3,)), kth)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 1001, 5000])
def test_median_of_many(backend: str, count: int) -> None:
    source = random.Random(count)
    elements = [source.randrange(-4000, 4000) / 8 for _ in range(count)]
    ordered = sorted(elements)
    expected = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    assert ops.median(ops.array(elements, dtype="float32")).item() == expected
    assert ops.nanmedian(ops.array([*elements, NAN, NAN], dtype="float32")).item() == expected
    columns = ops.reshape(ops.array(elements * 2, dtype="float64"), (2, count))
    assert _values(ops.median(columns, axis=1)) == [expected, expected]
    assert _values(ops.median(ops.transpose(columns), axis=0)) == [expected, expected]
    assert ops.median(ops.array(elements, dtype="bfloat16")).item() == pytest.approx(expected, rel=0.01, abs=0.1)


def test_median_at_the_edges(backend: str) -> None:
    assert ops.median([INF, INF]).item() == INF
    assert ops.median([-INF, 1.0, INF, INF]).item() == INF
    assert ops.median([3e38, 3e38]).item() == pytest.approx(3e38)
    assert math.isnan(ops.median([-INF, INF]).item())
    assert math.isnan(ops.median(ops.zeros((0,))).item())
    assert math.isnan(ops.median([*range(100), NAN]).item())
    assert tuple(ops.shape(ops.median(ops.zeros((3, 0)), axis=0))) == (0,)


def test_quantiles_of_many(backend: str) -> None:
    x = ops.arange(100_001, dtype="float32")
    probabilities = [0.0, 0.1, 0.123456, 0.5, 0.999, 1.0]
    expected = [q * 100_000 for q in probabilities]
    assert _values(ops.quantile(x, probabilities)) == pytest.approx(expected, rel=1e-6)
    assert _values(ops.nanquantile(x, probabilities)) == pytest.approx(expected, rel=1e-6)
    for q, value in zip(probabilities, expected, strict=True):
        assert ops.quantile(x, q).item() == pytest.approx(value, rel=1e-6)
        assert ops.percentile(x, 100 * q).item() == pytest.approx(value, rel=1e-6)


def test_quantiles_put_the_axes_of_q_first(backend: str) -> None:
    x = ops.reshape(ops.arange(12, dtype="float32"), (3, 4))
    assert _values(ops.quantile(x, [[0.0, 1.0]], axis=0)) == [[[0.0, 1.0, 2.0, 3.0], [8.0, 9.0, 10.0, 11.0]]]
    assert tuple(ops.shape(ops.quantile(x, [0.0, 0.5, 1.0], axis=1, keepdims=True))) == (3, 3, 1)
    assert tuple(ops.shape(ops.nanquantile(x, [0.0, 0.5], axis=(0, 1), keepdims=True))) == (2, 1, 1)
    assert _values(ops.quantile(x, ops.array([0.5]), axis=1)) == [[1.5, 5.5, 9.5]]


def test_quantiles_between_infinities_and_nan(backend: str) -> None:
    assert _values(ops.quantile([-INF, -INF, 0.0, INF, INF], [0.1, 0.5, 0.9])) == [-INF, 0.0, INF]
    assert ops.quantile([0.0, 1.0, INF], 0.5).item() == 1.0
    assert all(math.isnan(value) for value in _values(ops.quantile([0.0, NAN, 1.0], [0.0, 0.5])))
    assert _values(ops.nanquantile([[0.0, NAN, 1.0], [NAN, NAN, 2.0]], 0.5, axis=1)) == [0.5, 2.0]
    for q in (-0.1, 1.1, NAN, [0.5, 2.0]):
        with pytest.raises(ValueError, match="quantile"):
            ops.quantile([1.0, 2.0], q)
    with pytest.raises(ValueError, match="percentile"):
        ops.percentile([1.0, 2.0], 101)


def test_top_k_of_rows_that_tie_differently(backend: str) -> None:
    x = ops.array([[1.0, 1.0, 1.0, 1.0], [4.0, 2.0, 2.0, 3.0], [NAN, 5.0, NAN, NAN], [1.0, 2.0, 3.0, 4.0]])
    _, indices = ops.top_k(x, 2)
    assert _values(indices) == [[0, 1], [0, 3], [0, 2], [3, 2]]
    _, indices = ops.top_k(x, 3)
    assert _values(indices) == [[0, 1, 2], [0, 3, 1], [0, 2, 3], [3, 2, 1]]


_ESTIMATES = {  # how far beyond n * q the estimate lies, counted from 1
    "interpolated_inverted_cdf": lambda q: Fraction(0),
    "hazen": lambda q: Fraction(1, 2),
    "weibull": lambda q: q,
    "linear": lambda q: 1 - q,
    "median_unbiased": lambda q: (q + 1) / 3,
    "normal_unbiased": lambda q: q / 4 + Fraction(3, 8),
}


def _expected(ordered: list[float], q: Fraction, method: str) -> float:
    """The quantile by its definition in exact fractions, with elements counted from 1."""
    n = len(ordered)

    def element(place: int) -> float:
        return ordered[min(max(place, 1), n) - 1]

    if method == "inverted_cdf":
        return element(math.ceil(n * q))
    if method == "averaged_inverted_cdf":
        return (element(math.ceil(n * q)) + element(math.floor(n * q) + 1)) / 2
    if method == "closest_observation":
        return element(round(n * q))  # of two equally near, the even one
    place = 1 + (n - 1) * q
    if method in ("lower", "higher", "midpoint"):
        ends = element(math.floor(place)), element(math.ceil(place))
        return {"lower": ends[0], "higher": ends[1], "midpoint": sum(ends) / 2}[method]
    if method == "nearest":
        return element(1 + round(place - 1))  # the even index, counted from 0
    place = n * q + _ESTIMATES[method](q)
    share = float(place - math.floor(place))
    return element(math.floor(place)) * (1 - share) + element(math.floor(place) + 1) * share


@pytest.mark.parametrize(
    "method",
    [
        *("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "lower", "higher", "midpoint", "nearest"),
        *_ESTIMATES,
    ],
)
def test_quantiles_by_every_method(backend: str, method: str) -> None:
    parts = [Fraction(k, 20) for k in range(21)]  # 0.1 and its like are no fractions of two
    for n in (1, 2, 3, 5, 10, 20):
        ordered = [float(k * k) for k in range(n)]
        x = ops.array(ordered[::-1])
        expected = [_expected(ordered, q, method) for q in parts]
        probabilities = [float(q) for q in parts]
        assert _values(ops.quantile(x, probabilities, method=method)) == pytest.approx(expected, rel=1e-6)
        assert ops.quantile(x, 0.35, method=method).item() == pytest.approx(expected[7], rel=1e-6)
        assert _values(ops.percentile(x, [5 * k for k in range(21)], method=method)) == pytest.approx(
            expected, rel=1e-6
        )
        gaps = ops.array([NAN, *ordered, NAN])
        assert _values(ops.nanquantile(gaps, probabilities, method=method)) == pytest.approx(expected, rel=1e-6)


def test_methods_that_take_one_element_take_infinities_too(backend: str) -> None:
    x = [-INF, 0.0, INF, INF]
    for op in (ops.quantile, ops.nanquantile):
        assert _values(op(x, [0.0, 0.4, 0.5, 1.0], method="lower")) == [-INF, 0.0, 0.0, INF]
        assert _values(op(x, [0.0, 0.4, 0.5, 1.0], method="higher")) == [-INF, INF, INF, INF]
        with pytest.raises(ValueError, match="method"):
            op(x, 0.5, method="middle")


def test_sorting_all_elements(backend: str) -> None:
    x = ops.array([[3.0, NAN, 1.0], [2.0, 1.0, -INF]])
    assert _same(_values(ops.sort(x, axis=None)), [-INF, 1.0, 1.0, 2.0, 3.0, NAN])
    assert _values(ops.argsort(x, axis=None)) == [5, 2, 4, 3, 0, 1]
    assert _values(ops.argsort(x, axis=None, descending=True)) == [1, 0, 3, 2, 4, 5]
    assert _values(ops.sort(7.0, axis=None)) == [7.0]


@pytest.mark.parametrize("op", [ops.quantile, pytest.param(ops.nanquantile, marks=pytest.mark.long)])
def test_compiled_quantiles(backend: str, op: Any) -> None:
    if backend == "torch" and version("torch") < "2.12":
        pytest.skip("PyTorch 2.11 cannot trace the floats that change from one compiled function to the next")
    x = ops.array([4.0, 1.0, 3.0, 2.0, 5.0])
    for method, expected in (("nearest", [1.0, 3.0]), ("hazen", [1.0, 3.0]), ("averaged_inverted_cdf", [1.5, 3.0])):
        compiled = ops.compile(lambda x, method=method: op(x, [0.2 if "_" in method else 0.0, 0.5], method=method))
        assert _values(compiled(x)) == expected
