"""Fourier transforms: normalization, dtypes, default lengths."""

import cmath

import pytest

from ember_ml.errors import UnsupportedDType
from tests.behaviour.rows import NATIVE, Kind, Row, each, gives, on, parameters, raises

_ROOT = cmath.exp(-2j * cmath.pi / 7)
_IMPULSES = [[1.0, 0, 0, 0, 0, 0, 0], [0, 1.0, 0, 0, 0, 0, 0]]


def _x(t: Kind) -> object:
    return t([1.0, 2.0, 3.0, 4.0])


ROWS = [
    Row(310, lambda t: t.fft(_x(t)), gives("complex64", [10 + 0j, -2 + 2j, -2 + 0j, -2 - 2j], atol=1e-5)),
    Row(311, lambda t: t.ifft(t.fft(_x(t))), gives("complex64", [1 + 0j, 2 + 0j, 3 + 0j, 4 + 0j], atol=1e-5)),
    Row(
        312,
        lambda t: t.fft(t([1.1, 2.2], "float64")),
        on("mlx", raises(UnsupportedDType), elsewhere=gives("complex128", [3.3 + 0j, -1.1 + 0j], atol=1e-14)),
    ),
    Row(313, lambda t: t.fft(t([1.0, 2.0], "float32")), gives("complex64", [3 + 0j, -1 + 0j], atol=1e-6)),
    Row(314, lambda t: t.fft(t([1, 2], "int32")), gives("complex64", [3 + 0j, -1 + 0j], atol=1e-6)),
    Row(315, lambda t: t.fft(t([1.0, 2.0], "float16")), raises(UnsupportedDType, "float16")),
    Row(316, lambda t: t.irfft(t([6 + 0j, 0j, 0j])), gives("float32", [1.5, 1.5, 1.5, 1.5], rtol=1e-6)),
    Row(
        317,
        lambda t: t.fft(_x(t), norm="ortho"),
        gives("complex64", [5 + 0j, -1 + 1j, -1 + 0j, -1 - 1j], atol=1e-5),
    ),
    Row(318, lambda t: t.fftfreq(4), gives("float32", [0, 0.25, -0.5, -0.25]), kinds=(NATIVE,)),
    Row(
        319,
        lambda t: tuple(t.fft(t(impulse)) for impulse in _IMPULSES),
        each(
            gives("complex64", [1 + 0j] * 7, atol=1e-6),
            gives("complex64", [_ROOT**k for k in range(7)], atol=1e-6),
        ),
    ),
]


@pytest.mark.parametrize(("row", "kind"), parameters(ROWS))
def test_case(row: Row, kind: Kind, backend: str) -> None:
    row.run(kind, backend)
