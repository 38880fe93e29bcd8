"""Save the state of a trainer to a checkpoint, and restore it all or not at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from ember_ml import ops
from ember_ml.backend.random.generator import Generator, default_generator, streaming
from ember_ml.backend.selection import active
from ember_ml.backend.tensor_pieces import JoinedTensors
from ember_ml.config import registry
from ember_ml.core.lazy_tensors import LazyTensors
from ember_ml.distributed.pieces import Piece, SavedTensors
from ember_ml.errors import CheckpointError, ConfigError
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.modules.loading import load_in_turn, match_saved
from ember_ml.nn.modules.module import Module
from ember_ml.tensor.variable import Variable, values_of
from ember_ml.training.history import History
from ember_ml.training.metrics.base import Measure
from ember_ml.training.optimizers.base import Optimizer
from ember_ml.training.optimizers.groups import find_own_rate
from ember_ml.training.state_checks import check_count, check_number, check_table
from ember_ml.transforms import change_counter
from ember_ml.typing import Tensor

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer

__all__ = ["config_of", "pieces_of", "read_settings", "restore", "state_of", "tensors_of"]

_COUNTS = ("steps", "epoch", "steps_in_epoch", "updates", "accumulated")
_KEYS = (*_COUNTS, "seed", "should_stop", "data", "random", "history", "precision", "metrics", "callbacks", "shapes")


# saving


def tensors_of(trainer: Trainer) -> dict[str, dict[str, Tensor]]:
    """Return the tensors of a trainer in parts: model and optimizer; others where there are any.

    The others are the gradients, the sum so far of the batches that together make one update, the tensors of callbacks,
    and the losses of the steps so far.
    """
    strategy = trainer.strategy
    own = [callback.tensors() for callback in trainer.callbacks]
    kept = {f"{place}/{name}": x for place, named in enumerate(own) for name, x in named.items()}
    more = {"callbacks": kept, "history": trainer.history.tensors()}
    found: dict[str, dict[str, Tensor]] = {}
    if strategy is None or not strategy.splits_parameters:
        found["model"] = trainer.model.current_tensors()
        more["gradients"] = _collected(trainer)
    if strategy is None or strategy.state_pieces(trainer.optimizer) is None:
        optimizer = trainer.optimizer
        found["optimizer"] = optimizer.saved_tensors() if strategy is None else strategy.gather_state(optimizer)
    return found | {name: part for name, part in more.items() if part}


def pieces_of(trainer: Trainer) -> dict[str, dict[str, Piece]]:
    """Return the pieces that this process writes of the parts that are split; none where nothing is."""
    strategy = trainer.strategy
    if strategy is None:
        return {}
    slots = strategy.state_pieces(trainer.optimizer)
    found: dict[str, dict[str, Piece]] = {} if slots is None else {"optimizer": slots}
    if strategy.splits_parameters:
        held = {name: x.held for name, x in trainer.model.named_variables().items()}
        gradients = _collected(trainer)
        for part, named in {"model": held, **({"gradients": gradients} if gradients else {})}.items():
            pieces = {name: strategy.piece_of(name, x) for name, x in named.items()}
            found[part] = {name: piece for name, piece in pieces.items() if piece is not None}
    return found


def _collected(trainer: Trainer) -> dict[str, Tensor]:
    """Return the sum so far of the gradients of several batches that make one update, by name."""
    collected = trainer._step.collected
    if collected is None:
        return {}
    if trainer.strategy is not None:
        collected = trainer.strategy.average_collected(collected)
    return dict(zip(trainer.model.trainable(), collected, strict=True))


def state_of(trainer: Trainer) -> dict[str, Any]:
    """Return the rest of a trainer's state, as plain data."""
    return {
        "steps": trainer.steps,
        "epoch": trainer.epoch,
        "steps_in_epoch": trainer.steps_in_epoch,
        "is_step_open": trainer._is_step_open,
        "updates": trainer.optimizer.step,
        "rate": _get_number(trainer.optimizer.learning_rate),
        "group_rates": [_get_number(find_own_rate(group)) for group in trainer.optimizer.groups],
        "accumulated": trainer._step.count,
        "seed": trainer.seed,
        "should_stop": trainer.should_stop,
        "data": trainer.position,
        "random": default_generator().state(),
        "streams": [] if trainer.strategy is None else trainer.strategy.gather_streams(),
        "history": trainer.history.state(),
        "precision": None if trainer.precision is None else trainer.precision.state(),
        "metrics": {name: metric.state() for name, metric in trainer._merge_metrics(trainer.metrics).items()},
        "callbacks": [[type(callback).__name__, callback.state()] for callback in trainer.callbacks],
        "shapes": {name: list(layer._built_for) for name, layer in _layers(trainer.model) if layer._built_for},
        "config": config_of(trainer),
    }


