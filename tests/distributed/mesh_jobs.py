"""What processes, or one with several devices, run on a mesh: each job gives plain data, which the test compares."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ember_ml import distributed, nn, ops
from ember_ml.distributed import Mesh
from ember_ml.distributed.strategy import MeshStrategy
from ember_ml.training import Trainer, optimizers
from tests.distributed.comparing import plain, raised
from tests.distributed.text_models import read_text

STEPS = 50


def trainer(strategy: Any, **settings: Any) -> Trainer:
    ops.seed(0)
    model = nn.Sequential(nn.Linear(3, 16), ops.tanh, nn.Dropout(0.1), nn.Linear(16, 2))
    metrics = ["mean_absolute_error"]
    return Trainer(model, optimizers.AdamW(0.01), metrics=metrics, strategy=strategy, progress=False, **settings)


def fit(made: Trainer, steps: int = STEPS, rows: int = 40, batch_size: int = 8) -> dict[str, Any]:
    """Train so many steps in all; the losses, the validation and the parameters."""
    x = ops.sin(ops.multiply(ops.reshape(ops.arange(rows * 3, dtype="float32"), (rows, 3)), 0.7))
    y = ops.stack([ops.sum(x, axis=-1), ops.cos(x[:, 0])], axis=-1)
    history = made.fit(x, y, epochs=100, batch_size=batch_size, max_steps=steps)
    return {
        "losses": list(history["loss"]),
        "evaluated": made.evaluate(x, y, batch_size=batch_size),
        "parameters": {name: plain(value) for name, value in made.model.state_dict().items()},
        "state": {name: plain(value) for name, value in made.optimizer.state_dict().items()},
    }


def shares(made: Trainer) -> list[float]:
    """The parts of the parameters and of the optimizer's state that the first device has."""
    held = [[x.held for x in made.model.named_parameters().values()]]
    held.append([x.held for x in made.optimizer.slot_variables()])
    return [sum(x.addressable_data(0).nbytes for x in xs) / sum(x.nbytes for x in xs) for xs in held]


def mesh(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = {"alone": fit(trainer(None))}
    for name, strategy in (("whole", MeshStrategy()), ("split", MeshStrategy(Mesh(shard=8)))):
        made = trainer(strategy)
        found[name] = fit(made) | {"shares": shares(made)}
        (part,) = strategy.distribute((ops.zeros((16, 3)), ops.zeros((13, 3))))
        found[name]["rows"] = [x.addressable_data(0).shape[0] for x in part]
        half = trainer(strategy)
        fit(half, STEPS // 2)
        half.save(f"{folder}/{name}")
        resumed = trainer(strategy).restore(f"{folder}/{name}")
        found[name]["resumed"] = fit(resumed)
        found[name]["resumed shares"] = shares(resumed)
    for name, strategy in (("uneven", MeshStrategy(devices=["cpu", "cpu:3"])), ("uneven alone", None)):
        found[name] = fit(trainer(strategy, accumulate=2), 12, rows=37, batch_size=9)
    found["unknown"] = raised(lambda: trainer(MeshStrategy(devices=["cpu", "cuda:9"])))
    return found


def read_texts(cases: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {name: read_text(**case) for name, case in cases.items()}


if __name__ == "__main__":
    name, folder, given = sys.argv[1:]
    result = globals()[name](**json.loads(given))
    (Path(folder) / f"{distributed.rank()}.json").write_text(json.dumps(result))
