"""CTC against PyTorch's own kernel in double precision: values and gradients."""

from __future__ import annotations

from typing import Any

import pytest

from ember_ml import ops
from tests.reference.losses import random_sequences

torch = pytest.importorskip("torch")


def test_values_and_gradients_are_those_of_the_kernel(backend: str) -> None:
    target, output, target_length, output_length = random_sequences(batch=3, frames=40, labels=8, classes=6)
    logits = torch.tensor(output, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor(output_length), torch.tensor(target_length)
    wanted = torch.nn.functional.ctc_loss(
        torch.log_softmax(logits, -1).transpose(0, 1), torch.tensor(target), *lengths, reduction="none"
    )
    wanted.sum().backward()

    def loss(x: Any) -> Any:
        return ops.sum(ops.ctc_loss(target, x, target_length, output_length))

    x = ops.cast(ops.array(output), "float64")
    found = ops.to_numpy(ops.ctc_loss(target, x, target_length, output_length))
    assert found == pytest.approx(wanted.detach().numpy(), rel=1e-12)
    assert ops.to_numpy(ops.grad(loss)(x)) == pytest.approx(logits.grad.numpy(), abs=1e-11)