def _get_number(rate: Any) -> float | None:
    """Return a rate that is a number; None for a schedule, which knows its own, and where there is none."""
    return None if rate is None or callable(rate) else float(rate)


def _layers(model: Module) -> list[tuple[str, Layer]]:
    return [(name, module) for name, module in model.named_modules() if isinstance(module, Layer)]


def config_of(trainer: Trainer) -> dict[str, Any]:
    """Return the settings of a trainer; None for what cannot be described."""
    return {
        "model": _describe(trainer.model),
        "optimizer": _describe(trainer.optimizer),
        "loss": _describe(trainer.loss),
        "metrics": [_describe(metric) for metric in trainer.metrics.values()],
        "compile": trainer.compile,
        "precision": None if trainer.precision is None else trainer.precision.dtype.name,
        "accumulate": trainer.accumulate,
    }


def _describe(thing: Any) -> Any:
    try:
        return registry.config_of(thing)
    except (ConfigError, TypeError, ValueError):
        return None


# restoring


def restore(
    trainer: Trainer, path: str | PathLike[str], tensors: Mapping[str, SavedTensors], state: dict[str, Any]
) -> None:
    """Restore a trainer from a checkpoint; one that does not fit changes nothing."""
    undo = _make_undo(trainer)
    try:
        streams = [Generator.from_state(x).state() for x in state.get("streams", [])]
        matched, generator = _take_state(trainer, tensors, check_table(state, "its state", *_KEYS))
    except BaseException as error:
        undo()
        if not isinstance(error, Exception):
            raise
        reason = str(error) or type(error).__name__
        raise CheckpointError(f"the checkpoint in {path} does not fit this trainer: {reason}") from error
    try:
        load_in_turn(matched, tensors["model"])
    except (OSError, ValueError) as error:
        undo()
        raise CheckpointError(
            f"the checkpoint in {path}, whose checksums were right a moment ago, can no longer be read: {error}. Some "
            "parameters are those of the checkpoint and some are not: restore another one, or make a new trainer"
        ) from error
    ops.random.seed(generator)
    if trainer.strategy is not None:
        trainer.strategy.lay_out(trainer.model)
        trainer.strategy.restore_streams(streams)


def _make_undo(trainer: Trainer) -> Callable[[], None]:
    """Return a function that resets everything that a checkpoint changes, but the values of the model."""
    objects = [trainer, trainer.optimizer, trainer._step, trainer.precision, *trainer.metrics.values()]
    modules = [module for _, module in trainer.model.named_modules()]
    tables = [x.__dict__ for x in (*objects, *trainer.callbacks, *modules) if hasattr(x, "__dict__")]
    tables += [*(module._variables for module in modules), *trainer.optimizer.groups]
    before = [(x, dict(x)) for x in tables]

    def undo() -> None:
        for held, old in before:
            held.clear()
            held.update(old)
        change_counter.count_change()  # none of these assignments did

    return undo


def _take_state(
    trainer: Trainer, tensors: Mapping[str, SavedTensors], state: dict[str, Any]
) -> tuple[dict[Variable, str], Generator]:
    """Restore everything but the values of the model and the default random generator; return what these need.

    The model's come last, in place of the old ones, so that two of each never exist at once: nothing may refuse the
    checkpoint after them.
    """
    nothing = SavedTensors(JoinedTensors([]))
    numbers = {name: check_count(state, name) for name in _COUNTS}
    trainer.seed, trainer.should_stop = check_count(state, "seed", 2**64 - 1), state["should_stop"] is True
    trainer.history = History.from_state(state["history"], tensors.get("history", nothing))
    trainer.position = _check_position(state["data"])
    trainer.steps, trainer.epoch, trainer.steps_in_epoch = (numbers[name] for name in _COUNTS[:3])
    trainer._is_step_open = state.get("is_step_open") is True
    _build(trainer.model, state["shapes"])
    trainer._step.prepare()
    matched = match_saved(trainer.model, tensors["model"], tensors["model"].shapes)
    _take_slots(trainer, tensors["optimizer"], numbers["updates"])
    _take_rate(trainer.optimizer, state)
    _take_gradients(trainer, tensors.get("gradients", nothing), numbers["accumulated"])
    _take_metrics(trainer, check_table(state["metrics"], "metrics"))
    _take_callbacks(trainer, state["callbacks"], tensors.get("callbacks", nothing))
    if trainer.precision is not None and state["precision"] is not None:
        trainer.precision.restore(state["precision"])
    return matched, Generator.from_state(state["random"])


