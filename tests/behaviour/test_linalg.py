"""Linear algebra: norms, factorizations, systems, and the matrices that have no answer."""

import math
from typing import Any

import pytest

from ember_ml import ops
from ember_ml.errors import LinAlgError
from tests.behaviour.rows import Kind, Row, each, gives, parameters, raises, returns, shapes

_TALL = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
_REGULAR = [[4.0, 2.0], [1.0, 3.0]]
_INVERSE = [[0.3, -0.2], [-0.1, 0.4]]
_SINGULAR = [[1.0, 2.0], [2.0, 4.0]]
_INDEFINITE = [[1.0, 2.0], [2.0, 1.0]]


def _svd_product(t: Kind) -> Any:
    u, s, vh = t.svd(t(_TALL))
    return t.matmul(t.multiply(t.get_item(u, (slice(None), slice(0, 2))), s), vh)


def _first_left_vector(t: Kind) -> Any:
    return t.abs(t.get_item(t.svd(t(_TALL))[0], (slice(None), 0)))


def _qr_without_signs(t: Kind) -> tuple[Any, ...]:
    q, r = t.qr(t(_TALL))
    return t.abs(r), t.matmul(q, r)


def _sorted_eigenvalues(values: Any, dtype: str) -> list[complex]:
    """Give eigenvalues in an order of their own, since none is specified."""
    assert ops.dtype(values) == dtype
    return sorted(ops.to_numpy(values).tolist(), key=lambda z: (round(z.real, 4), round(z.imag, 4)))


def _worst_eigenvalue_error(t: Kind) -> float:
    found = _sorted_eigenvalues(t.eig(t([[2.0, 1.0], [1.0, 2.0]]))[0], "complex64")
    return max(abs(z - wanted) for z, wanted in zip(found, (1, 3), strict=True))


def _worst_rotation_error(t: Kind) -> float:
    found = _sorted_eigenvalues(t.eigvals(t([[0.0, -1.0], [1.0, 0.0]])), "complex64")
    return max(abs(z - wanted) for z, wanted in zip(found, (-1j, 1j), strict=True))


def _least_squares(t: Kind) -> Any:
    found = t.lstsq(t([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]]), t([[1.0], [2.0], [2.0]]))
    return found[0] if isinstance(found, tuple) else found


ROWS = [
    Row(279, lambda t: t.norm(t([3.0, 4.0])), gives("float32", 5)),
    Row(280, lambda t: t.norm(t([[1.0, 2.0], [3.0, 4.0]])), gives("float32", math.sqrt(30), rtol=3e-7)),
    Row(281, lambda t: t.norm(t.ones((2, 2, 2))), gives("float32", math.sqrt(8), rtol=3e-7)),
    Row(282, lambda t: t.norm(t([3, 4], "int32")), gives("float32", 5)),
    Row(283, lambda t: shapes(t.svd(t(_TALL))), returns(((3, 3), (2,), (2, 2)))),
    Row(284, _svd_product, gives("float32", _TALL, atol=1e-5)),
    Row(
        285,
        _first_left_vector,
        gives("float32", [0.229847696, 0.524744819, 0.819641941], rtol=1e-5),
    ),
    Row(286, lambda t: t.svd(t([[math.nan, 1.0], [1.0, 1.0]])), raises(LinAlgError, "svd")),
    Row(287, lambda t: shapes(t.qr(t(_TALL))), returns(((3, 2), (2, 2)))),
    Row(
        288,
        _qr_without_signs,
        each(
            gives("float32", [[math.sqrt(35), 44 / math.sqrt(35)], [0, math.sqrt(24 / 35)]], atol=1e-5),
            gives("float32", _TALL, atol=1e-5),
        ),
    ),
    Row(289, lambda t: t.cholesky(t(_INDEFINITE)), raises(LinAlgError, "cholesky")),
    Row(
        290,
        lambda t: t.cholesky(t([[4.0, 99.0], [2.0, 3.0]])),
        gives("float32", [[2, 0], [1, math.sqrt(2)]], rtol=3e-7),
    ),
    Row(291, lambda t: t.cholesky(t([[[1.0, 0.0], [0.0, 1.0]], _INDEFINITE])), raises(LinAlgError, "cholesky")),
    Row(292, lambda t: t.solve(t(_SINGULAR), t([1.0, 2.0])), raises(LinAlgError, "solve")),
    Row(293, lambda t: t.solve(t(_REGULAR), t([1.0, 1.0])), gives("float32", [0.1, 0.3], rtol=1e-6)),
    Row(
        294,
        lambda t: t.solve(t(_REGULAR, "int32"), t([1, 1], "int32")),
        gives("float32", [0.1, 0.3], rtol=1e-6),
    ),
    Row(
        295,
        lambda t: t.solve(t(_REGULAR, "float16"), t([1.0, 1.0], "float16")),
        raises(TypeError, "solve", "float16"),
    ),
    Row(296, lambda t: t.inv(t(_SINGULAR)), raises(LinAlgError, "inv")),
    Row(297, lambda t: t.inv(t.zeros((2, 2))), raises(LinAlgError, "inv")),
    Row(298, lambda t: t.inv(t(_REGULAR, "float64")), gives("float64", _INVERSE, rtol=1e-14)),
    Row(299, lambda t: t.det(t(_REGULAR, "int32")), gives("float32", 10, rtol=1e-6)),
    Row(300, lambda t: t.det(t(_REGULAR)), gives("float32", 10, rtol=1e-6)),
    Row(301, lambda t: t.eigh(t([[2.0, 99.0], [1.0, 2.0]]))[0], gives("float32", [1, 3], rtol=1e-6)),
    Row(302, lambda t: _worst_eigenvalue_error(t) < 1e-5, returns(True)),
    Row(303, lambda t: _worst_rotation_error(t) < 1e-5, returns(True)),
    Row(304, lambda t: t.pinv(t(_SINGULAR)), gives("float32", [[0.04, 0.08], [0.08, 0.16]], rtol=1e-5)),
    Row(305, _least_squares, gives("float32", [[2 / 3], [0.5]], rtol=1e-5)),
    Row(306, lambda t: t.trace(t([[100, 0], [0, 100]], "int8")), gives("int64", 200)),
    Row(
        307,
        lambda t: t.outer(t.ones((2, 2)), t.ones((3,))),
        raises(ValueError, "outer", unlike=lambda t: t.outer(t.ones((2,)), t.ones((3,)))),
    ),
    Row(
        308,
        lambda t: t.cross(t([1.0, 0.0]), t([0.0, 1.0])),
        raises(ValueError, "cross", unlike=lambda t: t.cross(t([1.0, 0.0, 0.0]), t([0.0, 1.0, 0.0]))),
    ),
    Row(309, lambda t: t.inv(t(_REGULAR)), gives("float32", _INVERSE, rtol=1e-6)),
]


@pytest.mark.parametrize(("row", "kind"), parameters(ROWS))
def test_case(row: Row, kind: Kind, backend: str) -> None:
    row.run(kind, backend)
