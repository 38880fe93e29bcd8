"""``Tensor`` is a type: ``isinstance`` knows portable, native and recorded tensors from Python data."""

from __future__ import annotations

import pytest

import ember_ml
from ember_ml import EmberTensor, ops
from ember_ml.nn import tensor
from ember_ml.typing import Tensor


def test_portable_and_native_tensors_are_tensors(backend: str) -> None:
    assert isinstance(EmberTensor([1.0, 2.0]), Tensor)
    assert isinstance(ops.ones(3), Tensor)
    assert tensor.Tensor is Tensor


@pytest.mark.parametrize("value", [1, 2.5, True, None, "ones", [1.0, 2.0], (1.0,), {"x": 1.0}, object(), EmberTensor])
def test_python_data_are_not(backend: str, value: object) -> None:
    assert not isinstance(value, Tensor)


def test_recorded_tensors_are_tensors(backend: str) -> None:
    seen: list[bool] = []

    def f(x: Tensor) -> Tensor:
        seen.append(isinstance(x, Tensor))
        return ops.sum(ops.square(x))

    ember_ml.grad(f)(ops.asarray([1.0, 2.0]))
    assert seen
    assert all(seen)


def test_a_tensor_of_another_library_is_one(backend: str) -> None:
    with ember_ml.use_backend("numpy"):
        other = ops.ones(3)
    assert isinstance(other, Tensor)
    for item in (other, other[0], other.dtype, other.shape):
        assert isinstance(item, Tensor) == ops.is_tensor(item)
