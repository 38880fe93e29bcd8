"""Callbacks: run code between the steps and epochs of training."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ember_ml import ops
from ember_ml.training import shared_checkpoints
from ember_ml.training.callback_base import Callback, check_whole, read_monitor
from ember_ml.training.checkpoint_stores import place_of
from ember_ml.training.loggers import CSVLog, JSONLog, Logger, MLflow, TensorBoard, WandB
from ember_ml.training.progress_displays import Display, choose_display
from ember_ml.training.rate_reduction import ReduceRateOnPlateau
from ember_ml.training.state_checks import check_count, check_number, check_table
from ember_ml.training.weight_averages import WeightAverage
from ember_ml.typing import Tensor

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer

__all__ = [
    "CSVLog",
    "Callback",
    "Checkpoint",
    "EarlyStopping",
    "GradientNorms",
    "JSONLog",
    "Logger",
    "MLflow",
    "OnEpoch",
    "Progress",
    "ReduceRateOnPlateau",
    "StopOnNaN",
    "TensorBoard",
    "WandB",
    "WeightAverage",
]


class OnEpoch(Callback):
    """Calls a function of the trainer and the values after each epoch.

    Args:
        function: Called with the trainer and a dict of the values of the epoch.
    """

    def __init__(self, function: Callable[[Trainer, dict[str, Any]], Any]) -> None:
        self.function = function

    def after_epoch(self, trainer: Trainer, values: dict[str, Any]) -> None:
        self.function(trainer, values)


class EarlyStopping(Callback):
    """Ends training when a value has not improved for ``patience`` epochs; may bring back the best parameters.

    Args:
        monitor: The name of the value: "loss", "val_loss", a metric, or "val_" and a metric.
        patience: The number of epochs without improvement after which training ends.
        smallest_change: By how much a value must be better to count.
        mode: "min" or "max": which values are better.
        restore_best: Whether the model gets the parameters of the best epoch when ``fit`` ends without an error.
    """

    best: float
    monitor: str
    patience: int
    restore_best: bool
    smallest_change: float
    waited: int

    def __init__(
        self,
        monitor: str = "val_loss",
        patience: int = 5,
        smallest_change: float = 0.0,
        mode: str = "min",
        restore_best: bool = False,
    ) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode is min or max, not {mode!r}")
        self.monitor, self.patience, self.smallest_change = (
            monitor,
            check_whole("patience", patience, 0),
            smallest_change,
        )
        self.mode, self.restore_best = mode, restore_best
        self.best, self.waited = math.inf, 0
        self._kept: dict[str, Any] | None = None
        self._is_done = False

    def begin(self, trainer: Trainer) -> None:
        self._is_done = False

    def check_monitor(self, names: Iterable[str]) -> None:
        """Raise where no value of that name is known at the end of an epoch."""
        if self.monitor not in names:
            raise ValueError(f"EarlyStopping watches {self.monitor!r}, and an epoch gives {', '.join(names)}")

    def after_epoch(self, trainer: Trainer, values: dict[str, Any]) -> None:
        value = read_monitor(self, values)
        if value < self.best - self.smallest_change:
            self.best, self.waited = value, 0
            if self.restore_best:
                self._kept = trainer.model.state_dict()
            return
        self.waited += 1
        if self.waited >= self.patience:
            trainer.should_stop = True

    def after_fit(self, trainer: Trainer) -> None:
        self._is_done = True

    def end(self, trainer: Trainer) -> None:  # after an error training may go on, from the parameters as they are
        if self._kept is not None and self._is_done:
            trainer.model.load_state_dict(self._kept)

    def state(self) -> dict[str, Any]:
        return {"best": self.best if math.isfinite(self.best) else None, "waited": self.waited}

    def tensors(self) -> dict[str, Tensor]:
        return self._kept or {}

    def restore(self, state: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        check_table(state, "EarlyStopping", "best", "waited")
        self.best, self.waited = _read_best(state), check_count(state, "waited")
        self._kept = {name: ops.copy(x) for name, x in tensors.items()} or None


class StopOnNaN(Callback):
    """Raises ``FloatingPointError`` when a loss is not finite; reads the loss every ``every`` steps.

    Args:
        every: The number of steps between two readings.
    """

    every: int

    def __init__(self, every: int = 100) -> None:
        self.every = check_whole("every", every, 1)

    def after_step(self, trainer: Trainer) -> None:
        if trainer.steps % self.every == 0:
            loss = trainer.history.last_loss
            if loss is not None and not math.isfinite(loss):
                raise FloatingPointError(f"the loss of step {trainer.steps} is {loss}; try a smaller learning rate")


class Checkpoint(Callback):
    """Saves the whole state of training to a folder, at regular intervals of steps or epochs, and at the end.

    With ``monitor`` only when that value is better than ever before, after an epoch. With ``resume``, ``fit`` goes on
    from what the folder holds, if anything: from the latest checkpoint that is not damaged.

    The state is copied and written while training goes on, which needs as much memory again as the state itself. A new
    checkpoint waits until the one before is whole, and ``fit`` until the last one is. With ``wait`` training waits for
    each, and nothing is copied.

    Args:
        path: The folder, or an address in an object store, as ``s3://bucket/run``.
        every_steps: The number of steps from one save to the next; None: only after epochs.
        every_epochs: The number of epochs from one save to the next.
        monitor: Save only when this value is the best so far.
        mode: "min" or "max": which values are better.
        resume: Whether ``fit`` continues from the folder.
        keep: The number of checkpoints that stay in the folder.
        wait: Whether training waits until a checkpoint is on the disk.
    """

    best: float
    every_epochs: int
    every_steps: int | None
    keep: int
    monitor: str | None
    path: str | Path
    resume: bool
    wait: bool

    def __init__(
        self,
        path: str | PathLike[str],
        every_steps: int | None = None,
        every_epochs: int = 1,
        monitor: str | None = None,
        mode: str = "min",
        resume: bool = False,
        keep: int = 2,
        wait: bool = False,
    ) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode is min or max, not {mode!r}")
        for name, value in (("every_steps", every_steps), ("every_epochs", every_epochs), ("keep", keep)):
            if value is not None and value < 1:
                raise ValueError(f"{name} is at least 1, not {value}")
        self.path = place_of(path)
        self.every_steps, self.every_epochs, self.monitor, self.mode = every_steps, every_epochs, monitor, mode
        self.resume, self.keep, self.wait, self.best = resume, keep, wait, math.inf
        self._saved: tuple[int, int] | None = None  # the step and epoch of the last checkpoint

    def begin(self, trainer: Trainer) -> None:
        self._saved = None
        if self.resume and shared_checkpoints.exists(trainer.strategy, self.path):
            trainer.restore(self.path)
            self._saved = trainer.steps, trainer.epoch

    def check_monitor(self, names: Iterable[str]) -> None:
        """Raise where no value of that name is known at the end of an epoch."""
        if self.monitor is not None and self.monitor not in names:
            raise ValueError(f"Checkpoint watches {self.monitor!r}, and an epoch gives {', '.join(names)}")

    def after_step(self, trainer: Trainer) -> None:
        if self.every_steps and trainer.steps % self.every_steps == 0:
            self._save(trainer, self.wait)

    def _save(self, trainer: Trainer, wait: bool) -> None:
        trainer.save(self.path, self.keep, wait)
        self._saved = trainer.steps, trainer.epoch

    def after_epoch(self, trainer: Trainer, values: dict[str, Any]) -> None:
        if self.monitor is not None:
            value = read_monitor(self, values)
            if value < self.best:  # False for NaN
                self.best = value
                self._save(trainer, self.wait)
        elif self.every_steps is None and trainer.epoch % self.every_epochs == 0:
            self._save(trainer, self.wait)

    def after_fit(self, trainer: Trainer) -> None:
        if self.monitor is None and self._saved != (trainer.steps, trainer.epoch):
            self._save(trainer, wait=True)  # nothing else is left to do

    def state(self) -> dict[str, Any]:
        return {"best": self.best if math.isfinite(self.best) else None}

    def restore(self, state: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        self.best = _read_best(check_table(state, "Checkpoint", "best"))


def _read_best(state: dict[str, Any]) -> float:
    return math.inf if state["best"] is None else check_number(state, "best")


class GradientNorms(Callback):
    """Records the Euclidean norm of all gradients, before they are clipped, every ``every`` updates.

    ``norms`` has them by the number of batches before the update; with ``by_name`` each is a dict that has the norm of
    each parameter as well, with ``by_layer`` that of all parameters of each layer. Reading them waits for the
    gradients. Loggers write them as ``gradient_norm`` and ``gradient_norm/`` and a name. They are those of the whole
    gradients with every strategy. ``norms`` is not in checkpoints; a run that goes on records the same updates.

    Args:
        every: The number of updates between two readings.
        by_name: Whether the norm of each parameter's gradient is recorded too.
        by_layer: Whether that of each layer is, by the layer's path, without the layers in it.

    >>> from ember_ml import nn, ops
    >>> from ember_ml.training import Trainer, callbacks
    >>> norms = callbacks.GradientNorms()
    >>> trainer = Trainer(nn.Linear(2, 1), "sgd", callbacks=[norms], progress=False)
    >>> history = trainer.fit(ops.ones((8, 2)), ops.zeros((8, 1)), batch_size=4)
    >>> sorted(norms.norms)
    [0, 1]
    """

    by_layer: bool
    by_name: bool
    every: int
    norms: dict[int, Any]

    def __init__(self, every: int = 1, by_name: bool = False, by_layer: bool = False) -> None:
        self.every, self.by_name, self.by_layer = check_whole("every", every, 1), by_name, by_layer
        self.norms = {}

    def after_gradients(self, trainer: Trainer, gradients: dict[str, Tensor]) -> None:
        if trainer.optimizer.step % self.every:
            return
        squares = {name: ops.sum(ops.square(ops.cast(g, "float32"))) for name, g in gradients.items()}
        if trainer.strategy is not None:
            squares = trainer.strategy.add_squares(squares)
        read: list[float] = ops.to_numpy(ops.sqrt(ops.stack(list(squares.values())))).tolist()
        found = {"gradient_norm": math.hypot(*read)}
        if self.by_name:
            found |= {f"gradient_norm/{name}": norm for name, norm in zip(squares, read, strict=True)}
        if self.by_layer:
            layers: dict[str, float] = {}
            for name, norm in zip(squares, read, strict=True):
                path = name.rpartition(".")[0]
                layers[path] = math.hypot(layers.get(path, 0.0), norm)
            found |= {f"gradient_norm/{path}": norm for path, norm in layers.items() if path}
        self.norms[trainer.steps] = found if self.by_name or self.by_layer else found["gradient_norm"]
        trainer.step_values |= found


class Progress(Callback):
    """Shows how far training is, with a line for each epoch that is done, on the standard error stream.

    On a terminal and in a notebook a bar shows the steps of the epoch; elsewhere there are the lines alone.

    Args:
        refresh: The least time in seconds between two updates of the bar.
    """

    def __init__(self, refresh: float = 0.25) -> None:
        self.refresh = refresh
        self._display: Display | None = None
        self._shown = self._start = 0.0
        self._before = 0

    def begin(self, trainer: Trainer) -> None:
        self._display = choose_display()
        self._start, self._before = time.perf_counter(), trainer.epoch

    def after_step(self, trainer: Trainer) -> None:
        now = time.perf_counter()
        if self._display is None or now - self._shown < self.refresh:
            return
        self._shown = now  # reading the loss waits for it, so it is not read after every step
        loss = trainer.history.last_loss
        self._display.update(
            f"{trainer.epoch + 1}/{trainer.planned_epochs}",
            trainer.steps_in_epoch,
            trainer.steps_per_epoch,
            "" if loss is None else f"{loss:.4g}",
        )

    def after_epoch(self, trainer: Trainer, values: dict[str, Any]) -> None:
        if self._display is None:
            return
        words = [f"epoch {trainer.epoch}/{trainer.planned_epochs}"]
        words += [f"{name} {x:.4g}" for name, x in values.items() if isinstance(x, float)]
        words.append(f"{trainer.history.times[-1]:.1f} s")
        left = trainer.planned_epochs - trainer.epoch
        if left > 0:
            mean = (time.perf_counter() - self._start) / (trainer.epoch - self._before)
            words.append(f"{_describe_time(left * mean)} left")
        self._display.add_line("  ".join(words))

    def end(self, trainer: Trainer) -> None:
        if self._display is not None:
            self._display.close()
            self._display = None


def _describe_time(seconds: float) -> str:
    """Return a time as people read it: "12 s", "3:05", "1:02:03"."""
    if seconds < 60:
        return f"{math.ceil(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
