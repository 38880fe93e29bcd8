"""The checks that must read values: index range, singular or indefinite matrix, negative integer power.

They run in eager code and cost a synchronization on lazy backends. They are switched off together; bodies then clamp
indices and return NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["enabled", "set_value_checks", "value_checks"]

enabled = True


def set_value_checks(on: bool) -> None:
    """Switch the checks that must read values on or off, for the whole process."""
    global enabled
    enabled = bool(on)


@contextmanager
def value_checks(on: bool) -> Iterator[None]:
    """Switch the checks that must read values on or off inside the ``with`` block.

    >>> import ember_ml
    >>> from ember_ml import ops
    >>> with ember_ml.value_checks(False):
    ...     x = ops.take(ops.array([1.0, 2.0]), ops.array([5]))
    """
    before = enabled
    set_value_checks(on)
    try:
        yield
    finally:
        set_value_checks(before)
