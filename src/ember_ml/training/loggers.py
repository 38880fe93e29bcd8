"""Callbacks that write what training measures to a file or to a service."""

from __future__ import annotations

import csv
import importlib
import json
import math
import time
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ember_ml import ops
from ember_ml.training.callback_base import Callback

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer

__all__ = ["CSVLog", "JSONLog", "Logger", "MLflow", "TensorBoard", "WandB"]


class Logger(Callback):
    """Writes the values of each epoch and of each validation, on the first process; subclasses define :meth:`write`.

    Args:
        every_steps: Also write loss, rate and other values of a step each time this many steps are done; reading them
            waits for them.
    """

    every_steps: int | None

    def __init__(self, every_steps: int | None = None) -> None:
        if every_steps is not None and every_steps < 1:
            raise ValueError(f"every_steps is at least 1, not {every_steps}")
        self.every_steps = every_steps

    def write(self, steps: int, values: dict[str, Any]) -> None:
        """Write values, numbers or nested lists by name, that were known after that number of steps."""
        raise NotImplementedError

    def after_step(self, trainer: Trainer) -> None:
        if self.every_steps and trainer.steps % self.every_steps == 0:
            values = {name: x if isinstance(x, int | float) else ops.item(x) for name, x in trainer.step_values.items()}
            loss = trainer.history.last_loss
            self._write_first(trainer, {"loss": loss, "rate": trainer.optimizer.rate, **values})

    def after_validation(self, trainer: Trainer, values: dict[str, Any]) -> None:
        self._write_first(trainer, values)

    def after_epoch(self, trainer: Trainer, values: dict[str, Any]) -> None:
        self._write_first(trainer, {"epoch": trainer.epoch, **values})

    def _write_first(self, trainer: Trainer, values: dict[str, Any]) -> None:
        if _is_first(trainer):
            self.write(trainer.steps, values)


def _is_first(trainer: Trainer) -> bool:
    return trainer.strategy is None or trainer.strategy.is_main


class CSVLog(Callback):
    """Writes a line of values after each epoch to a file, on the first process; a file that is there is continued.

    Values that the lines before do not have, as those of a validation that was added, are columns that are empty there.

    Args:
        path: The file.
    """

    path: Path

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)

    def after_epoch(self, trainer: Trainer, values: dict[str, Any]) -> None:
        if not _is_first(trainer):
            return
        row = {"epoch": trainer.epoch, "steps": trainer.steps, **values}
        columns = self._read_columns()
        if not row.keys() <= {*columns}:
            columns = list(dict.fromkeys([*columns, *row]))
            self._write_columns(columns)
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.DictWriter(file, columns).writerow(row)

    def _read_columns(self) -> list[str]:
        """Return the names of the columns of the file that is there, if any."""
        try:
            with self.path.open(newline="", encoding="utf-8") as file:
                return next(csv.reader(file), [])
        except FileNotFoundError:
            return []

    def _write_columns(self, columns: list[str]) -> None:
        """Write the file with these columns, and the lines that it has."""
        lines: list[dict[str, Any]] = []
        if self.path.exists():
            with self.path.open(newline="", encoding="utf-8") as file:
                lines = list(csv.DictReader(file))
        made = self.path.with_name(f"{self.path.name}.new")
        with made.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(lines)
        made.replace(self.path)


class JSONLog(Logger):
    """Writes a JSON object after each epoch, a line each, to a file, on the first process; lines are added to it.

    Every value is there, those of metrics whose result is a tensor as nested lists, and numbers that are not finite as
    null.

    Args:
        path: The file.
        every_steps: Also write loss, rate and other values of a step each time this many steps are done; reading them
            waits for them.
    """

    path: Path

    def __init__(self, path: str | PathLike[str], every_steps: int | None = None) -> None:
        super().__init__(every_steps)
        self.path = Path(path)

    def write(self, steps: int, values: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(_replace_infinite({"steps": steps, **values})) + "\n")


