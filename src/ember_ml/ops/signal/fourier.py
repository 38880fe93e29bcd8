"""Discrete Fourier transforms.

The result of real input is complex of the same precision; integers are lifted to float32, half precision is an
``UnsupportedDType``. ``norm`` says where the factor 1/n is: ``"backward"`` (the inverse has it), ``"forward"`` (the
transform has it) or ``"ortho"`` (both have its root). A length other than the input's cuts it off or fills it up with
zeros; there is no transform of length 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.signal import lengths_and_axes
from ember_ml.core import dtypes as dt
from ember_ml.dispatch.declare import derived, gradient, primitive
from ember_ml.dispatch.dtype_rules import CREATION, KEEP, REAL_TRANSFORM, TRANSFORM
from ember_ml.ops.arrays.gradient_rules import helpers
from ember_ml.typing import DeviceLike, DTypeLike, Tensor, TensorLike

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

_OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


@primitive(TRANSFORM)
def fft(x: TensorLike, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The discrete Fourier transform along ``axis``, of length ``n``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.real(ops.fft([1.0, 1.0, 1.0, 1.0]))).tolist()
    [4.0, 0.0, 0.0, 0.0]
    """
    ...


gradient(fft, x=lambda g, _x, n, axis, norm: _transform_vjp(ops.ifftn, g, _x, _s(n), (axis,), norm))


@primitive(TRANSFORM)
def ifft(x: TensorLike, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of :func:`fft`.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.real(ops.ifft([4.0, 0.0, 0.0, 0.0]))).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    ...


gradient(ifft, x=lambda g, _x, n, axis, norm: _transform_vjp(ops.fftn, g, _x, _s(n), (axis,), norm))


@primitive(TRANSFORM)
def fftn(
    x: TensorLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor:
    """The discrete Fourier transform along ``axes``, of lengths ``s``; -1 stands for the input's own length.

    Without ``axes`` all dimensions are transformed, or the last ones where ``s`` is given.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.real(ops.fftn([[1.0, 1.0], [1.0, 1.0]]))).tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    ...


gradient(fftn, x=lambda g, _x, s, axes, norm: _transform_vjp(ops.ifftn, g, _x, s, axes, norm))


@primitive(TRANSFORM)
def ifftn(
    x: TensorLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor:
    """The inverse of :func:`fftn`.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.real(ops.ifftn([[4.0, 0.0], [0.0, 0.0]]))).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    ...


gradient(ifftn, x=lambda g, _x, s, axes, norm: _transform_vjp(ops.fftn, g, _x, s, axes, norm))


@derived(TRANSFORM)
def fft2(
    x: TensorLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward"
) -> Tensor:
    """The discrete Fourier transform along two axes, by default the last ones.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.real(ops.fft2([[1.0, 1.0], [1.0, 1.0]]))).tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return fftn(x, s, axes, norm)


@derived(TRANSFORM)
def ifft2(
    x: TensorLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward"
) -> Tensor:
    """The inverse of :func:`fft2`.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.real(ops.ifft2([[4.0, 0.0], [0.0, 0.0]]))).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return ifftn(x, s, axes, norm)


@primitive(REAL_TRANSFORM)
def rfft(x: TensorLike, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The first half of the Fourier transform of real input, ``n // 2 + 1`` values; the rest is its mirror.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.real(ops.rfft([1.0, 1.0, 1.0, 1.0]))).tolist()
    [4.0, 0.0, 0.0]
    """
    ...


gradient(rfft, x=lambda g, _x, n, axis, norm: _real_transform_vjp(g, _x, _s(n), (axis,), norm))


@primitive(TRANSFORM.giving("real"))
def irfft(x: TensorLike, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of :func:`rfft`: real, of length ``n``, by default ``2 * (m - 1)`` for m values.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.irfft([4.0, 0.0, 0.0])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    ...


gradient(irfft, x=lambda g, _x, n, axis, norm: _inverse_real_vjp(g, _x, _s(n), (axis,), norm))


@primitive(REAL_TRANSFORM)
def rfftn(
    x: TensorLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor:
    """The Fourier transform of real input along ``axes``; of the last one only the half that :func:`rfft` gives.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.real(ops.rfftn([[1.0, 1.0], [1.0, 1.0]]))).tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    ...


