"""Gradient cases of Fourier transforms, frames, short-time transforms, convolution and resampling."""

from __future__ import annotations

from tests.autodiff.case import case, numbers

_ONE = {
    "fft": "complex",
    "ifft": "complex",
    "rfft": "float",
    "irfft": "complex",
    "hfft": "complex",
    "ihfft": "float",
}
for name, kind in _ONE.items():
    for n in (None, 4, 7):
        case(name, x=numbers(2, 5, kind=kind), n=n, label=f"{n}", second=kind == "float")
    for norm in ("ortho", "forward"):
        case(name, x=numbers(6, 2, kind=kind), axis=0, norm=norm, label=norm, second=kind == "float")
case("fft", x=numbers(5), label="real")
case("irfft", x=numbers(4), n=6, label="real")
for name, kind in {"fftn": "complex", "ifftn": "complex", "rfftn": "float", "irfftn": "complex"}.items():
    case(name, x=numbers(2, 3, 4, kind=kind), label="all", second=False)
    case(name, x=numbers(3, 4, 2, kind=kind), s=(5, 3), axes=(0, 1), norm="ortho", label="lengths", second=False)
case("fft2", x=numbers(2, 3, kind="complex"), second=False)
case("fftshift", x=numbers(5))

for mode in ("full", "same", "valid"):
    for m, n in ((6, 3), (3, 6), (5, 4), (4, 5)):
        pair = {"x": numbers(m), "y": numbers(n, seed=1)}
        case("correlate", ("x", "y"), mode=mode, **pair, label=f"{mode} {m} {n}")
        case("convolve", ("x", "y"), mode=mode, **pair, label=f"{mode} {m} {n}")
        case("fftconvolve", ("x", "y"), mode=mode, **pair, label=f"{mode} {m} {n}")
both = {"x": numbers(4, kind="complex"), "y": numbers(3, kind="complex", seed=1)}
for name in ("correlate", "convolve", "fftconvolve"):
    case(name, ("x", "y"), **both, mode="full", label="complex", second=False)
case("convolve", ("x", "y"), x=numbers(3, 4), y=numbers(2, 2, seed=1), mode="same", label="two dimensions")
case("fftconvolve", ("x", "y"), x=numbers(3, 4), y=numbers(1, 2, seed=1), axes=-1, label="broadcast")

case("frame", x=numbers(2, 9), frame_length=4, hop_length=2)
case("frame", x=numbers(7, 2), frame_length=2, hop_length=3, axis=0, label="gaps")
case("overlap_add", x=numbers(2, 3, 5), hop_length=2)
case("overlap_add", x=numbers(2, 6), hop_length=1, label="few frames")
case("overlap_add", x=numbers(3, 2, 2), hop_length=4, axis=0, label="gaps")

weights = numbers(6, low=0.5, high=1.5)
case("stft", ("x", "window"), x=numbers(2, 9), frame_length=6, hop_length=2, window=weights)
case("stft", x=numbers(12), frame_length=6, pad_mode="constant", normalized=True, onesided=False, label="two sides")
case("stft", x=numbers(8), label="one frame")
case("stft", x=numbers(8, kind="complex"), frame_length=4, label="complex", second=False)
case("istft", ("x", "window"), x=numbers(3, 4, kind="complex"), hop_length=2, window=weights, second=False)
case("istft", x=numbers(4, 5, kind="complex"), onesided=False, normalized=True, label="two sides", second=False)
for power in (1.0, 2.0, 3.0):
    case("spectrogram", x=numbers(9), frame_length=5, hop_length=3, power=power, label=f"{power}", second=power == 2)

for samples in (6, 7):
    for num in (4, 5, 10, 11):
        case("resample", x=numbers(2, samples), num=num, label=f"{samples} {num}")
        case("resample", x=numbers(samples, kind="complex"), num=num, label=f"complex {samples} {num}", second=False)
