"""The dtype of two tensors together; a 0-d tensor counts as much as any other."""

from collections.abc import Callable

import pytest

from tests.behaviour.rows import Kind, Row, gives, on, parameters, raises


def _sum_of(x_dtype: str, y_dtype: str) -> Callable[[Kind], object]:
    """The call that adds a one of each dtype."""
    one = {"bool": True}
    return lambda t: t.add(t([one.get(x_dtype, 1)], x_dtype), t([one.get(y_dtype, 1)], y_dtype))


ROWS = [
    Row(72, _sum_of("int32", "float32"), gives("float32", [2])),
    Row(73, _sum_of("int64", "float32"), gives("float32", [2])),
    Row(74, _sum_of("int32", "float16"), gives("float16", [2])),
    Row(75, _sum_of("uint8", "int8"), gives("int16", [2])),
    Row(76, _sum_of("uint32", "int32"), gives("int64", [2])),
    Row(77, _sum_of("uint64", "int64"), raises(TypeError, "uint64", "int64")),
    Row(78, _sum_of("float16", "float32"), gives("float32", [2])),
    Row(79, _sum_of("float32", "float64"), gives("float64", [2])),
    Row(80, _sum_of("bool", "int8"), gives("int8", [2])),
    Row(81, _sum_of("bool", "float16"), gives("float16", [2])),
    Row(82, _sum_of("float32", "complex64"), gives("complex64", [2 + 0j])),
    Row(
        83,
        _sum_of("float64", "complex64"),
        on("mlx", raises(TypeError, "complex"), elsewhere=gives("complex128", [2 + 0j])),
    ),
    Row(84, _sum_of("int64", "complex64"), gives("complex64", [2 + 0j])),
    Row(85, _sum_of("int32", "int64"), gives("int64", [2])),
    Row(86, _sum_of("bfloat16", "float16"), gives("float32", [2])),
    Row(87, lambda t: t.add(t([1.0, 2.0], "float32"), t(1.5, "float64")), gives("float64", [2.5, 3.5])),
    Row(88, lambda t: t.add(t([1], "int8"), t(1, "int64")), gives("int64", [2])),
    Row(89, lambda t: t.add(t([1.0], "float16"), t(1.0, "float32")), gives("float32", [2])),
    Row(90, lambda t: t.add(t([1], "int32"), t(1.5, "float64")), gives("float64", [2.5])),
]


@pytest.mark.parametrize(("row", "kind"), parameters(ROWS))
def test_case(row: Row, kind: Kind, backend: str) -> None:
    row.run(kind, backend)
