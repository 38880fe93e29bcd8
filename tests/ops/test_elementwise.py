"""Arithmetic at the edges of the dtypes: extremes of integers, wide unsigned ones, shifts, powers, neighbours."""

from __future__ import annotations

import math
from typing import Any

import pytest

import ember_ml
from ember_ml import ops
from ember_ml.tensor import EmberTensor
from tests.subnormals import keeps_subnormals

_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")


def _lists(result: Any) -> Any:
    return ops.to_numpy(result).tolist()


def _bits(dtype: str) -> int:
    return int(dtype.lstrip("uint"))


@pytest.mark.parametrize("dtype", _SIGNED)
def test_smallest_integer_divided_by_minus_one_wraps(dtype: str, backend: str) -> None:
    smallest = -(1 << (_bits(dtype) - 1))
    x, y = ops.array([smallest, 7, 7], dtype=dtype), ops.array([-1, -1, 0], dtype=dtype)
    assert _lists(ops.floor_divide(x, y)) == [smallest, -7, 0]
    assert _lists(ops.mod(x, y)) == [0, 0, 0]
    assert _lists(ops.fmod(x, y)) == [0, 0, 0]


@pytest.mark.parametrize("dtype", _SIGNED)
def test_shifts_of_signed_integers_by_the_width_and_more(dtype: str, backend: str) -> None:
    bits = _bits(dtype)
    places = ops.array([bits - 1, bits, -1], dtype=dtype)
    assert _lists(ops.bitwise_left_shift(ops.array([1, 1, 1], dtype=dtype), places)) == [-(1 << (bits - 1)), 0, 0]
    assert _lists(ops.bitwise_right_shift(ops.array([-5, 5, -5], dtype=dtype), places)) == [-1, 0, -1]


