"""Signals inside PyTorch and MLX: agreement with torch.stft, native gradients, compiled functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import ops


@pytest.fixture(params=["torch", "mlx"])
def library(request: pytest.FixtureRequest) -> Iterator[Any]:
    found = pytest.importorskip("torch" if request.param == "torch" else "mlx.core")
    before = ember_ml.get_backend()
    ember_ml.set_backend(request.param)
    yield found
    ember_ml.set_backend(before)


def _signal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize(
    ("pad_mode", "theirs"), [("reflect", "reflect"), ("constant", "constant"), ("edge", "replicate")]
)
def test_agreement_with_torch(
    backend: str, center: bool, normalized: bool, onesided: bool, pad_mode: str, theirs: str
) -> None:
    torch = pytest.importorskip("torch")
    x = _signal(2, 500)
    for length, window_length, hop in ((64, 64, 16), (50, 40, 25), (33, 33, 20)):
        window = torch.hann_window(window_length, dtype=torch.float64) + 0.01
        options = {"center": center, "normalized": normalized, "onesided": onesided}
        common = {"n_fft": length, "hop_length": hop, "win_length": window_length, "window": window, **options}
        want = torch.stft(torch.from_numpy(x), **common, pad_mode=theirs, return_complex=True)
        ours = {"frame_length": length, "hop_length": hop, "window": window.numpy().astype("float32"), **options}
        got = ops.stft(ops.asarray(x.astype("float32")), **ours, pad_mode=pad_mode)
        assert ops.shape(got) == tuple(want.mT.shape)
        assert np.abs(ops.to_numpy(got) - want.mT.numpy()).max() < 2e-5 * np.abs(want.numpy()).max()
        for samples in (
            (None, 400) if center else ()
        ):  # else the zeros around a short window leave samples without weight
            back = torch.istft(want, **common, length=samples).numpy()
            found = ops.to_numpy(ops.istft(got, **ours, length=samples))
            assert found.shape == back.shape
            assert np.abs(found - back).max() < 1e-4


def _gradients(library: Any, f: Callable[..., Any], values: list[np.ndarray]) -> list[np.ndarray]:
    """The library's own derivatives of a sum, with respect to each argument."""
    if library.__name__ == "torch":
        arguments = [library.from_numpy(value).requires_grad_() for value in values]
        return [g.numpy() for g in library.autograd.grad(f(*arguments), arguments)]
    arguments = [library.array(value.astype(np.float32)) for value in values]
    found = library.grad(f, argnums=list(range(len(values))))(*arguments)
    return [np.array(g) for g in (found if len(values) > 1 else [found])]


def _differences(f: Callable[..., Any], values: list[np.ndarray]) -> list[np.ndarray]:
    """The same by central differences, in double precision on NumPy."""
    found = []
    with ember_ml.use_backend("numpy"):
        for index, value in enumerate(values):
            slopes = np.zeros_like(value)
            for place in np.ndindex(value.shape):
                ends = []
                for step in (1e-6, -1e-6):
                    moved = value.copy()
                    moved[place] += step
                    ends.append(float(ops.item(f(*values[:index], moved, *values[index + 1 :]))))
                slopes[place] = (ends[0] - ends[1]) / 2e-6
            found.append(slopes)
    return found


def _energy(x: Any) -> Any:
    """A sum in which every element of a tensor has a weight of its own."""
    parts = [ops.real(x), ops.imag(x)] if str(ops.dtype(x)).startswith("complex") else [x]
    count = int(np.prod(ops.shape(x)))
    total = 0.0
    for part in parts:
        weights = ops.asarray(np.cos(np.arange(count)).reshape(ops.shape(x)), dtype=str(ops.dtype(part)))
        total = ops.add(ops.sum(ops.multiply(ops.square(part), weights)), total)
    return total


CASES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "frame": (lambda x: _energy(ops.frame(x, 4, 3)), [(2, 12)]),
    "frame along the first axis": (lambda x: _energy(ops.frame(x, 3, 1, axis=0)), [(6, 2)]),
    "overlap_add": (lambda x: _energy(ops.overlap_add(x, 2)), [(2, 3, 5)]),
    "overlap_add of few frames": (lambda x: _energy(ops.overlap_add(x, 1)), [(2, 6)]),
    "stft": (lambda x, w: _energy(ops.stft(x, 6, 2, w)), [(2, 14), (6,)]),
    "stft of one frame": (lambda x: _energy(ops.stft(x)), [(8,)]),
    "istft": (
        lambda x, w: _energy(ops.istft(ops.stft(x, 6, 2, w, center=False), 6, 2, ops.add(w, 3.0), center=False)),
        [(14,), (6,)],
    ),
    "spectrogram": (lambda x: _energy(ops.spectrogram(x, 6, 2)), [(14,)]),
    "amplitudes": (lambda x: _energy(ops.spectrogram(x, 6, 2, power=1.0)), [(14,)]),
    "convolve": (lambda x, y: _energy(ops.convolve(x, y, "same")), [(9,), (4,)]),
    "convolve in two dimensions": (lambda x, y: _energy(ops.convolve(x, y, "valid")), [(5, 6), (2, 3)]),
    "fftconvolve": (lambda x, y: _energy(ops.fftconvolve(x, y)), [(7,), (5,)]),
    "resample to more": (lambda x: _energy(ops.resample(x, 11)), [(2, 8)]),
    "resample to less": (lambda x: _energy(ops.resample(x, 6)), [(2, 9)]),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_gradients_on_numpy(name: str) -> None:
    f, shapes = CASES[name]
    values = [_signal(*shape, seed=1) for shape in shapes]
    with ember_ml.use_backend("numpy"):
        found = ops.grad(f, argnums=tuple(range(len(values))))(*values)
    for got, want in zip(found, _differences(f, values), strict=True):
        assert np.abs(got - want).max() <= 1e-6 * (1 + np.abs(want).max())


@pytest.mark.parametrize("name", sorted(CASES))
def test_native_gradients(library: Any, name: str) -> None:
    f, shapes = CASES[name]
    values = [_signal(*shape, seed=1) for shape in shapes]
    for got, want in zip(_gradients(library, f, values), _differences(f, values), strict=True):
        bound = 1e-6 if library.__name__ == "torch" else 1e-3
        assert np.abs(got - want).max() <= bound * (1 + np.abs(want).max())


def test_amplitude_of_silence_has_a_finite_gradient(library: Any) -> None:
    for power in (1.0, 2.0):
        gradient = _gradients(library, lambda x: ops.sum(ops.spectrogram(x, 4, 2, power=power)), [np.zeros(8)])  # noqa: B023
        assert np.isfinite(gradient[0]).all()


def _whole(x: Any) -> Any:
    spectrum = ops.stft(x, 8, 4)
    energy = ops.sum(ops.spectrogram(x, 8, 4, ops.hamming_window(8)))
    back = ops.istft(spectrum, 8, 4, length=20)
    return ops.multiply(ops.resample(ops.convolve(back, ops.ones(3), "same"), 10), energy)


def test_compiled_functions(library: Any) -> None:
    values = _signal(20, seed=2).astype(np.float32)
    eager = ops.to_numpy(_whole(ops.asarray(values)))
    if library.__name__ == "torch":
        got = library.compile(_whole, backend="eager", fullgraph=True)(library.from_numpy(values)).numpy()
    else:
        got = np.array(library.compile(_whole)(library.array(values)))
    assert np.abs(got - eager).max() <= 1e-5 * np.abs(eager).max()
