"""Making tensors inside functions that PyTorch compiles whole."""

from __future__ import annotations

from typing import Any

import pytest

import ember_ml
from ember_ml import ops


@pytest.fixture
def torch() -> Any:
    module = pytest.importorskip("torch")
    before = ember_ml.get_backend()
    ember_ml.set_backend("torch")
    yield module
    ember_ml.set_backend(before)


def test_default_device_is_found_while_torch_compiles(torch: Any) -> None:
    compiled = torch.compile(lambda x: ops.add(x, ops.ones(3)), backend="eager", fullgraph=True)
    assert compiled(torch.zeros(3)).tolist() == [1.0, 1.0, 1.0]
    assert ops.get_default_device() in ops.get_available_devices()
