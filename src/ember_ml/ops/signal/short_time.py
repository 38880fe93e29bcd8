"""Frames of signals and what is made of them: the short-time Fourier transform, its inverse, spectrograms.

A signal lies along the last axis unless ``axis`` says otherwise, and the axes before it are batches. Frames are rows:
cutting ``(..., samples)`` gives ``(..., frames, frame_length)``, and its transform ``(..., frames, bins)``.
"""

from __future__ import annotations

from ember_ml import ops
from ember_ml.backend import value_checks
from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.signal import as_length, count_frames
from ember_ml.backend.common.window_functions import host_mel_weights
from ember_ml.backend.selection import active
from ember_ml.core import dtypes as dt
from ember_ml.dispatch.declare import derived, gradient
from ember_ml.dispatch.dtype_rules import CREATION, NUMERIC, SAME, TRANSFORM
from ember_ml.typing import DeviceLike, DTypeLike, Tensor, TensorLike

__all__ = ["frame", "istft", "mel_filterbank", "overlap_add", "spectrogram", "stft"]


@derived(SAME)
def frame(x: TensorLike, frame_length: int, hop_length: int, axis: int = -1) -> Tensor:
    """The frames of a signal: pieces of ``frame_length`` samples, each ``hop_length`` after the one before.

    ``axis`` becomes two, frames and samples. Samples at the end that fill no frame are left out; a signal shorter than
    a frame raises ``ValueError``. On NumPy and PyTorch the frames share the memory of ``x``. On MLX, ``vmap`` has no
    rule for them: give all signals at once, which needs none.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.frame([1, 2, 3, 4, 5, 6, 7], frame_length=4, hop_length=2)).tolist()
    [[1, 2, 3, 4], [3, 4, 5, 6]]
    """
    count = count_frames(x.shape[axis_of(axis, len(x.shape))], frame_length, hop_length)
    device = ops.get_device(x)
    starts = ops.multiply(ops.reshape(ops.arange(count, device=device), (count, 1)), hop_length)
    return ops.take(x, ops.add(starts, ops.arange(frame_length, device=device)), axis)


gradient(frame, x=lambda g, _x, hop_length, axis: _frame_vjp(g, _x.shape, hop_length, axis))


def _frame_vjp(g: Tensor, shape: tuple[int, ...], hop_length: int, axis: int) -> Tensor:
    """Return each sample gets what all frames that hold it got."""
    place = axis_of(axis, len(shape))
    signal = overlap_add(g, hop_length, place)
    return _pad_end(signal, shape[place] - signal.shape[place], place)


