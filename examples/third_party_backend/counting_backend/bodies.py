"""The bodies: a function named like an op is its body here, and gets every declared argument, in declared order.

Ops that are derived from these work too. Any other op raises ``UnsupportedOp`` and says so.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

__all__ = ["Counted", "calls"]

calls: Counter[str] = Counter()
"""How often each op ran."""


class Counted(np.ndarray):
    """The tensors of this backend: a class of its own, so that Ember ML can tell them from NumPy's."""


def add(x: Counted, y: Counted) -> Any:
    calls["add"] += 1
    return np.add(x, y)


def multiply(x: Counted, y: Counted) -> Any:
    calls["multiply"] += 1
    return np.multiply(x, y)


def sqrt(x: Counted) -> Any:
    calls["sqrt"] += 1
    return np.sqrt(x)


def reshape(x: Counted, shape: Any) -> Any:
    calls["reshape"] += 1
    return np.reshape(x, shape)


# With these few more, everything above has gradients: the rules beside the ops are written on ops.


def sum(x: Counted, axis: Any, dtype: Any, keepdims: bool) -> Any:
    calls["sum"] += 1
    return np.sum(x, axis=axis, dtype=dtype, keepdims=keepdims)


def divide(x: Counted, y: Counted) -> Any:
    calls["divide"] += 1
    return np.divide(x, y)


def broadcast_to(x: Counted, shape: Any) -> Any:
    calls["broadcast_to"] += 1
    return np.broadcast_to(x, shape, subok=True)


def ones(shape: Any, dtype: Any, device: str) -> Any:
    calls["ones"] += 1
    return np.ones(shape, dtype or np.float32).view(Counted)


def zeros(shape: Any, dtype: Any, device: str) -> Any:
    calls["zeros"] += 1
    return np.zeros(shape, dtype or np.float32).view(Counted)
