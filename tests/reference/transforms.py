"""References of the Fourier transforms: the sums themselves, in long double."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.reference import arrays, shapes
from tests.reference.spec import spec

_INSIDE: dict[str, Any] = {"finite": True, "low": -50.0, "high": 50.0}
_NORMS = st.sampled_from(["backward", "ortho", "forward"])


def _factor(norm: str, length: int, inverse: bool) -> Any:
    if norm == "ortho":
        return 1 / np.sqrt(np.longdouble(length))
    return 1 / np.longdouble(length) if (norm == "backward") == inverse else np.longdouble(1)


def _resized(x: np.ndarray, length: int) -> np.ndarray:
    """The first ``length`` values along the last axis, with zeros where there are not as many."""
    short = x[..., :length]
    return np.concatenate([short, np.zeros((*x.shape[:-1], length - short.shape[-1]), dtype=x.dtype)], axis=-1)


def _waves(length: int, inverse: bool) -> np.ndarray:
    places = np.arange(length)
    turns = (np.outer(places, places) % max(length, 1)).astype(np.longdouble) / max(length, 1)
    pi = np.longdouble("3.14159265358979323846264338327950288")
    return np.exp((2j if inverse else -2j) * pi * turns)


def _transform(x: np.ndarray, n: int | None, axis: int, norm: str, inverse: bool = False) -> np.ndarray:
    x = np.moveaxis(x.astype(np.clongdouble), axis, -1)
    length = x.shape[-1] if n is None else n
    found = _resized(x, length) @ _waves(length, inverse) * _factor(norm, length, inverse)
    return np.moveaxis(found, -1, axis)


def _from_half(x: np.ndarray, n: int | None, axis: int, norm: str, inverse: bool) -> np.ndarray:
    """The real transform of a signal with Hermitian symmetry, of which ``x`` is the first half."""
    x = np.moveaxis(x.astype(np.clongdouble), axis, -1)
    length = 2 * (x.shape[-1] - 1) if n is None else n
    half = _resized(x, length // 2 + 1)
    half[..., 0] = half[..., 0].real
    if length % 2 == 0:
        half[..., -1] = half[..., -1].real
    whole = np.concatenate([half, np.conj(half[..., 1 : (length + 1) // 2][..., ::-1])], axis=-1)
    return np.moveaxis(_transform(whole, None, -1, norm, inverse).real, -1, axis)


def _first_half(found: np.ndarray, axis: int) -> np.ndarray:
    length = found.shape[axis]
    return np.take(found, range(length // 2 + 1), axis=axis)


def _rfft(x: np.ndarray, n: int | None, axis: int, norm: str) -> np.ndarray:
    return _first_half(_transform(x, n, axis, norm), axis)


def _ihfft(x: np.ndarray, n: int | None, axis: int, norm: str) -> np.ndarray:
    return _first_half(_transform(x, n, axis, norm, True), axis)


def _one(draw: st.DrawFn, dtype: str, least: int = 1) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=1, min_side=least, max_side=6), **_INSIDE))
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    return {"x": x, "n": draw(st.none() | st.integers(1, 7)), "axis": axis, "norm": draw(_NORMS)}


def _magnitude(x: np.ndarray, **_: Any) -> Any:
    """A transform adds up one row, padded or cut; it is at most the sum of all absolute values."""
    return np.sum(np.abs(x.astype(np.clongdouble))) + 1e-30


for _name, _reference, _least in (
    ("fft", _transform, 1),
    ("ifft", lambda x, n, axis, norm: _transform(x, n, axis, norm, True), 1),
    ("rfft", _rfft, 1),
    ("ihfft", _ihfft, 1),
    ("irfft", lambda x, n, axis, norm: _from_half(x, n, axis, norm, True), 2),
    ("hfft", lambda x, n, axis, norm: _from_half(x, n, axis, norm, False), 2),
):
    spec(_name, lambda draw, dtype, least=_least: _one(draw, dtype, least), _reference, 16.0, _magnitude)


def _several(two: bool, least: int = 1) -> Any:
    def draw(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
        x = draw(arrays(dtype, shapes(min_dims=2 if two else 1, min_side=least, max_side=4), **_INSIDE))
        places = draw(st.permutations(range(x.ndim)))
        axes = tuple(places[:2] if two else places[: draw(st.integers(1, x.ndim))])
        axes = tuple(place - draw(st.sampled_from([0, x.ndim])) for place in axes)
        s = draw(st.none() | st.lists(st.integers(1, 5), min_size=len(axes), max_size=len(axes)).map(tuple))
        return {"x": x, "s": s, "axes": axes, "norm": draw(_NORMS)}

    return draw


def _lengths(s: Any, axes: Sequence[int]) -> Sequence[int | None]:
    return [None] * len(axes) if s is None else s


def _all(x: np.ndarray, s: Any, axes: Sequence[int], norm: str, inverse: bool = False) -> np.ndarray:
    for n, axis in zip(_lengths(s, axes), axes, strict=True):
        x = _transform(x, n, axis, norm, inverse)
    return x


def _real(x: np.ndarray, s: Any, axes: Sequence[int], norm: str) -> np.ndarray:
    lengths = _lengths(s, axes)
    found = _rfft(x, lengths[-1], axes[-1], norm)
    return _all(found, None if s is None else s[:-1], axes[:-1], norm)


def _inverse_real(x: np.ndarray, s: Any, axes: Sequence[int], norm: str) -> np.ndarray:
    found = _all(x, None if s is None else s[:-1], axes[:-1], norm, True)
    return _from_half(found, _lengths(s, axes)[-1], axes[-1], norm, True)


def _inverse(x: np.ndarray, s: Any, axes: Sequence[int], norm: str) -> np.ndarray:
    return _all(x, s, axes, norm, True)


for _name, _reference, _least in (
    ("fft", _all, 1),
    ("ifft", _inverse, 1),
    ("rfft", _real, 1),
    ("irfft", _inverse_real, 2),
):
    spec(f"{_name}n", _several(False, _least), _reference, 24.0, _magnitude)
    spec(f"{_name}2", _several(True, _least), _reference, 24.0, _magnitude)


def _shifted(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=1)))
    one = st.integers(-x.ndim, x.ndim - 1)
    several = st.lists(st.integers(0, x.ndim - 1), unique=True, min_size=1).map(tuple)
    return {"x": x, "axes": draw(st.one_of(st.none(), one, several))}


def _rolled(x: np.ndarray, axes: Any, back: bool) -> np.ndarray:
    places = range(x.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
    for axis in places:
        length = x.shape[axis]
        x = np.roll(x, -(length // 2) if back else length // 2, axis)
    return x


spec("fftshift", _shifted, lambda x, axes: _rolled(x, axes, False), 0)
spec("ifftshift", _shifted, lambda x, axes: _rolled(x, axes, True), 0)


def _frequencies(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    named = dtype if dtype in ("float16", "bfloat16", "float32", "float64") else None
    spacing = draw(st.sampled_from([1.0, 0.5, 3.0, 0.1]))
    return {"n": draw(st.integers(1, 9)), "d": spacing, "dtype": named}


spec("fftfreq", _frequencies, lambda n, d, dtype: ((np.arange(n) + n // 2) % n - n // 2) / np.longdouble(n * d), 2.0)
spec("rfftfreq", _frequencies, lambda n, d, dtype: np.arange(n // 2 + 1) / np.longdouble(n * d), 2.0)
