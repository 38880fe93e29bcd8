"""What a backend cannot compute, and why: the gaps that hardware or library force, kept as data.

`ember-ml ops --gaps`, the reference pages and the tests read this table; a test fails when an entry is no longer true.
"""

from __future__ import annotations

__all__ = ["ANY", "GAPS", "gap_reason"]

ANY = "*"
_NO_COMPLEX128 = "MLX has no complex128, which the transform of float64 needs; cast to float32"

GAPS: dict[tuple[str, str, str], str] = {
    ("mlx", ANY, "complex128"): "MLX has no complex128; cast to complex64, or compute on another backend"
} | {
    ("mlx", name, "float64"): _NO_COMPLEX128
    for name in (
        *("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn"),
        *("rfft", "irfft", "rfft2", "irfft2", "rfftn", "irfftn", "hfft", "ihfft"),
        *("stft", "istft", "spectrogram", "fftconvolve", "resample"),
        *("eig", "eigvals", "polar"),
    )
}
"""(backend, op or ANY, dtype) to the reason why that backend raises ``UnsupportedDType`` there."""


def gap_reason(backend: str, op: str, dtype: str) -> str | None:
    """Why ``backend`` cannot compute ``op`` in ``dtype``, or None where it can."""
    return GAPS.get((backend, op, dtype)) or GAPS.get((backend, ANY, dtype))
