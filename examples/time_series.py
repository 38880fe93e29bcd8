"""A forecast: from the last week of an hourly series, a recurrent network predicts the next day.

The series is made here: a day, a week and a slow wave, and noise that remembers. The network is compared with the usual
guesses, that tomorrow will be as today or as the same day a week ago.

    python examples/time_series.py [--backend numpy|torch|mlx] [--epochs 12] [--quick]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import pi
from typing import Any

import ember_ml
from ember_ml import nn, ops
from ember_ml.features import Windows
from ember_ml.training import Trainer, callbacks, optimizers

DAY, WEEK = 24, 7 * 24
PATCH = 6
"""How many hours the network takes at a time."""


def make_series(hours: int) -> Any:
    """An hourly series; the same numbers on every backend."""
    time = ops.arange(hours, dtype="float32")
    day = ops.sin(ops.multiply(time, 2 * pi / DAY))
    is_weekend = ops.cast(ops.greater_equal(ops.remainder(time, float(WEEK)), 5.0 * DAY), "float32")
    slow = ops.sin(ops.multiply(time, 2 * pi / (31.7 * DAY)))
    shocks = ops.random_normal((hours,), stddev=0.1, seed=1)
    decay = ops.power(0.9, ops.arange(100, dtype="float32"))  # a shock is forgotten in some ten hours
    noise = ops.convolve(shocks, decay)[:hours]
    by_day = ops.multiply(day, ops.subtract(1.0, ops.multiply(0.6, is_weekend)))
    return ops.add(ops.add(by_day, ops.multiply(0.8, slow)), noise)


class Forecaster(nn.Module):
    """A GRU reads the past a few hours at a time; its last state gives the coming hours, as changes of the last one."""

    def __init__(self, hidden: int, horizon: int) -> None:
        self.reader = nn.GRU(PATCH, hidden)
        self.output = nn.Linear(hidden, horizon)

    def forward(self, past: Any) -> Any:
        last = past[:, -1:]
        pieces = ops.reshape(ops.subtract(past, last), (past.shape[0], -1, PATCH))
        states = self.reader(pieces)
        return ops.add(last, self.output(states[:, -1]))


def samples(series: Any) -> tuple[Any, Any]:
    """Weeks, one starting every third hour, and the day after each."""
    pieces = Windows(WEEK + DAY, hop=3).extract(series)
    return pieces[:, :WEEK], pieces[:, WEEK:]


def error(forecast: Any, truth: Any) -> float:
    """The mean distance between forecast and truth."""
    return ops.item(ops.mean(ops.abs(ops.subtract(forecast, truth))))


def train(series: Any, epochs: int) -> Trainer:
    """A trainer that has learnt from the first four fifths of the series and watched the rest of it."""
    ops.random.seed(0)
    cut = series.shape[0] * 4 // 5
    trainer = Trainer(
        Forecaster(hidden=32, horizon=DAY),
        optimizers.Adam(0.01),
        "mean_absolute_error",
        callbacks=[callbacks.EarlyStopping("val_loss", patience=3, restore_best=True)],
    )
    trainer.fit(*samples(series[:cut]), epochs=epochs, batch_size=64, validation=samples(series[cut:]))
    return trainer


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, and print how far the forecasts are off on hours that come after all others."""
    parser = argparse.ArgumentParser(description="A recurrent network that forecasts a day.")
    parser.add_argument("--backend", help="which library computes; by default the one that is chosen already")
    parser.add_argument("--epochs", type=int, default=12, help="at most so many")
    parser.add_argument("--quick", action="store_true", help="learn from few weeks once")
    options = parser.parse_args(arguments)
    if options.backend:
        ember_ml.set_backend(options.backend)
    print(f"computed by {ember_ml.get_backend()}\n")

    weeks, epochs = (8, 1) if options.quick else (80, options.epochs)
    series = make_series(weeks * WEEK)
    known = series[: weeks * WEEK * 3 // 4]
    trainer = train(known, epochs)
    print("epoch  error  error on later hours")
    for epoch, (found, later) in enumerate(
        zip(trainer.history["loss"].epochs, trainer.history["val_loss"], strict=True), 1
    ):
        print(f"{epoch:5d}  {found:5.3f}  {later:20.3f}")

    past, truth = samples(series[weeks * WEEK * 3 // 4 :])
    print("\nmean error of a day, on hours that were kept for the end")
    print(f"as today       {error(past[:, -DAY:], truth):.3f}")
    print(f"as a week ago  {error(past[:, :DAY], truth):.3f}")
    print(f"the network    {error(trainer.predict(past), truth):.3f}")


if __name__ == "__main__":
    main()
