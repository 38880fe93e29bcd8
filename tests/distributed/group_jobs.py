"""Random groups of parameters under ZeRO: with shares of the same gradients, and by a trainer that is killed."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from ember_ml import distributed, ops
from ember_ml.distributed import strategy as strategies
from ember_ml.training import Trainer, optimizers
from tests.training.test_groups import KINDS, STEPS, draw_case

CASES = [(kind, seed) for kind in KINDS for seed in range(25)]


def groupings() -> list[Any]:
    """The parameters after the steps of each case."""
    share = 1.5 if distributed.rank() == 0 else 0.5  # the mean of both ranks is the gradient
    found = []
    for kind, seed in CASES:
        model, steps, options, _ = draw_case(kind, seed)
        made, optimizer = strategies.ZeroStrategy(), type(optimizers.get(kind))(**options)
        made.prepare(model, optimizer)
        named = model.trainable()
        for step in steps:
            gradients = [ops.reshape(ops.multiply(ops.array(step[name]), share), x.shape) for name, x in named.items()]
            made.apply(optimizer, named, made.average(gradients))
        found.append({name: ops.to_numpy(x).ravel().tolist() for name, x in model.state_dict().items()})
    return found


def _trainer(kind: str, seed: int) -> Trainer:
    model, _, options, _ = draw_case(kind, seed)
    optimizer = type(optimizers.get(kind))(**options)
    return Trainer(model, optimizer, strategy=strategies.ZeroStrategy(), seed=seed, progress=False)


def _fit(trainer: Trainer, steps: int) -> None:
    """Train until so many steps are done, in epochs of three."""
    x = ops.sin(ops.reshape(ops.arange(30 * 3, dtype="float32"), (30, 3)))
    trainer.fit(x, ops.cos(x[:, :2]), epochs=STEPS, batch_size=10, max_steps=steps)


def fit_at_once() -> list[Any]:
    """The parameters that a trainer gives in each case."""
    found = []
    for case in CASES:
        trainer = _trainer(*case)
        _fit(trainer, STEPS)
        found.append({name: ops.to_numpy(x).ravel().tolist() for name, x in trainer.model.state_dict().items()})
    return found


def fit_until_killed(checkpoints: str) -> None:
    """Save each case in the middle, go on for a step, and end as by ``kill -9`` in the last one."""
    for number, case in enumerate(CASES):
        trainer = _trainer(*case)
        _fit(trainer, STEPS // 2)
        trainer.save(f"{checkpoints}/{number}")
        _fit(trainer, STEPS // 2 + 1)
    os.kill(os.getpid(), signal.SIGKILL)


def fit_again(checkpoints: str) -> list[Any]:
    """The parameters of each case, from what was saved in the middle."""
    found = []
    for number, case in enumerate(CASES):
        trainer = _trainer(*case)
        trainer.restore(f"{checkpoints}/{number}")
        assert trainer.steps == STEPS // 2
        _fit(trainer, STEPS)
        found.append({name: ops.to_numpy(x).ravel().tolist() for name, x in trainer.model.state_dict().items()})
    return found


if __name__ == "__main__":
    name, folder, given = sys.argv[1:]
    result = globals()[name](**json.loads(given))
    (Path(folder) / f"{distributed.rank()}.json").write_text(json.dumps(result))
