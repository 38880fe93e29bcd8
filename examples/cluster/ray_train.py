"""Train inside the workers of Ray Train, and tell Ray of each checkpoint.

Ray starts the workers, places them on its cluster and starts them again after a failure; training then goes on from the
last checkpoint that was reported. Needs ``pip install 'ember-ml[ray,torch]'``: the trainer of Ray is that for PyTorch,
whatever backend computes.

    python examples/cluster/ray_train.py /shared/folder [--backend torch|numpy|mlx|jax] [--workers 2] [--epochs 4]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

# ray is not one of the packages that ember-ml itself needs
import ray.train  # pyright: ignore[reportMissingImports]
from ray.train import torch as ray_torch  # pyright: ignore[reportMissingImports]

import ember_ml
from ember_ml import nn, ops
from ember_ml.distributed.strategy import DataParallelStrategy
from ember_ml.training import DataLoader, Trainer
from ember_ml.training.ray import ReportToRay, join_workers


def train(settings: dict[str, Any]) -> None:
    """What each worker runs."""
    join_workers()
    ember_ml.set_backend(settings["backend"])
    ops.random.seed(0)
    x = ops.random_normal((512, 8), seed=1)
    y = ops.sum(ops.square(x), axis=1, keepdims=True)
    model = nn.Sequential(nn.Linear(8, 32), ops.tanh, nn.Linear(32, 1))
    strategy = DataParallelStrategy(settings["workers"])  # which raises on another number of workers
    kept = ReportToRay(settings["folder"])
    trainer = Trainer(model, "adam", "mean_squared_error", strategy=strategy, callbacks=[kept], progress=False, seed=0)
    trainer.fit(DataLoader((x, y), batch_size=64, shuffle=True, seed=0), epochs=settings["epochs"])


def main(arguments: Sequence[str] | None = None) -> Any:
    """Train with Ray, and return its result, which has the values of the last epoch and the last checkpoint."""
    parser = argparse.ArgumentParser(description="A small network, trained by Ray.")
    parser.add_argument("folder", help="for checkpoints and Ray's results; all hosts share it")
    parser.add_argument("--backend", default="torch", help="which library computes: torch, numpy, mlx or jax")
    parser.add_argument("--workers", type=int, default=2, help="how many processes")
    parser.add_argument("--epochs", type=int, default=4, help="how often all samples are seen")
    options = parser.parse_args(arguments)
    base = os.path.abspath(options.folder)
    trainer = ray_torch.TorchTrainer(
        train,
        train_loop_config={**vars(options), "folder": os.path.join(base, "checkpoints")},
        torch_config=ray_torch.TorchConfig(backend="gloo"),
        scaling_config=ray.train.ScalingConfig(num_workers=options.workers),
        run_config=ray.train.RunConfig(
            storage_path=base, name="ray", failure_config=ray.train.FailureConfig(max_failures=2)
        ),
    )
    result = trainer.fit()
    print(f"ended after {result.metrics['steps']} steps: loss {result.metrics['loss']:.4f}")
    return result


if __name__ == "__main__":
    main()
