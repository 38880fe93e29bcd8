"""What MLX cannot compute, and why: kept as data; a test fails when an entry is no longer true."""

from __future__ import annotations

__all__ = ["gaps"]

_NO_COMPLEX128 = "MLX has no complex128, which the result of float64 needs; cast to float32"

gaps: dict[tuple[str, str], str] = {
    ("*", "complex128"): "MLX has no complex128; cast to complex64, or compute on another backend"
} | {
    (name, "float64"): _NO_COMPLEX128
    for name in (
        *("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn"),
        *("rfft", "irfft", "rfft2", "irfft2", "rfftn", "irfftn", "hfft", "ihfft"),
        *("stft", "istft", "spectrogram", "fftconvolve", "resample"),
        *("eig", "eigvals", "polar"),
    )
}
