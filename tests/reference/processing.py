"""Images and sounds, and what the processors of Transformers make of images by Pillow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.reference.pretrained import quietly, transformers

__all__ = ["draw_images", "draw_sounds", "process", "share_apart", "write"]


def write(folder: Path, name: str, **settings: Any) -> None:
    """Write the preprocessor_config.json of a processor."""
    quietly(getattr(transformers(), name)(**settings).save_pretrained, folder)


def process(folder: Path, name: str, images: list[np.ndarray]) -> np.ndarray:
    """Return what the processor in a folder makes of images, with the channels last."""
    found = quietly(getattr(transformers(), name).from_pretrained, folder)
    return np.asarray(quietly(found, images, return_tensors="np")["pixel_values"], np.float32).transpose(0, 2, 3, 1)


def draw_images(shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    """Return images of smooth and of random pixels."""
    stream = np.random.default_rng(3)
    images = []
    for height, width, channels in shapes:
        waves = np.sin(np.arange(height)[:, None, None] / 3 + np.arange(width)[:, None] / 5 + np.arange(channels))
        images.append(
            np.clip(120 + 90 * waves + stream.normal(size=(height, width, channels)) * 30, 0, 255).astype("uint8")
        )
    return images


def draw_sounds(lengths: list[int]) -> list[np.ndarray]:
    """Return tones with noise."""
    stream = np.random.default_rng(3)
    return [
        (0.3 * np.sin(np.arange(count) / 7) + stream.normal(size=count) * 0.1).astype(np.float32) for count in lengths
    ]


def share_apart(found: np.ndarray, wanted: np.ndarray, distance: float) -> float:
    """Return the share of elements that are farther apart."""
    return float((abs(found - wanted) > distance).mean())
