"""What the documents write in a library's own functions, and what takes their place."""

from __future__ import annotations

import numpy as np
import pytest

import ember_ml
from ember_ml import ops
from ember_ml.nn import tensor

VALUES, INDICES, SUMS = [1.0, 2.0, 3.0], [0, 2, 0], [4.0, 0.0, 2.0]


def test_scatter_on_every_backend(backend: str) -> None:
    assert tensor.convert_to_tensor(INDICES).long().dtype == ops.int64
    assert ops.scatter(tensor.convert_to_tensor(VALUES), tensor.convert_to_tensor(INDICES), 3).tolist() == SUMS


def test_scatter_by_numpy_takes_native_tensors_and_arrays_of_portable_ones(backend: str) -> None:
    values, indices = tensor.convert_to_tensor(VALUES), tensor.convert_to_tensor(INDICES)
    for given in [(np.asarray(values), np.asarray(indices)), (values.native, indices.native)][
        : 1 + (backend == "numpy")
    ]:
        output = np.zeros(3)
        np.add.at(output, given[1], given[0])
        assert output.tolist() == SUMS


def test_scatter_by_pytorch_takes_native_tensors() -> None:
    torch = pytest.importorskip("torch")
    ember_ml.set_backend("torch")
    values, indices = tensor.convert_to_tensor(VALUES), tensor.convert_to_tensor(INDICES).long()
    assert torch.zeros(3).scatter_add_(0, indices.native, values.native).tolist() == SUMS


def test_ops_and_operators_of_mlx_compute_nothing_until_a_value_is_read() -> None:
    mx = pytest.importorskip("mlx.core")
    ember_ml.set_backend("mlx")
    x = ops.ones((1000, 1000))
    portable = tensor.convert_to_tensor(x)
    mx.eval(x)
    before = mx.get_active_memory()
    for _ in range(10):
        x = ops.add(ops.multiply(x, 0.5), 1.0)
        portable = (portable * 0.5) + 1.0
    assert mx.get_active_memory() - before < 100_000  # one result takes 4 MB
    assert ops.item(x[0, 0]) == ops.item(portable[0, 0]) == pytest.approx(2.0, abs=2e-3)
    assert mx.get_active_memory() - before > 1_000_000
