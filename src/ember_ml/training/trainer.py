"""The trainer: fits a model to data on whatever backend is active, and goes on where it was."""

from __future__ import annotations

import copy
import math
import operator
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from os import PathLike
from typing import Any, ClassVar, Self

from ember_ml import ops
from ember_ml.backend.host_copies import HostCopies
from ember_ml.backend.selection import active
from ember_ml.core import trees
from ember_ml.distributed import heartbeat
from ember_ml.nn.inspection.nan_search import find_nan
from ember_ml.nn.modules.module import Module
from ember_ml.training import checkpoints, losses, optimizers, shared_checkpoints, trainer_state
from ember_ml.training.batches import (
    apply_model,
    as_tuple,
    count_samples,
    inputs_of,
    iterate_batches,
    split_batch,
)
from ember_ml.training.callbacks import Callback, Checkpoint, Progress
from ember_ml.training.data import DataLoader
from ember_ml.training.evaluation import EvaluationMode, read_results, update_metrics
from ember_ml.training.fit_arguments import (
    check_callbacks,
    check_monitors,
    check_parts,
    count_batches,
    is_checkpoint,
    name_metrics,
    read_validation,
)
from ember_ml.training.history import History
from ember_ml.training.interrupts import Interrupts
from ember_ml.training.precision import Precision, compute_in, widen
from ember_ml.training.steps import TrainingStep, read_step
from ember_ml.training.termination import Termination
from ember_ml.typing import Tensor

__all__ = ["Trainer"]


