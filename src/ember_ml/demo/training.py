"""One training run that changes backends on its way, beside the same run on each backend alone.

A small convolutional network learns the digits that come with the package. The first run trains some epochs on each
backend in turn: one model, one optimizer, one trainer. The others stay on one backend. All start from the same seed, so
that they should see the same losses, step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike

from rich.table import Table

import ember_ml
from ember_ml import datasets, nn, ops
from ember_ml.training import Trainer, optimizers
from ember_ml.training.history import History

__all__ = ["TOLERANCE", "Run", "compare", "difference", "draw", "table"]

BATCH_SIZE = 50
TOLERANCE = 1e-4
"""By how much losses may differ, relative to the loss or, where it is smaller, to 0.1."""


@dataclass(frozen=True, slots=True)
class Run:
    """A training run: which backend computed each epoch, and what the run saw."""

    backends: list[str]
    history: History

    def as_dict(self) -> dict[str, object]:
        """Return the run as plain data."""
        return {
            "backends": self.backends,
            "seconds": self.history.times,
            "loss": list(self.history["loss"]),
            "epochs": {name: curve.epochs for name, curve in self.history.items()},
        }


def network() -> nn.Sequential:
    """Return a network for images of 16 x 16 pixels and 10 classes, with the same weights each time."""
    ops.random.seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding="same"), ops.relu, nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding="same"), ops.relu, nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip


def train(backends: Sequence[str], samples: int | None = None) -> Run:
    """Train one epoch on each of ``backends``, which may repeat, with one trainer."""
    trainer = Trainer(
        network(), optimizers.Adam(0.005), "sparse_categorical_crossentropy", metrics=["accuracy"], progress=False
    )
    training, test = ((part[0][:samples], part[1][:samples]) for part in map(datasets.digits, ("training", "test")))
    for name in backends:
        ember_ml.set_backend(name)
        trainer.fit(*training, epochs=trainer.epoch + 1, batch_size=BATCH_SIZE, validation=test)
    return Run(list(backends), trainer.history)


def compare(
    backends: Sequence[str], epochs: int, samples: int | None = None, tell: Callable[[str], object] = str
) -> list[Run]:
    """Return the run that trains ``epochs`` epochs on each backend, then as many in all on each alone.

    ``samples`` limits the data, and ``tell`` is told what comes next.
    """
    before = ember_ml.get_backend()
    plans = [[name] * epochs * len(backends) for name in backends]
    switched = [name for name in backends for _ in range(epochs)]
    runs = []
    try:
        for plan in plans:
            tell(f"training on {plan[0]} alone")
            runs.append(train(plan, samples))
        if len(backends) == 1:
            return runs
        tell(f"training on {', then '.join(backends)}")  # last: by now every library has loaded what it loads late
        return [train(switched, samples), *runs]
    finally:
        ember_ml.set_backend(before)


def difference(runs: Sequence[Run]) -> float:
    """Return the largest difference between the losses of any two runs at any step, relative to the loss or to 0.1."""
    steps = zip(*(run.history["loss"] for run in runs), strict=True)
    return max((max(losses) - min(losses)) / max(*losses, 0.1) for losses in steps)


def table(runs: Sequence[Run]) -> Table:
    """Return the losses and times of the runs side by side, a row for each epoch."""
    first = runs[0]
    shown = Table(title="One training run: a digit classifier that changes backends", title_justify="left")
    shown.add_column("epoch", justify="right")
    shown.add_column("computed by")
    for heading in ("loss", "test accuracy", "time"):
        shown.add_column(heading, justify="right")
    alone = [run for run in runs if run is not first]
    for run in alone:
        shown.add_column(f"{run.backends[0]} alone", justify="right")
    for epoch, name in enumerate(first.backends):
        history = first.history
        is_last = epoch + 1 == len(first.backends) or first.backends[epoch + 1] != name
        shown.add_row(
            str(epoch + 1),
            name,
            f"{history['loss'].epochs[epoch]:.6f}",
            f"{history['val_accuracy'][epoch]:.1%}",
            f"{history.times[epoch]:.2f} s",
            *(f"{run.history['loss'].epochs[epoch]:.6f}  {run.history.times[epoch]:.2f} s" for run in alone),
            end_section=is_last,
        )
    steps, apart = len(first.history["loss"]), difference(runs)
    if len(runs) == 1:
        shown.caption = f"only {first.backends[0]} is installed: nothing to change to, nothing to compare with"
    elif apart < TOLERANCE:
        shown.caption = f"the losses of {steps} steps agree: they differ by {apart:.1e} of the loss at most"
    else:
        shown.caption = f"[bold red]the losses differ by {apart:.1e} of the loss, more than {TOLERANCE:g}[/]"
    return shown


def draw(run: Run, path: str | PathLike[str]) -> bool:
    """Draw the curve of the run to an image file; False, and no file, without Matplotlib."""
    try:
        run.history.plot(path)
    except ImportError:
        return False
    return True
