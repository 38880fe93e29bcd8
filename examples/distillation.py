"""Distillation: a small model learns from the answers of a large one, besides the right ones.

    python examples/distillation.py [--backend numpy|torch|mlx|jax] [--steps 600]

The teacher is an attribute of the trainer, whose step computes the loss; the rest is the trainer's, bfloat16 too.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import ember_ml
from ember_ml import datasets, nn, ops
from ember_ml.training import DataLoader, Trainer

TEMPERATURE, SHARE, BATCH_SIZE = 2.0, 0.5, 64


class Distillation(Trainer):
    """Trains a model on the targets, and on what a teacher thinks of all classes."""

    def __init__(self, model: nn.Module, teacher: nn.Module, **settings: Any) -> None:
        super().__init__(model, "adam", "sparse_categorical_crossentropy", metrics=["accuracy"], **settings)
        self.teacher = teacher.eval()

    def training_step(self, batch: Any) -> Any:
        """Return the weighted mean of both losses, and the predictions."""
        inputs, _ = batch
        loss, logits = super().training_step(batch)
        wanted = ops.softmax(ops.divide(ops.stop_gradient(self.teacher(inputs)), TEMPERATURE))
        soft = ops.categorical_crossentropy(wanted, ops.divide(logits, TEMPERATURE), from_logits=True)
        soft = ops.multiply(ops.mean(soft), SHARE * TEMPERATURE**2)
        return ops.add(ops.multiply(loss, 1 - SHARE), soft), logits


def make_model(hidden: int) -> nn.Module:
    """A network for pictures of 16 x 16 digits, always from the same numbers."""
    ops.random.seed(0)
    return nn.Sequential(nn.Flatten(), nn.MLP(hidden, 10, 256, "relu"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Train a teacher, then a student with it and one without."""
    parser = argparse.ArgumentParser(description="A small model that learns from a large one.")
    parser.add_argument("--backend", help="which library computes; by default the one that is chosen already")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--precision", choices=["bfloat16", "float16"])
    options = parser.parse_args(arguments)
    if options.backend:
        ember_ml.set_backend(options.backend)
    print(f"computed by {ember_ml.get_backend()}\n")
    training, test = datasets.digits("training"), datasets.digits("test")
    loader = DataLoader(training, batch_size=BATCH_SIZE, shuffle=True)
    shared: dict[str, Any] = {"precision": options.precision, "progress": False}

    teacher = Trainer(make_model(256), "adam", "sparse_categorical_crossentropy", ["accuracy"], **shared)
    teacher.fit(loader, epochs=1000, max_steps=options.steps)
    print(f"teacher: {teacher.evaluate(*test)['accuracy']:.3f} right, {teacher.model.num_parameters} parameters")

    student = Distillation(make_model(16), teacher.model, **shared)
    alone = Trainer(make_model(16), "adam", "sparse_categorical_crossentropy", ["accuracy"], **shared)
    for name, trainer in (("student", student), ("alone", alone)):
        trainer.fit(DataLoader(training, batch_size=BATCH_SIZE, shuffle=True), epochs=1000, max_steps=options.steps)
        found = trainer.evaluate(*test)
        print(f"{name}: {found['accuracy']:.3f} right, {trainer.model.num_parameters} parameters")


if __name__ == "__main__":
    main()