class Trainer:
    """Trains a model: the same steps, with the same numbers, on every backend, which may change between any two steps.

    A subclass may compute the loss of a batch in another way (:meth:`training_step`, :meth:`validation_step`), and
    train ``parts`` of the model against each other.

    ``optimizer``, ``loss`` and ``metrics`` are objects or their names. ``compile`` compiles the step where the backend
    can; by default on JAX, whose eager calls cost many times as much. ``precision`` "bfloat16" or "float16" computes by
    ``autocast``, in ``evaluate`` and ``predict`` too, with parameters in float32. ``accumulate`` is the number of
    batches that make one update. ``seed`` decides the order of the data. ``progress`` shows a bar on a terminal and in
    a notebook, and a line for each epoch everywhere else.

    Args:
        model: The module to train.
        optimizer: An optimizer or its name.
        loss: A loss, its name, or a function of target and prediction.
        metrics: Metrics or their names.
        compile: Whether the step is compiled; None: where the backend gains most by it, on JAX.
        callbacks: What to do at certain moments; see :class:`Callback`.
        precision: "bfloat16" or "float16", in which ``autocast`` computes; None for the dtype of the parameters.
        accumulate: The number of batches per update.
        strategy: How processes train together: a strategy of ``ember_ml.distributed``.
        seed: Decides the order of the data.
        progress: Whether the standard error stream shows how far training is.
        debug: Whether steps look for NaN, and name the layer and op where it begins; see ``ember_ml.find_nan``.

    >>> from ember_ml import nn, ops
    >>> from ember_ml.training import Trainer
    >>> ops.random.seed(0)
    >>> x = ops.random_normal((64, 2))
    >>> y = ops.matmul(x, ops.array([[1.0], [-2.0]]))
    >>> trainer = Trainer(nn.Linear(2, 1), "sgd", "mean_squared_error")
    >>> trainer.optimizer.learning_rate = 0.3
    >>> history = trainer.fit(x, y, epochs=20, batch_size=16)
    >>> history["loss"].epochs[-1] < 1e-6, len(history["loss"])
    (True, 80)
    >>> ops.shape(trainer.predict(x))
    (64, 1)
    >>> trainer
    Trainer(Linear, SGD, MeanSquaredError: 20 epochs, 80 steps)
    """

    parts: ClassVar[Sequence[str]] = ()
    """The names of modules of the model that have losses of their own: see :meth:`training_step`."""

    accumulate: int
    callbacks: list[Callback]
    compile: bool | None
    debug: bool
    epoch: int
    history: History
    loss: Any
    metrics: dict[str, Any]
    model: Module
    optimizer: optimizers.Optimizer
    precision: Precision | None
    planned_epochs: int
    progress: bool
    seed: int
    should_stop: bool
    step_values: dict[str, Any]
    steps: int
    steps_in_epoch: int
    strategy: Any

    def __init__(
        self,
        model: Module,
        optimizer: str | optimizers.Optimizer = "adam",
        loss: Any = "mean_squared_error",
        metrics: Sequence[Any] = (),
        compile: bool | None = None,
        callbacks: Sequence[Callback] = (),
        precision: str | None = None,
        accumulate: int = 1,
        strategy: Any = None,
        seed: int = 0,
        progress: bool = True,
        debug: bool = False,
    ) -> None:
        if not isinstance(model, Module):
            raise TypeError(f"a Trainer takes a module, not {type(model).__name__}")
        if not isinstance(accumulate, int) or accumulate < 1:
            raise ValueError(f"accumulate is the number of batches that make an update, not {accumulate!r}")
        if not isinstance(loss, str) and not callable(loss):
            raise TypeError(f"a loss is a name or a function of targets and predictions, not {loss!r:.60}")
        if isinstance(loss, type):
            raise TypeError(f"the loss is a class, {loss.__name__}: make an object of it, {loss.__name__}()")
        check_parts(model, self.parts, type(self).training_step is not Trainer.training_step)
        self.model = model
        self.optimizer = optimizers.get(optimizer)
        self.loss = losses.get(loss) if isinstance(loss, str) else loss
        self.metrics = name_metrics(metrics)
        self.callbacks = check_callbacks(callbacks)
        self.precision = None if precision is None else Precision(precision)
        self.compile, self.accumulate, self.strategy = compile, accumulate, strategy
        self.seed, self.progress, self.debug = seed, progress, debug
        self.history = History()
        self.epoch = 0
        """How many epochs are done."""
        self.planned_epochs = 0
        """At how many epochs the present or last ``fit`` ends."""
        self.steps = 0
        """How many batches have been trained on."""
        self.steps_in_epoch = 0
        """How many batches of the present epoch have been trained on."""
        self.steps_per_epoch: int | None = None
        self.should_stop = False
        """Set by a callback to end ``fit``."""
        self.position: dict[str, Any] | None = None
        """Where the data stood after the last step of ``fit``."""
        self._is_step_open = False  # whether the validation or the callbacks after the last step are still to be done
        self._data: DataLoader | None = None  # while it is trained on
        self._interrupts = Interrupts()
        self._termination: Termination
        self._saving: shared_checkpoints.Saving | None = None
        self._copies = HostCopies()
        self.step_values = {}
        """What is known of the last step beside its loss, by name; callbacks may add to it, and loggers write it."""
        step = None if type(self).training_step is Trainer.training_step else self.training_step
        self._step = TrainingStep(
            self.model, self.optimizer, self.loss, compile, self.precision, accumulate, strategy, step, self.parts
        )
        self._step.objective.gives_predictions = bool(self.metrics)
        self._step.prepare()

    # training

    def __repr__(self) -> str:
        parts = (getattr(part, "__name__", type(part).__name__) for part in (self.model, self.optimizer, self.loss))
        return f"{type(self).__name__}({', '.join(parts)}: {self.epoch} epochs, {self.steps} steps)"

    def fit(
        self,
        x: Any,
        y: Any = None,
        *,
        epochs: int = 1,
        batch_size: int = 32,
        shuffle: bool = True,
        validation: Any = None,
        weight: Any = None,
        max_steps: int | None = None,
        validate_every: int | None = None,
    ) -> History:
        """Train until ``epochs`` epochs are done, those before this call included, and return the history.

        Training ends earlier when ``max_steps`` steps are done in all; a later call goes on mid-epoch.

        The data are inputs and targets, with a ``weight`` for each sample perhaps, or a loader or iterable of batches.
        ``validation`` is a tuple or loader of the same kind, or a dict of several, whose names stand before those of
        their values, as "val" does for one. It is evaluated after each epoch, and after every ``validate_every`` steps.

        Called again, or after :meth:`restore`, it goes on where it was, within an epoch too: also after an
        error, or after Ctrl-C, which waits for the end of the step. With a ``Checkpoint`` among the callbacks,
        ``SIGTERM`` ends it after a step that all processes share, saves, and raises ``SystemExit`` with code 143.
        """
        for name, number in (("epochs", epochs), ("max_steps", 0 if max_steps is None else max_steps)):
            if not isinstance(number, int):
                raise TypeError(f"{name} is a whole number, not {number!r}")
            if number < 0:  # elsewhere -1 stands for training without an end, which would be no training here
                raise ValueError(f"{name} is a number from 0 up, not {number}")
        if validate_every is not None and (type(validate_every) is not int or validate_every < 1):
            raise ValueError(f"validate_every is a number of steps from 1 up, not {validate_every!r}")
        sets = read_validation(validation, 2 if validate_every else epochs - self.epoch)
        self.planned_epochs = epochs
        loader = self._loader(x, y, weight, batch_size, shuffle)
        callbacks = self._callbacks()
        check_monitors(callbacks, ["loss", *self.metrics], self.parts, sets)
        self.should_stop = False
        with ExitStack() as ending:
            ending.callback(self._leave)
            # a checkpoint that resumes changes the state that the other callbacks see
            for callback in sorted(callbacks, key=is_checkpoint, reverse=True):
                callback.begin(self)
                ending.callback(callback.end, self)
            self._step.used = self._find_modules()
            if any(type(callback).after_gradients is not Callback.after_gradients for callback in callbacks):
                self._step.on_gradients = partial(self._show_gradients, callbacks)
            self._data = loader
            if self.position is not None:
                loader.restore(self.position)
            ending.enter_context(self._interrupts)
            saves = any(isinstance(x, Checkpoint) and x.monitor is None for x in callbacks)
            self._termination = ending.enter_context(Termination(self.strategy, saves, self.steps))
            while self.epoch < epochs and not (self.should_stop or self._termination.is_due):
                if max_steps is not None and self.steps >= max_steps:
                    break
                self._epoch(loader, callbacks, partial(self._validate, sets, batch_size), max_steps, validate_every)
            for callback in callbacks:
                callback.after_fit(self)
            self.finish_saving()
            if self._termination.is_due:
                raise SystemExit(128 + signal.SIGTERM)
        return self.history

    def _find_modules(self) -> tuple[Module, ...] | None:
        """Return the modules, besides the model, that your own step may use; None where there are none."""
        if self._step.objective.step is None:
            return None
        return tuple([x for x in vars(self).values() if isinstance(x, Module) and x is not self.model]) or None

    def _show_gradients(self, callbacks: list[Callback], gradients: dict[str, Tensor]) -> None:
        for callback in callbacks:
            callback.after_gradients(self, gradients)

    def _leave(self) -> None:
        self._data = self._step.on_gradients = None
        self.model.train()
        saving, self._saving = self._saving, None
        if saving is not None:  # an error ends training, perhaps on this process alone
            saving.leave()
        self._copies = HostCopies()

    def _epoch(
        self,
        loader: DataLoader,
        callbacks: list[Callback],
        validate: Callable[[], dict[str, Any]],
        max_steps: int | None,
        validate_every: int | None,
    ) -> None:
        start = time.perf_counter()
        self.model.train()
        self.steps_per_epoch = count_batches(loader)
        if not self.steps_in_epoch:
            self.history.begin_epoch()
            for metric in self.metrics.values():
                metric.reset()
        if self._is_step_open:  # an error, or Ctrl-C, came between a step and its validation
            self._end_step(callbacks, validate if self._validates(validate_every) else None)
        # a checkpoint may have been saved between the last step of an epoch and its end
        is_over = bool(self.steps_in_epoch) and loader.state()["batch"] == 0
        for batch in () if is_over else loader:
            with self._interrupts.held:
                self._train_on(batch, loader)
                self._is_step_open = True
                if not self._validates(validate_every):
                    self._end_step(callbacks)
            if self._is_step_open:
                self._end_step(callbacks, validate)
            is_last = self.steps == max_steps and self.steps_in_epoch != self.steps_per_epoch
            is_due = self._termination.check(self.steps, self._saving is not None and self._saving.has_failed)
            if self._termination.has_failed:
                self.finish_saving()  # which raises, on all processes
            if is_due or self.should_stop or is_last:
                return
        if self.strategy is not None:
            self.strategy.average_buffers(self.model)
        values = read_results(self._merge_metrics(self.metrics))
        values |= validate()
        with self._interrupts.held:
            values = self.history.end_epoch(values, time.perf_counter() - start)
            self.epoch += 1
            self.steps_in_epoch, self.position = 0, loader.state()
            for callback in callbacks:
                callback.after_epoch(self, values)

    def _validates(self, every: int | None) -> bool:
        """Return whether the validation follows the last step; at the end of an epoch there is one anyway."""
        return bool(every) and self.steps % every == 0 and self.steps_in_epoch != self.steps_per_epoch

    def _end_step(self, callbacks: list[Callback], validate: Callable[[], dict[str, Any]] | None = None) -> None:
        """Do what comes after a step: the validation, if it is given, and the callbacks."""
        found = None if validate is None else validate()
        self._is_step_open = False  # a callback that fails is not called again: others have been
        with self._interrupts.held:
            if found is not None:
                self.history.add_values(found)
                for callback in callbacks:
                    callback.after_validation(self, found)
            for callback in callbacks:
                callback.after_step(self)

    def _validate(self, sets: dict[str, Any], batch_size: int) -> dict[str, Any]:
        """Return the values on each set of validation data, their names with the prefix of the set."""
        values: dict[str, Any] = {}
        for prefix, data in sets.items():
            found = self.evaluate(data, batch_size=batch_size)
            values |= {f"{prefix}_{name}": value for name, value in found.items()}
        if sets:
            self.model.train()
        return values

    def _train_on(self, batch: Any, loader: DataLoader | None = None) -> Tensor:
        size = count_samples(batch)
        if self.strategy is not None:
            weights = split_batch(batch)[2] if self._step.objective.step is None else None
            self._step.rows = size
            self._step.weight = size if weights is None else ops.item(ops.sum(weights))
        heartbeat.progress()
        self.step_values = {}
        with self._look_for_nan() if self.debug else nullcontext():
            loss, parts, prediction = self._step(batch)
        whole = size if self.strategy is None else self._count_whole_batch(size)
        self.history.add_step(loss, whole, active().name, parts)
        if parts:
            self.step_values |= {f"{part}_loss": value for part, value in parts.items()}
        self.steps += 1
        if loader is not None:
            self.steps_in_epoch += 1
            self.position = loader.state()
        if self.metrics:
            update_metrics(self.metrics, batch, prediction)
        return loss

    def _look_for_nan(self) -> find_nan:
        is_scaled = self.precision is not None and self.precision.scale is not None  # then gradients may overflow
        return find_nan(self.model, backward=not is_scaled)

    def _count_whole_batch(self, size: int) -> int:
        """Return the number of samples in the batch of which this process has a part."""
        state = {} if self._data is None else self._data.state()
        rows, batch_size = state.get("rows"), state.get("batch_size")
        if rows is None or batch_size is None:
            return size * self.strategy.row_parts
        return min(batch_size, rows - self.steps_in_epoch * batch_size)

    def _merge_metrics(self, metrics: dict[str, Any]) -> dict[str, Any]:
        """Return the metrics, merged over all processes."""
        if self.strategy is None:
            return metrics
        merged = {name: copy.deepcopy(metric) for name, metric in metrics.items()}
        for name, metric in merged.items():
            first, *others = self.strategy.gather_parts(metrics[name].state())
            metric.restore(first)
            for state in others:
                metric.merge(state)
        return merged

    def training_step(self, batch: Any) -> Any:
        """Return the loss of a batch, a 0-d tensor, and the predictions, which the metrics compare with the targets.

        A subclass may define it anew, and return the loss alone where there are no metrics. ``batch`` is a tuple of
        whatever the data give, a named one where they give such. Precision, accumulation, compilation, strategies and
        checkpoints are the trainer's matter: the method only computes. A compiled one is traced once, and what it reads
        of the trainer, but for the tensors of modules that are attributes, is a constant of the program.

        Where ``parts`` names modules of the model, it is ``training_step(batch, part)``, called for each part: the
        loss that it returns changes the parameters of that part alone, and all parts are updated together. A group of
        the optimizer may give each part its own optimizer.

        >>> from ember_ml import nn, ops
        >>> from ember_ml.training import Trainer
        >>> class Distillation(Trainer):
        ...     teacher = None
        ...     def training_step(self, batch):
        ...         inputs, targets = batch
        ...         return ops.mean(ops.square(self.model(inputs) - ops.stop_gradient(self.teacher(inputs))))
        >>> trainer = Distillation(nn.Linear(2, 1), "sgd", progress=False)
        >>> trainer.teacher = nn.Linear(2, 1)
        >>> history = trainer.fit(ops.ones((8, 2)), ops.zeros((8, 1)), epochs=3)
        >>> history["loss"][-1] < history["loss"][0]
        True
        """
        return self._step.objective.compute(*split_batch(batch))

    def validation_step(self, batch: Any) -> Any:
        """Return the loss of a batch for ``evaluate``, a mean over its samples, and the predictions for the metrics.

        A subclass may define it anew, and return the loss alone where there are no metrics. ``batch`` is as in
        :meth:`training_step`.
        """
        return self._step.objective.compute(*split_batch(batch))

    def step(self, batch: Any) -> Tensor:
        """Train on one batch, a tuple of inputs and targets; return its loss before the update, a 0-d tensor."""
        if self._step.objective.step is not None:
            self._step.used = self._find_modules()
        if not self.model.trained_state().is_training:
            self.model.train()
        return self._train_on(batch)

    def _callbacks(self) -> list[Callback]:
        is_main = self.strategy is None or self.strategy.is_main
        shows = is_main and self.progress
        # checkpoints come last, so that they save what the other callbacks changed
        own = sorted(self.callbacks, key=is_checkpoint)
        return [*own, Progress()] if shows else own

    def _loader(self, x: Any, y: Any, weight: Any, batch_size: int, shuffle: bool) -> DataLoader:
        if weight is not None and y is None:
            raise ValueError("weight goes with x and y; the batches of a loader have their weights as third part")
        if isinstance(x, DataLoader):
            loader = x
        else:
            data = x if y is None else (x, y) if weight is None else (x, y, weight)
            if type(data) is list:  # a list of batches, which a loader would take for one array
                data = partial(iter, data)
            is_iterable = y is None and not isinstance(x, tuple | dict)  # its items are batches already
            size, mixed = (None, False) if is_iterable else (batch_size, shuffle)
            loader = DataLoader(data, batch_size=size, shuffle=mixed, seed=self.seed)
        return loader if self.strategy is None else self.strategy.shard(loader)

    # using the model

    def evaluate(self, x: Any, y: Any = None, *, batch_size: int = 32) -> dict[str, Any]:
        """Return the loss and the metrics on inputs and targets, or on a loader, list of batches or tuple, by name.

        All are numbers but for metrics whose result is a tensor, as a confusion matrix: nested lists. Where samples
        have weights, the loss is the mean by those, however they are put into batches. Processes that train together
        share the work: all of them must call this, and all get the results of the whole.
        """
        if y is None and type(x) is list:  # a loader would take it for one array
            x = partial(iter, x)
        kept = {name: copy.deepcopy(metric) for name, metric in self.metrics.items()}
        for metric in kept.values():
            metric.reset()
        batches = iterate_batches(x, y, batch_size)
        if self.strategy is not None:
            batches = self.strategy.shard(batches)
        is_usual = type(self).validation_step is Trainer.validation_step
        reads_together = self.strategy is not None and self.strategy.splits_parameters
        pending: list[tuple[Tensor, Any]] = []  # losses and their counts: read when all are computed
        with EvaluationMode(self.model):
            for batch in batches:
                heartbeat.progress()
                size = count_samples(batch)
                if not size and not reads_together:  # a batch with fewer samples than processes
                    continue
                with compute_in(self.precision), nullcontext() if self.strategy is None else self.strategy.on_part():
                    found = self.validation_step(batch if is_usual else as_tuple(batch))
                if not size:  # all processes gather the parameters, and this one has no use for them
                    continue
                loss, prediction = read_step(found, "validation_step")
                weight = split_batch(batch)[2] if is_usual else None
                pending.append((loss, size if weight is None else ops.sum(weight)))
                update_metrics(kept, batch, prediction)
        counts = [count if type(count) is int else ops.item(count) for _, count in pending]
        total = math.fsum(map(operator.mul, [ops.item(loss) for loss, _ in pending], counts))
        sums = [[total, math.fsum(counts), len(pending)]]
        if self.strategy is not None:
            sums = self.strategy.gather_parts(sums[0])
        total, weights, number = (math.fsum(column) for column in zip(*sums, strict=True))
        if not number:
            raise ValueError("there is nothing to evaluate: the data are empty")
        return {"loss": total / (weights or 1.0), **read_results(self._merge_metrics(kept))}

    def predict(self, x: Any, *, batch_size: int = 32) -> Any:
        """Return the model's outputs for inputs, computed batch by batch and concatenated.

        Several inputs are a tuple, or a dict by name. Of the batches of a loader the first part is the inputs.
        """
        parts = iterate_batches(x, None, batch_size)
        with EvaluationMode(self.model), compute_in(self.precision):
            found = [self._apply_model(part if isinstance(x, tuple) else inputs_of(part)) for part in parts]
        if not found:
            raise ValueError("there is nothing to predict: the data are empty")
        first, structure = trees.flatten(found[0])
        columns = zip(*(trees.flatten(part)[0] for part in found), strict=True)
        return structure([ops.concatenate(list(column), 0) for column in columns]) if first else found[0]

    def _apply_model(self, inputs: Any) -> Any:
        """Return the model's outputs, in float32 where the model computes in half precision."""
        found = apply_model(self.model, inputs)
        return found if self.precision is None else widen(found)

    # state

    def save(self, path: str | PathLike[str], keep: int = 1, wait: bool = True) -> None:
        """Write the whole state of training to the folder ``path``; it is never half written.

        ``fit`` goes on from it, after :meth:`load` or :meth:`restore`, as if it had not been interrupted: on the same
        backend to the last bit. An error leaves what was saved there before. ``keep`` is the number of checkpoints that
        stay in the folder, this one included.

        Without ``wait`` the state is copied, and written while training goes on. An error is then raised by
        :meth:`finish_saving`, which the next ``save``, ``restore`` and the end of ``fit`` call, and where a
        ``Checkpoint`` is among the callbacks one of the next steps.

        Args:
            path: The folder, or an address in an object store, as ``s3://bucket/run``.
            keep: The number of checkpoints that stay.
            wait: Whether to return when the checkpoint is on the disk.
        """
        if not isinstance(keep, int) or keep < 1:
            raise ValueError(f"keep is the number of checkpoints that stay, at least 1, not {keep!r}")
        self.finish_saving()
        if self.strategy is not None:
            self.strategy.average_buffers(self.model)
        tensors, state = trainer_state.tensors_of(self), trainer_state.state_of(self)
        pieces = trainer_state.pieces_of(self)
        heartbeat.progress()
        if wait:
            shared_checkpoints.write(self.strategy, path, tensors, state, keep, pieces)
        else:
            self._saving = shared_checkpoints.begin(self.strategy, path, tensors, state, keep, pieces, self._copies)

    def finish_saving(self) -> None:
        """Wait until the checkpoint that :meth:`save` has begun is whole, if there is one; every process calls this.

        ``OSError`` is raised on all processes where it could not be written.
        """
        if self._saving is not None:
            try:
                self._saving.finish()
            except Exception:
                self._saving = None
                raise
            self._saving = None

    def config(self) -> dict[str, Any]:
        """Return the settings of the trainer as plain data; None for what cannot be described."""
        return trainer_state.config_of(self)

    def restore(self, path: str | PathLike[str]) -> Self:
        """Go on from the checkpoint in the folder ``path``, of a trainer with the same model and optimizer.

        One that is damaged gives way to the latest older one that the folder keeps, with a warning. Where there is
        none, or it does not fit, ``CheckpointError`` is raised and nothing changed.
        """
        self.finish_saving()
        trainer_state.restore(self, path, *shared_checkpoints.read(self.strategy, path))
        return self

    @classmethod
    def load(cls, path: str | PathLike[str], model: Module | None = None, **settings: Any) -> Trainer:
        """Return a trainer that goes on from the checkpoint in the folder ``path``.

        The model, optimizer, loss and metrics are built as the checkpoint describes them. A model, or anything else
        that has no registered name, must be given, and anything else may be.
        """
        tensors, state = checkpoints.read(path)
        given: dict[str, Any] = settings if model is None else {"model": model, **settings}
        made = cls(**{**trainer_state.read_settings(state, path, given), **given})
        if made.strategy is not None:
            tensors, state = shared_checkpoints.read(made.strategy, path)
        trainer_state.restore(made, path, tensors, state)
        return made
