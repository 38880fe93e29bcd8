"""Normalizations: large offsets, long rows, half precision, gradients, and mistakes that are named."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ember_ml import ops
from tests.reference import array_of, close
from tests.reference.normalizations import (
    group_normalization,
    largest_difference,
    layer_normalization,
    moments_normalization,
    moments_normalization_slopes,
    rms_normalization,
)


def _numbers(*shape: int, offset: float = 0.0, dtype: str = "float32") -> Any:
    count = math.prod(shape)
    x = ops.add(ops.sin(ops.multiply(ops.arange(count, dtype="float64"), 1.37)), offset)
    return ops.cast(ops.reshape(x, shape), dtype)


def _host(x: Any) -> Any:
    return array_of("float64", ops.to_numpy(ops.cast(x, "float64")))


@pytest.mark.parametrize("offset", [0.0, 1e2, 1e4])
@pytest.mark.parametrize("count", [1024, 100_003])
def test_large_offsets_and_long_rows_do_not_cost_the_digits(count: int, offset: float, backend: str) -> None:
    x = _numbers(2, count, offset=offset)
    exact = _host(x)
    mean = exact.mean(axis=-1, keepdims=True)
    terms = (abs(exact) + abs(exact).mean(axis=-1, keepdims=True)) / exact.std(axis=-1, keepdims=True)
    wanted = layer_normalization(exact, None, None, -1, 1e-7)
    assert close(ops.to_numpy(ops.layer_normalization(x)), wanted, 8, terms) is None
    assert abs(mean).max() >= offset / 2
    assert close(ops.to_numpy(ops.rms_normalization(x)), rms_normalization(exact, None, -1, 1e-7), 8) is None


@pytest.mark.parametrize("axis", [1, -1])
def test_groups_with_a_large_offset(axis: int, backend: str) -> None:
    x = _numbers(2, 8, 12, 8, offset=1e3)
    exact = _host(x)
    terms = 2 * abs(exact) / 0.7
    wanted = group_normalization(exact, 4, None, None, axis, 1e-5)
    assert close(ops.to_numpy(ops.group_normalization(x, 4, axis=axis)), wanted, 8, terms) is None


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_float32_rounded_once(dtype: str, backend: str) -> None:
    x, weight = _numbers(4, 6, offset=3.0, dtype=dtype), _numbers(6, offset=2.0, dtype=dtype)
    wide, wide_weight = ops.cast(x, "float32"), ops.cast(weight, "float32")
    for got, wanted in (
        (ops.layer_normalization(x, weight, weight), ops.layer_normalization(wide, wide_weight, wide_weight)),
        (ops.rms_normalization(x, weight), ops.rms_normalization(wide, wide_weight)),
        (ops.group_normalization(x, 2, weight, weight), ops.group_normalization(wide, 2, wide_weight, wide_weight)),
        (
            ops.batch_normalization(x, weight, weight, -1, weight, weight),
            ops.batch_normalization(wide, wide_weight, wide_weight, -1, wide_weight, wide_weight),
        ),
        *zip(
            ops.moments_normalization(x, -1, weight, weight),
            ops.moments_normalization(wide, -1, wide_weight, wide_weight),
            strict=True,
        ),
    ):
        assert str(ops.dtype(got)) == dtype
        assert _host(got).tolist() == _host(ops.cast(wanted, dtype)).tolist()


def test_half_precision_beyond_its_own_squares(backend: str) -> None:
    x = ops.array([60000.0, -60000.0], dtype="float16")
    assert ops.to_numpy(ops.layer_normalization(x)).tolist() == [1.0, -1.0]
    assert ops.to_numpy(ops.rms_normalization(x)).tolist() == [1.0, -1.0]


def test_several_axes_are_one_row(backend: str) -> None:
    x, weight = _numbers(2, 3, 4), _numbers(3, 4, offset=2.0)
    flat = ops.layer_normalization(ops.reshape(x, (2, 12)), ops.reshape(weight, (12,)))
    assert _host(ops.layer_normalization(x, weight, axis=(1, 2))) == pytest.approx(
        _host(ops.reshape(flat, (2, 3, 4))), abs=1e-6
    )
    first = ops.layer_normalization(x, axis=0)
    assert _host(ops.transpose(first)) == pytest.approx(_host(ops.layer_normalization(ops.transpose(x))), abs=1e-6)


def test_a_group_for_each_channel_and_one_for_all(backend: str) -> None:
    x = _numbers(2, 3, 4)
    each = ops.layer_normalization(x, axis=1, epsilon=1e-5)
    assert _host(ops.group_normalization(x, 4)) == pytest.approx(_host(each), abs=1e-6)
    both = ops.layer_normalization(x, axis=(1, 2), epsilon=1e-5)
    assert _host(ops.group_normalization(x, 1)) == pytest.approx(_host(both), abs=1e-6)


def test_equal_numbers_give_the_offset(backend: str) -> None:
    x = ops.full((2, 4), 3.0)
    assert ops.to_numpy(ops.layer_normalization(x, None, [1.0, 2.0, 3.0, 4.0])).tolist() == [[1.0, 2.0, 3.0, 4.0]] * 2
    assert ops.to_numpy(ops.rms_normalization(ops.zeros((2, 2)))).tolist() == [[0.0, 0.0]] * 2


def test_nan_stays_in_its_row_and_nothing_stays_nothing(backend: str) -> None:
    x = ops.array([[1.0, 3.0], [math.nan, 1.0], [math.inf, 1.0]])
    for normalize in (ops.layer_normalization, ops.rms_normalization):
        found = ops.to_numpy(ops.isnan(normalize(x))).tolist()
        assert found[0] == [False, False]
        assert found[1] == [True, True]
        assert found[2][0]
        assert [ops.shape(normalize(ops.zeros(shape))) for shape in ((0, 3), (3, 0))] == [(0, 3), (3, 0)]
    assert ops.shape(ops.group_normalization(ops.zeros((0, 5, 4)), 2)) == (0, 5, 4)
    assert ops.shape(ops.batch_normalization(ops.zeros((0, 2)), [0.0, 0.0], [1.0, 1.0], 1)) == (0, 2)


def test_gradients_agree_with_differences(backend: str) -> None:
    x, weight = _numbers(2, 6, dtype="float64"), _numbers(6, offset=2.0, dtype="float64")
    factors = _numbers(2, 6, offset=0.3, dtype="float64")
    for normalize in (
        lambda x, w: ops.layer_normalization(x, w, w),
        ops.rms_normalization,
        lambda x, w: ops.group_normalization(x, 3, w, w),
        lambda x, w: ops.batch_normalization(x, w, ops.square(w), -1, w, w),
        lambda x, w: ops.moments_normalization(x, -1, w, w)[0],
    ):

        def loss(x: Any, w: Any, normalize: Any = normalize) -> Any:
            return ops.sum(ops.multiply(normalize(x, w), factors))

        by_x, by_weight = ops.grad(loss, (0, 1))(x, weight)
        step = ops.multiply(ops.cos(ops.arange(6, dtype="float64")), 1e-5)
        change = ops.subtract(loss(ops.add(x, step), weight), loss(ops.subtract(x, step), weight))
        assert ops.item(change) == pytest.approx(2 * ops.item(ops.sum(ops.multiply(by_x, step))), rel=1e-6)
        change = ops.subtract(loss(x, ops.add(weight, step)), loss(x, ops.subtract(weight, step)))
        assert ops.item(change) == pytest.approx(2 * ops.item(ops.sum(ops.multiply(by_weight, step))), rel=1e-6)


def test_moments_are_those_of_the_tensor_and_constants(backend: str) -> None:
    x = _numbers(3, 4, 5)
    _, mean, variance = ops.moments_normalization(x, axis=1)
    want = [_host(part).tolist() for part in ops.moments(x, (0, 2))]
    assert [_host(mean).tolist(), _host(variance).tolist()] == [
        pytest.approx(part, rel=1e-5, abs=1e-6) for part in want
    ]
    slopes = ops.grad(lambda x: ops.sum(ops.add(*ops.moments_normalization(x, axis=1)[1:])))(x)
    assert not _host(slopes).any()


@pytest.mark.parametrize("rows", [64 * 65, 4099, 16])
def test_channels_of_many_rows_keep_the_digits_inside_gradients(rows: int, backend: str) -> None:
    x = ops.swapaxes(_numbers(3, rows, offset=30.0), 0, 1)
    scale, factors = _numbers(3, offset=2.0), _numbers(rows, 3, offset=0.3)

    def loss(x: Any, offset: Any, scale: Any) -> Any:
        found = ops.moments_normalization(x, -1, offset, scale, 1e-5)
        return ops.sum(ops.multiply(found[0], factors)), found

    (_, found), slopes = ops.value_and_grad(loss, (0, 1, 2), has_aux=True)(x, scale, scale)
    numbers = [_host(x), _host(factors), _host(scale)]
    wanted = [
        *moments_normalization(numbers[0], -1, numbers[2], numbers[2], 1e-5),
        *moments_normalization_slopes(*numbers, 1e-5),
    ]
    limits = (1e-4, 1e-5, 1e-5, 2e-4, rows * 1e-5, rows * 1e-5)
    for got, want, limit in zip((*found, *slopes), wanted, limits, strict=True):
        assert largest_difference(_host(got), want) < limit


def test_second_derivatives_and_maps_of_channels_of_many_rows(backend: str) -> None:
    x = _numbers(4160, 1, offset=2.0, dtype="float64")
    factors, scale = ops.square(x), ops.array([1.5], dtype="float64")

    def slope(scale: Any, x: Any = x) -> Any:
        def loss(x: Any) -> Any:
            return ops.sum(ops.multiply(ops.moments_normalization(x, -1, None, scale, 0.0)[0], factors))

        return ops.sum(ops.multiply(ops.grad(loss)(x), ops.sin(x)))

    # the slope by x is linear in scale
    assert ops.item(ops.grad(slope)(scale)) == pytest.approx(ops.item(slope(scale)) / 1.5, rel=1e-9)
    both = ops.vmap(lambda x: slope(scale, x))(ops.stack([x, ops.multiply(x, 2.0)]))
    assert ops.item(both[0]) == pytest.approx(ops.item(slope(scale)), rel=1e-9)
    assert abs(ops.item(both[0])) > 1.0


def test_mistakes(backend: str) -> None:
    x = ops.ones((2, 4, 6))
    with pytest.raises(ValueError, match=r"layer_normalization.*gamma has the shape \(4,\)"):
        ops.layer_normalization(x, ops.ones(4))
    with pytest.raises(ValueError, match="scale has the shape"):
        ops.rms_normalization(x, ops.ones(4))
    with pytest.raises(ValueError, match="names a dimension twice"):
        ops.layer_normalization(x, axis=(1, -2))
    with pytest.raises(IndexError, match="layer_normalization"):
        ops.layer_normalization(x, axis=3)
    with pytest.raises(IndexError):
        ops.rms_normalization(ops.array(1.0))
    with pytest.raises(ValueError, match="mean has the shape"):
        ops.batch_normalization(x, ops.ones(4), ops.ones(6), -1)
    with pytest.raises(ValueError, match="offset has the shape"):
        ops.moments_normalization(x, -1, ops.ones(4))
    with pytest.raises(ValueError, match="6 channels do not form 4 groups"):
        ops.group_normalization(x, 4)
    with pytest.raises(ValueError, match="samples"):
        ops.group_normalization(x, 2, axis=0)
    with pytest.raises(ValueError, match="group_normalization"):
        ops.group_normalization(x, 2, ops.ones(4))
    with pytest.raises(TypeError):
        ops.layer_normalization(ops.array([1j]))
