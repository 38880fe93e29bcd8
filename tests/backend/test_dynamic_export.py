"""torch.export with lengths that vary from call to call: no op makes a constant of them."""

from __future__ import annotations

from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops

torch = pytest.importorskip("torch")

CASES: dict[str, Any] = {
    "reshape": lambda x: ops.reshape(x, (*x.shape[:2], 2, 4)),
    "reshape by ops.shape": lambda x: ops.reshape(x, (ops.shape(x)[0], -1, 2)),
    "flatten": ops.flatten,
    "broadcast_to": lambda x: ops.broadcast_to(ops.ones((1, 5)), (x.shape[0], 5)),
    "zeros": lambda x: ops.add(x, ops.zeros(x.shape)),
    "ones and full": lambda x: ops.multiply(ops.ones((x.shape[0], 1, 1)), ops.full((x.shape[0], 1, 8), 2.0)),
    "tile": lambda x: ops.tile(ops.ones((1, 8)), (x.shape[0], 1)),
    "Flatten": lambda: nn.Flatten(),
    "Attention": lambda: nn.Attention(8, 2),
    "LSTM": lambda: nn.LSTM(8, 4),
    "GRU": lambda: nn.GRU(8, 4),
    "MLP": lambda: nn.Sequential(nn.Flatten(), nn.Linear(40, 4), nn.ReLU(), nn.Linear(4, 2)),
}


class Holder(torch.nn.Module):
    """A function or a module of ours as PyTorch's export takes it."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        object.__setattr__(self, "function", function)

    def forward(self, x: Any) -> Any:
        return self.function(x)


# strict tracing is for functions; it takes every length for an int, and so limits them by the size of any memory
# torch 2.13: after other programs were traced in the process, Dynamo may find no source of a builtin in "ones and full"
STRICT = [(name, 4096) for name in CASES if name[0].islower() and name != "ones and full"]


@pytest.mark.parametrize(("name", "most"), [*((name, None) for name in CASES), *STRICT])
def test_a_batch_of_any_length(name: str, most: int | None) -> None:
    with ember_ml.use_backend("torch"):
        ops.random.seed(0)
        function = CASES[name]() if name[0].isupper() else CASES[name]
        x = torch.randn(3, 5, 8)
        function(x)
        shapes = ({0: torch.export.Dim("batch", min=2, max=most)},)
        exported = torch.export.export(Holder(function), (x,), dynamic_shapes=shapes, strict=most is not None).module()
        for length in (2, 3, 11):
            other = torch.randn(length, 5, 8)
            torch.testing.assert_close(exported(other), function(other))
