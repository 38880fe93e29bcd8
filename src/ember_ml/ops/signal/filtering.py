"""Filtering: convolution of signals, and resampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from ember_ml import ops
from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.shapes import as_axes
from ember_ml.backend.common.signal import as_length
from ember_ml.backend.common.window_functions import phase_filters
from ember_ml.backend.random.draw import constant
from ember_ml.backend.selection import active
from ember_ml.core import dtypes as dt
from ember_ml.dispatch.declare import derived
from ember_ml.dispatch.dtype_rules import CONTRACTION, REAL_FLOATING, TRANSFORM
from ember_ml.dispatch.gaps import gap_reason
from ember_ml.dispatch.half_precision import in_float32, is_half
from ember_ml.typing import Tensor, TensorLike

__all__ = ["convolve", "fftconvolve", "resample", "resample_poly"]

# So many elements of the smaller tensor, of one dimension or of several, take less time by sums than by transforms.
_FEW, _FEW_IN_SEVERAL = 100, 25


@derived(CONTRACTION)
def convolve(x: TensorLike, y: TensorLike, mode: str = "full", method: str = "auto") -> Tensor:
    """The convolution of two tensors with the same number of dimensions, along all of them.

    ``mode`` is "full" (wherever they overlap), "same" (the middle of that, with the shape of ``x``) or "valid" (where
    the smaller one lies wholly within the larger one). ``method`` is "direct" (sums of products), "fft"
    (:func:`fftconvolve`) or "auto": "fft" for floats where the smaller one has more than 100 elements, or 25 in several
    dimensions, else "direct". A transform rounds relative to the largest values, and spreads one infinity or NaN over
    all; sums do neither. Of integers the transform is rounded to the nearest one.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.convolve([1, 2, 3], [0, 1, 2])).tolist()
    [0, 1, 4, 7, 6]
    >>> ops.to_numpy(ops.convolve([1, 2, 3], [0, 1, 2], mode="same")).tolist()
    [1, 4, 7]
    """
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"method must be 'auto', 'direct' or 'fft', not {method!r}")
    full, start, shape = _modes(tuple(x.shape), tuple(y.shape), mode, tuple(range(len(x.shape))))
    dtype = dt.as_dtype(x.dtype)
    if method == "fft" or (method == "auto" and _prefers_transforms(x, y, dtype)):
        wide = dt.float32 if dtype in dt.HALVES else dtype
        if dtype in dt.INTEGERS and not gap_reason(active(), "fft", "float64"):
            wide = dt.float64  # which holds the sums of most integers exactly
        result = fftconvolve(ops.cast(x, wide), ops.cast(y, wide), mode)
        return ops.cast(ops.round(result) if dtype in dt.INTEGERS else result, dtype)
    if len(full) == 1:
        if mode == "same" and x.shape[0] < y.shape[0]:  # where correlate gives the length of the longer one
            return ops.get_item(convolve(x, y, "full", "direct"), slice(start[0], start[0] + shape[0]))
        return ops.correlate(x, ops.conj(ops.flip(y)), mode)
    return _sum_of_products(x, y, full, start, shape)


def _prefers_transforms(x: Tensor, y: Tensor, dtype: dt.EmberDType) -> bool:
    if dtype.kind not in ("float", "complex") or gap_reason(active(), "fft", dtype.name):
        return False
    few = _FEW if len(x.shape) == 1 else _FEW_IN_SEVERAL
    return min(math.prod(x.shape), math.prod(y.shape)) > few


def _sum_of_products(
    x: Tensor, y: Tensor, full: tuple[int, ...], start: tuple[int, ...], shape: tuple[int, ...]
) -> Tensor:
    """Convolve in several dimensions: sum the larger tensor, shifted and weighted by each element of the other."""
    dtype = dt.as_dtype(x.dtype)
    if dtype in dt.HALVES:  # rounded once, in the end
        x, y = ops.cast(x, dt.float32), ops.cast(y, dt.float32)
    if math.prod(x.shape) < math.prod(y.shape):
        x, y = y, x
    margins = [(n - 1, n - 1) for n in y.shape]
    padded = ops.pad(x, margins)
    total = None
    for place in product(*map(range, y.shape)):
        # element i of the result, which is i + start of the full one, meets this weight at i + start - place of x
        corner = [s + m[0] - p for s, m, p in zip(start, margins, place, strict=True)]
        part = ops.get_item(padded, tuple(slice(c, c + n) for c, n in zip(corner, shape, strict=True)))
        term = ops.multiply(part, ops.get_item(y, place))
        total = term if total is None else ops.add(total, term)
    return ops.cast(total, dtype)


@derived(TRANSFORM.giving("same"))
def fftconvolve(x: TensorLike, y: TensorLike, mode: str = "full", axes: int | Sequence[int] | None = None) -> Tensor:
    """The convolution of two tensors along ``axes``, by default all, computed by Fourier transforms.

    The other axes are broadcast. ``mode`` is as in :func:`convolve`.

    >>> from ember_ml import ops
    >>> x, y = ops.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), ops.array([[1.0, 1.0]])
    >>> [[round(value, 3) for value in row] for row in ops.to_numpy(ops.fftconvolve(x, y, axes=-1)).tolist()]
    [[1.0, 3.0, 5.0, 3.0], [4.0, 9.0, 11.0, 6.0]]
    """
    along = tuple(range(len(x.shape))) if axes is None else as_axes(axes, len(x.shape))
    full, start, shape = _modes(tuple(x.shape), tuple(y.shape), mode, along)
    lengths = [_find_fast_length(full[axis]) for axis in along]
    if dt.as_dtype(x.dtype).kind == "complex":
        spectrum = ops.multiply(ops.fftn(x, lengths, along), ops.fftn(y, lengths, along))
        result = ops.ifftn(spectrum, lengths, along)
    else:
        spectrum = ops.multiply(ops.rfftn(x, lengths, along), ops.rfftn(y, lengths, along))
        result = ops.irfftn(spectrum, lengths, along)
    return ops.get_item(result, tuple(slice(s, s + n) for s, n in zip(start, shape, strict=True)))


def _modes(
    x: tuple[int, ...], y: tuple[int, ...], mode: str, axes: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the shape of the full convolution, and where the part that the mode means starts, and its shape."""
    if len(x) != len(y) or not x:
        raise ValueError(f"two tensors with the same number of dimensions, 1 or more, are needed, not {x} and {y}")
    if not axes:
        raise ValueError("a convolution needs at least one axis")
    if any(not x[axis] or not y[axis] for axis in axes):
        raise ValueError(f"there is no convolution without elements, as {x} and {y} have")
    full, wanted = list(x), list(x)
    for axis, (m, n) in enumerate(zip(x, y, strict=True)):
        if axis in axes:
            full[axis] = m + n - 1
        elif 1 in (m, n) or m == n:
            full[axis] = wanted[axis] = n if m == 1 else m
        else:
            raise ValueError(f"the shapes {x} and {y} do not broadcast along axis {axis}")
    start = [0] * len(x)
    if mode == "full":
        wanted = full
    elif mode == "same":
        start = [(f - w) // 2 for f, w in zip(full, wanted, strict=True)]
    elif mode == "valid":
        if any(x[axis] < y[axis] for axis in axes) and any(x[axis] > y[axis] for axis in axes):
            raise ValueError(f"neither of {x} and {y} lies within the other, which mode 'valid' needs")
        for axis in axes:
            start[axis] = min(x[axis], y[axis]) - 1
            wanted[axis] = full[axis] - 2 * start[axis]
    else:
        raise ValueError(f"mode must be 'full', 'same' or 'valid', not {mode!r}")
    return tuple(full), tuple(start), tuple(wanted)


def _find_fast_length(least: int) -> int:
    """Return the smallest length from ``least`` on with no prime factors but 2, 3 and 5, whose transform is fast."""
    best = 1 << (least - 1).bit_length()
    fives = 1
    while fives < best:
        odd = fives
        while odd < best:
            quotient = -(-least // odd)
            best = min(best, odd << (quotient - 1).bit_length())
            odd *= 3
        fives *= 5
    return best


@derived(TRANSFORM.giving("same"))
def resample(x: TensorLike, num: int, axis: int = -1) -> Tensor:
    """The signal along ``axis`` with ``num`` samples in place of its own, for the same span of time.

    Its spectrum is cut off or filled up with zeros, so the signal is taken as one period of a periodic one: where its
    ends do not meet, fade them out first, or use :func:`resample_poly`.

    >>> from ember_ml import ops
    >>> [round(value, 3) for value in ops.to_numpy(ops.resample([0.0, 1.0, 0.0, -1.0], 8)).tolist()]
    [0.0, 0.707, 1.0, 0.707, 0.0, -0.707, -1.0, -0.707]
    """
    place = axis_of(axis, len(x.shape))
    samples = x.shape[place]
    num = as_length(num, "num")
    if not samples:
        raise ValueError("a signal without samples cannot be resampled")
    x = ops.moveaxis(x, place, -1)
    if num != samples:
        of = _resample_complex if dt.as_dtype(x.dtype).kind == "complex" else _resample_real
        x = ops.multiply(of(x, samples, num), num / samples)
    return ops.moveaxis(x, -1, place)


# An even number of samples has one bin that stands for the highest frequency and for its negative: with more samples it
# becomes two, each half of it; with fewer, two become one.


def _resample_real(x: Tensor, samples: int, num: int) -> Tensor:
    spectrum, kept = ops.rfft(x), min(samples, num)
    low = ops.get_item(spectrum, (..., slice((kept + 1) // 2)))
    if kept % 2 == 0:
        highest = ops.get_item(spectrum, (..., slice(kept // 2, kept // 2 + 1)))
        low = ops.concatenate([low, ops.multiply(highest, 2.0 if num < samples else 0.5)], -1)
    return ops.irfft(low, num)


def _resample_complex(x: Tensor, samples: int, num: int) -> Tensor:
    spectrum, kept = ops.fft(x), min(samples, num)
    positive = ops.get_item(spectrum, (..., slice((kept + 1) // 2)))
    negative = ops.get_item(spectrum, (..., slice(samples - (kept - 1) // 2, samples)))
    if kept % 2 == 0:
        highest = ops.get_item(spectrum, (..., slice(kept // 2, kept // 2 + 1)))
        if num < samples:
            lowest = ops.get_item(spectrum, (..., slice(samples - kept // 2, samples - kept // 2 + 1)))
            positive = ops.concatenate([positive, ops.add(highest, lowest)], -1)
        else:
            highest = ops.multiply(highest, 0.5)
            positive, negative = ops.concatenate([positive, highest], -1), ops.concatenate([highest, negative], -1)
    missing = num - positive.shape[-1] - negative.shape[-1]
    positive = ops.pad(positive, [(0, 0)] * (len(x.shape) - 1) + [(0, missing)])
    return ops.ifft(ops.concatenate([positive, negative], -1))


@derived(REAL_FLOATING)
def resample_poly(x: TensorLike, up: int, down: int, axis: int = -1) -> Tensor:
    """The signal along ``axis`` at another rate, ``up / down`` times its own.

    The integers ``up=160`` and ``down=441`` bring 44.1 kHz to 16. It is filtered with a sinc under a Kaiser window
    (beta 5, 10 periods of the lower rate at each side), as SciPy's ``resample_poly`` does, and is taken as 0 outside
    of its ends. It has ``samples * up / down`` samples, rounded up. :func:`resample` is for periodic signals and any
    number of samples.

    >>> from ember_ml import ops
    >>> x = ops.sin(ops.multiply(ops.arange(100.0), 0.1))
    >>> y = ops.resample_poly(x, 3, 2)
    >>> ops.shape(y), bool(ops.item(ops.less(ops.abs(ops.subtract(y[75], x[50])), 1e-3)))
    ((150,), True)
    """
    up, down = as_length(up, "up"), as_length(down, "down")
    common = math.gcd(up, down)
    up, down = up // common, down // common
    place = axis_of(axis, len(x.shape))
    samples = x.shape[place]
    if not samples:
        raise ValueError("a signal without samples cannot be resampled")
    if up == down:
        return x
    if is_half(x):
        return in_float32(resample_poly, x, up, down, axis)
    # the phases of the result are the channels of a convolution: samples q * up + p see the signal from q * down on
    before = 10 * max(up, down) // up
    filters = constant(phase_filters, ops.get_device(x), dt.as_dtype(x.dtype).name, up, down)
    wanted = -(-samples * up // down)
    frames = -(-wanted // up)
    signal = ops.moveaxis(x, place, -1)
    batch = tuple(signal.shape[:-1])
    signal = ops.reshape(signal, (-1, samples, 1))
    after = max(0, (frames - 1) * down + filters.shape[0] - before - samples)
    signal = ops.pad(signal, [(0, 0), (before, after), (0, 0)])
    result = ops.reshape(ops.conv(signal, filters, down), (*batch, frames * up))
    return ops.moveaxis(ops.get_item(result, (..., slice(wanted))), -1, place)
