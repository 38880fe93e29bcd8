"""Base classes of metrics: add up the measures of batches, lazily and without losing digits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ember_ml import ops
from ember_ml.backend.selection import active
from ember_ml.config.registry import register
from ember_ml.core.dtypes import HALVES, as_dtype
from ember_ml.training.sample_weights import broadcast_weights
from ember_ml.typing import Tensor, TensorLike

__all__ = ["Mean", "Measure", "Metric", "mean_of", "number_of", "tensor_of", "widen"]

_WIDTH = 64  # how many measures are added at once
Parts = tuple[Any, ...]
"""The sums of one or more batches: tensors and Python numbers, a fixed number of them for each metric."""


class Measure:
    """Adds up what was measured in each batch.

    Sums are kept in levels: 64 measures of one level make one of the next, so that in a long run no small number is
    rounded away in a large sum. Values that have been read are kept in double precision.
    """

    name: str = ""
    """The name of the metric in histories."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        self._levels: list[list[Parts]] = []
        self._known: Parts | None = None

    def add(self, parts: Parts) -> None:
        """Add what was measured in a batch."""
        backend = active()
        if backend.laziness is not None:  # an unevaluated part would keep its whole graph alive until it is read
            backend.laziness.start(*(part for part in parts if backend.is_native(part)))
        level = 0
        while True:
            if level == len(self._levels):
                self._levels.append([])
            self._levels[level].append(parts)
            if len(self._levels[level]) < _WIDTH:
                return
            parts = self.joined(self._levels[level])
            self._levels[level] = []
            level += 1

    def joined(self, group: Sequence[Parts]) -> Parts:
        """Return the parts of several batches as those of one: by default the sums."""
        return tuple(_sum(column) for column in zip(*group, strict=True))

    def pending(self) -> Parts | None:
        """Return the parts of the batches since values were last read, joined; None where there are none."""
        waiting: list[Parts] = []
        for level in self._levels:
            group = [*level, *waiting]
            waiting = [self.joined(group)] if len(group) > 1 else group
        return waiting[0] if waiting else None

    def total(self) -> Parts | None:
        """Return all that was measured, as Python numbers and lists; None where nothing was."""
        new = self.pending()
        self._levels = []
        if new is not None:
            read = tuple(map(_read, new))
            self._known = read if self._known is None else tuple(map(_read, self.joined([self._known, read])))
        return self._known

    def conclude(self, *total: Any) -> Any:
        """Return the result for the numbers and lists that :meth:`total` returns."""
        raise NotImplementedError(f"{type(self).__name__} does not define conclude")

    def result(self) -> Any:
        """Return the number for all batches since the last reset; NaN where there was none."""
        total = self.total()
        return math.nan if total is None else self.conclude(*total)

    def state(self) -> dict[str, Any]:
        """Return all that was measured, as plain data for :meth:`restore` and :meth:`merge`."""
        total = self.total()
        return {"name": self.name, "total": None if total is None else list(total)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state, and forget what was measured before."""
        known = self._check_state(state)
        self.reset()
        self._known = known

    def merge(self, state: Mapping[str, Any]) -> None:
        """Add what another metric of the same kind, on another rank perhaps, has measured."""
        other, own = self._check_state(state), self.total()
        if other is not None:
            self._known = other if own is None else tuple(map(_read, self.joined([own, other])))

    def _check_state(self, state: Mapping[str, Any]) -> Parts | None:
        """Return the total of a state, which may come from a damaged file."""
        try:
            name, total = state["name"], state["total"]
        except (KeyError, TypeError) as error:
            raise ValueError(f"the state of a metric has a name and a total, not {state!r:.80}") from error
        if name != self.name:
            raise ValueError(f"the state is of the metric {name!r:.80}, and this is {self.name!r}")
        if total is None:
            return None
        try:
            parts = tuple(map(_check_numbers, total))
            self.conclude(*parts)
        except (TypeError, ValueError, IndexError, ArithmeticError) as error:
            raise ValueError(f"the total of the metric {name!r} cannot be right ({error}): {total!r:.80}") from error
        return parts

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if not name.startswith("_"))
        return f"{type(self).__name__}({settings})"


class Metric(Measure):
    """A measure of predictions: a subclass defines ``measure`` and ``conclude``.

    >>> from ember_ml import ops
    >>> from ember_ml.training.metrics import Metric
    >>> class Largest(Metric):
    ...     def measure(self, target, prediction, weight=None):
    ...         return (ops.max(ops.abs(ops.subtract(prediction, target))),)
    ...     def joined(self, group):
    ...         return (ops.max(ops.stack([part for (part,) in group])),)
    ...     def conclude(self, largest):
    ...         return largest
    >>> metric = Largest()
    >>> metric.update([1.0, 2.0], [1.5, 2.0])
    >>> metric.update([1.0, 2.0], [1.0, 4.0])
    >>> metric.result()
    2.0
    """

    def measure(self, target: TensorLike, prediction: TensorLike, weight: TensorLike | None = None) -> Parts:
        """Return the parts of one batch. This is a pure function, so that a compiled step may call it."""
        raise NotImplementedError(f"{type(self).__name__} does not define measure")

    def update(self, target: TensorLike, prediction: TensorLike, weight: TensorLike | None = None) -> None:
        """Measure a batch."""
        self.add(self.measure(target, ops.stop_gradient(prediction), weight))


@register("metrics/mean")
class Mean(Measure):
    """The mean of numbers, weighted if there are weights.

    >>> from ember_ml.training import metrics
    >>> mean = metrics.Mean()
    >>> mean.update([1.0, 2.0])
    >>> mean.update(6.0)
    >>> mean.result()
    3.0
    """

    name = "mean"

    def update(self, value: TensorLike, weight: TensorLike | None = None) -> None:
        """Add numbers, with a weight for each of the first axes."""
        self.add(mean_of(widen(ops.stop_gradient(value)), weight))

    def conclude(self, *total: Any) -> float:
        return total[0] / total[1] if total[1] else math.nan


def mean_of(values: Tensor, weight: TensorLike | None) -> Parts:
    """Return the two parts of a mean: the sum of the values and their number, or those weighted."""
    if weight is None:
        return ops.sum(values), number_of(values)
    if as_dtype(values.dtype).kind != "float":
        values = ops.cast(values, "float32")
    weight = broadcast_weights(weight, values)
    return ops.sum(ops.multiply(values, weight)), ops.sum(weight)


def number_of(values: Tensor) -> int:
    """Return the number of elements of a tensor."""
    return math.prod(values.shape)


def tensor_of(x: TensorLike) -> Tensor:
    """Return ``x`` as a tensor; most often it is one."""
    return x if type(x) is active().tensor_type else ops.convert_to_tensor(x)


def widen(x: TensorLike) -> Tensor:
    """Return the tensor, in float32 where it is of half precision."""
    x = tensor_of(x)
    return ops.cast(x, "float32") if as_dtype(x.dtype) in HALVES else x


_PLAIN: tuple[type, ...] = (int, float, list)


def _sum(column: Sequence[Any]) -> Any:
    """Return the sum of tensors, or of numbers, or of lists of them."""
    if isinstance(column[0], list):
        return [_sum(items) for items in zip(*column, strict=True)]
    if all(isinstance(item, int) for item in column):
        return sum(column)
    if all(isinstance(item, int | float) for item in column):
        return math.fsum(column)
    return ops.sum(ops.stack([tensor_of(item) for item in column]), 0)


def _read(part: Any) -> Any:
    """Return a part as a Python number or list."""
    return part if isinstance(part, _PLAIN) else ops.to_numpy(part).tolist()


def _check_numbers(part: Any) -> Any:
    """Return ``part``, a number or a nested list of numbers; raise ``TypeError`` for anything else."""
    if type(part) is list:
        return [_check_numbers(item) for item in part]
    if type(part) not in (int, float):
        raise TypeError(f"{part!r:.40} is no number")
    return part
