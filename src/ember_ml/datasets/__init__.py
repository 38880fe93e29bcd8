"""Data that come with the package, for first steps, examples and tests; samples in tar and Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ember_ml import ops
from ember_ml.datasets.parquet_rows import ParquetRows
from ember_ml.datasets.tar_shards import TarShards, stream_tar
from ember_ml.typing import Tensor

__all__ = ["DIGITS", "Digits", "ParquetRows", "TarShards", "digits", "stream_tar"]

DIGITS: Path = Path(__file__).with_name("digits.safetensors")
"""Images as bytes of two pixels each, and labels; ``utils/make_digits.py`` drew them."""


class Digits(NamedTuple):
    """Images of digits, and which digits they are."""

    images: Tensor
    """(samples, 16, 16, 1) float32, from 0, empty, to 1, full ink."""
    labels: Tensor
    """(samples,) int64, from 0 to 9."""


def digits(part: str = "training") -> Digits:
    """Drawn digits of 16 x 16 pixels in 16 shades: 1500 to train on, or with "test" 500 others.

    They look like handwriting and were made by a program of this project, so that nobody else has rights in them.

    >>> from ember_ml import datasets, ops
    >>> images, labels = datasets.digits()
    >>> ops.shape(images), ops.to_numpy(labels[:12]).tolist()
    ((1500, 16, 16, 1), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1])
    >>> ops.shape(datasets.digits("test").images)
    (500, 16, 16, 1)
    """
    if part not in ("training", "test"):
        raise ValueError(f"the digits have the parts 'training' and 'test', not {part!r}")
    held = ops.load(DIGITS)
    pairs = ops.expand_dims(held[f"{part}_images"], -1)
    levels = ops.concatenate([ops.bitwise_right_shift(pairs, 4), ops.bitwise_and(pairs, 15)], -1)
    images = ops.divide(ops.cast(ops.reshape(levels, (-1, 16, 16, 1)), "float32"), 15.0)
    return Digits(images, ops.cast(held[f"{part}_labels"], "int64"))
