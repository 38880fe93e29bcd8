"""Random order and random choice."""

from __future__ import annotations

import math
import operator
from typing import Any

import ember_ml.ops as ops
from ember_ml.backend.common.shapes import as_shape
from ember_ml.backend.random import distributions
from ember_ml.backend.random.draw import constant, draw, permutation
from ember_ml.backend.random.generator import SeedLike
from ember_ml.backend.random.parameters import checked_integer, rates_of, thresholds_of
from ember_ml.core.dtypes import as_dtype
from ember_ml.dispatch.declare import derived
from ember_ml.dispatch.dtype_rules import CREATION, KEEP, REAL_FLOATING
from ember_ml.typing import DataLike, DeviceLike, DTypeLike, ShapeLike, Tensor, TensorLike

__all__ = ["random_categorical", "random_choice", "random_permutation", "shuffle"]


@derived(CREATION)
def random_permutation(
    x: DataLike, axis: int = 0, device: DeviceLike | None = None, seed: SeedLike | None = None
) -> Tensor:
    """The parts of ``x`` along ``axis`` in random order; of an integer ``n``, the int64 integers below it.

    It is the order of as many random words, equal ones in their place.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.sort(ops.random_permutation(4))).tolist()
    [0, 1, 2, 3]
    """
    if _is_count(x):
        return permutation(_count(x), device, seed)
    return shuffle(x, axis, seed)


@derived(KEEP.giving("own"))
def shuffle(x: TensorLike, axis: int = 0, seed: SeedLike | None = None) -> Tensor:
    """The parts of ``x`` along ``axis`` in random order; ``x`` itself stays as it is.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.sort(ops.shuffle([3.0, 1.0, 2.0]))).tolist()
    [1.0, 2.0, 3.0]
    """
    places = permutation(_length(x, axis), ops.get_device(x), seed)
    return ops.take(x, places, axis)


@derived(CREATION)
def random_choice(
    x: DataLike,
    shape: ShapeLike = (),
    replace: bool = True,
    p: DataLike | None = None,
    axis: int = 0,
    device: DeviceLike | None = None,
    seed: SeedLike | None = None,
) -> Tensor:
    """Parts of ``x`` along ``axis``, chosen at random; of an integer ``n``, from the integers below it.

    ``shape`` takes the place of the axis. With ``replace=False`` no part is chosen twice. ``p`` gives the probability
    of each part, and is read on the host; without it all are equally likely.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.random_choice([10.0, 20.0], 3, p=[0.0, 1.0])).tolist()
    [20.0, 20.0, 20.0]
    >>> ops.to_numpy(ops.sort(ops.random_choice(3, 3, replace=False))).tolist()
    [0, 1, 2]
    """
    count = _count(x) if _is_count(x) else _length(x, axis)
    places = _places(count, as_shape(shape), replace, p, device, seed)
    return places if _is_count(x) else ops.take(x, places, axis)


@derived(REAL_FLOATING.giving("own"))
def random_categorical(
    logits: TensorLike, num_samples: int = 1, dtype: DTypeLike | None = None, seed: SeedLike | None = None
) -> Tensor:
    """Classes drawn from each row of ``logits``: logarithms of probabilities, up to a constant, along the last axis.

    ``num_samples`` draws take the place of that axis; int64 unless ``dtype`` says otherwise. Each is the place of the
    largest sum of a logit and a Gumbel number, so that one draw costs as many random numbers as there are classes; for
    many draws from few probabilities ``random_choice(n, shape, p=...)`` is faster.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.random_categorical([[0.0, float("-inf")], [float("-inf"), 0.0]], 3)).tolist()
    [[0, 0, 0], [1, 1, 1]]
    """
    *rows, classes = _nonempty(logits.shape, "logits")
    kind = distributions.GUMBEL.within(as_dtype(logits.dtype))
    noise = draw(kind, as_shape((*rows, num_samples, classes)), ops.get_device(logits), seed)
    found = ops.argmax(ops.add(ops.expand_dims(ops.cast(logits, kind.dtype), -2), noise), -1)
    return found if dtype is None else ops.cast(found, dtype)


def _is_count(x: Any) -> bool:
    """Return whether ``x`` is a number of things rather than the things."""
    return isinstance(x, int) or (hasattr(x, "__index__") and getattr(x, "shape", None) == ())


def _count(x: Any) -> int:
    count = checked_integer(x, "the number of things")
    if count < 0:
        raise ValueError(f"the number of things must not be negative, and is {count}")
    return count


def _length(x: Any, axis: int) -> int:
    own = ops.shape(x) if not hasattr(x, "shape") else tuple(x.shape)
    if not own:
        raise ValueError("a 0-d tensor has no parts to choose from")
    if not -len(own) <= operator.index(axis) < len(own):
        raise IndexError(f"axis {axis} is out of range for a tensor of {len(own)} dimensions")
    return own[axis]


def _nonempty(shape: Any, name: str) -> tuple[int, ...]:
    """Return the shape of a tensor with at least one element along its last axis."""
    if not len(shape) or not shape[-1]:
        raise ValueError(f"{name} of shape {tuple(shape)} have no class to draw")
    return tuple(shape)


def _places(count: int, shape: tuple[int, ...], replace: bool, p: Any, device: Any, seed: SeedLike | None) -> Tensor:
    """Return the int64 places that a choice among ``count`` things falls on."""
    wanted = math.prod(shape)
    if wanted and not count:
        raise ValueError("there is nothing to choose from")
    if not replace and wanted > count:
        raise ValueError(f"{wanted} different things cannot be chosen from {count}; allow repetition: replace=True")
    if not replace:
        order = permutation(count, device, seed) if p is None else _by_weight(count, p, wanted, device, seed)
        return ops.reshape(order[:wanted], shape)
    if p is None:
        return draw(distributions.integers(0, max(count, 1)), shape, device, seed)
    bounds = constant(thresholds_of, device, p, count)
    return ops.searchsorted(bounds, draw(distributions.LONG_WORD, shape, device, seed), "right")


def _by_weight(count: int, p: Any, wanted: int, device: Any, seed: SeedLike | None) -> Tensor:
    """Return the order in which all things are chosen without repetition: by waiting times with the rates ``p``."""
    weights = constant(rates_of, device, p, count, wanted)
    return ops.argsort(ops.divide(draw(distributions.EXPONENTIAL.float32, (count,), device, seed), weights))
