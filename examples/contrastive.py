"""Contrastive learning without targets: two noisy views of a picture shall be nearer to each other than to others.

    python examples/contrastive.py [--backend numpy|torch|mlx|jax] [--steps 200]

The batches hold pictures alone; the step of the trainer makes the views and compares them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import ember_ml
from ember_ml import datasets, nn, ops
from ember_ml.training import Trainer

TEMPERATURE, BATCH_SIZE = 0.2, 64


def compare(first: Any, second: Any) -> Any:
    """The mean loss of finding, for each row of one, the row of the other that belongs to it, by their angles."""
    first, second = ops.normalize(first, axis=-1), ops.normalize(second, axis=-1)
    logits = ops.divide(ops.matmul(first, ops.matrix_transpose(second)), TEMPERATURE)
    own = ops.arange(logits.shape[0])
    losses = [
        ops.sparse_categorical_crossentropy(own, x, from_logits=True) for x in (logits, ops.matrix_transpose(logits))
    ]
    return ops.mean(ops.add(*losses))


class Contrastive(Trainer):
    """Trains an encoder on views of the same pictures."""

    def training_step(self, batch: Any) -> Any:
        """Return the loss of two views."""
        return compare(self.model(self._see(batch[0])), self.model(self._see(batch[0])))

    def validation_step(self, batch: Any) -> Any:
        """Return the same for ``evaluate``: there the views are the pictures themselves and one that is moved."""
        return compare(self.model(batch[0]), self.model(ops.roll(batch[0], 1, 1)))

    @staticmethod
    def _see(pictures: Any) -> Any:
        """Hide a fifth of each picture, and add noise."""
        noise = ops.random_normal(pictures.shape, stddev=0.2)
        return ops.add(ops.dropout(pictures, 0.2), noise)


def split(pictures: Any) -> list[tuple[Any]]:
    """Batches of one size."""
    rows = range(0, pictures.shape[0] - BATCH_SIZE + 1, BATCH_SIZE)
    return [(pictures[start : start + BATCH_SIZE],) for start in rows]


def find_neighbours(encoder: nn.Module, known: tuple[Any, Any], asked: tuple[Any, Any]) -> float:
    """The share of pictures whose nearest neighbour among the known ones shows the same digit."""
    codes = [ops.normalize(encoder(pictures), axis=-1) for pictures in (asked[0], known[0])]
    nearest = ops.argmax(ops.matmul(codes[0], ops.matrix_transpose(codes[1])), -1)
    return ops.item(ops.mean(ops.cast(ops.equal(ops.take(known[1], nearest, 0), asked[1]), "float32")))


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, and look at the neighbours before and after."""
    parser = argparse.ArgumentParser(description="An encoder that learns without targets.")
    parser.add_argument("--backend", help="which library computes; by default the one that is chosen already")
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args(arguments)
    if options.backend:
        ember_ml.set_backend(options.backend)
    print(f"computed by {ember_ml.get_backend()}\n")
    ops.random.seed(0)
    (pictures, digits), test = datasets.digits("training"), datasets.digits("test")
    encoder = nn.Sequential(nn.Flatten(), nn.MLP(128, 32, 256, "relu"))
    trainer = Contrastive(encoder, "adam", progress=False)
    before = find_neighbours(encoder, (pictures, digits), test)
    losses = trainer.fit(split(pictures), epochs=1000, max_steps=options.steps)["loss"]
    print(f"loss {losses[0]:.3f} at first, {losses[-1]:.3f} after {options.steps} steps")
    found = trainer.evaluate(split(test[0]))["loss"]
    after = find_neighbours(encoder, (pictures, digits), test)
    print(
        f"loss of test pictures {found:.3f}; nearest neighbours of the same digit: {before:.3f} before, {after:.3f} now"
    )


if __name__ == "__main__":
    main()
