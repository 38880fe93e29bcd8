"""A generator and a discriminator, trained against each other: the generator learns to draw points on a ring.

    python examples/gan.py [--backend numpy|torch|mlx|jax] [--steps 1500]

Each part of the model has a loss and an optimizer of its own; the trainer keeps one history and one checkpoint.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import pi
from typing import Any

import ember_ml
from ember_ml import nn, ops
from ember_ml.training import Trainer, optimizers

NOISE, BATCH_SIZE = 4, 128
BLUR = 0.2
"""The noise on what the discriminator sees: without it the generator comes to draw one part of the ring alone."""


def make_network(inputs: int, outputs: int) -> nn.Module:
    """Two hidden layers."""
    return nn.Sequential(nn.Linear(inputs, 64), ops.relu, nn.Linear(64, 64), ops.relu, nn.Linear(64, outputs))


class GAN(nn.Module):
    """Draws points in the plane from noise, and tells drawn points from real ones."""

    def __init__(self) -> None:
        self.generator = make_network(NOISE, 2)
        self.discriminator = make_network(2, 1)

    def forward(self, noise: Any) -> Any:
        return self.generator(noise)


def judge(is_real: bool, logits: Any) -> Any:
    """The loss of a discriminator that should find points real, or not."""
    targets = ops.ones_like(logits) if is_real else ops.zeros_like(logits)
    return ops.mean(ops.binary_crossentropy(targets, logits, from_logits=True))


class Adversaries(Trainer):
    """Gives each part its own loss, of which the trainer takes the gradients for that part alone."""

    parts = ("discriminator", "generator")

    def training_step(self, batch: Any, part: str = "") -> Any:
        """Return the loss of a part."""
        real = batch[0]
        drawn = self.model(ops.random_normal((real.shape[0], NOISE)))
        if part == "generator":
            return judge(True, self._look_at(drawn))
        return ops.add(judge(True, self._look_at(real)), judge(False, self._look_at(drawn)))

    def _look_at(self, points: Any) -> Any:
        """What the discriminator says of points that it sees blurred."""
        return self.model.discriminator(ops.add(points, ops.random_normal(points.shape, stddev=BLUR)))


def make_ring(count: int, seed: int) -> Any:
    """Points near the circle of radius 1."""
    angles = ops.random_uniform((count,), 0.0, 2 * pi, seed=seed)
    radii = ops.random_normal((count,), 1.0, 0.05, seed=seed + 1)
    return ops.stack([ops.multiply(radii, ops.cos(angles)), ops.multiply(radii, ops.sin(angles))], -1)


def train(steps: int, **settings: Any) -> Adversaries:
    """A trainer that has made so many steps."""
    ops.random.seed(0)
    model = GAN()
    own = {"match": model.discriminator, "optimizer": optimizers.Adam(2e-3, beta1=0.5)}
    trainer = Adversaries(model, optimizers.Adam(5e-4, beta1=0.5, groups=[own]), progress=False, **settings)
    ring = make_ring(8 * BATCH_SIZE, seed=1)
    batches = [(ring[start : start + BATCH_SIZE],) for start in range(0, 8 * BATCH_SIZE, BATCH_SIZE)]
    trainer.fit(batches, epochs=steps, max_steps=steps)
    return trainer


def mean_radius(trainer: Trainer) -> tuple[float, float]:
    """The mean distance of drawn points from the middle, and its standard deviation."""
    drawn = trainer.predict(ops.random_normal((1000, NOISE), seed=7))
    radii = ops.vector_norm(drawn, axis=-1)
    return ops.item(ops.mean(radii)), ops.item(ops.std(radii))


def count_eighths(trainer: Trainer) -> list[int]:
    """How many of 1000 drawn points lie in each eighth of the circle, seen from the middle."""
    drawn = trainer.predict(ops.random_normal((1000, NOISE), seed=7))
    turns = ops.divide(ops.arctan2(drawn[:, 1], drawn[:, 0]), 2 * pi)
    return ops.to_numpy(ops.histogram(turns, 8, (-0.5, 0.5))[0]).tolist()


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, and print what the generator draws."""
    parser = argparse.ArgumentParser(description="A generative adversarial network.")
    parser.add_argument("--backend", help="which library computes; by default the one that is chosen already")
    parser.add_argument("--steps", type=int, default=1500)
    options = parser.parse_args(arguments)
    if options.backend:
        ember_ml.set_backend(options.backend)
    print(f"computed by {ember_ml.get_backend()}\n")
    trainer = train(options.steps)
    for part in trainer.parts:
        losses = trainer.history[f"{part}_loss"]
        print(f"loss of the {part}: {losses[0]:.3f} at first, {losses[-1]:.3f} at last")
    mean, deviation = mean_radius(trainer)
    print(f"distance of drawn points from the middle: {mean:.2f} (deviation {deviation:.2f}); of real ones 1.00")
    print(f"drawn points in each eighth of the circle: {count_eighths(trainer)}")


if __name__ == "__main__":
    main()