def _check_position(data: Any) -> dict[str, Any] | None:
    """Return the position of the data loader, with checked types; the loader checks that it fits the data."""
    if data is None:
        return None
    check_table(data, "data", "seed", "epoch", "batch", "batch_size", "rows")
    found: dict[str, Any] = {name: check_count(data, name) for name in ("epoch", "batch")}
    found["seed"] = check_count(data, "seed", 2**64 - 1)
    return found | {name: None if data[name] is None else check_count(data, name) for name in ("batch_size", "rows")}


def _build(model: Module, shapes: Any) -> None:
    """Build the layers whose sizes were left out, for the shapes that they had."""
    check_table(shapes, "shapes")
    with streaming(Generator(0)):  # the values come from the file
        for name, layer in _layers(model):
            shape = shapes.get(name)
            if not layer.is_built and isinstance(shape, list):
                layer.build_for(tuple(check_count({"a shape": size}, "a shape") for size in shape))
    unknown = [name for name, module in model.named_modules() if not module.is_built]
    if unknown:
        raise ValueError(f"the sizes of {', '.join(unknown)} are unknown: call the model once before")


def _take_slots(trainer: Trainer, slots: SavedTensors, updates: int) -> None:
    optimizer, strategy = trainer.optimizer, trainer.strategy
    is_plain = type(optimizer).load_state_dict is Optimizer.load_state_dict  # a subclass checks its own state
    devices = _check_slots(trainer, slots) if is_plain else {}
    if strategy is not None:
        strategy.load_state(optimizer, slots, updates)
    elif devices:
        optimizer.load_state_dict(LazyTensors(slots, lambda key: ops.to_device(slots[key], devices[key])), updates)
    else:
        optimizer.load_state_dict(slots, updates)


def _check_slots(trainer: Trainer, slots: SavedTensors) -> dict[str, str]:
    """Raise where the optimizer does not keep such tensors; return the devices on which it keeps them.

    Where parameters are split, it keeps parts of them, of which only the whole shapes are known here, and no devices.
    """
    optimizer, named = trainer.optimizer, trainer.model.named_parameters()
    is_split = trainer.strategy is not None and trainer.strategy.splits_parameters
    devices: dict[str, str] = {}
    for key, (dtype, shape) in slots.shapes.items():
        slot, _, name = key.partition("/")
        member = optimizer.member_of(name, named[name]) if name in named else None
        if member is None or slot not in member.slots:
            raise ValueError(f"the optimizer keeps no {key!r:.80}")
        if is_split:
            fits = shape == named[name].shape or not member.is_elementwise
        else:
            wanted = member.fresh(slot, named[name].value)
            fits = (tuple(wanted.shape), active().dtype_of(wanted)) == (shape, dtype)
            devices[key] = active().device_of(wanted)
        if not fits:
            raise ValueError(f"the optimizer's {key!r:.80} has the wrong shape or dtype")
    for name in {key.partition("/")[2] for key in slots}:
        member = optimizer.member_of(name, named[name])
        if member is not None and any(f"{slot}/{name}" not in slots for slot in member.slots):
            raise ValueError(f"the optimizer's state of {name!r:.80} is not whole")
    return devices


def _take_rate(optimizer: Optimizer, state: Mapping[str, Any]) -> None:
    """Set the rates that a callback may have changed since the optimizer was made; a schedule knows its own."""
    rates = state.get("group_rates", [])
    if not isinstance(rates, list) or len(rates) != len(optimizer.groups):
        raise ValueError(f"the optimizer has {len(optimizer.groups)} groups of parameters, and the checkpoint others")
    if state.get("rate") is not None and not callable(optimizer.learning_rate):
        optimizer.learning_rate = _check_rate(state["rate"])
    for group, rate in zip(optimizer.groups, rates, strict=True):
        if rate is not None and not callable(find_own_rate(group)):
            group["learning_rate"] = _check_rate(rate)


