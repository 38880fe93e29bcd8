"""Windows: the weights that fade a frame in and out.

A window is periodic: the weights of one period, as the transform of a frame needs them. With ``periodic=False`` it is
symmetric instead, as the design of a filter needs it. The weights are computed in double precision and rounded once to
``dtype``, float32 by default, so that every backend gives the same ones. A window of length 1 is 1.
"""

from __future__ import annotations

from ember_ml.backend.common.window_functions import host_window
from ember_ml.backend.selection import active
from ember_ml.dispatch.declare import derived
from ember_ml.dispatch.dtype_rules import CREATION
from ember_ml.typing import DeviceLike, DTypeLike, Tensor

__all__ = [
    "bartlett",
    "bartlett_window",
    "blackman",
    "blackman_window",
    "gaussian_window",
    "hamming",
    "hamming_window",
    "hann_window",
    "hanning",
    "kaiser",
    "kaiser_window",
]


@derived(CREATION)
def hann_window(
    window_length: int, periodic: bool = True, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """The Hann window: one period of a raised cosine, from 0 to 1 and back.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.hann_window(4)).tolist()
    [0.0, 0.5, 1.0, 0.5]
    >>> ops.to_numpy(ops.hann_window(5, periodic=False)).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return active().from_host(host_window("hann", window_length, periodic, dtype), device)


@derived(CREATION)
def hamming_window(
    window_length: int, periodic: bool = True, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """The Hamming window: a raised cosine that does not reach 0, from 0.08 to 1 and back.

    >>> from ember_ml import ops
    >>> [round(weight, 3) for weight in ops.to_numpy(ops.hamming_window(4)).tolist()]
    [0.08, 0.54, 1.0, 0.54]
    """
    return active().from_host(host_window("hamming", window_length, periodic, dtype), device)


@derived(CREATION)
def blackman_window(
    window_length: int, periodic: bool = True, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """The Blackman window: cosines of one and of two turns, with lower side lobes than :func:`hann_window`.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.blackman_window(2)).tolist()
    [0.0, 1.0]
    """
    return active().from_host(host_window("blackman", window_length, periodic, dtype), device)


@derived(CREATION)
def bartlett_window(
    window_length: int, periodic: bool = True, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """The Bartlett window: a triangle from 0 to 1 and back.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.bartlett_window(4)).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    return active().from_host(host_window("bartlett", window_length, periodic, dtype), device)


@derived(CREATION)
def kaiser_window(
    window_length: int,
    beta: float = 12.0,
    periodic: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """The Kaiser window: the larger ``beta``, the lower the side lobes and the wider the main one; at 0 it is all ones.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.kaiser_window(3, beta=0.0)).tolist()
    [1.0, 1.0, 1.0]
    """
    return active().from_host(host_window("kaiser", window_length, periodic, dtype, beta), device)


@derived(CREATION)
def gaussian_window(
    window_length: int,
    std: float,
    periodic: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """The Gaussian window: a bell of standard deviation ``std``, in samples, with 1 in its middle.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.gaussian_window(4, std=1.0)).tolist()[2]
    1.0
    """
    return active().from_host(host_window("gaussian", window_length, periodic, dtype, std), device)


@derived(CREATION)
def bartlett(M: int, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """The symmetric Bartlett window of ``M`` weights, as NumPy has it; :func:`bartlett_window` with ``periodic=False``.

    >>> from ember_ml import ops
    >>> [round(weight, 3) for weight in ops.to_numpy(ops.bartlett(5)).tolist()]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return active().from_host(host_window("bartlett", M, False, dtype), device)


@derived(CREATION)
def blackman(M: int, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """The symmetric Blackman window of ``M`` weights, as NumPy has it; :func:`blackman_window` with ``periodic=False``.

    >>> from ember_ml import ops
    >>> [round(weight, 3) for weight in ops.to_numpy(ops.blackman(5)).tolist()]
    [0.0, 0.34, 1.0, 0.34, 0.0]
    """
    return active().from_host(host_window("blackman", M, False, dtype), device)


@derived(CREATION)
def hamming(M: int, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """The symmetric Hamming window of ``M`` weights, as NumPy has it; :func:`hamming_window` with ``periodic=False``.

    >>> from ember_ml import ops
    >>> [round(weight, 3) for weight in ops.to_numpy(ops.hamming(5)).tolist()]
    [0.08, 0.54, 1.0, 0.54, 0.08]
    """
    return active().from_host(host_window("hamming", M, False, dtype), device)


@derived(CREATION)
def hanning(M: int, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """The symmetric Hann window of ``M`` weights, as NumPy has it; :func:`hann_window` with ``periodic=False``.

    >>> from ember_ml import ops
    >>> [round(weight, 3) for weight in ops.to_numpy(ops.hanning(5)).tolist()]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return active().from_host(host_window("hann", M, False, dtype), device)


@derived(CREATION)
def kaiser(M: int, beta: float, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """The symmetric Kaiser window of ``M`` weights, as NumPy has it; :func:`kaiser_window` with ``periodic=False``.

    >>> from ember_ml import ops
    >>> [round(weight, 3) for weight in ops.to_numpy(ops.kaiser(3, 0.0)).tolist()]
    [1.0, 1.0, 1.0]
    """
    return active().from_host(host_window("kaiser", M, False, dtype, beta), device)
