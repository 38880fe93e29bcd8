"""Train on a cluster: the program that slurm.sh, jobset.yaml and pytorchjob.yaml start in each of their processes.

It goes on from the last checkpoint in its folder, which all processes share. When the scheduler asks it to end, all
processes stop after the same step, save, and end with the exit code 143: the job can then be started again.

    python examples/cluster/train.py checkpoints [--backend numpy|torch|mlx|jax] [--epochs 40]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import ember_ml
from ember_ml import distributed, nn, ops
from ember_ml.distributed.strategy import DataParallelStrategy
from ember_ml.training import DataLoader, Trainer, callbacks


class Told(callbacks.Callback):
    """Prints where training begins, and the loss of each tenth epoch, once for all processes."""

    def begin(self, trainer: Trainer) -> None:
        if distributed.rank() == 0:
            print(f"{distributed.world_size()} processes begin at step {trainer.steps}", flush=True)

    def after_epoch(self, trainer: Trainer, values: dict[str, float]) -> None:
        if distributed.rank() == 0 and trainer.epoch % 10 == 0:
            print(f"epoch {trainer.epoch}: loss {values['loss']:.4f}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train a small network, from the checkpoint if there is one."""
    parser = argparse.ArgumentParser(description="A small network, trained on a cluster.")
    parser.add_argument("folder", help="where the checkpoints are; all hosts share it")
    parser.add_argument("--backend", help="which library computes; by default the one that is chosen already")
    parser.add_argument("--epochs", type=int, default=40, help="how often all samples are seen")
    options = parser.parse_args(arguments)
    if options.backend:
        ember_ml.set_backend(options.backend)

    ops.random.seed(0)
    x = ops.random_normal((512, 8), seed=1)
    y = ops.sum(ops.square(x), axis=1, keepdims=True)
    model = nn.Sequential(nn.Linear(8, 32), ops.tanh, nn.Dropout(0.1), nn.Linear(32, 1))
    kept = callbacks.Checkpoint(options.folder, every_steps=100, resume=True)
    strategy = DataParallelStrategy()
    trainer = Trainer(
        model, "adam", "mean_squared_error", strategy=strategy, callbacks=[kept, Told()], progress=False, seed=0
    )
    trainer.fit(DataLoader((x, y), batch_size=64, shuffle=True, seed=0), epochs=options.epochs)
    if distributed.rank() == 0:
        print(f"ended after {trainer.steps} steps", flush=True)


if __name__ == "__main__":
    main()