def _check_rate(value: Any) -> float:
    rate = check_number({"rate": value}, "rate")
    if not 0 <= rate < math.inf:
        raise ValueError(f"rate is a number from 0 up, not {rate!r}")
    return rate


def _take_gradients(trainer: Trainer, gradients: SavedTensors, accumulated: int) -> None:
    step, named = trainer._step, trainer.model.trainable()
    step.count, step.collected = accumulated, None
    if bool(gradients) != bool(accumulated) or accumulated >= trainer.accumulate:
        raise ValueError(f"it has the gradients of {accumulated} batches, and {trainer.accumulate} make an update")
    if not gradients:
        return
    shapes = {name: shape for name, (_, shape) in gradients.shapes.items()}
    if shapes != {name: x.shape for name, x in named.items()}:
        raise ValueError("its gradients are not those of the model's parameters")
    step.collected = []
    for name, parameter in named.items():
        own = gradients[name]
        if trainer.strategy is not None:
            own = trainer.strategy.part_of(name, own)
        (value,) = values_of([parameter])
        step.collected.append(ops.to_device(own, active().device_of(value)))


def _take_metrics(trainer: Trainer, states: Mapping[str, Any]) -> None:
    if states.keys() != trainer.metrics.keys():
        raise ValueError(f"it has the metrics {sorted(states)}, and the trainer {sorted(trainer.metrics)}")
    for name, metric in trainer.metrics.items():
        metric.reset()
        if trainer.strategy is None or trainer.strategy.is_main:  # the sums of all processes are merged again
            metric.restore(states[name])


def _take_callbacks(trainer: Trainer, states: Any, tensors: Mapping[str, Tensor]) -> None:
    """Restore each callback from the state of the callback of its class; several of one class go in order."""
    if not isinstance(states, list) or not all(isinstance(x, list) and len(x) == 2 for x in states):
        raise ValueError(f"callbacks is a list of names and states, not {states!r:.60}")
    left = list(enumerate(states))
    for callback in trainer.callbacks:
        found = next((entry for entry in left if entry[1][0] == type(callback).__name__), None)
        if found is not None:
            left.remove(found)
            place, (_, state) = found
            own = {key.partition("/")[2]: tensors[key] for key in tensors if key.partition("/")[0] == str(place)}
            callback.restore(check_table(state, "the state of a callback"), own)


# building a trainer


def read_settings(state: Mapping[str, Any], path: str | PathLike[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Build and return the trainer's arguments that a checkpoint describes, except those that are given."""
    config = state.get("config")
    if not isinstance(config, dict):
        raise CheckpointError(f"the checkpoint in {path} does not say what was trained; pass model=, optimizer= ...")
    found: dict[str, Any] = {name: config.get(name) for name in ("compile", "precision", "accumulate")}
    is_right = found["compile"] in (None, False, True) and found["precision"] in (None, "bfloat16", "float16")
    if not is_right or type(found["accumulate"]) is not int or found["accumulate"] < 1:
        raise CheckpointError(f"the checkpoint in {path} describes no trainer: it has the settings {found!r:.200}")
    with streaming(Generator(0)):  # the values come from the file
        for name, kind in (("model", Module), ("optimizer", Optimizer), ("loss", Callable)):
            if name not in given:
                found[name] = _build_part(config.get(name), name, kind, path)
        if "metrics" not in given:
            parts = config.get("metrics")
            if not isinstance(parts, list):
                raise CheckpointError(f"the checkpoint in {path} does not list its metrics; pass metrics=...")
            found["metrics"] = [_build_part(part, "metrics", Measure, path) for part in parts]
    return found


def _build_part(config: Any, name: str, kind: Any, path: str | PathLike[str]) -> Any:
    if not isinstance(config, dict):
        raise CheckpointError(
            f"the checkpoint in {path} cannot describe its {name}, which has no registered name: pass {name}=..."
        )
    try:
        made = registry.build(config, source=str(path))
    except ConfigError as error:
        raise CheckpointError(f"the {name} of the checkpoint in {path} cannot be built: {error}") from error
    if not isinstance(made, kind):
        raise CheckpointError(f"the checkpoint in {path} has {type(made).__name__} for its {name}")
    return made
