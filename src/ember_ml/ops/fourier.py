"""Discrete Fourier transforms.

The result of real input is complex of the same precision; integers are lifted to float32, half precision is an
``UnsupportedDType``. ``norm`` says where the factor 1/n is: ``"backward"`` (the inverse has it), ``"forward"`` (the
transform has it) or ``"ortho"`` (both have its root). A length other than the input's cuts it off or fills it up with
zeros; there is no transform of length 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml import dtypes as dt
from ember_ml import ops
from ember_ml.ops.declare import derived, primitive
from ember_ml.ops.rules import CREATION, KEEP, REAL_TRANSFORM, TRANSFORM
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


@primitive(TRANSFORM)
def ifft(x: TensorLike, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of :func:`fft`.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.real(ops.ifft([4.0, 0.0, 0.0, 0.0]))).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    ...


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


@primitive(TRANSFORM.giving("real"))
def irfft(x: TensorLike, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of :func:`rfft`: real, of length ``n``, by default ``2 * (m - 1)`` for m values.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.irfft([4.0, 0.0, 0.0])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    ...


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
    found = _named(axes, x.ndim)
    return ops.roll(x, tuple(x.shape[a] // 2 for a in found), axis=found) if found else x


@derived(KEEP)
def ifftshift(x: TensorLike, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of :func:`fftshift`.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.ifftshift([-2, -1, 0, 1, 2])).tolist()
    [0, 1, 2, -2, -1]
    """
    found = _named(axes, x.ndim)
    return ops.roll(x, tuple(-(x.shape[a] // 2) for a in found), axis=found) if found else x


def _named(axes: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(ndim))
    found = (axes,) if isinstance(axes, int) else tuple(axes)
    for axis in found:
        if not -ndim <= axis < ndim:
            raise IndexError(f"axis {axis} is out of range for a {ndim}-D tensor")
    return found
