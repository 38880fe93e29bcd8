"""Running sums that keep their digits; differences, integrals, covariance and correlation against sums by hand."""

import math
import struct
from typing import Any

import pytest

from ember_ml import ops


def _float32(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


def _values(x: Any) -> Any:
    return ops.to_numpy(x).tolist()


@pytest.mark.parametrize("shape", [(100_003,), (20_001, 3), (3, 20_001)])
def test_long_running_sums_keep_six_digits(backend: str, shape: tuple[int, ...]) -> None:
    axis = shape.index(max(shape))
    result = ops.cumsum(ops.full(shape, 0.1, dtype="float32"), axis=axis)
    count = ops.arange(1, max(shape) + 1, dtype="float64")
    exact = ops.multiply(count, _float32(0.1))
    exact = ops.reshape(exact, tuple(n if i == axis else 1 for i, n in enumerate(shape)))
    error = ops.abs(ops.subtract(ops.divide(ops.cast(result, "float64"), exact), 1.0))
    assert ops.max(error).item() < 1e-6
    assert tuple(ops.shape(result)) == shape


@pytest.mark.parametrize("count", [1, 15, 16, 17, 31, 32, 33, 256, 257, 1000])
def test_running_sums_of_any_length(backend: str, count: int) -> None:
    elements = [(i * 37 % 101) / 64 - 0.5 for i in range(count)]
    expected = [math.fsum(elements[: i + 1]) for i in range(count)]
    assert _values(ops.cumsum(ops.array(elements, dtype="float32"))) == expected


def test_running_sums_pass_infinities_on(backend: str) -> None:
    elements = [1.0] * 50
    elements[20] = math.inf
    assert _values(ops.cumsum(ops.array(elements))) == [float(i + 1) for i in range(20)] + [math.inf] * 30


def test_running_ops_without_an_axis(backend: str) -> None:
    x = ops.array([[1.0, 2.0], [3.0, 4.0]])
    assert _values(ops.cumsum(x)) == [1.0, 3.0, 6.0, 10.0]
    assert _values(ops.cumprod(x)) == [1.0, 2.0, 6.0, 24.0]
    assert _values(ops.cumsum(ops.array(5.0))) == [5.0]
    with pytest.raises(ValueError, match="cumulative_sum"):
        ops.cumulative_sum(x)
    for op in (ops.cumsum, ops.cumprod, ops.cumulative_sum):
        with pytest.raises(IndexError):
            op(x, axis=2)


def test_running_ops_in_a_dtype_asked_for(backend: str) -> None:
    x = ops.array([100, 100], dtype="int8")
    for op in (ops.cumsum, ops.cumulative_sum, ops.nancumsum):
        result = op(x, dtype="float64")
        assert (ops.dtype(result), _values(result)) == ("float64", [100.0, 200.0])
    narrow = ops.cumsum(x, dtype="int8")
    assert (ops.dtype(narrow), _values(narrow)) == ("int8", [100, -56])


def test_initial_elements(backend: str) -> None:
    x = ops.array([[1, 2], [3, 4]], dtype="uint8")
    result = ops.cumulative_sum(x, axis=0, include_initial=True)
    assert (ops.dtype(result), _values(result)) == ("uint64", [[0, 0], [1, 2], [4, 6]])
    assert _values(ops.cumulative_prod(x, axis=1, include_initial=True)) == [[1, 1, 2], [1, 3, 12]]
    assert _values(ops.cumulative_sum(ops.zeros((0,)), include_initial=True)) == [0.0]


def test_differences(backend: str) -> None:
    assert _values(ops.diff([1.0, 4.0, 9.0], prepend=0.0, append=[16.0, 25.0])) == [1.0, 3.0, 5.0, 7.0, 9.0]
    assert _values(ops.diff([True, False, False])) == [True, False]
    assert _values(ops.diff(ops.array([1, 3], dtype="uint8"), n=0)) == [1, 3]
    assert _values(ops.diff(ops.array([3, 1], dtype="uint8"))) == [254]
    assert _values(ops.diff(ops.array([[1, 2], [4, 8]]), axis=0, prepend=0)) == [[1, 2], [3, 6]]
    assert tuple(ops.shape(ops.diff(ops.ones((2, 1)), n=3))) == (2, 0)
    with pytest.raises(ValueError, match="diff"):
        ops.diff([1.0, 2.0], n=-1)


def test_integrals(backend: str) -> None:
    y = ops.array([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]])
    assert _values(ops.trapezoid(y)) == [4.0, 10.5]
    assert _values(ops.trapezoid(y, x=[0.0, 1.0, 3.0])) == [6.5, 16.5]
    assert _values(ops.trapezoid(y, x=[0.0, 2.0], axis=0)) == [5.0, 7.0, 10.0]
    assert _values(ops.trapezoid(y, x=[[0.0, 1.0, 3.0], [0.0, 1.0, 2.0]])) == [6.5, 10.5]
    assert ops.trapezoid([1, 2]).item() == 1.5


def _covariance(a: list[float], b: list[float], weights: list[float], divisor: float) -> float:
    whole = sum(weights)
    mean_a = sum(w * v for w, v in zip(weights, a, strict=True)) / whole
    mean_b = sum(w * v for w, v in zip(weights, b, strict=True)) / whole
    return sum(w * (p - mean_a) * (q - mean_b) for w, p, q in zip(weights, a, b, strict=True)) / divisor