@pytest.mark.parametrize("dtype", _UNSIGNED)
def test_unsigned_integers_are_not_signed_ones(dtype: str, backend: str) -> None:
    bits = _bits(dtype)
    largest, half = (1 << bits) - 1, 1 << (bits - 1)
    x = ops.array([largest, half, 5], dtype=dtype)
    y = ops.array([10, half, largest], dtype=dtype)
    assert _lists(ops.floor_divide(x, y)) == [largest // 10, 1, 0]
    assert _lists(ops.mod(x, y)) == [largest % 10, 0, 5]
    assert _lists(ops.maximum(x, y)) == [largest, half, largest]
    assert _lists(ops.less(x, y)) == [False, False, True]
    assert _lists(ops.clip(x, 6, half)) == [half, half, 6]
    assert _lists(ops.gcd(x, y)) == [math.gcd(largest, 10), half, math.gcd(5, largest)]
    assert _lists(ops.negative(x)) == [1, half, largest - 4]
    assert _lists(ops.power(x, ops.array([2, 1, 2], dtype=dtype))) == [1, half, 25]
    places = ops.array([1, bits - 1, bits], dtype=dtype)
    assert _lists(ops.bitwise_right_shift(ops.array([largest] * 3, dtype=dtype), places)) == [largest >> 1, 1, 0]
    assert _lists(ops.bitwise_left_shift(ops.array([largest] * 3, dtype=dtype), places)) == [largest - 1, half, 0]


@pytest.mark.parametrize("dtype", _SIGNED)
def test_negative_powers_of_integers(dtype: str, backend: str) -> None:
    x = ops.array([2, 3], dtype=dtype)
    with pytest.raises(ValueError, match="negative integer power"):
        ops.power(x, ops.array([1, -1], dtype=dtype))
    with pytest.raises(ValueError, match="negative integer power"):
        ops.power(x, -2)
    with ember_ml.value_checks(False):
        assert _lists(ops.power(x, ops.array([2, -1], dtype=dtype))) == [4, 0]


@pytest.mark.parametrize("dtype", [*_SIGNED, *_UNSIGNED])
def test_rounding_integers_to_tens(dtype: str, backend: str) -> None:
    values = [15, 25, 94, 0]
    assert _lists(ops.round(ops.array(values, dtype=dtype), -1)) == [20, 20, 90, 0]
    assert _lists(ops.round(ops.array(values, dtype=dtype), 3)) == values


def test_rounding_doubles_to_decimals(backend: str) -> None:
    x = ops.array([1.0, 0.5403, -12345.6789], dtype="float64")
    assert _lists(ops.round(x, 3)) == [1.0, 0.54, -12345.679]
    assert _lists(ops.round(x, -2)) == [0.0, 0.0, -12300.0]
    assert _lists(ops.round(x)) == [1.0, 1.0, -12346.0]


def test_floor_division_is_that_of_the_exact_quotient(backend: str) -> None:
    tenth = ops.array([0.1], dtype="float64")  # a little more than a tenth, so that it goes into 1 nine times
    assert _lists(ops.floor_divide(ops.array([1.0], dtype="float64"), tenth)) == [9.0]


@pytest.mark.parametrize(("dtype", "power"), [("float32", 127), ("bfloat16", 127), ("float64", 1023)])
@pytest.mark.parametrize("shape", [(), (1,), (2, 1)])
def test_divisors_whose_reciprocals_are_subnormal(backend: str, dtype: str, power: int, shape: tuple[int, ...]) -> None:
    x, largest = ops.array([64.0, -8.0], dtype=dtype), ops.full(shape, 2.0**power, dtype=dtype)
    expected = [2.0 ** (6 - power), -(2.0 ** (3 - power))]
    assert ops.dtype(ops.divide(x, 4)) == dtype
    for found in (ops.divide(x, largest), ops.divide_no_nan(x, largest), ops.divide(x, 2.0**power)):
        assert ops.dtype(found) == dtype
        assert ops.all(ops.equal(ops.cast(found, "float64"), ops.array(expected, dtype="float64")))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quotients_by_fewer_divisors_are_exact_to_the_last_bit(backend: str, dtype: str) -> None:
    numbers, divisors = [float(n) for n in range(-251, 252, 2)], [3.0, 7.0, 49.0]
    x = ops.array(numbers, dtype=dtype)
    column = ops.array([[d] for d in divisors], dtype=dtype)
    expected = ops.cast(ops.array([[n / d for n in numbers] for d in divisors], dtype="float64"), dtype)
    compiled = ember_ml.compile(ops.divide) if backend != "torch" else ops.divide
    assert ops.all(ops.equal(ops.divide(x, column), expected))
    assert ops.all(ops.equal(compiled(x, column), expected))
    rows = ops.stack([ops.divide(x, divisor) for divisor in divisors])
    assert ops.all(ops.equal(rows, expected))
    rows = ops.stack([EmberTensor(x) / ops.array(divisor, dtype=dtype) for divisor in divisors])
    assert ops.all(ops.equal(rows, expected))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quotients_of_numbers_by_portable_tensors_are_exact_to_the_last_bit(backend: str, dtype: str) -> None:
    divisors = [3.0, 7.0, 41.0, 49.0]
    x = EmberTensor(divisors, dtype=dtype)
    for number in (1.0, 3.0, 49.0, 123, -49.0):
        expected = ops.cast(ops.array([number / d for d in divisors], dtype="float64"), dtype)
        assert ops.all(ops.equal(number / x, expected))


def test_neighbours_of_halves(backend: str) -> None:
    x, y = [0.0, 1.0, -1.0, math.inf], [1.0, 2.0, -2.0, 0.0]
    found = ops.nextafter(ops.array(x, dtype="float16"), ops.array(y, dtype="float16"))
    assert _lists(found) == [2.0**-24, 1 + 2.0**-10, -1 - 2.0**-10, 65504.0]
    found = ops.nextafter(ops.array(x, dtype="bfloat16"), ops.array(y, dtype="bfloat16"))
    assert _lists(ops.cast(found, "float32"))[1:3] == [1 + 2.0**-7, -1 - 2.0**-7]


@pytest.mark.parametrize("size", [1, 3, 9])
def test_zero_to_the_power_of_zero_is_one(backend: str, size: int) -> None:
    for dtype in ("float32", "complex64"):
        zero = ops.zeros(size, dtype=dtype)
        assert ops.to_numpy(ops.power(zero, zero)).tolist() == [1] * size


def test_exponents_beyond_the_range_of_their_own_power(backend: str) -> None:
    x = ops.array([1.0, 2.0**100, 3.0], dtype="float32")
    assert _lists(ops.ldexp(x, ops.array([127, -226, 400]))) == [2.0**127, 2.0**-126, math.inf]
    if keeps_subnormals(backend):
        x = ops.array([1.0, 2.0**-140], dtype="float32")
        assert _lists(ops.ldexp(x, ops.array([-149, 150]))) == [2.0**-149, 2.0**10]
    assert _lists(ops.ldexp(ops.array([1.0]), ops.array([2**64 - 1], dtype="uint64"))) == [math.inf]


def test_what_stands_for_nan_and_infinities(backend: str) -> None:
    x = ops.array([math.nan, math.inf, -math.inf, 2.0], dtype="float16")
    assert _lists(ops.nan_to_num(x)) == [0.0, 65504.0, -65504.0, 2.0]
    z = ops.array([complex(math.nan, math.inf)])
    assert _lists(ops.nan_to_num(z, nan=1.0, posinf=5.0)) == [1 + 5j]
    with pytest.raises((TypeError, ValueError)):
        ops.nan_to_num(ops.array([math.inf], dtype="bfloat16"), posinf="abc")  # type: ignore[arg-type]


def test_absolute_values_of_portable_complex_tensors_are_real(backend: str) -> None:
    size = abs(ember_ml.nn.tensor.array([3 + 4j]))  # emberlint: ignore[EMB406] the operator of a portable tensor
    assert size.dtype == "float32"
    assert size.tolist() == [5.0]


def test_aliases_are_the_same_functions() -> None:
    for alias, name in {"pow": "power", "remainder": "mod", "acos": "arccos", "atan2": "arctan2"}.items():
        assert getattr(ops, alias) is getattr(ops, name)


def test_negative_powers_of_no_integers(backend: str) -> None:
    assert ops.shape(ops.power(ops.zeros((0, 3), dtype="int32"), ops.array([-1, -2, 0], dtype="int32"))) == (0, 3)


# torch 2.13: its compiler says that it leaves complex numbers to eager functions
@pytest.mark.filterwarnings("ignore:Torchinductor does not support code generation for complex:UserWarning")
def test_the_sign_of_complex_numbers_compiles(backend: str) -> None:
    found = _lists(ops.compile(ops.sign)(ops.array([3 + 4j, 0j, complex(math.nan, 1.0)], dtype="complex64")))
    assert found[0] == pytest.approx(0.6 + 0.8j)
    assert found[1] == 0
    assert math.isnan(found[2].real)
    assert math.isnan(found[2].imag)


@pytest.mark.parametrize("number", [2**63, 2**64, -(2**70)])
def test_whole_numbers_that_no_integer_dtype_holds_beside_floats(backend: str, number: int) -> None:
    values, large = [1.0, 4.0], float(number)  # powers of two, whose products and quotients are exact
    x, portable = ops.asarray(values), EmberTensor(values)
    pairs = [
        (ops.multiply(x, number), [large * value for value in values]),
        (ops.divide(number, x), [large / value for value in values]),
        (portable / number, [value / large for value in values]),
        (number / portable, [large / value for value in values]),
        (number - portable, [large, large]),
        (portable + number, [large, large]),
    ]
    for got, want in pairs:
        assert ops.to_numpy(got).tolist() == want
        assert ops.dtype(got) == "float32"
    assert type(portable + number) is EmberTensor
