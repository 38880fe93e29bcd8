"""The base class of callbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ember_ml.typing import Tensor

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer

__all__ = ["Callback", "check_whole", "read_monitor"]


class Callback:
    """Something to do at certain moments of training; subclasses define the methods that they need.

    ``trainer.should_stop = True`` ends training after the step or epoch that is under way.
    """

    def begin(self, trainer: Trainer) -> None:
        """Run before the first step of ``fit``."""

    def after_step(self, trainer: Trainer) -> None:
        """Run after each step; ``trainer.steps`` counts them."""

    def after_gradients(self, trainer: Trainer, gradients: dict[str, Tensor]) -> None:
        """Run before each update, with the gradients by the names of the parameters, before they are clipped.

        They are those of the whole batch, and of all batches that are accumulated. A strategy that shares out the
        parameters gives each process its own part.
        """

    def after_validation(self, trainer: Trainer, values: dict[str, Any]) -> None:
        """Run after each validation within an epoch, with its values; ``after_epoch`` has those at the end."""

    def after_epoch(self, trainer: Trainer, values: dict[str, Any]) -> None:
        """Run after each epoch, with its loss, its metrics and those of the validation."""

    def after_fit(self, trainer: Trainer) -> None:
        """Run after the last step of ``fit``, where no error ended it."""

    def end(self, trainer: Trainer) -> None:
        """Run at the end of ``fit``, also where an error ended it."""

    def state(self) -> dict[str, Any]:
        """Return the plain data that a checkpoint saves of the callback."""
        return {}

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors by name that a checkpoint saves of the callback."""
        return {}

    def restore(self, state: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Continue from what :meth:`state` and :meth:`tensors` returned."""


def read_monitor(callback: Any, values: dict[str, Any]) -> float:
    """Return the value of an epoch that a callback monitors, as a number of which the least is best."""
    callback.check_monitor(values)
    value = values[callback.monitor]
    if not isinstance(value, int | float):
        raise TypeError(f"{type(callback).__name__} watches {callback.monitor!r}, which is no number: {value!r:.60}")
    return value if callback.mode == "min" else -value


def check_whole(name: str, value: Any, least: int) -> int:
    """Return a setting of a callback, which is a whole number.

    >>> from ember_ml.training.callback_base import check_whole
    >>> check_whole("patience", 3, 0)
    3
    """
    if type(value) is not int or value < least:
        raise ValueError(f"{name} is a whole number from {least} up, not {value!r}")
    return value
