"""The data that come with the package: what they hold, and that every backend draws them alike."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from ember_ml import datasets, ops


def script() -> ModuleType:
    path = Path(__file__).parents[1] / "utils" / "make_digits.py"
    spec = importlib.util.spec_from_file_location("make_digits", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_digits(backend: str) -> None:
    for part, count in (("training", 1500), ("test", 500)):
        images, labels = datasets.digits(part)
        assert (ops.shape(images), ops.shape(labels)) == ((count, 16, 16, 1), (count,))
        assert ops.to_numpy(ops.bincount(labels)).tolist() == [count // 10] * 10
        assert (ops.item(ops.min(images)), ops.item(ops.max(images))) == (0.0, 1.0)


def test_unknown_part(backend: str) -> None:
    with pytest.raises(ValueError, match="'training' and 'test'"):
        datasets.digits("validation")


def test_the_script_draws_the_digits_of_the_file(backend: str) -> None:
    shades, labels = script().draw(500, seed=2)
    images, wanted = datasets.digits("test")
    assert ops.to_numpy(labels).tolist() == ops.to_numpy(wanted).tolist()
    found, held = ops.cast(shades, "float32"), ops.multiply(ops.squeeze(images, -1), 15.0)
    difference = ops.abs(ops.subtract(found, held))
    assert ops.item(ops.max(difference)) < 1.5
    assert ops.item(ops.mean(ops.cast(ops.greater(difference, 0.5), "float32"))) < 1e-3


def test_different_digits_are_different_images(backend: str) -> None:
    """The mean images of the digits tell most samples apart, so that the labels belong to the images."""
    images, labels = datasets.digits()
    flat = ops.reshape(images, (1500, -1))
    means = ops.divide(ops.segment_sum(flat, labels, 10), 150.0)
    scores = ops.subtract(ops.matmul(flat, ops.transpose(means)), ops.divide(ops.sum(ops.square(means), axis=1), 2.0))
    hits = ops.mean(ops.cast(ops.equal(ops.argmax(scores, axis=1), labels), "float32"))
    assert ops.item(hits) > 0.6
