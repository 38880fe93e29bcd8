"""A run of training that tests kill and start again: ``python killed_run.py BACKEND RESULT [FOLDER EVERY]``.

It has everything that a checkpoint must keep: a shuffled order, dropout, running statistics, a schedule, groups of
parameters with two optimizers, gradients that are collected over two batches while an epoch has five, metrics,
validation, and the best parameters of early stopping.
With a folder it saves there, and goes on from what is there. In the end it writes the weights and the history.
"""

from __future__ import annotations

import json
import sys

import ember_ml
from ember_ml import nn, ops
from ember_ml.training import Trainer, callbacks, optimizers, schedules


def main(backend: str, result: str, folder: str = "", every: str = "1") -> None:
    """Train, from the start or from the folder, and write ``result`` with .safetensors and with .json."""
    ember_ml.set_backend(backend)
    ops.random.seed(3)
    x = ops.random_normal((39, 6), seed=1)
    y = ops.argmax(ops.matmul(x, ops.random_normal((6, 3), seed=2)), axis=-1)
    model = nn.Sequential(nn.Linear(16), nn.BatchNorm(16), ops.tanh, nn.Dropout(0.3), nn.Linear(16, 3))
    saving = [callbacks.Checkpoint(folder, every_steps=int(every), resume=True)] if folder else []
    groups = [
        {"match": r".*bias", "weight_decay": 0.0, "beta1": 0.8, "rate_factor": 0.5},
        {"match": r"4\..*", "optimizer": optimizers.SGD(schedules.Cosine(0.05, steps=12), momentum=0.9)},
    ]
    trainer = Trainer(
        model,
        optimizers.AdamW(schedules.Cosine(0.02, steps=12), weight_decay=0.01, groups=groups),
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
        callbacks=[*saving, callbacks.EarlyStopping("val_loss", patience=2, smallest_change=0.01, restore_best=True)],
        accumulate=2,
        progress=False,
    )
    print("ready", flush=True)
    history = trainer.fit(x, y, epochs=8, batch_size=8, validation=(x, y))
    model.save(f"{result}.safetensors")
    with open(f"{result}.json", "w") as file:
        names = ("loss", "accuracy", "val_loss", "val_accuracy")
        curves = {name: [history[name], history[name].epochs] for name in names}
        json.dump([trainer.steps, trainer.epoch, curves], file)
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
