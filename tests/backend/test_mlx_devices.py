"""MLX places no array on a device: what asks for another one than computes raises instead of being ignored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import ember_ml
from ember_ml import ops
from ember_ml.errors import DeviceError

pytest.importorskip("mlx.core")
from ember_ml.backend import mlx
from ember_ml.backend.mlx import host_transfer

ASKING: dict[str, Callable[[str], Any]] = {
    "to_device": lambda device: ops.to_device(ops.ones(2), device),
    "zeros": lambda device: ops.zeros(2, device=device),
    "ones": lambda device: ops.ones((2, 2), device=device),
    "empty": lambda device: ops.empty(2, device=device),
    "full": lambda device: ops.full(2, 3.0, device=device),
    "eye": lambda device: ops.eye(2, device=device),
    "arange": lambda device: ops.arange(3, device=device),
    "linspace": lambda device: ops.linspace(0.0, 1.0, 3, device=device),
    "array": lambda device: ops.array([1.0, 2.0], device=device),
    "asarray": lambda device: ops.asarray(1.5, device=device),
    "portable": lambda device: ember_ml.tensor.EmberTensor([1.0]).to_device(device),
    "portable from data": lambda device: ember_ml.tensor.EmberTensor([1.0], device=device),
}


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A machine whose MLX has a GPU that is not the default device."""
    monkeypatch.setattr(mlx, "available_devices", lambda: ("cpu", "gpu"))
    monkeypatch.setattr(host_transfer, "_has_gpu", True)
    with ember_ml.use_backend("mlx"), ops.use_device("cpu"):
        yield


@pytest.mark.parametrize("name", list(ASKING))
def test_a_device_that_does_not_compute_is_an_error(gpu: Any, name: str) -> None:
    ASKING[name]("cpu")
    with pytest.raises(DeviceError, match="use_device\\('gpu'\\)"):
        ASKING[name]("gpu")


def test_devices_are_those_of_the_library() -> None:
    import mlx.core as mx

    assert mlx.available_devices() == (("cpu", "gpu") if mx.is_available(mx.gpu) else ("cpu",))
    with ember_ml.use_backend("mlx"), ops.use_device("cpu"):
        assert mx.default_device() == mx.cpu
        assert ops.get_device(ops.zeros(2)) == "cpu"
