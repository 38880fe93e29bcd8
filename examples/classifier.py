"""A classifier of images: a small convolutional network learns the digits that come with the package.

The model is trained, measured on digits that it has not seen, saved, and opened again by another backend where one is
installed.

    python examples/classifier.py [--backend numpy|torch|mlx] [--epochs 8] [--quick]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from typing import Any

import ember_ml
from ember_ml import datasets, nn, ops
from ember_ml.backend import installed_backends
from ember_ml.training import Trainer, optimizers, schedules

BATCH_SIZE = 50


def make_model() -> nn.Module:
    """Two convolutions, each followed by pooling, and a layer that gives a score for each digit."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding="same"), ops.relu, nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding="same"), ops.relu, nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(256, 10),
    )  # fmt: skip


def train(training: Any, test: Any, epochs: int) -> Trainer:
    """A trainer that has seen the training data ``epochs`` times."""
    ops.random.seed(0)  # for the weights and the dropout
    steps = epochs * len(training[1]) // BATCH_SIZE
    trainer = Trainer(
        make_model(),
        optimizers.AdamW(schedules.Cosine(0.01, steps=max(steps, 1)), weight_decay=0.01),
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    trainer.fit(*training, epochs=epochs, batch_size=BATCH_SIZE, validation=test)
    return trainer


def show(image: Any) -> str:
    """An image as lines of characters."""
    rows = ops.to_numpy(ops.cast(ops.multiply(ops.squeeze(image, -1), 4.0), "int64")).tolist()
    return "\n".join("".join(" .+#@"[shade] for shade in row) for row in rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, and print how good the model is."""
    parser = argparse.ArgumentParser(description="A network that learns to read digits.")
    parser.add_argument("--backend", help="which library computes; by default the one that is chosen already")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--quick", action="store_true", help="train on 100 digits once")
    options = parser.parse_args(arguments)
    if options.backend:
        ember_ml.set_backend(options.backend)
    print(f"computed by {ember_ml.get_backend()}\n")

    count, epochs = (100, 1) if options.quick else (None, options.epochs)
    training, test = (tuple(part[:count] for part in datasets.digits(name)) for name in ("training", "test"))
    trainer = train(training, test, epochs)
    print(trainer.model.summary())
    print("\nepoch    loss  accuracy  accuracy on test")
    history = trainer.history
    for epoch in range(epochs):
        row = (history["loss"].epochs[epoch], history["accuracy"][epoch], history["val_accuracy"][epoch])
        print(f"{epoch + 1:5d}  {row[0]:6.4f}  {row[1]:8.1%}  {row[2]:16.1%}")

    with tempfile.TemporaryDirectory() as folder:
        trainer.save(folder)
        for name in installed_backends():
            with ember_ml.use_backend(name):
                again = Trainer.load(folder).evaluate(*test)
                print(
                    f"saved, and opened by {name}: loss {again['loss']:.4f}, accuracy {again['accuracy']:.1%} on test"
                )

    image = test[0][:1]
    print(f"\n{show(image[0])}\nis taken for {ops.item(ops.argmax(trainer.predict(image)))}")


if __name__ == "__main__":
    main()
