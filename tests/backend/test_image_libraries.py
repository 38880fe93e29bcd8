"""Images beside the libraries that people come from: PyTorch, Pillow, JAX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_ml import ops

SIZES = [((13, 17), (7, 5)), ((7, 5), (13, 17)), ((11, 9), (30, 4))]
# of odd sizes: no centre of a new element lies exactly between two old ones, where Pillow lets rounding decide


def _picture(size: tuple[int, int], channels: int = 3) -> np.ndarray:
    rng = np.random.default_rng(size)
    return rng.integers(0, 256, (*size, channels)).astype(np.uint8)


@pytest.mark.parametrize(
    ("ours", "theirs", "antialias"),
    [
        ("nearest", "nearest-exact", False),
        ("bilinear", "bilinear", False),
        ("bilinear", "bilinear", True),
        ("bicubic", "bicubic", True),
    ],
)
def test_resize_agrees_with_torch(backend: str, ours: str, theirs: str, antialias: bool) -> None:
    torch = pytest.importorskip("torch")
    for size, target in SIZES:
        x = _picture(size).astype(np.float32)
        planes = torch.from_numpy(x.transpose(2, 0, 1)[None])
        want = torch.nn.functional.interpolate(planes, target, mode=theirs, antialias=antialias)[0].numpy()
        got = ops.to_numpy(ops.resize(ops.asarray(x), target, ours, antialias))
        assert np.abs(got - want.transpose(1, 2, 0)).max() < 1e-3


def test_the_cubic_of_torch_without_antialias_is_another(backend: str) -> None:
    """Its parameter is -3/4 there, and it repeats the outermost element; the documentation says so."""
    torch = pytest.importorskip("torch")
    x = _picture((7, 5)).astype(np.float32)
    want = torch.nn.functional.interpolate(torch.from_numpy(x.transpose(2, 0, 1)[None]), (13, 17), mode="bicubic")[0]
    got = ops.to_numpy(ops.resize(ops.asarray(x), (13, 17), "bicubic"))
    assert np.abs(got - want.numpy().transpose(1, 2, 0)).max() > 1.0


@pytest.mark.parametrize("method", ["nearest", "bilinear", "bicubic", "lanczos3"])
def test_resize_agrees_with_pillow(backend: str, method: str) -> None:
    image = pytest.importorskip("PIL.Image")
    filters: dict[str, Any] = {
        "nearest": image.Resampling.NEAREST,
        "bilinear": image.Resampling.BILINEAR,
        "bicubic": image.Resampling.BICUBIC,
        "lanczos3": image.Resampling.LANCZOS,
    }
    for size, target in SIZES:
        x = _picture(size) // 3 + 80  # so that no kernel overshoots: Pillow cuts that off after each of the two axes
        want = np.asarray(image.fromarray(x).resize(target[::-1], filters[method])).astype(int)
        got = ops.to_numpy(ops.resize(ops.asarray(x), target, method, antialias=True)).astype(int)
        # it also rounds to 8 bits after each
        assert np.abs(got - want).max() <= (0 if method == "nearest" else 1)
        plane = x[..., 0].astype(np.float32)
        exact = np.asarray(image.fromarray(plane).resize(target[::-1], filters[method]))
        found = ops.to_numpy(ops.resize(ops.asarray(plane[..., None]), target, method, antialias=True))
        assert np.abs(found[..., 0] - exact).max() < 1e-3


def test_grayscale_and_hsv_agree_with_pillow(backend: str) -> None:
    image = pytest.importorskip("PIL.Image")
    x = _picture((9, 8))
    gray = np.asarray(image.fromarray(x).convert("L")).astype(int)
    assert np.abs(ops.to_numpy(ops.rgb_to_grayscale(ops.asarray(x)))[..., 0].astype(int) - gray).max() <= 1
    hsv = np.asarray(image.fromarray(x).convert("HSV")).astype(np.float32) / 255
    found = ops.to_numpy(ops.rgb_to_hsv(ops.asarray(x.astype(np.float32) / 255)))
    turn = np.abs(found - hsv)
    assert np.minimum(turn, np.abs(1 - turn))[..., 0].max() < 1 / 128  # hues 0 and 1 are one
    assert turn[..., 1:].max() < 1 / 128


@pytest.mark.parametrize("method", ["linear", "cubic", "lanczos3", "lanczos5"])
def test_scale_and_translate_agrees_with_jax(backend: str, method: str) -> None:
    jax = pytest.importorskip("jax")
    x = _picture((9, 11)).astype(np.float32)
    scale, move = np.array([1.7, 0.45], np.float32), np.array([-2.5, 1.25], np.float32)
    want = jax.image.scale_and_translate(x, (8, 7, 3), (0, 1), scale, move, method)
    got = ops.scale_and_translate(ops.asarray(x), (8, 7, 3), ops.asarray(scale), ops.asarray(move), (0, 1), method)
    assert np.abs(ops.to_numpy(got) - np.asarray(want)).max() < 1e-2
