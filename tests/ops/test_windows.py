"""Windows against SciPy, their properties, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends
from tests.reference import EPS
from tests.reference.matrices import numpy
from tests.reference.signals import window as reference

WINDOWS: dict[str, tuple[Any, ...]] = {
    "hann": (),
    "hamming": (),
    "blackman": (),
    "bartlett": (),
    "kaiser": (14.0,),
    "gaussian": (3.5,),
}
LENGTHS = (0, 1, 2, 3, 4, 7, 16, 100, 1024)


def _made(name: str, length: int, **options: Any) -> Any:
    return getattr(ops, f"{name}_window")(length, *WINDOWS[name], **options)


@pytest.mark.parametrize("name", sorted(WINDOWS))
@pytest.mark.parametrize("periodic", [True, False])
def test_against_scipy(backend: str, name: str, periodic: bool) -> None:
    for length in LENGTHS:
        want = reference(name, length, periodic, *WINDOWS[name]) if length else numpy.zeros(0)
        for dtype, ulps in (("float16", 1), ("bfloat16", 1), ("float32", 1), ("float64", 16)):
            got = ops.to_numpy(_made(name, length, periodic=periodic, dtype=dtype))
            assert got.dtype.name == dtype
            assert got.shape == want.shape
            assert numpy.abs(got.astype(float) - want).max(initial=0.0) <= ulps * EPS[dtype], (length, dtype)
        assert ops.dtype(_made(name, length)) == "float32"


@pytest.mark.parametrize("name", sorted(WINDOWS))
@pytest.mark.parametrize("length", LENGTHS)
def test_every_backend_gives_the_same_bits(name: str, length: int) -> None:
    found = []
    for backend_name in installed_backends():
        with ember_ml.use_backend(backend_name):
            found.append(ops.to_numpy(_made(name, length)).tolist())
    assert found == [found[0]] * len(found)


@pytest.mark.parametrize("name", sorted(WINDOWS))
def test_symmetry(backend: str, name: str) -> None:
    symmetric = ops.to_numpy(_made(name, 9, periodic=False)).tolist()
    assert symmetric == symmetric[::-1]
    assert ops.to_numpy(_made(name, 8)).tolist() == symmetric[:-1]
    assert min(symmetric) >= 0
    assert max(symmetric) == 1.0 == symmetric[4]


def test_ends_keep_their_precision(backend: str) -> None:
    """Near the ends a difference of cosines would leave a few digits only."""
    n = 4096
    step = numpy.pi / n
    hann = ops.to_numpy(ops.hann_window(n, dtype="float64"))
    assert abs(hann[1] / step**2 - (1 - step**2 / 3)) < 1e-12
    blackman = ops.to_numpy(ops.blackman_window(n, dtype="float64"))
    assert abs(blackman[1] / (0.36 * step**2) - 1) < 1e-5
    assert blackman[0] == 0


def test_kaiser_window_of_a_large_beta_is_finite(backend: str) -> None:
    got = ops.to_numpy(ops.kaiser_window(9, 2000.0, periodic=False, dtype="float64"))
    assert numpy.isfinite(got).all()
    assert got[4] == 1.0
    # far from 0 the Bessel function is exp(b) / sqrt(2 pi b) (1 + 1/(8b) + ...)
    inner = 2000.0 * numpy.sqrt(1 - 0.25**2)
    want = numpy.exp(inner - 2000.0) * numpy.sqrt(2000.0 / inner) * (1 + 1 / (8 * inner)) / (1 + 1 / 16000.0)
    assert abs(got[3] / want - 1) < 1e-7


def test_device(backend: str) -> None:
    for name in WINDOWS:
        assert ops.get_device(_made(name, 4, device="cpu")) == "cpu"


def test_what_a_window_refuses(backend: str) -> None:
    for name in WINDOWS:
        with pytest.raises(ValueError, match="negative length"):
            _made(name, -1)
        with pytest.raises(TypeError, match="int32"):
            _made(name, 4, dtype="int32")
        with pytest.raises(TypeError, match="complex64"):
            _made(name, 4, dtype="complex64")
        with pytest.raises(TypeError, match=f"{name}_window"):
            _made(name, 4.5)  # type: ignore[arg-type]
    for beta in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="beta"):
            ops.kaiser_window(4, beta)
    for std in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="std"):
            ops.gaussian_window(4, std)


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
def test_symmetric_windows_are_those_of_numpy(backend: str, name: str) -> None:
    for length in (0, 1, 2, 5, 8):
        got = ops.to_numpy(getattr(ops, name)(length, dtype="float64"))
        assert numpy.allclose(got, getattr(numpy, name)(length), rtol=0, atol=1e-15)
        assert numpy.allclose(
            ops.to_numpy(ops.kaiser(length, 8.6, dtype="float64")), numpy.kaiser(length, 8.6), rtol=1e-13, atol=0
        )
