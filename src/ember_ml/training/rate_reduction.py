"""Reduce the learning rate where training no longer improves."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ember_ml.training.callback_base import Callback, check_whole, read_monitor
from ember_ml.training.optimizers.groups import find_own_rate
from ember_ml.training.state_checks import check_count, check_number, check_table
from ember_ml.typing import Tensor

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer

__all__ = ["ReduceRateOnPlateau"]


class ReduceRateOnPlateau(Callback):
    """Multiplies the learning rate by ``factor`` when a value has not improved for ``patience`` epochs.

    Groups of parameters with a rate, or an optimizer, of their own are reduced too. The rate must be a number: a
    schedule decides for itself.

    Args:
        monitor: The name of the value: "loss", "val_loss", a metric, or "val_" and a metric.
        factor: What the rate is multiplied by, between 0 and 1.
        patience: The number of epochs without improvement after which the rate is reduced.
        smallest_change: By how much a value must be better to count.
        mode: "min" or "max": which values are better.
        cooldown: The number of epochs after a reduction that do not count.
        smallest_rate: The rate is not reduced below this.

    >>> from ember_ml import nn, ops
    >>> from ember_ml.training import Trainer, callbacks
    >>> reduce = callbacks.ReduceRateOnPlateau("loss", factor=0.5, patience=1, smallest_change=1e9)
    >>> trainer = Trainer(nn.Linear(2, 1), "sgd", callbacks=[reduce])
    >>> _ = trainer.fit(ops.ones((4, 2)), ops.ones((4, 1)), epochs=3)
    >>> trainer.optimizer.learning_rate
    0.0025
    """

    best: float
    cooldown: int
    factor: float
    mode: str
    monitor: str
    patience: int
    smallest_change: float
    smallest_rate: float
    waited: int

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        smallest_change: float = 0.0,
        mode: str = "min",
        cooldown: int = 0,
        smallest_rate: float = 0.0,
    ) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode is min or max, not {mode!r}")
        if not 0 < factor < 1:
            raise ValueError(f"factor is between 0 and 1, not {factor!r}")
        self.monitor, self.factor, self.smallest_change = monitor, factor, smallest_change
        # with 0 the rate would be reduced after each epoch, whatever its value
        self.patience, self.cooldown = check_whole("patience", patience, 1), check_whole("cooldown", cooldown, 0)
        self.mode, self.smallest_rate = mode, smallest_rate
        self.best, self.waited, self._resting = math.inf, 0, 0

    def begin(self, trainer: Trainer) -> None:
        if callable(trainer.optimizer.learning_rate):
            raise TypeError(
                f"ReduceRateOnPlateau multiplies the learning rate, and it is {trainer.optimizer.learning_rate!r:.80}, "
                "which decides for itself: give the optimizer a number"
            )

    def check_monitor(self, names: Iterable[str]) -> None:
        """Raise where no value of that name is known at the end of an epoch."""
        if self.monitor not in names:
            raise ValueError(f"ReduceRateOnPlateau watches {self.monitor!r}, and an epoch gives {', '.join(names)}")

    def after_epoch(self, trainer: Trainer, values: dict[str, Any]) -> None:
        value = read_monitor(self, values)
        if value < self.best - self.smallest_change:  # False for NaN
            self.best, self.waited = value, 0
        elif not self._resting:
            self.waited += 1
        self._resting = max(self._resting - 1, 0)
        if self.waited >= self.patience:
            self.waited, self._resting = 0, self.cooldown
            self._reduce(trainer.optimizer)

    def _reduce(self, optimizer: Any) -> None:
        optimizer.learning_rate = self._reduced(optimizer.learning_rate)
        for group in optimizer.groups:
            rate = find_own_rate(group)
            if rate is not None and not callable(rate):
                group["learning_rate"] = self._reduced(rate)

    def _reduced(self, rate: float) -> float:
        return min(rate, max(rate * self.factor, self.smallest_rate))  # one that is below that already stays

    def state(self) -> dict[str, Any]:
        best = self.best if math.isfinite(self.best) else None
        return {"best": best, "waited": self.waited, "resting": self._resting}

    def restore(self, state: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        check_table(state, "ReduceRateOnPlateau", "best", "waited", "resting")
        self.best = math.inf if state["best"] is None else check_number(state, "best")
        self.waited, self._resting = check_count(state, "waited"), check_count(state, "resting")
