"""One step of training: the loss, its gradients, the update; eager or compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial, reduce
from typing import Any

import ember_ml
from ember_ml import ops
from ember_ml.backend.capabilities import Laziness
from ember_ml.backend.contract import Backend
from ember_ml.backend.selection import active
from ember_ml.core import trees
from ember_ml.distributed import heartbeat
from ember_ml.nn.gradients import build, differentiate
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.trained_state import TrainedState
from ember_ml.tensor.variable import values_of
from ember_ml.training.batches import apply_model, as_tuple, split_batch
from ember_ml.training.optimizers.base import Optimizer
from ember_ml.training.optimizers.groups import find_unmatched
from ember_ml.training.precision import Precision, compute_in, widen
from ember_ml.transforms.compilation import CHANGED, Compiled
from ember_ml.typing import Tensor

__all__ = ["Objective", "TrainingStep", "read_step"]

_UNCHANGED = nullcontext()


class Objective:
    """The loss of a model on a batch, and its gradients, eager or compiled.

    It knows nothing of the optimizer, so that a compiled program has none of its tensors as arguments. A ``step`` of
    one's own computes the loss in place of ``model`` and ``loss``. With ``parts``, names of modules of the model, it is
    called for each of them, and the parameters of a part get the gradients of its loss.
    """

    gives_predictions: bool
    loss: Any
    model: Module
    parts: tuple[str, ...]
    precision: Precision | None
    step: Callable[..., Any] | None
    takes_whole: bool

    def __init__(
        self,
        model: Module,
        loss: Any,
        precision: Precision | None = None,
        step: Callable[..., Any] | None = None,
        parts: Sequence[str] = (),
    ) -> None:
        self.model, self.loss, self.precision, self.step, self.parts = model, loss, precision, step, tuple(parts)
        self.gives_predictions = True
        """Whether the predictions are wanted as well as the loss."""
        self.takes_whole = False
        """Whether the batch is a named tuple, which a step of one's own gets as it is."""
        self._compiled_loss = ember_ml.compile(self.loss_of)
        self._compiled_gradients = ember_ml.compile(self.gradients)
        self._last: Sequence[Tensor] | None = None
        """The gradients of the last step, where they are kept until the next loss is known."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": None}

    def compute(self, x: Any, y: Any, weight: Any) -> tuple[Tensor, Any]:
        """Return the loss of inputs, targets and weights by ``model`` and ``loss``, and the predictions."""
        prediction = apply_model(self.model, x)
        if self.precision is not None:
            prediction = widen(prediction)
        return self.loss(y, prediction) if weight is None else self.loss(y, prediction, weight), prediction

    def loss_of(self, part: str | None, scale: Any, used: Any, *batch: Any) -> tuple[Tensor, Any]:
        """Return the loss of a batch, times ``scale`` if it is given, and the predictions if they are wanted.

        ``used`` are the modules that a step of one's own uses: a compiled program must know of their tensors.
        """
        with _UNCHANGED if self.precision is None else compute_in(self.precision):
            if self.step is None:
                value, prediction = self.compute(*batch)
            else:
                given = batch[0] if self.takes_whole else batch
                found = self.step(given) if part is None else self.step(given, part)
                value, prediction = read_step(found, "training_step")
        value = value if scale is None else ops.multiply(value, scale)
        self._last = None
        return value, prediction if self.gives_predictions else None

    def gradients(self, scale: Any, used: Any, *batch: Any) -> tuple[Tensor, Any, Any, Sequence[Tensor]]:
        """Return what :meth:`differentiate` does, not compiled."""
        return self.differentiate(active(), self.model.trained_state(), False, scale, used, batch)

    def differentiate(
        self, backend: Backend, state: TrainedState, is_compiled: bool, scale: Any, used: Any, batch: Sequence[Any]
    ) -> tuple[Tensor, Any, Any, Sequence[Tensor]]:
        """Return the loss, that of each part, the predictions, the gradients in the order of ``state``'s parameters."""
        loss_of: Callable[..., tuple[Tensor, Any]] = self.loss_of
        if is_compiled and backend.compilation is not None:
            if not backend.compilation.differentiates_programs:
                return self._compiled_gradients(scale, used, *batch)
            loss_of = self._compiled_loss
        if not self.parts:
            function, variables = partial(loss_of, None, scale, used, *batch), list(state.named.values())
            value, prediction, gradients = differentiate(
                function, variables, state.buffers, backend, self.gives_predictions
            )
            kernels = backend.optimizer_kernels
            if kernels is not None and kernels.is_in_place and not is_compiled:
                # They are the last that was allocated. If they were freed now, the C library would give the memory of
                # the whole step back to the system, and the next one would wait for it page by page.
                self._last = gradients
            return value, None, prediction, gradients
        found: dict[str, Tensor] = {}
        losses: dict[str, Tensor] = {}
        for part, names in split_names(state.named, self.parts).items():
            function, variables = partial(loss_of, part, scale, used, *batch), [state.named[name] for name in names]
            losses[part], _, gradients = differentiate(function, variables, state.buffers, backend, False)
            found.update(zip(names, gradients, strict=True))
        total = reduce(ops.add, losses.values())
        return total, losses, None, [found[name] for name in state.named]


