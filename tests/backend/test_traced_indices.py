"""Indexing inside compiled and differentiated functions of PyTorch and MLX: clamped, never foreign memory."""

from __future__ import annotations

from typing import Any

import pytest

import ember_ml
from ember_ml import ops


def _beyond(x: Any, index: Any) -> Any:
    return ops.add(ops.take(x, index), ops.get_item(ops.segment_sum(x, index, 3), index))


@pytest.fixture
def torch() -> Any:
    module = pytest.importorskip("torch")
    before = ember_ml.get_backend()
    ember_ml.set_backend("torch")
    yield module
    ember_ml.set_backend(before)


@pytest.fixture
def mx() -> Any:
    module = pytest.importorskip("mlx.core")
    before = ember_ml.get_backend()
    ember_ml.set_backend("mlx")
    yield module
    ember_ml.set_backend(before)


def test_torch_clamps_indices_while_it_compiles(torch: Any) -> None:
    x, index = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0, 9, -9])
    compiled = torch.compile(_beyond, backend="eager", fullgraph=True)
    # 9 means the last place; -9 the first element, and the first cell
    assert compiled(x, index).tolist() == [1.0 + 5.0, 4.0 + 2.0, 1.0 + 5.0]


def test_mlx_clamps_indices_while_it_compiles(mx: Any) -> None:
    x, index = mx.array([1.0, 2.0, 4.0]), mx.array([0, 9, -9])
    assert mx.compile(_beyond)(x, index).tolist() == [1.0 + 5.0, 4.0 + 2.0, 1.0 + 5.0]


def test_mlx_refuses_a_traced_mask(mx: Any) -> None:
    with pytest.raises(ValueError, match=r"ops\.where"):
        mx.compile(lambda x: ops.get_item(x, x > 1))(mx.array([1.0, 2.0]))


_GRADIENTS = [
    ("add", [1.0, 3.0, 1.0, 2.0]),
    ("mean", [0.5, 3.0, 0.5, 2.0]),
    ("max", [0.0, 3.0, 1.0, 2.0]),
    ("min", [1.0, 3.0, 0.0, 2.0]),
]


@pytest.mark.parametrize(("aggr", "want"), _GRADIENTS)
def test_torch_differentiates_scatter(torch: Any, aggr: str, want: list[float]) -> None:
    x = torch.tensor([1.0, 2.0, 4.0, 3.0], requires_grad=True)
    (ops.scatter(x, [0, 2, 0, 1], 4, aggr) * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert x.grad.tolist() == want


@pytest.mark.parametrize(("aggr", "want"), _GRADIENTS)
def test_mlx_differentiates_scatter(mx: Any, aggr: str, want: list[float]) -> None:
    weights = mx.array([1.0, 2.0, 3.0, 4.0])
    gradient = mx.grad(lambda x: (ops.scatter(x, [0, 2, 0, 1], 4, aggr) * weights).sum())
    assert gradient(mx.array([1.0, 2.0, 4.0, 3.0])).tolist() == want


def test_masks_and_updates_are_differentiated(torch: Any) -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    ops.get_item(x, x.detach() > 1.5).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 1.0]
    x.grad = None
    ops.index_update(x, torch.tensor([0, 2]), 5.0).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0]


def test_mlx_differentiates_masks_and_updates(mx: Any) -> None:
    x = mx.array([1.0, 2.0, 3.0])
    assert mx.grad(lambda x: ops.get_item(x, x > 1.5).sum())(x).tolist() == [0.0, 1.0, 1.0]
    assert mx.grad(lambda x: ops.index_update(x, mx.array([0, 2]), 5.0).sum())(x).tolist() == [0.0, 1.0, 0.0]
