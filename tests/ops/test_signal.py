"""Frames, short-time transforms, convolution and resampling: what the contract's generic tests cannot see."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.dispatch.declare import OPS
from ember_ml.errors import UnsupportedDType
from ember_ml.nn import tensor
from tests.reference import EPS
from tests.reference.matrices import difference, numpy, random, wide
from tests.reference.signals import filters, mel_filters, scipy_transform, transform, window


def _floats(backend: str) -> list[str]:
    return ["float32"] if backend == "mlx" else ["float32", "float64"]


def _all_floats(backend: str) -> list[str]:
    return ["float32", "complex64"] if backend == "mlx" else ["float32", "float64", "complex64", "complex128"]


# ---------------------------------------------------------------------------------------------------- frames


def test_frames_of_portable_tensors_are_portable(backend: str) -> None:
    x = tensor.EmberTensor([1.0, 2.0, 3.0, 4.0])
    frames = ops.frame(x, 2, 1)
    assert type(frames) is tensor.EmberTensor
    assert frames.tolist() == [[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]]
    assert type(ops.overlap_add(frames, 1)) is tensor.EmberTensor


def test_frames_of_strided_and_broadcast_signals(backend: str) -> None:
    x = ops.arange(20)
    assert ops.to_numpy(ops.frame(x[::3], 3, 2)).tolist() == [[0, 3, 6], [6, 9, 12], [12, 15, 18]]
    assert ops.to_numpy(ops.frame(ops.flip(x), 2, 9)).tolist() == [[19, 18], [10, 9], [1, 0]]
    assert ops.to_numpy(ops.frame(ops.broadcast_to(ops.array([7]), (4,)), 2, 2)).tolist() == [[7, 7], [7, 7]]
    columns = ops.reshape(ops.arange(6), (3, 2))
    assert ops.to_numpy(ops.frame(columns, 2, 1, axis=0)).tolist() == [[[0, 1], [2, 3]], [[2, 3], [4, 5]]]


def test_body_for_backends_that_have_no_views(backend: str) -> None:
    shared = OPS["frame"].declaration
    for shape, length, hop, axis in (((7,), 3, 2, -1), ((2, 9), 4, 5, 1), ((9, 2), 2, 1, 0)):
        x = ops.asarray(random(shape, "float32"))
        want = ops.to_numpy(ops.frame(x, length, hop, axis))
        assert ops.to_numpy(shared(x, length, hop, axis)).tolist() == want.tolist()


def test_no_signals(backend: str) -> None:
    assert ops.shape(ops.frame(ops.zeros((0, 8)), 4, 2)) == (0, 3, 4)
    assert ops.shape(ops.overlap_add(ops.zeros((0, 3, 4)), 2)) == (0, 8)
    assert ops.shape(ops.stft(ops.zeros((0, 8)), 4, 2)) == (0, 5, 3)
    assert ops.shape(ops.istft(ops.zeros((0, 5, 3)), 4, 2)) == (0, 8)
    assert ops.shape(ops.resample(ops.zeros((0, 8)), 4)) == (0, 4)


def test_infinity_and_nan_stay_in_their_samples(backend: str) -> None:
    inf, nan = float("inf"), float("nan")
    got = ops.to_numpy(ops.overlap_add([[1.0, inf, 2.0], [-inf, nan, 3.0]], 2)).tolist()
    assert got[:3] == [1.0, inf, -inf]
    assert numpy.isnan(got[3])
    assert got[4] == 3.0


def test_frames_leave_the_signal_as_it_was(backend: str) -> None:
    x = ops.array([1.0, 2.0, 3.0, 4.0])
    ops.overlap_add(ops.multiply(ops.frame(x, 2, 1), 5.0), 1)
    ops.stft(x, 2, 1)
    assert ops.to_numpy(x).tolist() == [1.0, 2.0, 3.0, 4.0]


def test_what_framing_refuses(backend: str) -> None:
    x = ops.ones((2, 8))
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="frame_length"):
            ops.frame(x, wrong, 2)
        with pytest.raises(ValueError, match="hop_length"):
            ops.frame(x, 2, wrong)
        with pytest.raises(ValueError, match="hop_length"):
            ops.overlap_add(x, wrong)
    with pytest.raises(TypeError, match="frame"):
        ops.frame(x, 2.5, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="8 samples has no frame of 9"):
        ops.frame(x, 9, 1)
    for axis in (2, -3):
        with pytest.raises(IndexError, match="frame"):
            ops.frame(x, 2, 1, axis=axis)
    with pytest.raises(IndexError, match="overlap_add"):
        ops.overlap_add(x, 1, axis=1)
    with pytest.raises(ValueError, match="two axes"):
        ops.overlap_add(ops.ones(3), 1)
    with pytest.raises(ValueError, match="0 frames"):
        ops.overlap_add(ops.ones((0, 3)), 1)
    with pytest.raises(TypeError, match="bool"):
        ops.overlap_add(ops.ones((2, 3), dtype="bool"), 1)


# ------------------------------------------------------------------------------------ short-time transforms


def to_wave(x: Any) -> Any:
    """As the guidelines of the architecture print it."""
    x = tensor.convert_to_tensor(x)
    window = ops.hann_window(1024)
    frames = ops.frame(x, frame_length=1024, hop_length=512)
    return ops.stft(ops.multiply(frames, window))


def process_waveform(x: Any) -> Any:
    x = tensor.convert_to_tensor(x)
    window = ops.hann_window(1024)
    return ops.stft(ops.multiply(x, window))


def test_patterns_of_the_architecture(backend: str) -> None:
    x = random((4096,), "float32", 1)
    hann = filters.get_window("hann", 1024)
    want = transform(wide(x), 1024, 512, hann)
    got = to_wave(x)
    assert ops.shape(got) == (7, 513)
    assert difference(ops.to_numpy(got), want) <= 16
    assert difference(ops.to_numpy(process_waveform(x[:1024])), want[0]) <= 16


@pytest.mark.parametrize("hop", [1, 2, 16, 33, 64])
@pytest.mark.parametrize("length", [64, 65, 100])
def test_against_scipy_without_padding(backend: str, length: int, hop: int) -> None:
    weights = window("hamming", length, True)
    for dtype in _floats(backend):
        x = random((2, 200), dtype, 2)
        got = ops.stft(ops.asarray(x), length, hop, ops.asarray(weights, dtype=dtype), center=False)
        assert difference(ops.to_numpy(got), scipy_transform(wide(x), length, hop, weights)) <= 16


@pytest.mark.parametrize("length", [15, 16, 64])
@pytest.mark.parametrize(("pad_mode", "padding"), [("constant", "zeros"), ("edge", "edge"), ("reflect", "even")])
def test_against_scipy_with_padding(backend: str, length: int, pad_mode: str, padding: str) -> None:
    """The slices of its transform have their middles at the multiples of the hop, as ``center`` has."""
    weights, hop = filters.get_window(("kaiser", 5.0), length), length // 3
    for dtype in _floats(backend):
        x = random((2, 150), dtype, 3)
        got = ops.to_numpy(ops.stft(ops.asarray(x), length, hop, weights.astype(dtype), pad_mode=pad_mode))
        assert got.shape == (2, 1 + (150 + 2 * (length // 2) - length) // hop, length // 2 + 1)
        slices = filters.ShortTimeFFT(weights, hop, 1.0, phase_shift=None)
        want = slices.stft(wide(x), p0=0, p1=got.shape[-2], padding=padding)
        assert difference(got, numpy.moveaxis(want, -1, -2)) <= 16


def test_window(backend: str) -> None:
    x = ops.asarray(random((100,), "float32", 4))
    default = ops.to_numpy(ops.stft(x, 16))
    assert ops.to_numpy(ops.stft(x, 16, 4, ops.hann_window(16))).tolist() == default.tolist()
    middle = ops.concatenate([ops.zeros(3), ops.ones(9), ops.zeros(4)])
    short = ops.stft(x, 16, 4, ops.ones(9))
    assert ops.to_numpy(short).tolist() == ops.to_numpy(ops.stft(x, 16, 4, middle)).tolist()
    whole = ops.to_numpy(ops.stft(x, window=ops.hann_window(100)))
    assert difference(whole, transform(wide(ops.to_numpy(x)), 100, 1, filters.get_window("hann", 100))[0]) <= 16


def test_scale_and_sides(backend: str) -> None:
    for dtype in _all_floats(backend):
        x = random((3, 70), dtype, 5)
        weights = numpy.ones(12)
        whole = transform(x.astype(complex), 12, 5, weights, True)
        half = ops.stft(ops.asarray(x), 12, 5, weights.astype("float32"), normalized=True)
        wanted = whole if x.dtype.kind == "c" else whole[..., :7]
        assert difference(ops.to_numpy(half), wanted / numpy.sqrt(12)) <= 16
        both = ops.stft(ops.asarray(x), 12, 5, weights.astype("float32"), onesided=False)
        assert difference(ops.to_numpy(both), whole) <= 16
        assert ops.dtype(both) == ("complex128" if dtype in ("float64", "complex128") else "complex64")


def test_integers_are_lifted_and_windows_promoted(backend: str) -> None:
    x = ops.arange(40)
    assert ops.dtype(ops.stft(x, 8)) == "complex64"
    assert ops.dtype(ops.spectrogram(x, 8)) == "float32"
    assert ops.dtype(ops.istft(ops.stft(x, 8), 8)) == "float32"
    if backend != "mlx":
        assert ops.dtype(ops.stft(x, 8, window=ops.hann_window(8, dtype="float64"))) == "complex128"


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0, 3.0])
def test_powers(backend: str, power: float) -> None:
    x = random((2, 90), "float32", 6)
    want = numpy.abs(transform(wide(x), 16, 6, filters.get_window("hann", 16), True)) ** power
    got = ops.spectrogram(ops.asarray(x), 16, 6, power=power)
    assert difference(ops.to_numpy(got), want) <= 32
    one = ops.spectrogram(ops.asarray(x), power=power)
    assert difference(ops.to_numpy(one), numpy.abs(numpy.fft.rfft(wide(x))) ** power) <= 32


@pytest.mark.parametrize("backend_name", installed_backends())
@given(data=st.data())
def test_the_inverse_gives_the_signal_back(backend_name: str, data: st.DataObject) -> None:
    ember_ml.set_backend(backend_name)
    length = data.draw(st.integers(2, 24), "frame_length")
    hop = data.draw(st.integers(1, max(1, length // 2)), "hop_length")
    samples = data.draw(st.integers(1, 80), "samples")
    dtype = data.draw(st.sampled_from(_all_floats(backend_name)), "dtype")
    batch = data.draw(st.sampled_from([(), (2,), (2, 1)]), "batch")
    options = {
        "window": data.draw(st.sampled_from(["hann", "hamming", None]), "window"),
        "normalized": data.draw(st.booleans(), "normalized"),
    }
    if options["window"] is not None:
        options["window"] = getattr(ops, f"{options['window']}_window")(length)
    x = random((*batch, samples), dtype, samples)
    onesided = not dtype.startswith("complex") and data.draw(st.booleans(), "onesided")
    mode = data.draw(st.sampled_from(["reflect", "constant", "edge"]), "pad_mode")
    spectrum = ops.stft(ops.asarray(x), length, hop, pad_mode=mode, onesided=onesided, **options)
    back = ops.to_numpy(ops.istft(spectrum, length, hop, onesided=onesided, length=samples, **options))
    assert back.shape == x.shape
    # where a window is small, its square divides the rounding errors
    assert numpy.abs(back - wide(x)).max() <= 4000 * EPS[dtype] * (1 + numpy.abs(x).max())


@pytest.mark.parametrize("length", [8, 9])
@pytest.mark.parametrize("samples", [40, 41, 43, 47])
def test_lengths(backend: str, length: int, samples: int) -> None:
    x = random((samples,), "float32", 7)
    hop, half = 4, length // 2
    for center in (True, False):
        weights = ops.hamming_window(length)
        spectrum = ops.stft(ops.asarray(x), length, hop, weights, center=center)
        count = ops.shape(spectrum)[0]
        ends = (count - 1) * hop + length - (2 * half if center else 0)
        back = ops.to_numpy(ops.istft(spectrum, length, hop, weights, center))
        assert back.shape == (ends,)
        assert numpy.abs(back - x[:ends]).max() < 1e-5
        held = ends + half if center else ends
        for wanted in (1, 5, held):
            got = ops.to_numpy(ops.istft(spectrum, length, hop, weights, center, length=wanted))
            assert got.shape == (wanted,)
            shown = min(wanted, samples)
            assert numpy.abs(got[:shown] - x[:shown]).max() < 1e-5
        with pytest.raises(ValueError, match=f"the frames hold {held} samples, not {held + 1}"):
            ops.istft(spectrum, length, hop, weights, center, length=held + 1)


def test_inverse_of_what_is_no_transform_is_the_nearest_signal(backend: str) -> None:
    """The least-squares solution of the linear map, solved as such."""
    length, hop, samples = 6, 2, 12
    basis = ops.stft(ops.eye(samples), length, hop, center=False, window=ops.hamming_window(length))
    columns = ops.to_numpy(basis).reshape(samples, -1).T.astype(complex)
    target = random((4, 4), "complex64", 8)
    # the inner bins stand for their mirror images too, which doubles their weight
    weights = numpy.sqrt(numpy.tile([1.0, 2.0, 2.0, 1.0], 4))
    matrix = numpy.concatenate([(columns.T * weights).T.real, (columns.T * weights).T.imag])
    values = target.ravel() * weights
    # the first and the last bin of a real signal are real
    values = numpy.concatenate([values.real, values.imag * (numpy.tile([0.0, 1.0, 1.0, 0.0], 4))])
    want = numpy.linalg.lstsq(matrix, values, rcond=None)[0]
    got = ops.istft(ops.asarray(target), length, hop, ops.hamming_window(length), center=False)
    assert numpy.abs(ops.to_numpy(got) - want).max() < 1e-5


def test_sample_without_weight_is_an_error(backend: str) -> None:
    x = ops.asarray(random((64,), "float32", 9))
    with pytest.raises(ValueError, match=r"sample 0; use center=True"):
        ops.istft(ops.stft(x, 16, 4, center=False), 16, 4, center=False)
    for hop in (16, 20):
        with pytest.raises(ValueError, match="hop_length"):
            ops.istft(ops.stft(x, 16, hop), 16, hop)
    gap = ops.concatenate([ops.ones(4), ops.zeros(8), ops.ones(4)])
    with pytest.raises(ValueError, match="sample"):
        ops.istft(ops.stft(x, 16, 16, gap), 16, 16, gap)
    with ember_ml.value_checks(False):
        assert ops.shape(ops.istft(ops.stft(x, 16, 4, center=False), 16, 4, center=False)) == (64,)


def test_what_short_time_transforms_refuse(backend: str) -> None:
    x = ops.ones(64)
    for name in ("stft", "spectrogram"):
        op = getattr(ops, name)
        with pytest.raises(ValueError, match="needs frame_length"):
            op(x, hop_length=4)
        with pytest.raises(ValueError, match="frame_length must be 1 or more"):
            op(x, 0)
        with pytest.raises(ValueError, match="hop_length must be 1 or more"):
            op(x, 8, 0)
        with pytest.raises(ValueError, match="has no frame of 65"):
            op(x, 65, center=False)
        with pytest.raises(ValueError, match="a vector of at most that length"):
            op(x, 8, 2, ops.ones(9))
        with pytest.raises(ValueError, match="a vector of at most that length"):
            op(x, 8, 2, ops.ones((8, 8)))
        with pytest.raises(ValueError, match="mode 'mirror'"):
            op(x, 8, 2, pad_mode="mirror")
        with pytest.raises(ValueError, match="single number"):
            op(ops.array(1.0), 8)
        with pytest.raises(UnsupportedDType, match="float16"):
            op(ops.ones(64, dtype="float16"), 8)
        with pytest.raises(TypeError, match="complex64"):
            op(ops.ones(64, dtype="complex64"), 8, onesided=True)
    spectrum = ops.stft(x, 8)
    with pytest.raises(ValueError, match="5 bins do not belong to frames of 10 samples"):
        ops.istft(spectrum, 10)
    with pytest.raises(ValueError, match="irfft"):
        ops.istft(ops.ones(5))
    with pytest.raises(ValueError, match="hop_length"):
        ops.istft(spectrum, 8, -1)
    with pytest.raises(ValueError, match="frame_length"):
        ops.istft(spectrum, 0)
    with pytest.raises(ValueError, match="length must not be negative"):
        ops.istft(spectrum, 8, length=-1)
    assert ops.shape(ops.istft(spectrum, 8, length=0)) == (0,)
    if backend == "mlx":
        for op in (ops.stft, ops.spectrogram, ops.istft):
            with pytest.raises(UnsupportedDType, match="complex128"):
                op(ops.ones((8, 8), dtype="float64"))


# ------------------------------------------------------------------------------------------------ mel filters


@pytest.mark.parametrize("scale", ["htk", "slaney"])
@pytest.mark.parametrize("norm", [None, "slaney"])
def test_mel_filters(backend: str, scale: str, norm: str | None) -> None:
    for filters_, bins, rate, low, high in (
        (40, 513, 16000, 0.0, 8000.0),
        (1, 9, 100.0, 10.0, 45.0),
        (8, 65, 44100, 20.0, 16000.0),
    ):
        want = mel_filters(filters_, bins, rate, low, high, scale == "slaney", norm == "slaney")
        top = None if high == rate / 2 else high
        for dtype in ("float16", "float32", "float64"):
            got = ops.mel_filterbank(filters_, bins, rate, low, top, scale, norm, dtype=dtype)
            assert ops.dtype(got) == dtype
            assert numpy.abs(ops.to_numpy(got).astype(float) - want).max() <= 4 * max(EPS[dtype], 1e-12) * want.max()
    assert ops.dtype(ops.mel_filterbank(4, 9, 100)) == "float32"


def test_mel_filters_add_up_to_one_between_the_first_and_the_last_peak(backend: str) -> None:
    weights = ops.to_numpy(ops.mel_filterbank(10, 257, 8000, dtype="float64"))
    total = weights.sum(-1)
    first, last = weights[:, 0].argmax(), weights[:, -1].argmax()
    assert numpy.abs(total[first + 1 : last] - 1).max() < 1e-12


def test_what_a_filterbank_refuses(backend: str) -> None:
    for arguments in (
        (0, 9, 100.0),
        (4, 1, 100.0),
        (4, 9, 100.0, 60.0),
        (4, 9, 100.0, 0.0, 51.0),
        (4, 9, 100.0, -1.0),
        (4, 9, -100.0),
    ):
        with pytest.raises(ValueError, match="mel_filterbank"):
            ops.mel_filterbank(*arguments)
    with pytest.raises(ValueError, match="scale"):
        ops.mel_filterbank(4, 9, 100.0, scale="bark")
    with pytest.raises(ValueError, match="norm"):
        ops.mel_filterbank(4, 9, 100.0, norm="area")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="int32"):
        ops.mel_filterbank(4, 9, 100.0, dtype="int32")


# ------------------------------------------------------------------------------- convolution and resampling

SHAPES = [
    ((7,), (3,)),
    ((3,), (7,)),
    ((5,), (5,)),
    ((1,), (4,)),
    ((300,), (150,)),
    ((150,), (300,)),
    ((6, 7), (2, 3)),
    ((2, 3), (6, 7)),
    ((12, 15), (11, 13)),
    ((3, 4, 5), (2, 4, 1)),
]


@pytest.mark.parametrize(("first", "second"), SHAPES)
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_against_scipy(backend: str, first: tuple[int, ...], second: tuple[int, ...], mode: str) -> None:
    for dtype in _all_floats(backend):
        x, y = random(first, dtype, 10), random(second, dtype, 11)
        want = filters.convolve(wide(x), wide(y), mode, method="direct")
        for method in ("auto", "direct", "fft"):
            got = ops.convolve(ops.asarray(x), ops.asarray(y), mode, method)
            assert ops.dtype(got) == dtype
            assert difference(ops.to_numpy(got), want) <= 32, method
        assert difference(ops.to_numpy(ops.fftconvolve(ops.asarray(x), ops.asarray(y), mode)), want) <= 32


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(
    ("first", "second", "axes"),
    [((4, 9), (1, 5), -1), ((1, 5), (4, 9), 1), ((9, 4), (5, 4), (0,)), ((2, 6, 7), (2, 3, 3), (1, -1))],
)
def test_convolution_along_axes_broadcasts_the_others(
    backend: str, first: Any, second: Any, axes: Any, mode: str
) -> None:
    x, y = random(first, "float32", 12), random(second, "float32", 13)
    # where x is the one that is broadcast, SciPy's "same" cuts off all but its middle
    rows = max(first[0], second[0]) if axes in (1, -1) else first[0]
    want = filters.fftconvolve(numpy.broadcast_to(wide(x), (rows, *first[1:])), wide(y), mode, axes=axes)
    assert difference(ops.to_numpy(ops.fftconvolve(ops.asarray(x), ops.asarray(y), mode, axes)), want) <= 32


def test_method(backend: str) -> None:
    """Sums of products are exact for integers and keep infinity in its place; transforms are neither."""
    big = 2**40 + 1
    x = ops.array([big, -3, 5] * 50)
    got = ops.to_numpy(ops.convolve(x, ops.array([1, 1] * 60)))
    assert got.tolist() == numpy.convolve([big, -3, 5] * 50, [1, 1] * 60).tolist()
    spike = ops.array([float("inf"), *[1.0] * 200])
    few, many = ops.ones(100), ops.ones(101)
    assert numpy.isfinite(ops.to_numpy(ops.convolve(spike, few))[100:]).all()
    assert not numpy.isfinite(ops.to_numpy(ops.convolve(spike, many))[101:]).all()
    assert numpy.isfinite(ops.to_numpy(ops.convolve(spike, many, method="direct"))[101:]).all()
    if backend == "mlx":  # which has no transform in double precision
        x, y = random((200,), "float64", 14), random((120,), "float64", 15)
        got = ops.convolve(ops.asarray(x), ops.asarray(y))
        assert difference(ops.to_numpy(got), filters.convolve(x, y, method="direct")) <= 32
        with pytest.raises(UnsupportedDType, match="complex128"):
            ops.convolve(ops.asarray(x), ops.asarray(y), method="fft")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_rounds_once(backend: str, dtype: str) -> None:
    for first, second in (((200,), (150,)), ((40,), (9,)), ((5, 6), (3, 2))):
        x, y = random(first, dtype, 16), random(second, dtype, 17)
        want = filters.convolve(wide(x), wide(y), method="direct")
        got = ops.convolve(ops.asarray(x), ops.asarray(y))
        assert ops.dtype(got) == dtype
        assert difference(ops.to_numpy(got), want) <= 1
    with pytest.raises(TypeError, match="half precision"):
        ops.convolve(ops.asarray(x), ops.ones((2, 2)))
    with pytest.raises(UnsupportedDType, match=dtype):
        ops.fftconvolve(ops.asarray(x), ops.asarray(y))


def test_what_a_convolution_refuses(backend: str) -> None:
    one, two = ops.ones(4), ops.ones((4, 4))
    for op in (ops.convolve, ops.fftconvolve):
        for x, y in ((one, two), (ops.array(1.0), ops.array(1.0)), (one, ops.ones(0)), (ops.ones((0, 2)), two)):
            with pytest.raises(ValueError, match="convol"):
                op(x, y)
        with pytest.raises(ValueError, match="mode"):
            op(one, one, "half")
        with pytest.raises(ValueError, match="lies within"):
            op(ops.ones((2, 5)), ops.ones((5, 2)), "valid")
    with pytest.raises(ValueError, match="method"):
        ops.convolve(one, one, method="fast")
    with pytest.raises(ValueError, match="broadcast along axis 0"):
        ops.fftconvolve(ops.ones((2, 4)), ops.ones((3, 4)), axes=1)
    with pytest.raises(IndexError, match="fftconvolve"):
        ops.fftconvolve(one, one, axes=1)
    with pytest.raises(ValueError, match="at least one axis"):
        ops.fftconvolve(one, one, axes=())
    with pytest.raises(TypeError, match="bool"):
        ops.convolve(ops.ones(3, dtype="bool"), ops.ones(3, dtype="bool"))


@pytest.mark.parametrize("samples", [1, 2, 3, 4, 5, 8, 9, 64])
@pytest.mark.parametrize("num", [1, 2, 3, 4, 7, 8, 20, 33])
def test_resampling_against_scipy(backend: str, samples: int, num: int) -> None:
    for dtype in _all_floats(backend):
        x = random((2, samples, 3), dtype, 18)
        got = ops.resample(ops.asarray(x), num, axis=1)
        assert ops.dtype(got) == dtype
        want = filters.resample(wide(x), num, axis=1)
        bound = 16 * EPS[dtype] * max(numpy.abs(x).max(), 1) * max(samples, 4)
        assert numpy.abs(ops.to_numpy(got) - want).max() <= bound


def test_resampling_of_a_band_limited_signal_is_exact(backend: str) -> None:
    def wave(count: int) -> Any:
        t = numpy.arange(count) / count
        return 1 + numpy.cos(2 * numpy.pi * 3 * t) - 2 * numpy.sin(2 * numpy.pi * 5 * t)

    got = ops.to_numpy(ops.resample(ops.asarray(wave(16).astype("float32")), 50))
    assert numpy.abs(got - wave(50)).max() < 1e-5
    back = ops.to_numpy(ops.resample(ops.asarray(got), 16))
    assert numpy.abs(back - wave(16)).max() < 1e-5


def test_what_resampling_refuses(backend: str) -> None:
    for num in (0, -1):
        with pytest.raises(ValueError, match="num must be 1 or more"):
            ops.resample(ops.ones(4), num)
    with pytest.raises(ValueError, match="without samples"):
        ops.resample(ops.ones((2, 0)), 4)
    with pytest.raises(IndexError, match="resample"):
        ops.resample(ops.ones(4), 2, axis=1)
    with pytest.raises(UnsupportedDType, match="float16"):
        ops.resample(ops.ones(4, dtype="float16"), 2)


def test_view() -> None:
    for name in ("hann_window", "frame", "stft", "istft", "convolve", "resample", "mel_filterbank"):
        assert getattr(ops.signal, name) is getattr(ops, name)
