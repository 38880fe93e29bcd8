"""MLX computes when asked: what a loop builds ahead of time must ask for nothing."""

from __future__ import annotations

import threading

import pytest

import ember_ml
from ember_ml import ops

pytest.importorskip("mlx.core")
import mlx.core as mx

from ember_ml.backend.mlx import laziness


def _take(index: list[int]) -> list[float]:
    with ember_ml.use_backend("mlx"):
        return ops.to_numpy(ops.take(ops.array([1.0, 2.0, 3.0]), ops.array(index))).tolist()


def test_indices_are_clamped_in_a_block_of_one_thread() -> None:
    with pytest.raises(IndexError):
        _take([7])
    found: list[object] = []

    def read_beside() -> None:
        try:
            found.append(_take([7]))
        except IndexError as error:
            found.append(str(error))

    with laziness.unchecked():
        assert _take([7, -9, -1]) == [3.0, 1.0, 3.0]
        thread = threading.Thread(target=read_beside)
        thread.start()
        thread.join()
    assert "out of bounds" in str(found)
    with pytest.raises(IndexError):
        _take([7])


def test_indices_of_a_block_are_not_computed() -> None:
    with ember_ml.use_backend("mlx"), laziness.unchecked():
        huge = mx.argmax(mx.zeros((2**30, 2**10)), axis=0)[:1]  # four terabytes, if anybody asks for it
        taken = ops.take(ops.array([1.0, 2.0]), huge)
    assert ops.shape(taken) == (1,)