def split_names(names: Iterable[str], parts: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of the parameters of each part, a module's name; ``ValueError`` where one is in none."""
    found: dict[str, list[str]] = {part: [] for part in parts}
    for name in names:
        part = next((part for part in parts if name.startswith(f"{part}.")), None)
        if part is None:
            raise ValueError(f"the parameter {name} belongs to none of the parts {', '.join(parts)}: freeze it")
        found[part].append(name)
    return {part: held for part, held in found.items() if held}


def read_step(found: Any, name: str) -> tuple[Any, Any]:
    """Return the loss and the predictions, or None, that a step of one's own gave; ``name`` is that of the method."""
    if isinstance(found, tuple) and len(found) == 2:
        return found
    if found is None or isinstance(found, tuple | list | dict):
        given = f"{len(found)} values" if isinstance(found, tuple) else type(found).__name__
        raise TypeError(f"{name} returns the loss, or a tuple of the loss and the predictions, not {given}")
    return found, None


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
    on_gradients: Callable[[dict[str, Tensor]], None] | None
    optimizer: Optimizer
    precision: Precision | None
    strategy: Any
    used: tuple[Module, ...] | None

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        loss: Any,
        compile: bool | None = None,
        precision: Precision | None = None,
        accumulate: int = 1,
        strategy: Any = None,
        step: Callable[..., Any] | None = None,
        parts: Sequence[str] = (),
    ) -> None:
        self.model, self.optimizer = model, optimizer
        self.objective = Objective(model, loss, precision, step, parts)
        self.on_gradients = None
        """Called with the gradients by name, before the update."""
        self.used = None
        """The modules, besides the model, that a step of one's own uses."""
        self.loss = loss  # an attribute of its own, since the compiled update looks here for the tensors of the loss
        self.is_compiled, self.precision, self.accumulate, self.strategy = compile, precision, accumulate, strategy
        self.collected: list[Tensor] | None = None
        """The sum of the gradients since the last update, where several batches make one."""
        self.count = 0
        """The number of batches in that sum."""
        self.weight: float | None = None
        """The weight of this process's part of the batch, where several processes share one."""
        self.rows = 0
        """The number of samples in that part."""
        self.is_prepared = strategy is None
        self._compiled_update = Compiled(self._update, replaces=True)
        self._compiled_for: set[Any] = set()
        self._has_program = False
        """Whether a step has updated the parameters as one program."""
        self._has_found_groups = not optimizer.groups
        self._laziness: Laziness | None = None
        """That of the backend on which it did."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_has_program": False, "_laziness": None}

    def __call__(self, batch: Any) -> tuple[Tensor, dict[str, Tensor] | None, Any]:
        """Return the loss of the batch before the update, a 0-d tensor, that of each part, and the predictions.

        The latter are None where there are no parts, or nobody wants predictions. Where several processes share a
        batch, it is the loss of the whole batch.
        """
        if self._has_program and type(batch) is tuple and self.used is None and self.on_gradients is None:
            result = self._compiled_update.repeat(batch)
            if result is not CHANGED:
                if self._laziness is not None:
                    self._evaluate(self._laziness, self.model.trained_state(), result[0])
                return result
        given = split_batch(batch) if self.objective.step is None else self._give(batch)
        backend = active()
        state = self.model.trained_state()
        if not state.is_built:
            for part in self.objective.parts or (None,):
                build(self.model, self.objective.loss_of, (part, None, self.used, *given), {})
            state = self.model.trained_state()
        if not self.is_prepared:
            self.prepare()
            state = self.model.trained_state()
        if not self._has_found_groups:
            self._find_groups()
        if not state.named:
            raise ValueError("there is nothing to train: the model has no parameters, or all of them are frozen")
        is_compiled = self.is_compiled
        if is_compiled is None:  # the user has not said it: where the backend gains most by it
            is_compiled = backend.compilation is not None and backend.compilation.compiles_steps
        if is_compiled and self._is_whole(backend):
            self.optimizer.make_slots(state.named)  # which the program takes and gives
            self._has_program, self._laziness, used = True, backend.laziness, self.used
            parts = as_tuple(batch) if self.objective.step is None else given
            result = self._compiled_update(*parts) if used is None else self._compiled_update(*parts, used=used)
        elif self.strategy is None:
            result = self._step(backend, state, is_compiled, given)
        else:
            with self.strategy.random_stream(), self.strategy.on_part():
                result = self._step(backend, state, is_compiled, given)
        if backend.laziness is not None:
            self._evaluate(backend.laziness, state, result[0])
        return result

    def _give(self, batch: Any) -> tuple[Any, ...]:
        """Return what a step of one's own is given: the parts of the batch, or the whole of a named tuple."""
        self.objective.takes_whole = hasattr(batch, "_fields")
        return (batch,) if self.objective.takes_whole else as_tuple(batch)

    def _find_groups(self) -> None:
        """Warn of groups of the optimizer that no parameter of the model is in, as by a misspelt pattern."""
        self._has_found_groups = True
        groups, named = self.optimizer.groups, self.model.named_parameters()
        for place in find_unmatched(groups, named) if self.strategy is None or self.strategy.is_main else ():
            warnings.warn(
                f"groups[{place}] of the optimizer is for no parameter of the model: {groups[place]['match']!r:.60} "
                f"matches none of {', '.join(named):.200}",
                stacklevel=2,
            )

    def _evaluate(self, laziness: Laziness, state: TrainedState, loss: Tensor) -> None:
        """Compute what a lazy backend has put off: otherwise the graphs of all steps would pile up."""
        laziness.evaluate(loss, *values_of([*state.variables, *self.optimizer.slot_variables()]))

    def prepare(self) -> None:
        """Let the strategy make the models of all processes equal, once the model has all its parameters."""
        if self.is_prepared or not self.model.trained_state().is_built:
            return
        if getattr(self.loss, "reduction", "mean") != "mean" and self.strategy.world_size > 1:
            raise ValueError("the loss of a batch that several processes share is a mean over its samples, not a sum")
        self.strategy.prepare(self.model, self.optimizer)
        self.is_prepared = True

    def _is_whole(self, backend: Backend) -> bool:
        """Return whether the update is part of the compiled program.

        It is not where it changes tensors in place, nor for an optimizer that applies others, of whose tensors the
        compiler knows nothing.
        """
        exchanges = self.strategy is not None and self.strategy.exchanges
        simple = self.accumulate == 1 and not exchanges and self.on_gradients is None
        simple = simple and (self.precision is None or self.precision.scale is None)
        is_known = type(self.optimizer).apply is Optimizer.apply
        return simple and is_known and (backend.optimizer_kernels is None or not backend.optimizer_kernels.is_in_place)

    def _update(self, *batch: Any, used: Any = None) -> tuple[Tensor, Any, Any]:
        given = split_batch(batch) if self.objective.step is None else batch
        value, losses, prediction, gradients = self.objective.gradients(None, used, *given)
        self.optimizer.apply(self.model.trained_state().named, gradients)
        return value, losses, prediction

    def _step(
        self, backend: Backend, state: TrainedState, is_compiled: bool, batch: Sequence[Any]
    ) -> tuple[Tensor, Any, Any]:
        scale = self.precision.scale if self.precision is not None else None
        share = None if self.strategy is None or self.weight is None else self.strategy.share_of(self.weight, self.rows)
        product = scale if share is None else share * (1.0 if scale is None else scale)
        factor = None if product is None else ops.asarray(product, dtype="float32")
        arguments = backend, state, is_compiled, factor, self.used, batch
        if self.strategy is None:
            value, losses, prediction, gradients = self.objective.differentiate(*arguments)
        else:
            is_one = self.accumulate == 1 and not self.objective.parts
            averaging = self.strategy.overlapping(self.weight) if is_one else nullcontext()
            with averaging, self._allow_compiling(is_compiled, batch):
                value, losses, prediction, gradients = self.objective.differentiate(*arguments)
        if product is not None:
            value = ops.divide(value, product or 1.0)
            losses = losses and {part: ops.divide(x, product or 1.0) for part, x in losses.items()}
        if losses and self.strategy is not None:
            losses = self.strategy.mean(losses, self.weight)
        if self.accumulate > 1:
            gradients = self._accumulate(gradients)
            if gradients is None:
                value = value if self.strategy is None else self.strategy.mean(value, self.weight)
                return value, losses, prediction
        if self.strategy is not None:
            gradients, value = self.strategy.average_with_loss(gradients, value, self.weight)
        if scale is not None:
            assert self.precision is not None
            gradients = self.precision.unscale(gradients, self.strategy)
            if gradients is None:  # an overflow: this batch is left out
                return value, losses, prediction
        if self.strategy is None:
            if self.on_gradients is not None:
                self.on_gradients(dict(zip(state.named, gradients, strict=True)))
            self.optimizer.apply(state.named, gradients)
        else:
            if self.on_gradients is not None:
                self.on_gradients(self.strategy.name_gradients(state.named, gradients))
            self.strategy.apply(self.optimizer, state.named, gradients)
        return value, losses, prediction

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
