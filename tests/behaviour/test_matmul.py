"""The matrix product: shapes, dtypes that it takes and refuses, half precision."""

import math

import pytest

from tests.behaviour.rows import Kind, Row, gives, parameters, raises

ROWS = [
    Row(266, lambda t: t.matmul(t([1.0, 2.0]), t([3.0, 4.0])), gives("float32", 11)),
    Row(267, lambda t: t.matmul(t([[1.0, 2.0], [3.0, 4.0]]), t([1.0, 1.0])), gives("float32", [3, 7])),
    Row(
        268,
        # float32 cannot hold the first entry: only an integer product is exact.
        lambda t: t.matmul(t([[2**24 + 1, 2], [3, 4]], "int32"), t([[1, 0], [0, 1]], "int32")),
        gives("int32", [[2**24 + 1, 2], [3, 4]]),
    ),
    Row(269, lambda t: t.matmul(t([[True]]), t([[True]])), raises(TypeError, "matmul", "bool")),
    Row(
        270,
        lambda t: t.matmul(t([[1.0]], "float32"), t([[3.0]], "float16")),
        raises(TypeError, "matmul", "float32", "float16"),
    ),
    Row(271, lambda t: t.matmul(t([[1.0]], "float32"), t([[3.1]], "float64")), gives("float64", [[3.1]])),
    Row(272, lambda t: t.matmul(t([[1]], "int32"), t([[3.0]], "float32")), gives("float32", [[3]])),
    Row(273, lambda t: t.matmul(t([[3 + 1j]], "complex64"), t([[1.0]], "float32")), gives("complex64", [[3 + 1j]])),
    Row(274, lambda t: t.matmul(t(1.0), t([1.0])), raises(ValueError, "matmul")),
    Row(275, lambda t: t.matmul(t.ones((2, 0)), t.ones((0, 3))), gives("float32", [[0, 0, 0], [0, 0, 0]])),
    Row(276, lambda t: t.matmul(t.ones((2, 3)), t.ones((2, 3))), raises(ValueError, "matmul", "(2, 3)")),
    Row(
        277,
        lambda t: t.matmul(t.ones((1, 70000), dtype="float16"), t.ones((70000, 1), dtype="float16")),
        gives("float16", [[math.inf]]),
    ),
    Row(
        278,
        lambda t: t.matmul(t.ones((1, 4096), dtype="float16"), t.ones((4096, 1), dtype="float16")),
        gives("float16", [[4096]]),
    ),
]


@pytest.mark.parametrize(("row", "kind"), parameters(ROWS))
def test_case(row: Row, kind: Kind, backend: str) -> None:
    row.run(kind, backend)