def _replace_infinite(value: Any) -> Any:
    """Return plain data with None for floats that JSON has no number for."""
    if isinstance(value, dict):
        return {name: _replace_infinite(x) for name, x in value.items()}
    if isinstance(value, list):
        return [_replace_infinite(x) for x in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class TensorBoard(Logger):
    """Writes event files for TensorBoard to a folder; needs the package ``tensorboard``. Matrices are left out.

    Args:
        path: The folder; ``tensorboard --logdir`` shows it.
        every_steps: Also write loss, rate and other values of a step each time this many steps are done.
    """

    path: Path

    def __init__(self, path: str | PathLike[str], every_steps: int | None = None) -> None:
        super().__init__(every_steps)
        self.path = Path(path)
        self._events = _import("tensorboard.compat.proto.event_pb2", "TensorBoard", "tensorboard")
        self._summaries = _import("tensorboard.compat.proto.summary_pb2", "TensorBoard", "tensorboard")
        self._files = _import("tensorboard.summary.writer.event_file_writer", "TensorBoard", "tensorboard")
        self._writer: Any = None

    def begin(self, trainer: Trainer) -> None:
        if _is_first(trainer):
            self._writer = self._files.EventFileWriter(str(self.path))

    def write(self, steps: int, values: dict[str, Any]) -> None:
        kind = self._summaries.Summary
        found = [kind.Value(tag=name, simple_value=x) for name, x in _numbers(values).items()]
        event = self._events.Event(wall_time=time.time(), step=steps, summary=kind(value=found))
        self._writer.add_event(event)

    def end(self, trainer: Trainer) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class _RunLogger(Logger):
    """Logs to a run that a package keeps: the active one, or one that is begun for the ``fit``."""

    package: ClassVar[str]
    settings: dict[str, Any]

    def __init__(self, every_steps: int | None = None, **settings: Any) -> None:
        super().__init__(every_steps)
        self.settings = settings
        self._library = _import(self.package, type(self).__name__, self.package)
        self._run: Any = None

    def begin(self, trainer: Trainer) -> None:
        if _is_first(trainer) and self._active() is None:
            self._run = self._start()

    def end(self, trainer: Trainer) -> None:
        if self._run is not None:
            self._finish()
            self._run = None

    def _active(self) -> Any:
        """Return the active run, or None."""
        raise NotImplementedError

    def _start(self) -> Any:
        """Begin a run and return it."""
        raise NotImplementedError

    def _finish(self) -> None:
        """End the run that was begun."""
        raise NotImplementedError


class MLflow(_RunLogger):
    """Logs to the active run of MLflow, or to one that is begun for the ``fit``; needs the package ``mlflow``.

    Matrices are left out.

    Args:
        every_steps: Also log loss, rate and other values of a step each time this many steps are done.
        **settings: For ``mlflow.start_run``, where no run is active.
    """

    package = "mlflow"

    def write(self, steps: int, values: dict[str, Any]) -> None:
        self._library.log_metrics(_numbers(values), step=steps)

    def _active(self) -> Any:
        return self._library.active_run()

    def _start(self) -> Any:
        return self._library.start_run(**self.settings)

    def _finish(self) -> None:
        self._library.end_run()


class WandB(_RunLogger):
    """Logs to a run of Weights & Biases, the active one or a new one; needs the package ``wandb``.

    Args:
        every_steps: Also log loss, rate and other values of a step each time this many steps are done.
        **settings: For ``wandb.init``, where no run is active.
    """

    package = "wandb"

    def write(self, steps: int, values: dict[str, Any]) -> None:
        self._active().log(values, step=steps)

    def _active(self) -> Any:
        return self._run or self._library.run

    def _start(self) -> Any:
        return self._library.init(**self.settings)

    def _finish(self) -> None:
        self._run.finish()


def _numbers(values: dict[str, Any]) -> dict[str, float]:
    """Return the values that are numbers."""
    return {name: float(x) for name, x in values.items() if isinstance(x, int | float)}


def _import(module: str, logger: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"callbacks.{logger} needs the package {package}: pip install {package}") from error
