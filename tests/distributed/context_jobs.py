"""Models of texts of which each of two processes has a part of the positions."""

from __future__ import annotations

from typing import Any

from ember_ml import nn, ops, use_backend
from ember_ml.distributed import Mesh
from ember_ml.distributed.strategy import MeshStrategy
from ember_ml.training import Trainer
from tests.distributed.comparing import plain, raised
from tests.distributed.text_models import MODELS, OTHERS, read_text

KINDS = {"layers": False, "gpt2": True, "mistral": True, "places": False, "masked": True}
"""The models, and whether their texts are padded."""
HALVES = {"context": 2}


def context(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        kind: read_text(kind, HALVES, is_padded=is_padded) for kind, is_padded in KINDS.items() if kind != "layers"
    }
    found["layers"] = read_text("layers", HALVES, 4, f"{folder}/context")
    with use_backend("numpy"):  # one process alone goes on from what two have written
        found["reopened"] = read_text("layers", None, 4, f"{folder}/context", is_saved=True)
    return found | {"own": own_gradients(), "written": written(), "refused": refused()}


def weighted_loss(model: Any, tokens: Any, weights: Any) -> Any:
    logits = ops.checkpoint(model)(tokens)
    losses = ops.sparse_categorical_crossentropy(ops.mod(tokens, 5), logits)
    return ops.divide(ops.sum(ops.multiply(losses, weights)), ops.sum(weights))


def data() -> tuple[Any, Any]:
    tokens = ops.mod(ops.multiply(ops.reshape(ops.arange(4 * 8), (4, 8)), 7), 32)
    return tokens, ops.reshape(ops.add(1.0, ops.mod(ops.arange(4 * 8, dtype="float32"), 5.0)), (4, 8))


def gradients_alone() -> dict[str, Any]:
    ops.seed(0)
    model = MODELS["layers"]()
    _, gradients = nn.value_and_grad(model, lambda *batch: weighted_loss(model, *batch))(*data())
    return {name: plain(x) for name, x in gradients.items()}


def own_gradients() -> dict[str, Any]:
    """Those of a loop without a trainer, whose model computes again in the backward pass."""
    ops.seed(0)
    model, strategy = MODELS["layers"](), MeshStrategy(Mesh(**HALVES))
    strategy.prepare(model)
    tokens, weights = strategy.distribute(data())[strategy.part]
    share = strategy.share_of(ops.item(ops.sum(weights)), len(tokens))
    assert share is not None  # the positions of the parts have different weights
    of_part = nn.value_and_grad(model, lambda *batch: ops.multiply(weighted_loss(model, *batch), share))
    with strategy.on_part():
        _, gradients = of_part(tokens, weights)
    averaged = strategy.average(list(gradients.values()))
    return {name: plain(x) for name, x in zip(gradients, averaged, strict=True)}


def written() -> Any:
    """What a model writes with its cache, outside of steps, after the strategy has prepared it."""
    ops.seed(0)
    model = OTHERS["places"]()
    MeshStrategy(Mesh(**HALVES)).prepare(model)
    return plain(model.generate([[7, 3, 9]], count=4, seed=0))


def refused() -> dict[str, Any]:
    strategy = MeshStrategy(Mesh(**HALVES))
    model = MODELS["layers"]()
    strategy.prepare(model)
    tokens, weights = data()
    classifier = nn.Sequential(nn.Embedding(32, 4), nn.GlobalAvgPool())
    with strategy.on_part():
        mask = ops.ones((4, 4), dtype="bool")
        of_part = raised(model.body, ops.ones((1, 4, 16)), mask)
        cached = raised(lambda: model.body(ops.ones((1, 4, 16)), state=model.body.initial_state(1)))
    return {
        "mask": of_part,
        "cache": cached,
        "pooling": raised(lambda: Trainer(classifier, strategy=strategy)),
        "target": raised(strategy.distribute, (tokens, weights[:, 0])),
        "length": raised(strategy.distribute, (tokens[:, :7], weights[:, :7])),
    }
