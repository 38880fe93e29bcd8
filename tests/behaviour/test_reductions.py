"""Sums, means, variances, extremes and medians: accumulation, widening, empty input, axes."""

import math

import pytest

from tests.behaviour.rows import Kind, Row, each, float32, gives, parameters, raises

_INT32_MAX = 2**31 - 1
_TENTH = float32(0.1)


def _sum_of_float32(t: Kind) -> object:
    return t.sum(t.full((10_000_000,), 0.1, dtype="float32"))


def _far_from_zero(t: Kind) -> object:
    """Give how far the variance of three neighbouring float32 is from the nearest that two passes can give.

    Neighbours are 8 apart there, so the exact variance is 128/3. A mean rounded to float32 may be off by one step,
    which adds 64. A single pass loses every digit, and the sample variance is 64 or 160.
    """
    variance = t.var(t([1e8, 1e8 + 8, 1e8 + 16], "float32"))
    return t.minimum(t.abs(t.subtract(variance, 128 / 3)), t.abs(t.subtract(variance, 128 / 3 + 64)))


def _ones(t: Kind) -> object:
    return t.ones((2, 2))


ROWS = [
    Row(121, lambda t: t.sum(t([100, 100], "int8")), gives("int64", 200)),
    Row(122, lambda t: t.sum(t([200, 200], "uint8")), gives("uint64", 400)),
    Row(123, lambda t: t.sum(t([_INT32_MAX] * 2, "int32")), gives("int64", 2 * _INT32_MAX)),
    Row(124, lambda t: t.prod(t([100, 100], "int8")), gives("int64", 10000)),
    Row(125, lambda t: t.cumsum(t([100, 100], "int8")), gives("int64", [100, 200])),
    Row(126, lambda t: t.cumprod(t([100, 100], "int8")), gives("int64", [100, 10000])),
    Row(127, lambda t: t.mean(t([1, 2], "int32")), gives("float32", 1.5)),
    Row(128, lambda t: t.mean(t([2**60, 2**60], "int64")), gives("float32", 2.0**60)),
    Row(129, lambda t: t.mean(t([_INT32_MAX] * 4, "int32")), gives("float32", 2.0**31)),
    Row(130, lambda t: t.var(t([1, 2, 4], "int32")), gives("float32", 14 / 9, rtol=3e-7)),
    Row(131, lambda t: t.std(t([1.0, 2.0, 3.0, 4.0])), gives("float32", math.sqrt(1.25), rtol=3e-7)),
    Row(132, lambda t: t.std(t([5.0])), gives("float32", 0)),
    Row(133, lambda t: t.var(t([300.0, -300.0], "float16")), gives("float16", math.inf)),
    Row(134, lambda t: t.sum(t.ones((70000,), dtype="float16")), gives("float16", math.inf)),
    Row(135, lambda t: t.sum(t.ones((4096,), dtype="float16")), gives("float16", 4096)),
    Row(136, lambda t: t.sum(t.full((10000,), 0.1, dtype="float16")), gives("float16", 1000)),
    Row(137, lambda t: t.mean(t.ones((70000,), dtype="float16")), gives("float16", 1)),
    Row(138, lambda t: t.get_item(t.cumsum(t.ones((4096,), dtype="float16")), -1), gives("float16", 4096)),
    Row(139, _sum_of_float32, gives("float32", 10_000_000 * _TENTH, rtol=1e-6)),
    Row(
        140,
        lambda t: t.mean(t.full((10_000_000,), 0.1, dtype="float32")),
        gives("float32", _TENTH, rtol=1e-6),
    ),
    Row(
        141,
        lambda t: t.sum(t.full((1_000_000, 2), 0.1, dtype="float32"), axis=0),
        gives("float32", [1_000_000 * _TENTH] * 2, rtol=1e-6),
    ),
    Row(142, _far_from_zero, gives("float32", 0, atol=1e-4)),
    Row(143, lambda t: t.sum(t([])), gives("float32", 0)),
    Row(144, lambda t: t.prod(t([])), gives("float32", 1)),
    Row(145, lambda t: t.max(t([])), raises(ValueError, "max")),
    Row(146, lambda t: t.max(t.zeros((0, 3)), axis=0), raises(ValueError, "max")),
    Row(147, lambda t: t.max(t.zeros((0, 3)), axis=1), gives("float32", [])),
    Row(148, lambda t: t.argmax(t([])), raises(ValueError, "argmax")),
    Row(149, lambda t: t.mean(t([])), gives("float32", math.nan)),
    Row(150, lambda t: (t.all(t([])), t.any(t([]))), each(gives("bool", True), gives("bool", False))),
    Row(151, lambda t: t.sum(_ones(t), axis=()), gives("float32", [[1, 1], [1, 1]])),
    Row(152, lambda t: t.max(_ones(t), axis=(0, 1)), gives("float32", 1)),
    Row(153, lambda t: t.prod(t([[1.0, 2.0], [3.0, 4.0]]), axis=(0, 1)), gives("float32", 24)),
    Row(154, lambda t: t.max(t([[1.0, 2.0], [3.0, 0.0]]), axis=0), gives("float32", [3, 2])),
    Row(155, lambda t: t.sum(t(3.0)), gives("float32", 3)),
    Row(156, lambda t: t.sum(t([1.0, 2.0])), gives("float32", 3)),
    Row(157, lambda t: t.median(t([1.0, 2.0, 3.0, 4.0])), gives("float32", 2.5)),
    Row(158, lambda t: t.median(t([1, 2], "int32")), gives("float32", 1.5)),
    Row(159, lambda t: t.median(t([1.0, math.nan, 3.0])), gives("float32", math.nan)),
    Row(160, lambda t: t.quantile(t([1.0, 2.0, 3.0, 4.0]), 0.3), gives("float32", 1.9, rtol=3e-7)),
    Row(161, lambda t: t.percentile(t([1.0, 2.0, 3.0, 4.0]), 30), gives("float32", 1.9, rtol=3e-7)),
    Row(162, lambda t: t.logsumexp(t([-math.inf])), gives("float32", -math.inf)),
    Row(
        163,
        lambda t: t.logaddexp(t([-math.inf, math.inf]), t([-math.inf, math.inf])),
        gives("float32", [-math.inf, math.inf]),
    ),
]


@pytest.mark.parametrize(("row", "kind"), parameters(ROWS))
def test_case(row: Row, kind: Kind, backend: str) -> None:
    row.run(kind, backend)
