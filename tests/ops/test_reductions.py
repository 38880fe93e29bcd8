"""Reductions: digits kept in long sums, whatever the layout; widening; degenerate axes; what only NaN leaves over."""

import math
import struct
from typing import Any

import pytest

from ember_ml import ops

NAN, INF = math.nan, math.inf


def _float32(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


def _values(x: Any) -> Any:
    return ops.to_numpy(x).tolist()


def _every(x: Any) -> list[Any]:
    return _values(ops.reshape(x, (-1,)))


def _all_near(x: Any, expected: float) -> bool:
    return all(value == pytest.approx(expected, rel=1e-6) for value in _every(x))


# constants are the hardest case: adding one after the other, every rounding goes the same way
@pytest.mark.parametrize("value", [0.1, 0.3, 0.7])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((300_000,), None),
        ((300_000,), 0),
        ((100_000, 3), None),
        ((100_000, 3), 0),
        ((3, 100_000), 1),
        ((3, 100_003), -1),
        ((10_007, 3, 5), (0, 2)),
        ((5, 10_007, 3), 1),
        ((5, 3, 10_007), (0, 2)),
        ((41, 43, 47), (0, 1)),
    ],
)
def test_long_sums_keep_six_digits(backend: str, value: float, shape: tuple[int, ...], axis: Any) -> None:
    x = ops.full(shape, value, dtype="float32")
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    count = math.prod(shape[i] for i in axes)
    assert _all_near(ops.sum(x, axis=axis), _float32(value) * count)
    assert _all_near(ops.mean(x, axis=axis), _float32(value))


@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
def test_long_sums_keep_six_digits_in_parts_of_tensors(backend: str, axis: Any) -> None:
    whole = ops.full((200_000, 3), 0.1, dtype="float32")
    part = ops.get_item(whole, (slice(None), slice(None, 2)))
    count = 200_000 if axis == 0 else 400_000
    assert _all_near(ops.sum(part, axis=axis), _float32(0.1) * count)
    turned = ops.transpose(part)
    assert _all_near(ops.mean(turned, axis=1 if axis == 0 else axis), _float32(0.1))


@pytest.mark.parametrize("count", [15, 16, 17, 23, 24, 63, 64, 65, 127, 129, 1000, 4097])
def test_sums_of_any_length_are_those_of_their_elements(backend: str, count: int) -> None:
    elements = [(i * 37 % 101) / 64 - 0.5 for i in range(count)]
    x = ops.array(elements, dtype="float32")
    exact = math.fsum(elements)  # they are sums of a few powers of two, so that no rounding is due
    assert ops.sum(x).item() == exact
    column = ops.reshape(x, (count, 1))
    assert _values(ops.sum(ops.concatenate([column, column], axis=1), axis=0)) == [exact, exact]


