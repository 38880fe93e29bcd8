"""Layers over sequences against those of ``torch.nn``, with the same weights under the same names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops

torch: Any = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _on_torch() -> Iterator[None]:
    before = ember_ml.get_backend()
    ember_ml.set_backend("torch")
    torch.manual_seed(0)
    yield
    ember_ml.set_backend(before)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize(("layers", "bidirectional", "bias"), [(1, False, True), (2, True, True), (2, False, False)])
def test_recurrent_layers(kind: str, layers: int, bidirectional: bool, bias: bool) -> None:
    options = {"bidirectional": bidirectional, "bias": bias}
    theirs = getattr(torch.nn, kind)(3, 5, layers, batch_first=True, **options).double()
    ours = getattr(nn, kind)(3, 5, layers, dtype="float64", **options).load_state_dict(theirs.state_dict())
    x = torch.randn(2, 6, 3, dtype=torch.float64)
    state = tuple(torch.randn(2, layers * (1 + bidirectional), 2, 5, dtype=torch.float64))
    state = state if kind == "LSTM" else state[0]
    want, last = theirs(x, state)
    found, end = ours(x, state=state)
    torch.testing.assert_close(found, want.detach())
    for ended, expected in zip(*((end, last) if kind == "LSTM" else ([end], [last])), strict=True):
        torch.testing.assert_close(ended, expected.detach())
    _, gradients = nn.value_and_grad(ours, lambda x: ops.sum(ops.sin(ours(x, state=state)[0])))(x)
    want.sin().sum().backward()
    for name, parameter in theirs.named_parameters():
        torch.testing.assert_close(gradients[name], parameter.grad)


def test_attention() -> None:
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True).double()
    names = {
        "in_proj_weight": "qkv.weight",
        "in_proj_bias": "qkv.bias",
        "out_proj.weight": "output.weight",
        "out_proj.bias": "output.bias",
    }
    weights = {names[name]: x for name, x in theirs.state_dict().items()}
    ours = nn.Attention(8, 2, causal=True, dtype="float64").load_state_dict(weights)
    x = torch.randn(2, 6, 8, dtype=torch.float64)
    future = torch.ones(6, 6, dtype=torch.bool).triu(1)
    want, _ = theirs(x, x, x, attn_mask=future, need_weights=False)
    torch.testing.assert_close(ours(x), want.detach())
    _, gradients = nn.value_and_grad(ours, lambda x: ops.sum(ops.sin(ours(x))))(x)
    want.sin().sum().backward()
    for name, parameter in theirs.named_parameters():
        torch.testing.assert_close(gradients[names[name]], parameter.grad)


def test_cross_attention() -> None:
    theirs = torch.nn.MultiheadAttention(8, 2, kdim=8, vdim=8, batch_first=True).double()
    weight, bias = theirs.in_proj_weight.detach(), theirs.in_proj_bias.detach()
    ours = nn.CrossAttention(8, 2, context=8, dtype="float64").load_state_dict(
        {
            "query.weight": weight[:8],
            "query.bias": bias[:8],
            "key_value.weight": weight[8:],
            "key_value.bias": bias[8:],
            "output.weight": theirs.out_proj.weight.detach(),
            "output.bias": theirs.out_proj.bias.detach(),
        }
    )
    x, context = torch.randn(2, 3, 8, dtype=torch.float64), torch.randn(2, 6, 8, dtype=torch.float64)
    want, _ = theirs(x, context, context, need_weights=False)
    torch.testing.assert_close(ours(x, context), want.detach())


def test_causal_convolution() -> None:
    theirs = torch.nn.Conv1d(4, 6, 3, dilation=2, groups=2).double()
    ours = nn.CausalConv1d(4, 6, 3, dilation_rate=2, groups=2, dtype="float64").load_state_dict(theirs.state_dict())
    x = torch.randn(2, 7, 4, dtype=torch.float64)
    want = theirs(torch.nn.functional.pad(x.mT, (4, 0))).mT
    torch.testing.assert_close(ours(x), want.detach())


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_recurrent_layers_inside_transforms(kind: str) -> None:
    """Where the library's own function cannot be transformed, the loop takes its place."""
    layer = getattr(nn, kind)(2, 3, dtype="float64")
    x = torch.randn(4, 1, 3, 2, dtype=torch.float64)
    found = ops.vmap(layer)(x)
    torch.testing.assert_close(found, torch.stack([layer(part) for part in x]))
    bent = ops.hessian(lambda x: ops.sum(layer(x)))(x[0])
    with ember_ml.use_backend("numpy"):
        want = ops.to_numpy(ops.hessian(lambda x: ops.sum(layer(x)))(x[0].numpy()))
    torch.testing.assert_close(bent, torch.asarray(want))
