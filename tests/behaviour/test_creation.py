"""Ranges, even spacings and grids."""

import pytest

from tests.behaviour.rows import Kind, Row, float32, gives, parameters, returns, shapes

ROWS = [
    Row(19, lambda t: shapes([t.arange(0, 1, 0.1)]), returns(((10,),))),
    Row(20, lambda t: t.arange(1, 1.3, 0.1), gives("float32", [float32(1 + i * 0.1) for i in range(4)])),
    Row(21, lambda t: t.arange(5, 0), gives("int64", [])),
    Row(22, lambda t: t.linspace(0, 1, 5), gives("float32", [0, 0.25, 0.5, 0.75, 1])),
    Row(23, lambda t: t.linspace(0, 1, 1), gives("float32", [0])),
    Row(24, lambda t: t.get_item(t.linspace(0, 1, 7), -1), gives("float32", 1)),
    Row(25, lambda t: t.linspace(0, 10, 4, dtype="int32"), gives("int32", [0, 3, 6, 10])),
    Row(26, lambda t: t.linspace(0, 1, 4, endpoint=False), gives("float32", [0, 0.25, 0.5, 0.75])),
    Row(27, lambda t: shapes(t.meshgrid(t([1, 2]), t([1, 2, 3]))), returns(((3, 2), (3, 2)))),
]


@pytest.mark.parametrize(("row", "kind"), parameters(ROWS))
def test_case(row: Row, kind: Kind, backend: str) -> None:
    row.run(kind, backend)
