"""Layers over sequences against those of ``torch.nn``, with the same weights under the same names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.nn.tensor import EmberTensor

torch: Any = pytest.importorskip("torch")

# torch 2.13: its compiler reads .grad of what a program goes on with
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")


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


def _make_recurrent(kind: str, length: int = 4, **options: Any) -> tuple[nn.Module, Any, Any]:
    """Return a layer, an input, and a function that reduces its results and its last state to a number."""
    layer = getattr(nn, kind)(3, 4, **options)
    start = layer.initial_state(2)

    def loss(x: Any) -> Any:
        y, last = layer(ops.cos(x), state=start)
        parts = last if kind == "LSTM" else (last,)
        return sum((ops.sum(ops.square(part)) for part in parts), ops.sum(ops.sin(y)))

    return layer, torch.randn(2, length, 3), loss


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_compiled_recurrent_layers(kind: str, fullgraph: bool) -> None:
    layer, x, loss = _make_recurrent(kind, layers=2, bidirectional=kind == "GRU", bias=kind != "RNN")
    program = torch.compile(loss, backend="aot_eager", fullgraph=fullgraph)
    torch.testing.assert_close(program(x), loss(x), rtol=1e-4, atol=1e-5)
    found, wanted = nn.value_and_grad(layer, program)(x), nn.value_and_grad(layer, loss)(x)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_compiled_models_with_recurrent_layers(dropout: float) -> None:
    model = nn.Sequential(nn.LSTM(3, 4, layers=2, dropout=dropout), nn.Dropout(dropout), nn.Linear(2))
    x = EmberTensor(torch.randn(2, 5, 3))
    model(x)
    found = []
    for function in (model, ember_ml.compile(model)):
        ops.random.seed(7)
        found.append([ops.to_numpy(function(x)) for _ in range(3)])
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)


TRANSFORMS = {
    "gradient": lambda loss, layer: nn.value_and_grad(layer, loss),
    "jacobian": lambda loss, layer: ember_ml.jacobian(lambda x: layer(x)[:, -1]),
    "second derivative": lambda loss, layer: ember_ml.grad(lambda x: ops.sum(ops.square(ember_ml.grad(loss)(x)))),
    "jvp": lambda loss, layer: lambda x: ember_ml.jvp(loss, (x,), (x,)),
    "vmap": lambda loss, layer: ember_ml.vmap(lambda row: layer(row[None])[0]),
    "vmap of gradient": lambda loss, layer: ember_ml.vmap(ember_ml.grad(lambda row: ops.sum(layer(row[None])))),
    "branch": lambda loss, layer: lambda x: ops.cond(ops.sum(x) > 0, layer, lambda x: layer(-x), x),
    "checkpoint": lambda loss, layer: ember_ml.checkpoint(lambda x: ops.sin(layer(x))),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_compiled_transforms_of_recurrent_layers(transform: str) -> None:
    layer, x, loss = _make_recurrent("LSTM", length=2)
    function = TRANSFORMS[transform](loss, layer)
    found = torch.compile(function, backend="aot_eager")(x)
    torch.testing.assert_close(found, function(x), rtol=1e-4, atol=1e-5)


def test_compilers_leave_recurrent_layers_to_pytorch() -> None:
    _, x, loss = _make_recurrent("LSTM")
    sizes: list[int] = []

    def count(program: Any, inputs: Any) -> Any:
        sizes.append(len(program.graph.nodes))
        return program

    for length in (3, 30):
        torch.compiler.reset()
        torch.compile(loss, backend=count, dynamic=False)(x[:, :1].expand(2, length, 3))
    assert len(sizes) > 2
    assert sizes[: len(sizes) // 2] == sizes[len(sizes) // 2 :]


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