@derived(NUMERIC)
def overlap_add(x: TensorLike, hop_length: int, axis: int = -1) -> Tensor:
    """The sum of frames, each ``hop_length`` after the one before, as one signal.

    ``axis`` of the result stands for two of ``x``, frames and samples, as :func:`frame` gives them. Samples that lie
    in no frame are 0.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.overlap_add([[1, 2, 3, 4], [10, 20, 30, 40]], hop_length=2)).tolist()
    [1, 2, 13, 24, 30, 40]
    """
    hop_length = as_length(hop_length, "hop_length")
    if len(x.shape) < 2:
        raise ValueError("two axes are needed, of frames and of their samples")
    place = axis_of(axis, len(x.shape) - 1)
    x = ops.moveaxis(x, (place, place + 1), (-2, -1))
    *batch, frames, samples = x.shape
    if not frames or not samples:
        raise ValueError(f"{frames} frames of {samples} samples make no signal")
    # In blocks of a hop, block i of frame j comes to place i + j: the sums along the diagonals of a grid of blocks.
    # Its shorter side becomes its rows, and each row is moved by one block more than the row above: padded with as many
    # blocks as there are rows, and read as rows one shorter.
    blocks = -(-samples // hop_length)
    grid = ops.reshape(_pad_end(x, blocks * hop_length - samples), (*batch, frames, blocks, hop_length))
    if blocks < frames:
        grid = ops.swapaxes(grid, -3, -2)
    rows, columns = min(frames, blocks), max(frames, blocks)
    flat = ops.reshape(_pad_end(grid, rows, -2), (*batch, rows * (rows + columns), hop_length))
    moved = ops.get_item(flat, (..., slice(rows * (rows + columns - 1)), slice(None)))
    moved = ops.reshape(moved, (*batch, rows, rows + columns - 1, hop_length))
    total = ops.cast(ops.sum(moved, axis=-3), x.dtype)  # sums of integers are wider
    signal = ops.reshape(total, (*batch, (rows + columns - 1) * hop_length))
    signal = ops.get_item(signal, (..., slice((frames - 1) * hop_length + samples)))
    return ops.moveaxis(signal, -1, place)


def _pad_end(x: Tensor, after: int, axis: int = -1) -> Tensor:
    """Return ``x`` with zeros at the end of an axis."""
    if not after:
        return x
    widths = [(0, 0)] * len(x.shape)
    widths[axis] = (0, after)
    return ops.pad(x, widths)


@derived(TRANSFORM)
def stft(
    x: TensorLike,
    frame_length: int | None = None,
    hop_length: int | None = None,
    window: TensorLike | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
) -> Tensor:
    """The short-time Fourier transform: the spectrum of each frame of a signal, as ``(..., frames, bins)``.

    Without ``frame_length`` the last axis is one frame, or holds the samples of frames that :func:`frame` has cut, and
    is transformed as it is, times ``window`` where there is one. With it the signal is cut into frames, ``hop_length``
    (by default a quarter of a frame) apart, and each is multiplied with ``window``, by default
    ``hann_window(frame_length)``; a shorter window stands in the middle of the frame. With ``center`` frame ``i`` has
    its middle at sample ``i * hop_length``: the signal is first padded by half a frame at both ends, by the mode
    ``pad_mode`` of :func:`pad`. ``normalized`` divides by the root of the frame's length. Of real signals the bins are
    the ``frame_length // 2 + 1`` of :func:`rfft` unless ``onesided`` is False; of complex ones, all of :func:`fft`.

    >>> from ember_ml import ops
    >>> frames = ops.frame(ops.ones(4096), frame_length=1024, hop_length=512)
    >>> ops.shape(ops.stft(ops.multiply(frames, ops.hann_window(1024))))
    (7, 513)
    >>> ops.shape(ops.stft(ops.ones(4096), frame_length=1024, hop_length=512))
    (9, 513)
    """
    if not x.shape:
        raise ValueError("a signal has an axis of samples; a single number has none")
    if frame_length is None:
        if hop_length is not None:
            raise ValueError("hop_length needs frame_length: without it the last axis is one frame")
        frames = x if window is None else ops.multiply(x, _fit_window(window, x.shape[-1]))
    else:
        hop_length = _hop(frame_length, hop_length)
        if center:
            half = as_length(frame_length, "frame_length") // 2
            x = ops.pad(x, [(0, 0)] * (len(x.shape) - 1) + [(half, half)], pad_mode)
        frames = ops.multiply(frame(x, frame_length, hop_length), _window(window, frame_length, x))
    if onesided is None:
        onesided = dt.as_dtype(frames.dtype).kind != "complex"
    transform = ops.rfft if onesided else ops.fft
    return transform(frames, norm="ortho" if normalized else "backward")


@derived(TRANSFORM.giving("own"))
def istft(
    x: TensorLike,
    frame_length: int | None = None,
    hop_length: int | None = None,
    window: TensorLike | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool = True,
    length: int | None = None,
) -> Tensor:
    """The signal whose :func:`stft`, with the same options, is nearest to ``x``; the inverse where ``x`` is one.

    ``x`` is ``(..., frames, bins)``. ``frame_length`` is by default ``2 * (bins - 1)``, or ``bins`` where ``onesided``
    is False and the result complex. ``length`` is the number of samples wanted; without it the result ends with the
    last frame, with ``center`` at its middle. Where the window is 0 in all frames that hold a sample, so that nothing
    can give it back, or where no frame holds it, ``ValueError``.

    >>> from ember_ml import ops
    >>> x = ops.sin(ops.arange(0.0, 5.0, 0.1))
    >>> back = ops.istft(ops.stft(x, frame_length=16), frame_length=16, length=50)
    >>> ops.shape(back), bool(ops.item(ops.allclose(back, x, atol=1e-5)))
    ((50,), True)
    """
    if len(x.shape) < 2:
        raise ValueError("two axes are needed, of frames and of bins; the inverse of a single frame is irfft")
    count, bins = x.shape[-2:]
    own = 2 * (bins - 1) if onesided else bins
    samples = as_length(own if frame_length is None else frame_length, "frame_length")
    if bins != (samples // 2 + 1 if onesided else samples):
        raise ValueError(f"{bins} bins do not belong to frames of {samples} samples")
    hop = _hop(samples, hop_length)
    inverse = ops.irfft if onesided else ops.ifft
    frames = inverse(x, samples, norm="ortho" if normalized else "backward")
    window = _window(window, samples, frames)
    if onesided:
        window = ops.real(window)
    total = overlap_add(ops.multiply(frames, ops.conj(window)), hop)
    weights = ops.square(ops.abs(window))
    weight = overlap_add(ops.broadcast_to(weights, (count, samples)), hop)
    start = samples // 2 if center else 0
    if length is not None and length < 0:
        raise ValueError(f"length must not be negative, as {length} is")
    end = (count - 1) * hop + samples - start if length is None else start + length
    part = (..., slice(start, end))
    total, weight = ops.get_item(total, part), ops.get_item(weight, part)
    _check_weight(weight, end - start)
    return ops.divide(total, weight)


def _hop(frame_length: int, hop_length: int | None) -> int:
    if hop_length is None:
        return max(1, as_length(frame_length, "frame_length") // 4)
    return as_length(hop_length, "hop_length")


def _window(window: Tensor | None, length: int, x: Tensor) -> Tensor:
    """Return the window of frames of ``x``, by default Hann's."""
    if window is not None:
        return _fit_window(window, length)
    dtype = dt.as_dtype(x.dtype)
    real = {"complex64": dt.float32, "complex128": dt.float64}.get(dtype.name, dtype)
    return ops.hann_window(length, dtype=real, device=ops.get_device(x))


def _fit_window(window: Tensor, length: int) -> Tensor:
    """Return ``window`` with zeros at both ends that make it as long as a frame."""
    if len(window.shape) != 1 or not 1 <= window.shape[0] <= length:
        raise ValueError(f"the window of a frame of {length} samples is a vector of at most that length")
    missing = length - window.shape[0]
    return ops.pad(window, [(missing // 2, missing - missing // 2)]) if missing else window


def _check_weight(weight: Tensor, length: int) -> None:
    """Raise unless the windows together cover every sample."""
    if weight.shape[-1] < length:
        raise ValueError(f"the frames hold {weight.shape[-1]} samples, not {length}; more frames or a smaller length")
    if not length or not value_checks.enabled or active().is_traced(weight):
        return
    if ops.item(ops.less_equal(ops.min(weight), ops.multiply(ops.max(weight), 1e-11))):
        raise ValueError(
            f"the window is 0 in all frames that hold sample {ops.item(ops.argmin(weight))}; use center=True, "
            "a smaller hop_length, or a window that is nowhere 0"
        )


@derived(TRANSFORM.giving("real"))
def spectrogram(
    x: TensorLike,
    frame_length: int | None = None,
    hop_length: int | None = None,
    window: TensorLike | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    power: float = 2.0,
) -> Tensor:
    """The magnitudes of :func:`stft`, with the same options, to a power: 2 for energy, 1 for amplitude.

    >>> from ember_ml import ops
    >>> tone = ops.cos(ops.multiply(ops.arange(64.0), 3.14159265 / 8))
    >>> energy = ops.spectrogram(tone, frame_length=32, hop_length=16)
    >>> ops.shape(energy), ops.to_numpy(ops.argmax(energy, axis=-1)).tolist()
    ((5, 17), [2, 2, 2, 2, 2])
    """
    spectrum = stft(x, frame_length, hop_length, window, center, pad_mode, normalized, onesided)
    if power == 2:  # without the root, which has no derivative at 0
        return ops.add(ops.square(ops.real(spectrum)), ops.square(ops.imag(spectrum)))
    magnitude = ops.abs(spectrum)
    return magnitude if power == 1 else ops.power(magnitude, power)


@derived(CREATION)
def mel_filterbank(
    num_filters: int,
    num_bins: int,
    sample_rate: float,
    low: float = 0.0,
    high: float | None = None,
    scale: str = "htk",
    norm: str | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """The weights of triangular filters, evenly spaced on the mel scale, as ``(num_bins, num_filters)``.

    ``matmul(spectrogram, mel_filterbank(...))`` is a mel spectrogram. The bins run from 0 to half the sample rate, as
    those of :func:`spectrogram` do; the filters from ``low`` to ``high`` hertz, by default half the sample rate.
    ``scale`` is "htk" (logarithmic) or "slaney" (linear below 1000 Hz). Each filter has its peak at 1, or with
    ``norm="slaney"`` the area 1. A filter that lies between two bins is 0.

    >>> from ember_ml import ops
    >>> weights = ops.mel_filterbank(num_filters=40, num_bins=513, sample_rate=16000)
    >>> ops.shape(ops.matmul(ops.spectrogram(ops.ones(4096), 1024, 512), weights))
    (9, 40)
    """
    weights = host_mel_weights(dtype, num_filters, num_bins, sample_rate, low, high, scale, norm)
    return active().from_host(weights, device)
