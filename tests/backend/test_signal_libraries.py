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


def _gradient(library: Any, f: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    """The library's own derivative of a number."""
    if library.__name__ == "torch":
        variable = library.from_numpy(x).requires_grad_()
        return library.autograd.grad(f(variable), variable)[0].numpy()
    return np.array(library.grad(f)(library.array(x)))


def test_there_and_back_is_differentiated_as_the_identity(library: Any) -> None:
    weights = np.cos(np.arange(40)).astype(np.float32)

    def total(x: Any) -> Any:
        back = ops.istft(ops.stft(x, 8, 3), 8, 3, length=40)
        return ops.sum(ops.multiply(back, ops.asarray(weights)))

    gradient = _gradient(library, total, _signal(40, seed=1).astype(np.float32))
    assert np.abs(gradient - weights).max() < 1e-5


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_amplitude_of_silence_has_a_finite_gradient(library: Any, power: float) -> None:
    silence = np.zeros(8, np.float32)
    gradient = _gradient(library, lambda x: ops.sum(ops.spectrogram(x, 4, 2, power=power)), silence)
    assert gradient.tolist() == [0.0] * 8


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


MAPPED: dict[str, Callable[[Any], Any]] = {
    "stft": lambda x: ops.stft(x, 16, 4),
    "istft": lambda x: ops.istft(ops.stft(x, 16, 4), 16, 4, length=64),
    "overlap_add": lambda x: ops.overlap_add(ops.reshape(x, (8, 8)), 4),
    "convolve": lambda x: ops.convolve(x, ops.ones(3)),
    "fftconvolve": lambda x: ops.fftconvolve(x, ops.ones(3)),
    "resample": lambda x: ops.resample(x, 40),
}


@pytest.mark.parametrize("name", sorted(MAPPED))
def test_mapped_over_signals(backend: str, name: str) -> None:
    x, f = ops.asarray(_signal(3, 64, seed=3).astype(np.float32)), MAPPED[name]
    got = ops.vmap(f)(x)
    want = np.stack([ops.to_numpy(f(x[i])) for i in range(3)])
    assert np.abs(ops.to_numpy(got) - want).max() < 1e-5
