"""One step of training: the loss, its gradients, the update; eager or compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import ember_ml
from ember_ml import ops
from ember_ml.backend.contract import Backend
from ember_ml.backend.selection import active
from ember_ml.core import trees
from ember_ml.distributed import heartbeat
from ember_ml.nn.gradients import build, differentiate
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.trained_state import TrainedState
from ember_ml.tensor.variable import values_of
from ember_ml.training.batches import apply_model, split_batch
from ember_ml.training.optimizers.base import Optimizer
from ember_ml.training.precision import Precision, compute_in, widen
from ember_ml.transforms.compilation import Compiled
from ember_ml.typing import Tensor

__all__ = ["Objective", "TrainingStep"]


class Objective:
    """The loss of a model on a batch, and its gradients, eager or compiled.

    It knows nothing of the optimizer, so that a compiled program has none of its tensors as arguments.
    """

    gives_predictions: bool
    loss: Any
    model: Module
    precision: Precision | None

    def __init__(self, model: Module, loss: Any, precision: Precision | None = None) -> None:
        self.model, self.loss, self.precision = model, loss, precision
        self.gives_predictions = True
        """Whether the predictions are wanted as well as the loss."""
        self._compiled_loss = ember_ml.compile(self.loss_of)
        self._compiled_gradients = ember_ml.compile(self.gradients)

    def loss_of(self, x: Any, y: Any, weight: Any, scale: Any = None) -> tuple[Tensor, Any]:
        """Return the loss of a batch, times ``scale`` if it is given, and the predictions if they are wanted."""
        with compute_in(self.precision):
            prediction = widen(apply_model(self.model, x)) if self.precision is not None else apply_model(self.model, x)
            value = self.loss(y, prediction) if weight is None else self.loss(y, prediction, weight)
        value = value if scale is None else ops.multiply(value, scale)
        return value, prediction if self.gives_predictions else None

    def gradients(self, x: Any, y: Any, weight: Any, scale: Any = None) -> tuple[Tensor, Any, Sequence[Tensor]]:
        """Return the loss, the predictions and the gradients as :meth:`differentiate` does, not compiled."""
        return self.differentiate(active(), self.model.trained_state(), False, x, y, weight, scale)

    def differentiate(
        self, backend: Backend, state: TrainedState, is_compiled: bool, x: Any, y: Any, weight: Any, scale: Any
    ) -> tuple[Tensor, Any, Sequence[Tensor]]:
        """Return the loss, the predictions and the gradients, in the order of the parameters in ``state``."""
        loss_of: Callable[..., tuple[Tensor, Any]] = self.loss_of
        if is_compiled and backend.compilation is not None:
            if not backend.compilation.differentiates_programs:
                return self._compiled_gradients(x, y, weight, scale)
            loss_of = self._compiled_loss
        function, variables = partial(loss_of, x, y, weight, scale), list(state.named.values())
        return differentiate(function, variables, state.buffers, backend, self.gives_predictions)


class TrainingStep:
    """Changes a model by the gradients of its loss on one batch, and returns the loss and the predictions.

    ``accumulate`` is the number of batches whose mean gradient makes one update. The loss is not read: on a device or a
    lazy backend, steps follow each other without waiting.
    """

    accumulate: int
    count: int
    is_compiled: bool | None
    is_prepared: bool
    loss: Any
    model: Module
    objective: Objective
    optimizer: Optimizer
    precision: Precision | None
    strategy: Any

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        loss: Any,
        compile: bool | None = None,
        precision: Precision | None = None,
        accumulate: int = 1,
        strategy: Any = None,
    ) -> None:
        self.model, self.optimizer, self.objective = model, optimizer, Objective(model, loss, precision)
        self.loss = loss  # an attribute of its own, since the compiled update looks here for the tensors of the loss
        self.is_compiled, self.precision, self.accumulate, self.strategy = compile, precision, accumulate, strategy
        self.collected: list[Tensor] | None = None
        """The sum of the gradients since the last update, where several batches make one."""
        self.count = 0
        """The number of batches in that sum."""
        self.weight: float | None = None
        """The weight of this process's part of the batch, where several processes share one."""
        self.is_prepared = strategy is None
        self._compiled_update = Compiled(self._update, replaces=True)
        self._compiled_for: set[Any] = set()
        self._whole_for: tuple[TrainedState, Backend] | None = None
        """Which parameters on which backend the last step updated as one program."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_whole_for": None}

    def __call__(self, batch: Any) -> tuple[Tensor, Any]:
        """Return the loss of the batch before the update, a 0-d tensor, and the predictions if they are wanted.

        Where several processes share a batch, it is the loss of the whole batch.
        """
        x, y, weight = split_batch(batch)
        backend = active()
        state = self.model.trained_state()
        if (state, backend) == self._whole_for and self.optimizer.held() is not None:  # as the last step
            return self._run_whole(backend, state, x, y, weight)
        if not state.is_built:
            build(self.model, self.objective.loss_of, (x, y, weight), {})
            state = self.model.trained_state()
        if not self.is_prepared:
            self.prepare()
            state = self.model.trained_state()
        if not state.named:
            raise ValueError("there is nothing to train: the model has no parameters, or all of them are frozen")
        is_compiled = self._compiles(backend)
        if is_compiled and self._is_whole(backend):
            self.optimizer.make_slots(state.named)  # which the program takes and gives
            self._whole_for = (state, backend)
            return self._run_whole(backend, state, x, y, weight)
        if self.strategy is None:
            result = self._step(backend, state, is_compiled, x, y, weight)
        else:
            with self.strategy.random_stream():
                result = self._step(backend, state, is_compiled, x, y, weight)
        self._evaluate(backend, state, result[0])
        return result

    def _run_whole(self, backend: Backend, state: TrainedState, x: Any, y: Any, weight: Any) -> tuple[Tensor, Any]:
        result = self._compiled_update(x, y, weight)
        if backend.laziness is not None:
            self._evaluate(backend, state, result[0])
        return result

    def _evaluate(self, backend: Backend, state: TrainedState, loss: Tensor) -> None:
        """Compute what a lazy backend has put off: otherwise the graphs of all steps would pile up."""
        if backend.laziness is not None:
            held = [*state.variables, *self.optimizer.slot_variables()]
            backend.laziness.evaluate(loss, *values_of(held))

    def prepare(self) -> None:
        """Let the strategy make the models of all processes equal, once the model has all its parameters."""
        if self.is_prepared or not self.model.trained_state().is_built:
            return
        if getattr(self.loss, "reduction", "mean") != "mean" and self.strategy.world_size > 1:
            raise ValueError("the loss of a batch that several processes share is a mean over its samples, not a sum")
        self.strategy.prepare(self.model, self.optimizer)
        self.is_prepared = True

    def _compiles(self, backend: Backend) -> bool:
        """Whether the step is compiled: as the user says, or else where the backend gains most by it."""
        if self.is_compiled is not None:
            return self.is_compiled
        return backend.compilation is not None and backend.compilation.compiles_steps

    def _is_whole(self, backend: Backend) -> bool:
        """Return whether the update is part of the compiled program.

        It is not where it changes tensors in place, nor for an optimizer that applies others, of whose tensors the
        compiler knows nothing.
        """
        exchanges = self.strategy is not None and self.strategy.exchanges
        simple = self.accumulate == 1 and not exchanges
        simple = simple and (self.precision is None or self.precision.scale is None)
        is_known = type(self.optimizer).apply is Optimizer.apply
        return simple and is_known and (backend.optimizer_kernels is None or not backend.optimizer_kernels.is_in_place)

    def _update(self, x: Any, y: Any, weight: Any) -> tuple[Tensor, Any]:
        value, prediction, gradients = self.objective.gradients(x, y, weight)
        self.optimizer.apply(self.model.trained_state().named, gradients)
        return value, prediction

    def _step(
        self, backend: Backend, state: TrainedState, is_compiled: bool, x: Any, y: Any, weight: Any
    ) -> tuple[Tensor, Any]:
        scale = self.precision.scale if self.precision is not None else None
        factor = None if scale is None else ops.asarray(scale, dtype="float32")
        arguments = backend, state, is_compiled, x, y, weight, factor
        if self.strategy is None:
            value, prediction, gradients = self.objective.differentiate(*arguments)
        else:
            averaging = nullcontext() if self.accumulate > 1 else self.strategy.overlapping(self.weight)
            with averaging, self._allow_compiling(is_compiled, (x, y, weight)):
                value, prediction, gradients = self.objective.differentiate(*arguments)
        if scale is not None:
            value = ops.divide(value, scale)
        if self.accumulate > 1:
            gradients = self._accumulate(gradients)
            if gradients is None:
                return value if self.strategy is None else self.strategy.mean(value, self.weight), prediction
        if self.strategy is not None:
            gradients, value = self.strategy.average_with_loss(gradients, value, self.weight)
        if scale is not None:
            assert self.precision is not None
            gradients = self.precision.unscale(gradients, self.strategy)
            if gradients is None:  # an overflow: this batch is left out
                return value, prediction
        if self.strategy is not None:
            self.strategy.apply(self.optimizer, state.named, gradients)
        else:
            self.optimizer.apply(state.named, gradients)
        return value, prediction

    def _allow_compiling(self, is_compiled: bool, batch: Any) -> AbstractContextManager[Any]:
        """Return a block in which the launcher allows for the time that compiling for new shapes takes."""
        shapes = tuple(getattr(x, "shape", ()) for x in trees.flatten(batch)[0]) if is_compiled else ()
        if not is_compiled or shapes in self._compiled_for:
            return nullcontext()
        self._compiled_for.add(shapes)
        return heartbeat.busy()

    def _accumulate(self, gradients: Sequence[Tensor]) -> list[Tensor] | None:
        """Add to the collected gradients; return their mean once there are enough of them, otherwise None."""
        if self.collected is None:
            self.collected = list(gradients)
        else:
            held = [ops.asarray(x) for x in self.collected]  # the backend may have been switched since
            self.collected = [ops.add(x, g) for x, g in zip(held, gradients, strict=True)]
        self.count += 1
        if self.count < self.accumulate:
            return None
        mean = [ops.divide(x, self.count) for x in self.collected]
        self.collected, self.count = None, 0
        return mean