gradient(rfftn, x=lambda g, _x, s, axes, norm: _real_transform_vjp(g, _x, s, axes, norm))


@primitive(TRANSFORM.giving("real"))
def irfftn(
    x: TensorLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor:
    """The inverse of :func:`rfftn`; by default the last of ``axes`` has length ``2 * (m - 1)`` for m values.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.irfftn([[4.0, 0.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    ...


gradient(irfftn, x=lambda g, _x, s, axes, norm: _inverse_real_vjp(g, _x, s, axes, norm))


# A transform is a linear map; its gradient is the adjoint map, which is the inverse transform with the factor of the
# forward one. A real transform leaves out the bins that are mirror images, whose share the others then have.


def _s(n: int | None) -> tuple[int, ...] | None:
    return None if n is None else (n,)


def _transform_vjp(adjoint: Any, g: Tensor, x: Any, s: Any, axes: Any, norm: str) -> Tensor:
    lengths, along = lengths_and_axes(x.shape, s, axes)
    return _fit_to_input(adjoint(g, lengths, along, _opposite(norm)), x, along)


def _real_transform_vjp(g: Tensor, x: Any, s: Any, axes: Any, norm: str) -> Tensor:
    lengths, along = lengths_and_axes(x.shape, s, axes)
    weights = _mirror_weights(g, lengths[-1], along[-1], 0.5)
    return _fit_to_input(irfftn(ops.multiply(g, weights), lengths, along, _opposite(norm)), x, along)


def _inverse_real_vjp(g: Tensor, x: Any, s: Any, axes: Any, norm: str) -> Tensor:
    lengths, along = lengths_and_axes(x.shape, s, axes, halved=True)
    spectrum = rfftn(g, lengths, along, _opposite(norm))
    return _fit_to_input(ops.multiply(spectrum, _mirror_weights(spectrum, lengths[-1], along[-1], 2.0)), x, along)


def _mirror_weights(spectrum: Any, length: int, axis: int, weight: float) -> Tensor:
    """Return ``weight`` for the bins along ``axis`` that have a mirror image, 1 for the others (first and middle)."""
    single = {0, length // 2} if length % 2 == 0 else {0}
    weights = [1.0 if bin_ in single else weight for bin_ in range(length // 2 + 1)]
    shape = [1] * len(spectrum.shape)
    shape[axis] = len(weights)
    wide = dt.as_dtype(spectrum.dtype) in (dt.float64, dt.complex128)
    return ops.reshape(ops.asarray(weights, dtype=dt.float64 if wide else dt.float32), shape)


def _fit_to_input(g: Tensor, x: Any, axes: Sequence[int]) -> Tensor:
    """Return ``g`` without what the transform filled up, and with zeros for what it cut off."""
    for axis in axes:
        length, own = g.shape[axis], x.shape[axis]
        if length > own:
            g = ops.get_item(g, (*[slice(None)] * axis, slice(own)))
        elif length < own:
            widths = [(0, 0)] * len(g.shape)
            widths[axis] = (0, own - length)
            g = ops.pad(g, widths)
    return helpers.cast_back(g, x)


@derived(REAL_TRANSFORM)
def rfft2(
    x: TensorLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward"
) -> Tensor:
    """The Fourier transform of real input along two axes, by default the last ones, as :func:`rfftn` gives it.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.real(ops.rfft2([[1.0, 1.0], [1.0, 1.0]]))).tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return rfftn(x, s, axes, norm)


