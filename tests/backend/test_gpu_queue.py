"""Programs on a GPU go on while it computes: nothing waits for it that does not read a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ember_ml import nn, ops, use_backend
from ember_ml.nn.tensor import EmberTensor
from ember_ml.training import Trainer

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU of NVIDIA's"),
    pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype:UserWarning"),
]

CALLS: dict[str, Callable[[Any], Any]] = {
    "x / 3": lambda x: x / 3,
    "3 / x": lambda x: 3.0 / x,
    "divide": lambda x: ops.divide(x, 3.0),
    "maximum": lambda x: ops.maximum(x, 0.5),
    "power": lambda x: x**3.0,
    "where": lambda x: ops.where(x > 0.5, x, 0.0),
    "clip": lambda x: ops.clip(x, 0.0, 0.5),
}


@contextmanager
def nothing_waits() -> Iterator[None]:
    """Raise where a call waits for the GPU."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("name", CALLS)
def test_numbers_beside_tensors_do_not_wait(name: str) -> None:
    with use_backend("torch"), ops.use_device("cuda"):
        x = ops.ones((4,))
        for argument in (x, EmberTensor(x)):
            CALLS[name](argument)
            with nothing_waits():
                CALLS[name](argument)


@pytest.mark.parametrize("settings", [{}, {"precision": "bfloat16"}, {"accumulate": 2}], ids=str)
def test_steps_of_training_do_not_wait(settings: dict[str, Any]) -> None:
    with use_backend("torch"), ops.use_device("cuda"):
        model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(0.1), nn.Linear(16, 4))
        trainer = Trainer(model, "adamw", "sparse_categorical_crossentropy", progress=False, **settings)
        batch = ops.ones((6, 8)), ops.zeros((6,), dtype="int64")
        for _ in range(2):
            trainer.step(batch)
        with nothing_waits():
            for _ in range(4):
                trainer.step(batch)
