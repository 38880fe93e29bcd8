"""Autocast beside ``torch.autocast``: results have the same dtypes where PyTorch defines them; one trace a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import selection

torch = pytest.importorskip("torch")
F = torch.nn.functional

# our op, PyTorch's function, and the shapes of the arguments
PRODUCTS: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[tuple[int, ...]]]] = {
    "matmul": (ops.matmul, torch.matmul, [(3, 4), (4, 2)]),
    "batches": (ops.matmul, torch.bmm, [(2, 3, 4), (2, 4, 2)]),
    "linear": (ops.linear, F.linear, [(3, 4), (5, 4), (5,)]),
    "einsum": (
        lambda x, y: ops.einsum("ij,jk->ik", x, y),
        lambda x, y: torch.einsum("ij,jk->ik", x, y),
        [(3, 4), (4, 2)],
    ),
    "conv": (
        lambda x, w: ops.conv(x, w, data_format="channels_first"),
        lambda x, w: F.conv2d(x, w.permute(3, 2, 0, 1)),
        [(1, 3, 6, 6), (3, 3, 3, 4)],
    ),
    "attention": (  # here the heads come after the positions
        ops.dot_product_attention,
        lambda *args: F.scaled_dot_product_attention(*(x.transpose(1, 2) for x in args)).transpose(1, 2),
        [(2, 3, 2, 8)] * 3,
    ),
}
WIDE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "exp": (ops.exp, torch.exp),
    "log": (ops.log, torch.log),
    "power": (lambda x: ops.power(x, 2), lambda x: torch.pow(x, 2)),
    "softmax": (lambda x: ops.softmax(x, -1), lambda x: F.softmax(x, -1)),
    "log_softmax": (lambda x: ops.log_softmax(x, -1), lambda x: F.log_softmax(x, -1)),
    "sum": (ops.sum, torch.sum),
    "cumsum": (lambda x: ops.cumsum(x, 0), lambda x: torch.cumsum(x, 0)),
    "prod": (ops.prod, torch.prod),
    "softplus": (ops.softplus, F.softplus),
    "rsqrt": (ops.rsqrt, torch.rsqrt),
    "layer_norm": (lambda x: ops.layer_normalization(x), lambda x: F.layer_norm(x, x.shape[-1:])),
    "mse": (lambda x: ops.mean_squared_error(x, x), lambda x: F.mse_loss(x, x)),
    "trace": (ops.trace, torch.trace),
    "sinh": (ops.sinh, torch.sinh),
}
FOLLOWING: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (ops.add, torch.add),
    "concatenate": (lambda x, y: ops.concatenate([x, y]), lambda x, y: torch.cat([x, y])),
    "stack": (lambda x, y: ops.stack([x, y]), lambda x, y: torch.stack([x, y])),
    "relu": (lambda x, _: ops.relu(x), lambda x, _: F.relu(x)),
    "sigmoid": (lambda x, _: ops.sigmoid(x), lambda x, _: torch.sigmoid(x)),
    "tanh": (lambda x, _: ops.tanh(x), lambda x, _: torch.tanh(x)),
    "gelu": (lambda x, _: ops.gelu(x), lambda x, _: F.gelu(x)),
    "max": (lambda x, _: ops.max(x), lambda x, _: torch.max(x)),
}


@pytest.fixture
def device() -> str:
    ember_ml.set_backend("torch")
    return torch.device(ops.get_device()).type


def draw(shape: tuple[int, ...], dtype: Any, device: str) -> Any:
    return (torch.rand(shape, device=device) + 0.5).to(dtype)


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("half", ["bfloat16", "float16"])
def test_products_are_in_half_precision_as_in_torch(name: str, half: str, device: str) -> None:
    own, theirs, shapes = PRODUCTS[name]
    dtype = getattr(torch, half)
    for mixed in (torch.float32, dtype):
        args = [draw(shape, mixed if index == 0 else torch.float32, device) for index, shape in enumerate(shapes)]
        with torch.autocast(device, dtype):
            wanted = theirs(*args)
        with ember_ml.autocast(half):
            found = own(*args)
        assert found.dtype == wanted.dtype == dtype
        assert torch.allclose(found.float(), wanted.float(), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("name", WIDE)
def test_what_needs_digits_is_in_float32_as_in_torch(name: str, device: str) -> None:
    own, theirs = WIDE[name]
    x = draw((3, 3), torch.bfloat16, device)
    with ember_ml.autocast("bfloat16"):
        found = own(x)
    assert found.dtype == torch.float32
    if device == "cuda":  # torch 2.13: its lists for the CPU leave these to the dtype of the input
        with torch.autocast(device, torch.bfloat16):
            assert theirs(x).dtype == torch.float32
    assert torch.allclose(found.mean(), theirs(x.float()).mean(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", FOLLOWING)
def test_the_rest_follows_its_inputs_as_in_torch(name: str, device: str) -> None:
    own, theirs = FOLLOWING[name]
    for a, b in ((torch.float32, torch.bfloat16), (torch.bfloat16, torch.bfloat16), (torch.float32, torch.float32)):
        x, y = draw((3, 3), a, device), draw((3, 3), b, device)
        with torch.autocast(device, torch.bfloat16):
            wanted = theirs(x, y)
        with ember_ml.autocast("bfloat16"):
            assert own(x, y).dtype == wanted.dtype


@pytest.mark.parametrize("is_inside", [True, False])
def test_a_program_of_torch_is_traced_once(is_inside: bool, device: str) -> None:
    from torch._dynamo.utils import counters

    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), ops.gelu, nn.Linear(8, 2))
    x = ops.random_normal((3, 4), seed=1)

    def compute(x: Any) -> Any:
        with ember_ml.autocast("bfloat16" if is_inside else selection.half_here()):
            return ops.softmax(model(x))

    program = ember_ml.compile(compute)
    counters.clear()
    for _ in range(3):
        with ember_ml.autocast("bfloat16"):
            program(x)
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]


def test_a_program_of_torch_may_be_the_first_to_enter_autocast(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._dynamo.utils import counters

    x = ops.random_normal((3, 4), seed=1)

    def compute(x: Any) -> Any:
        with ember_ml.autocast("bfloat16"):
            return ops.matmul(x, ops.matrix_transpose(x))

    monkeypatch.setattr(selection, "_with_scopes", set())  # as if no block was ever entered
    program = ember_ml.compile(compute)
    counters.clear()
    assert program(x).dtype == torch.bfloat16
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]
