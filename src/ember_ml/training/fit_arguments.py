"""Check and read what a trainer and its ``fit`` are given, before the first step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ember_ml.nn.modules.module import Module
from ember_ml.training import metrics
from ember_ml.training.callbacks import Callback, Checkpoint, EarlyStopping, ReduceRateOnPlateau

__all__ = [
    "check_callbacks",
    "check_monitors",
    "check_parts",
    "count_batches",
    "is_checkpoint",
    "name_metrics",
    "read_validation",
]


def name_metrics(given: Sequence[Any]) -> dict[str, Any]:
    """Return metrics, given as objects or names, by their names."""
    if isinstance(given, str):
        raise TypeError(f"metrics is a list of metrics or names: [{given!r}]")
    found: dict[str, Any] = {}
    for metric in given:
        made = metrics.get(metric)
        name = made.name or type(made).__name__
        if name in found or name == "loss":
            taken = "a metric and the loss" if name == "loss" else "two metrics"
            raise ValueError(f"{taken} are called {name!r}: set the attribute name of one to another name")
        found[name] = made
    return found


def check_callbacks(given: Sequence[Callback]) -> list[Callback]:
    """Return the callbacks; ``TypeError`` where one is none."""
    if isinstance(given, Callback):
        raise TypeError(f"callbacks is a list: [{type(given).__name__}(...)]")
    for callback in given:
        if isinstance(callback, type) and issubclass(callback, Callback):
            raise TypeError(f"{callback.__name__} is a class of callbacks: make an object of it")
        if not isinstance(callback, Callback):
            raise TypeError(f"{callback!r:.60} is no callback: derive its class from callbacks.Callback")
    return list(given)


def check_parts(model: Module, parts: Any, has_step: bool) -> None:
    """Raise where ``parts`` are not names of modules of the model, or have no losses of their own."""
    if isinstance(parts, str):
        raise TypeError(f"parts is a tuple of names: ({parts!r},)")
    for part in parts:
        if not _has_module(model, part):
            names = ", ".join([name for name, _ in model.children()])
            raise ValueError(f"the model has no module {part!r}, which parts names; it has {names or 'none'}")
    if parts and not has_step:
        raise ValueError("parts have losses of their own: define training_step(batch, part)")


def _has_module(model: Module, path: Any) -> bool:
    """Whether there is a module of that path; parts of names may have points of their own, as ``layers.0``."""
    for name, child in model.children():
        if name == path or (str(path).startswith(f"{name}.") and _has_module(child, path[len(name) + 1 :])):
            return True
    return False


def is_checkpoint(callback: Callback) -> bool:
    """Whether a callback saves the state of training."""
    return isinstance(callback, Checkpoint)


def check_monitors(
    callbacks: Iterable[Callback], values: Sequence[str], parts: Iterable[str], validation: Iterable[str]
) -> None:
    """Find a misspelt monitor before the first epoch, unless another callback may add values of its own.

    An epoch gives these ``values``, the losses of the ``parts``, and the values with the prefix of each validation set.
    """
    names = [*values, *(f"{part}_loss" for part in parts)]
    names += [f"{prefix}_{name}" for prefix in validation for name in values]
    if all(type(callback).__module__.startswith("ember_ml.") for callback in callbacks):
        for callback in callbacks:
            if isinstance(callback, EarlyStopping | Checkpoint | ReduceRateOnPlateau):
                callback.check_monitor(names)


def read_validation(validation: Any, times: int) -> dict[str, Any]:
    """Return the validation sets by their prefixes, checked for being read so many times; "val" is that of a single."""
    if validation is None:
        return {}
    sets = validation if isinstance(validation, dict) else {"val": validation}
    for prefix, data in sets.items():
        if not isinstance(prefix, str) or not prefix:
            raise ValueError(f"validation sets have names, not {prefix!r:.60}")
        _check_validation(data, times)
    return sets


def _check_validation(validation: Any, times: int) -> None:
    """Raise now what would otherwise be raised after the first epochs."""
    if isinstance(validation, tuple):
        is_right = len(validation) in (2, 3)
    elif isinstance(validation, list):
        is_right = bool(validation) and isinstance(validation[0], tuple | dict)
    else:
        is_right = validation is None or not (isinstance(validation, dict | str) or hasattr(validation, "shape"))
    if not is_right:
        raise ValueError(
            "validation is a tuple of inputs and targets, with weights perhaps, a loader of batches, or a dict of such"
        )
    if times > 1 and isinstance(validation, Iterator):
        raise ValueError("validation is an iterator, which can be read once: give a list or a DataLoader")


def count_batches(loader: Any) -> int | None:
    """Return the number of batches that a loader gives; None where it does not know."""
    try:
        return len(loader)
    except TypeError:
        return None
