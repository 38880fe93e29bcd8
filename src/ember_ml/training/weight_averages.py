"""Averages of the weights over the steps of training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ember_ml import ops
from ember_ml.nn.modules.module import Module
from ember_ml.training.callback_base import Callback
from ember_ml.training.state_checks import check_count, check_table
from ember_ml.typing import Tensor

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer

__all__ = ["WeightAverage"]


class WeightAverage(Callback):
    """Keeps an average of the model's parameters: exponential (EMA), or the plain mean (SWA).

    With ``decay`` the average moves by ``average = decay * average + (1 - decay) * parameter``, beginning with the
    parameters of the first step that counts; without, it is the mean of all that were counted. Buffers are those of
    the model as it is. The averages are in the checkpoints.

    Args:
        decay: The part of the average that is kept; None for the plain mean.
        every_steps: The number of steps from one count of the parameters to the next; None: after each epoch.
        start: The number of steps, or of epochs, before the first that counts.
        replace: Whether the model has the averaged parameters when ``fit`` ends without an error.

    >>> from ember_ml import nn, ops
    >>> from ember_ml.training import Trainer, callbacks
    >>> average = callbacks.WeightAverage(decay=0.9)
    >>> trainer = Trainer(nn.Linear(2, 1), "sgd", callbacks=[average])
    >>> _ = trainer.fit(ops.ones((8, 2)), ops.ones((8, 1)), epochs=2, batch_size=4)
    >>> with average.applied(trainer.model):
    ...     values = trainer.evaluate(ops.ones((8, 2)), ops.ones((8, 1)))
    >>> average.count
    4
    """

    count: int
    decay: float | None
    every_steps: int | None
    replace: bool
    start: int

    def __init__(
        self, decay: float | None = 0.999, every_steps: int | None = 1, start: int = 0, replace: bool = False
    ) -> None:
        if decay is not None and not 0 <= decay < 1:
            raise ValueError(f"decay is from 0 up and below 1, or None for the plain mean, not {decay!r}")
        if every_steps is not None and every_steps < 1:
            raise ValueError(f"every_steps is at least 1, or None for each epoch, not {every_steps}")
        self.decay, self.every_steps, self.start, self.replace = decay, every_steps, start, replace
        self.count = 0
        """The number of times that the parameters were counted."""
        self._averages: dict[str, Tensor] = {}
        self._is_done = False

    def after_step(self, trainer: Trainer) -> None:
        if self.every_steps and trainer.steps > self.start and trainer.steps % self.every_steps == 0:
            self._add(trainer.model)

    def after_epoch(self, trainer: Trainer, values: dict[str, Any]) -> None:
        if self.every_steps is None and trainer.epoch > self.start:
            self._add(trainer.model)

    def begin(self, trainer: Trainer) -> None:
        self._is_done = False

    def after_fit(self, trainer: Trainer) -> None:
        self._is_done = True

    def end(self, trainer: Trainer) -> None:  # after the last checkpoint, from which training can go on
        if self.replace and self.count and self._is_done:
            trainer.model.load_state_dict(self.averages(), strict=False)

    def _add(self, model: Module) -> None:
        self.count += 1
        part = 1.0 / self.count if self.decay is None else 1.0 - self.decay
        for name, parameter in model.named_parameters().items():
            new = parameter.value
            if name not in self._averages:
                self._averages[name] = ops.copy(new)  # an update may change the parameter in place
            else:
                old = ops.asarray(self._averages[name])  # the backend may have been switched
                self._averages[name] = ops.add(old, ops.multiply(ops.subtract(new, old), part))

    def averages(self) -> dict[str, Tensor]:
        """Return copies of the averaged parameters by name."""
        if not self.count:
            raise ValueError("there are no averages yet: no step has been counted")
        return {name: ops.copy(ops.asarray(x)) for name, x in self._averages.items()}

    @contextmanager
    def applied(self, model: Module) -> Iterator[Module]:
        """A block in which the parameters of ``model`` are the averaged ones."""
        before = {name: ops.copy(x.value) for name, x in model.named_parameters().items()}
        model.load_state_dict(self.averages(), strict=False)
        try:
            yield model
        finally:
            model.load_state_dict(before, strict=False)

    def state(self) -> dict[str, Any]:
        return {"count": self.count}

    def tensors(self) -> dict[str, Tensor]:
        return self._averages

    def restore(self, state: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        self.count = check_count(check_table(state, "WeightAverage", "count"), "count")
        self._averages = {name: ops.copy(x) for name, x in tensors.items()}
