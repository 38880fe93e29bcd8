"""The parts of a batch, and how a model takes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ember_ml.core import trees
from ember_ml.nn.modules.module import Module
from ember_ml.training.data import DataLoader

__all__ = ["apply_model", "as_tuple", "count_samples", "inputs_of", "iterate_batches", "split_batch"]

_KINDS = (tuple, list)


def as_tuple(batch: Any) -> tuple[Any, ...]:
    """Return a batch as a tuple, which a step of one's own gets; a named tuple stays one."""
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return batch
    return tuple(batch) if isinstance(batch, _KINDS) else (batch,)


def split_batch(batch: Any) -> tuple[Any, Any, Any]:
    """Return the inputs, the targets and the weights, or None, of a batch."""
    if not isinstance(batch, _KINDS) or len(batch) not in (2, 3):
        raise ValueError("a batch is a tuple of inputs and targets, or of inputs, targets and weights of the samples")
    return (*batch, None) if len(batch) == 2 else tuple(batch)


def apply_model(model: Module, x: Any) -> Any:
    """Call the model with inputs: one tensor, a tuple of arguments, or arguments by name."""
    if type(x) is tuple or type(x) is list:
        return model(*x)
    return model(**x) if type(x) is dict else model(x)


def count_samples(batch: Any) -> int:
    """Return the number of samples in a batch."""
    for leaf in trees.flatten(batch)[0]:
        shape = getattr(leaf, "shape", ())  # texts and numbers have none
        if shape:
            return shape[0]
    return 1


def iterate_batches(x: Any, y: Any, batch_size: int) -> Iterable[Any]:
    """Return an iterable of the batches that ``evaluate`` and ``predict`` take."""
    if isinstance(x, DataLoader):
        return x
    if y is None and type(x) is list and x and isinstance(x[0], tuple):  # of batches, as ``fit`` takes them
        return x
    is_iterable = y is None and not isinstance(x, tuple | dict | list) and not hasattr(x, "shape")
    return DataLoader(x if y is None else (x, y), batch_size=None if is_iterable else batch_size)


def inputs_of(batch: Any) -> Any:
    """Return the inputs of a batch: the batch itself, or its first part where a loader has targets too."""
    return batch[0] if isinstance(batch, tuple | list) else batch
