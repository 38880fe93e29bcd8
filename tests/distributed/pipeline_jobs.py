"""A model whose layers lie on several ranks, and the same on one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ember_ml import distributed, nn, ops
from ember_ml.distributed import PipelineStage, collectives
from ember_ml.training import optimizers
from tests.distributed.comparing import plain, raised


class Noisy(nn.Module):
    """Keeps what it drew, to show that a stage which computes again draws the same."""

    def __init__(self) -> None:
        self.drawn: list[float] = []

    def forward(self, x: Any) -> Any:
        self.drawn.append(float(ops.to_numpy(ops.random.uniform(()))))
        return x


def layers() -> list[Any]:
    ops.seed(0)
    return [
        nn.Embedding(8, 4),
        nn.Linear(4, 6, bias=False),
        nn.BatchNorm(6),
        ops.tanh,
        nn.Linear(6, 4),
        nn.LayerNorm(4),
    ]


def stages() -> list[nn.Module]:
    made = layers()
    return [nn.Sequential(*made[:4]), nn.Sequential(*made[4:])]


def loss_of(found: Any, targets: Any) -> Any:
    return ops.mean(ops.square(ops.subtract(found[:, 0], targets)))


def batch() -> tuple[Any, Any]:
    tokens = ops.mod(ops.multiply(ops.arange(12), 5), 8)
    return tokens, ops.sin(ops.arange(12, dtype="float32"))


def alone(parts: int = 3, steps: int = 3) -> dict[str, Any]:
    """Train both stages in one process, part by part, because a BatchNorm has the statistics of a part."""
    first, second = stages()
    model = nn.Sequential(first, second)
    optimizer = optimizers.Adam(0.01, epsilon=1e-3)
    gradients_of = nn.value_and_grad(model, lambda x, y: loss_of(model(x), y))
    losses = []
    for _ in range(steps):
        found = [gradients_of(*pair) for pair in zip(*(ops.split(x, parts) for x in batch()), strict=True)]
        gradients = [ops.divide(sum(xs[1:], xs[0]), parts) for xs in zip(*(g.values() for _, g in found), strict=True)]
        losses.append(float(ops.to_numpy(ops.mean(ops.stack([loss for loss, _ in found])))))
        optimizer.apply(model.trainable(), gradients)
    return {"losses": losses, "stages": [_variables(first), _variables(second)]}


def pipeline(parts: int = 3, steps: int = 3) -> dict[str, Any]:
    """Train the stage of this rank."""
    module = stages()[distributed.rank()]
    stage, optimizer, losses = PipelineStage(module, loss_of, parts), optimizers.Adam(0.01, epsilon=1e-3), []
    for _ in range(steps):
        loss, gradients = stage.loss_and_gradients(*batch())
        optimizer.update(module, gradients)
        losses.append(float(ops.to_numpy(loss)))
    noisy = Noisy()
    PipelineStage(nn.Sequential(nn.Linear(1, 1), noisy), loss_of, 2).loss_and_gradients(
        ops.ones((4, 1)), ops.ones((4,))
    )
    return {
        "losses": losses,
        "variables": _variables(module),
        "drawn": noisy.drawn,
        "uneven": raised(lambda: stage.loss_and_gradients(ops.arange(7), ops.ones((7,)))),
    }


def four_stages() -> dict[str, Any]:
    """The gradients of a model of four stages; then of two pipelines of two stages, each with half of the batch."""
    rank, (inputs, targets) = distributed.rank(), batch()
    module = quarters()[rank]
    _, four = PipelineStage(module, loss_of, 3).loss_and_gradients(inputs, targets)
    half = rank // 2
    ranks, rows = [2 * half, 2 * half + 1], slice(6 * half, 6 * half + 6)
    pair = PipelineStage(halves()[rank % 2], loss_of, 2, ranks)
    _, found = pair.loss_and_gradients(inputs[rows], targets[rows])
    group = collectives.make_group([[0, 2], [1, 3]])
    averaged = collectives.average(list(found.values()), group=group)
    return {"four": [plain(x) for x in four.values()], "pairs": [plain(x) for x in averaged]}


def quarters() -> list[nn.Module]:
    made = [layer for layer in layers() if not isinstance(layer, nn.BatchNorm)]
    return [nn.Sequential(*made[:1]), nn.Sequential(*made[1:3]), nn.Sequential(*made[3:4]), nn.Sequential(*made[4:])]


def halves() -> list[nn.Module]:
    made = quarters()
    return [nn.Sequential(*made[:2]), nn.Sequential(*made[2:])]


def gradients_alone() -> list[Any]:
    """Those of the whole model in one process, stage by stage."""
    made = quarters()
    model = nn.Sequential(*made)
    _, found = nn.value_and_grad(model, lambda x, y: loss_of(model(x), y))(*batch())
    return [[plain(x) for name, x in found.items() if name.startswith(f"{stage}.")] for stage in range(4)]


def _variables(module: nn.Module) -> dict[str, Any]:
    return {name: plain(value) for name, value in module.state_dict().items()}


if __name__ == "__main__":
    name, folder, given = sys.argv[1:]
    result = globals()[name](**json.loads(given))
    (Path(folder) / f"{distributed.rank()}.json").write_text(json.dumps(result))