_A, _B = [1.0, 2.0, 4.0, 7.0], [3.0, 1.0, 0.0, 5.0]
_ONES = [1.0] * 4


@pytest.mark.parametrize(("options", "divisor"), [({}, 3), ({"bias": True}, 4), ({"ddof": 2}, 2), ({"ddof": 0}, 4)])
def test_covariance(backend: str, options: dict[str, Any], divisor: float) -> None:
    expected = [[_covariance(p, q, _ONES, divisor) for q in (_A, _B)] for p in (_A, _B)]
    for got in (
        ops.cov([_A, _B], **options),
        ops.cov(_A, _B, **options),
        ops.cov(ops.transpose(ops.array([_A, _B])), rowvar=False, **options),
    ):
        for row, wanted in zip(_values(got), expected, strict=True):
            assert row == pytest.approx(wanted, rel=1e-6)
    assert ops.cov(_A, **options).item() == pytest.approx(expected[0][0])


def test_covariance_with_weights(backend: str) -> None:
    often = [1.0, 2.0, 0.0, 3.0]
    assert ops.cov(_A, fweights=[1, 2, 0, 3]).item() == pytest.approx(_covariance(_A, _A, often, 5))
    much = [0.5, 1.0, 2.0, 0.25]
    divisor = sum(much) - sum(w * w for w in much) / sum(much)
    assert ops.cov(_A, aweights=much).item() == pytest.approx(_covariance(_A, _A, much, divisor))
    both = [f * a for f, a in zip(often, much, strict=True)]
    divisor = sum(both) - sum(w * a for w, a in zip(both, much, strict=True)) / sum(both)
    assert ops.cov(_A, fweights=often, aweights=much).item() == pytest.approx(_covariance(_A, _A, both, divisor))
    with pytest.raises(ValueError, match="cov"):
        ops.cov(_A, aweights=[1.0, 2.0])
    with pytest.raises(ValueError, match="cov"):
        ops.cov(ops.ones((2, 2, 2)))


def test_covariance_of_complex_numbers_and_of_half_precision(backend: str) -> None:
    x = ops.array([[1 + 1j, 3 - 1j], [2j, 4.0 + 0j]])
    got = _values(ops.cov(x))
    # deviations: -1+1j, 1-1j and -2+1j, 2-1j
    assert got[0][1] == pytest.approx(2 * (-1 + 1j) * (-2 - 1j))
    assert got[1][0] == pytest.approx(2 * (-2 + 1j) * (-1 - 1j))
    half = ops.cov(ops.array([_A, _B], dtype="float16"))
    assert ops.dtype(half) == "float16"
    assert _values(half)[0][0] == pytest.approx(_covariance(_A, _A, _ONES, 3), rel=1e-3)


def test_correlation_coefficients(backend: str) -> None:
    spread = math.sqrt(_covariance(_A, _A, _ONES, 1) * _covariance(_B, _B, _ONES, 1))
    got = _values(ops.corrcoef([_A, _B]))
    assert got[0] == pytest.approx([1.0, _covariance(_A, _B, _ONES, 1) / spread], rel=1e-6)
    assert ops.corrcoef(_A).item() == 1.0
    exact = _values(ops.corrcoef(_A, [-3 * v for v in _A]))
    assert exact[0][1] == pytest.approx(-1.0)
    assert exact[0][1] >= -1.0


def _correlation(x: list[Any], y: list[Any], lag: int) -> Any:
    return sum(x[i + lag] * complex(v).conjugate() for i, v in enumerate(y) if 0 <= i + lag < len(x))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int8", "uint16", "uint64", "complex64"])
@pytest.mark.parametrize(("m", "n"), [(7, 3), (7, 4), (3, 7), (4, 7), (5, 5), (1, 1), (40, 17)])
def test_cross_correlation(backend: str, dtype: str, m: int, n: int) -> None:
    x, y = [i * 5 % 7 for i in range(m)], [i * 3 % 5 for i in range(n)]
    if dtype == "complex64":
        x, y = [v + 1j for v in x], [v - 2j for v in y]
    full = [_correlation(x, y, lag) for lag in range(1 - n, m)]
    if dtype in ("int8",):
        full = [(int(v.real) + 128) % 256 - 128 for v in full]
    shorter, longer = min(m, n), max(m, n)
    # numpy's "same": the middle of "full"; where the first is the shorter one, counted from the other end
    start = shorter - 1 - shorter // 2 if m >= n else shorter // 2
    expected = {"full": full, "same": full[start : start + longer], "valid": full[shorter - 1 : longer]}
    for mode, wanted in expected.items():
        got = ops.correlate(ops.array(x, dtype=dtype), ops.array(y, dtype=dtype), mode)
        assert ops.dtype(got) == dtype
        assert _values(got) == pytest.approx(wanted, rel=1e-3 if dtype == "float16" else 1e-5)


def test_cross_correlation_of_what_does_not_fit(backend: str) -> None:
    for x, y, mode in (([1.0], [1.0], "half"), ([[1.0]], [1.0], "valid"), ([], [1.0], "full")):
        with pytest.raises(ValueError, match="correlate"):
            ops.correlate(x, y, mode)


def test_more_differences_than_elements(backend: str) -> None:
    assert ops.shape(ops.diff([1.0, 4.0, 9.0], n=2**40)) == (0,)