def test_complex_sums_keep_six_digits(backend: str) -> None:
    x = ops.full((100_000, 2), 0.1 + 0.3j, dtype="complex64")
    for got in _every(ops.sum(x, axis=0)):
        assert got.real == pytest.approx(_float32(0.1) * 100_000, rel=1e-6)
        assert got.imag == pytest.approx(_float32(0.3) * 100_000, rel=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("axis", [0, 1])
def test_half_precision_is_accumulated_in_float32(backend: str, dtype: str, axis: int) -> None:
    x = ops.ones((4096, 2) if axis == 0 else (2, 4096), dtype=dtype)
    assert _values(ops.cast(ops.sum(x, axis=axis), "float32")) == [4096.0, 4096.0]
    assert _values(ops.cast(ops.mean(x, axis=axis), "float32")) == [1.0, 1.0]
    product = ops.prod(ops.array([300.0, 300.0, 1 / 256, 1 / 256], dtype=dtype))
    assert ops.cast(product, "float32").item() == pytest.approx(300 * 300 / 65536, rel=1e-2)
    assert ops.dtype(product) == dtype


def test_variance_far_from_zero_is_not_lost(backend: str) -> None:
    x = ops.array([4096.0 + i % 2 for i in range(10_000)], dtype="float32")
    assert ops.var(x).item() == pytest.approx(0.25, rel=1e-5)
    assert ops.std(x, correction=1).item() == pytest.approx(math.sqrt(0.25 * 10_000 / 9_999), rel=1e-5)


def test_variance_with_nothing_to_divide_by(backend: str) -> None:
    assert math.isnan(ops.var([5.0], correction=1).item())
    assert ops.var([1.0, 3.0], correction=2).item() == INF
    assert ops.var([1.0, 3.0], correction=5).item() == INF
    assert math.isnan(ops.var(ops.zeros((0,))).item())
    assert _values(ops.var(ops.ones((2, 0)), axis=1)) == pytest.approx([NAN, NAN], nan_ok=True)


def test_variance_of_complex_numbers_is_real(backend: str) -> None:
    result = ops.var([1 + 1j, 3 - 1j])
    assert (ops.dtype(result), result.item()) == ("float32", 2.0)


def test_extremes_with_a_first_value(backend: str) -> None:
    x = ops.array([[1.0, 5.0], [3.0, -2.0]])
    assert _values(ops.max(x, axis=0, initial=2.0)) == [3.0, 5.0]
    assert _values(ops.min(x, axis=1, keepdims=True, initial=0)) == [[0.0], [-2.0]]
    assert _values(ops.amax(ops.zeros((0, 2)), axis=0, initial=-1.0)) == [-1.0, -1.0]
    assert _values(ops.min(ops.zeros((2, 0)), axis=(0, 1), initial=7)) == 7.0
    assert math.isnan(ops.max([1.0, NAN], initial=3.0).item())
    assert math.isnan(ops.max([1.0, 2.0], initial=NAN).item())
    assert ops.nanmax([NAN, NAN], initial=3.0).item() == 3.0
    assert ops.nanmin([1.0, NAN], initial=3.0).item() == 1.0
    small = ops.max(ops.array([1, 2], dtype="uint8"), initial=200)
    assert (ops.dtype(small), small.item()) == ("uint8", 200)
    assert ops.max(ops.array([2**63], dtype="uint64"), initial=5).item() == 2**63
    with pytest.raises(OverflowError, match="dtype"):
        ops.max(ops.array([1, 2], dtype="uint8"), initial=-1)
    with pytest.raises(ValueError, match="initial"):
        ops.max(x, initial=ops.ones((2,)))


@pytest.mark.parametrize("op", [ops.max, ops.min])
def test_a_first_value_that_is_the_result_takes_half_of_the_gradient(backend: str, op: Any) -> None:
    own, first = ops.grad(lambda x, y: op(x, initial=y), (0, 1))(ops.array([1.0, 1.0]), ops.array(1.0))
    assert (_values(own), first.item()) == ([0.25, 0.25], 0.5)


@pytest.mark.parametrize(
    ("source", "wide"),
    [
        ("bool", "int64"),
        ("int8", "int64"),
        ("int64", "int64"),
        ("uint8", "uint64"),
        ("uint32", "uint64"),
        ("uint64", "uint64"),
    ],
)
def test_integers_are_summed_in_64_bits(backend: str, source: str, wide: str) -> None:
    x = ops.ones((300, 2), dtype=source)
    for op, expected in ((ops.sum, 300), (ops.prod, 1)):
        for axis in (0, (0,)):
            result = op(x, axis=axis)
            assert (ops.dtype(result), _values(result)) == (wide, [expected, expected])
        assert ops.dtype(op(x, axis=())) == wide
    assert ops.dtype(ops.cumsum(x, axis=0)) == wide


def test_unsigned_sums_reach_beyond_signed_ones(backend: str) -> None:
    x = ops.array([2**63, 5], dtype="uint64")
    assert (ops.sum(x).item(), ops.max(x).item(), ops.argmax(x).item()) == (2**63 + 5, 2**63, 0)
    assert _values(ops.cumsum(x)) == [2**63, 2**63 + 5]


@pytest.mark.parametrize(
    ("source", "dtype", "expected"),
    [
        ("float32", "float64", 3.75),
        ("float32", "int32", 3),
        ("float32", "bfloat16", 3.75),
        ("int8", "int8", 3),
        ("int8", "float16", 3.0),
        ("uint16", "int32", 3),
        ("bool", "float32", 2.0),
    ],
)
def test_sums_in_a_dtype_asked_for(backend: str, source: str, dtype: str, expected: float) -> None:
    result = ops.sum(ops.cast(ops.array([1.25, 2.5]), source), dtype=dtype)
    assert (ops.dtype(result), ops.cast(result, "float64").item()) == (dtype, expected)


def test_no_axes_take_nothing_together(backend: str) -> None:
    x = ops.array([[1.0, 2.0], [3.0, 4.0]])
    for op in (ops.sum, ops.prod, ops.mean, ops.max, ops.min, ops.logsumexp):
        assert _every(op(x, axis=())) == pytest.approx([1.0, 2.0, 3.0, 4.0])
    for op in (ops.var, ops.std):
        assert _values(op(x, axis=())) == [[0.0, 0.0], [0.0, 0.0]]
    assert _values(ops.all(x, axis=())) == [[True, True], [True, True]]
    assert _values(ops.count_nonzero(x, axis=())) == [[1, 1], [1, 1]]


_REDUCTIONS = ["sum", "prod", "mean", "var", "std", "max", "min", "all", "any", "count_nonzero", "logsumexp", "median"]


@pytest.mark.parametrize("name", _REDUCTIONS)
def test_axes_that_are_wrong(backend: str, name: str) -> None:
    op, x = getattr(ops, name), ops.ones((2, 3, 40))
    for axis in (3, -4, (0, 3)):
        with pytest.raises(IndexError, match=name):
            op(x, axis=axis)
    with pytest.raises(ValueError, match=name):
        op(x, axis=(0, 0))
    with pytest.raises(ValueError, match=name):
        op(x, axis=(0, -3))


@pytest.mark.parametrize("name", [*_REDUCTIONS, "argmax", "argmin"])
def test_dimensions_are_kept_on_request(backend: str, name: str) -> None:
    op = getattr(ops, name)
    for shape in ((), (4,), (2, 3), (2, 3, 40)):
        x = ops.ones(shape)
        assert tuple(ops.shape(op(x, keepdims=True))) == (1,) * len(shape)
        assert tuple(ops.shape(op(x))) == ()
    x = ops.ones((2, 3, 40))
    assert tuple(ops.shape(op(x, axis=-2, keepdims=True))) == (2, 1, 40)
    if not name.startswith("arg"):
        assert tuple(ops.shape(op(x, axis=(2, 0), keepdims=True))) == (1, 3, 1)


@pytest.mark.parametrize(
    "name", ["max", "min", "argmax", "argmin", "nanmax", "nanmin", "nanargmax", "nanargmin", "ptp"]
)
def test_nothing_has_no_extremes(backend: str, name: str) -> None:
    op = getattr(ops, name)
    for shape, axis in (((0,), None), ((0,), 0), ((0, 3), 0), ((3, 0), None)):
        with pytest.raises(ValueError, match=name):
            op(ops.zeros(shape), axis=axis)
    assert tuple(ops.shape(op(ops.zeros((0, 3)), axis=1))) == (0,)


def test_first_of_equals_and_first_nan(backend: str) -> None:
    x = ops.array([[1.0, 3.0, 3.0], [NAN, 0.0, NAN], [-0.0, 0.0, -1.0]])
    assert _values(ops.argmax(x, axis=1)) == [1, 0, 0]
    assert _values(ops.argmin(x, axis=1)) == [0, 0, 2]
    long = [0.0] * 5000
    long[3210] = long[4321] = NAN
    assert (ops.argmax(long).item(), ops.argmin(long).item()) == (3210, 3210)


def test_nan_and_tiny_numbers_are_true(backend: str) -> None:
    x = ops.array([NAN, 0.25, 1e-40])
    assert ops.all(x).item() is True
    assert ops.count_nonzero(x).item() == 3
    assert ops.any(ops.array([0.0, -0.0])).item() is False


def test_logsumexp_at_the_edges(backend: str) -> None:
    assert ops.logsumexp([-INF, -INF]).item() == -INF
    assert ops.logsumexp([INF, 1.0]).item() == INF
    assert ops.logsumexp(ops.zeros((0,))).item() == -INF
    assert ops.logsumexp([-2000.0, -2000.0]).item() == pytest.approx(-2000 + math.log(2))
    double = ops.logsumexp(ops.array([0.1, 0.2, 0.3], dtype="float64")).item()
    assert double == pytest.approx(math.log(math.exp(0.1) + math.exp(0.2) + math.exp(0.3)), rel=1e-15)
    long = ops.logsumexp(ops.zeros((100_000,))).item()
    assert long == pytest.approx(math.log(100_000), rel=1e-6)


def test_average_with_weights(backend: str) -> None:
    x = ops.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert _values(ops.average(x, axis=1, weights=[1.0, 0.0, 1.0])) == [2.0, 5.0]
    result, scale = ops.average(x, axis=0, weights=[3.0, 1.0], returned=True)
    assert (_values(result), _values(scale)) == ([1.75, 2.75, 3.75], [4.0, 4.0, 4.0])
    result, scale = ops.average(x, returned=True)
    assert (result.item(), scale.item()) == (3.5, 6.0)
    deep = ops.reshape(ops.arange(24, dtype="float32"), (2, 3, 4))
    weights = ops.reshape(ops.arange(8, dtype="float32"), (4, 2))
    expected = [sum((2 * k + i) * (12 * i + 4 * j + k) for i in (0, 1) for k in range(4)) / 28 for j in range(3)]
    assert _values(ops.average(deep, axis=(2, 0), weights=weights)) == pytest.approx(expected)
    with pytest.raises(TypeError, match="axis"):
        ops.average(x, weights=[1.0, 2.0])
    with pytest.raises(ValueError, match="weights"):
        ops.average(x, axis=1, weights=[1.0, 2.0])


def test_moments_and_density(backend: str) -> None:
    mean, variance = ops.moments([[1.0, 3.0], [2.0, 6.0]], axes=1, keepdims=True)
    assert (_values(mean), _values(variance)) == ([[2.0], [4.0]], [[1.0], [4.0]])
    density = ops.gaussian([0.0, 1.0], mu=1.0, sigma=[1.0, 2.0])
    peak = 1 / math.sqrt(2 * math.pi)
    assert _values(density) == pytest.approx([peak * math.exp(-0.5), peak / 2])


def test_aliases_are_the_same_functions(backend: str) -> None:
    from ember_ml.ops import stats

    assert ops.reduce_mean is ops.mean is stats.mean
    assert ops.reduce_std is ops.std is stats.std
    assert stats.median is ops.median
    assert stats.nansum is ops.nansum


def test_only_nan_leaves_nan(backend: str) -> None:
    x = ops.array([[NAN, NAN], [1.0, NAN]])
    for name in ("nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nanmedian"):
        got = _values(getattr(ops, name)(x, axis=1))
        assert math.isnan(got[0])
        assert got[1] == (0.0 if name in ("nanvar", "nanstd") else 1.0)
    assert _values(ops.nansum(x, axis=1)) == [0.0, 1.0]
    assert _values(ops.nanprod(x, axis=1)) == [1.0, 1.0]
    for name in ("nanargmax", "nanargmin"):
        with pytest.raises(ValueError, match=name):
            getattr(ops, name)(x, axis=1)


def test_infinities_win_over_nan(backend: str) -> None:
    assert ops.nanargmax([NAN, -INF]).item() == 1
    assert ops.nanargmin([NAN, INF, NAN]).item() == 1
    assert ops.nanmax([NAN, -INF]).item() == -INF
    assert ops.nanargmax([3, 1, 3]).item() == 0


def test_variance_without_nan_counts_what_is_there(backend: str) -> None:
    assert ops.nanvar([1.0, NAN, 3.0, NAN], correction=1).item() == 2.0
    assert math.isnan(ops.nanvar([1.0, NAN], correction=1).item())
    half = ops.nanmean(ops.cast(ops.array([60000.0, NAN, 60000.0]), "float16"))
    assert (ops.dtype(half), ops.cast(half, "float32").item()) == ("float16", 60000.0)