@derived(TRANSFORM.giving("real"))
def irfft2(
    x: TensorLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward"
) -> Tensor:
    """The inverse of :func:`rfft2`.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.irfft2([[4.0, 0.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return irfftn(x, s, axes, norm)


@derived(TRANSFORM.giving("real"))
def hfft(x: TensorLike, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The Fourier transform, real, of a signal with Hermitian symmetry of which ``x`` is the first half.

    Its length ``n`` is by default ``2 * (m - 1)`` for m values.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.hfft([1.0, 1.0, 1.0])).tolist()
    [4.0, 0.0, 0.0, 0.0]
    """
    return irfft(ops.conj(x), n, axis, _opposite(norm))


@derived(REAL_TRANSFORM)
def ihfft(x: TensorLike, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of :func:`hfft`: the first half, ``n // 2 + 1`` values, of a signal with Hermitian symmetry.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.real(ops.ihfft([4.0, 0.0, 0.0, 0.0]))).tolist()
    [1.0, 1.0, 1.0]
    """
    return ops.conj(rfft(x, n, axis, _opposite(norm)))


def _opposite(norm: str) -> str:
    if norm not in _OPPOSITE:
        raise ValueError(f"norm must be 'backward', 'ortho' or 'forward', not {norm!r}")
    return _OPPOSITE[norm]


@derived(CREATION)
def fftfreq(n: int, d: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """The frequencies of the values of a transform of length ``n`` of samples ``d`` apart, by default float32.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.fftfreq(4)).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    upper = ops.arange(0, (_length(n) + 1) // 2, device=device)
    lower = ops.arange(-(n // 2), 0, device=device)
    return _per_length(ops.concatenate([upper, lower]), n * d, dtype)


@derived(CREATION)
def rfftfreq(n: int, d: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """The frequencies of the values of :func:`rfft` of length ``n`` of samples ``d`` apart, by default float32.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.rfftfreq(4)).tolist()
    [0.0, 0.25, 0.5]
    """
    return _per_length(ops.arange(0, _length(n) // 2 + 1, device=device), n * d, dtype)


def _length(n: int) -> int:
    if not isinstance(n, int):
        raise TypeError(f"the length of a transform is an integer, not {n!r}")
    if n < 1:
        raise ValueError(f"the length of a transform is at least 1, not {n}")
    return n


def _per_length(steps: Tensor, length: float, dtype: DTypeLike | None) -> Tensor:
    wanted = dt.DEFAULT_FLOAT if dtype is None else dt.as_dtype(dtype)
    if wanted not in dt.FLOATS:
        raise TypeError(f"frequencies are real floats, not {wanted}")
    precise = dt.float32 if wanted in dt.HALVES else wanted
    return ops.cast(ops.divide(ops.cast(steps, precise), length), wanted)


@derived(KEEP)
def fftshift(x: TensorLike, axes: int | Sequence[int] | None = None) -> Tensor:
    """``x`` with the value of frequency 0 moved to the middle along ``axes``, by default all.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.fftshift([0, 1, 2, -2, -1])).tolist()
    [-2, -1, 0, 1, 2]
    """
    found = _list_axes(axes, x.ndim)
    return ops.roll(x, tuple(x.shape[a] // 2 for a in found), axis=found) if found else x


@derived(KEEP)
def ifftshift(x: TensorLike, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of :func:`fftshift`.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.ifftshift([-2, -1, 0, 1, 2])).tolist()
    [0, 1, 2, -2, -1]
    """
    found = _list_axes(axes, x.ndim)
    return ops.roll(x, tuple(-(x.shape[a] // 2) for a in found), axis=found) if found else x


def _list_axes(axes: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(ndim))
    found = (axes,) if isinstance(axes, int) else tuple(axes)
    for axis in found:
        if not -ndim <= axis < ndim:
            raise IndexError(f"axis {axis} is out of range for a {ndim}-D tensor")
    return found
