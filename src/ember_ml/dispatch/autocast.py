"""Mixed precision by op: inside an ``autocast`` block each op computes in the dtype that the policy names for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ember_ml.backend import selection
from ember_ml.core.dtypes import HALVES, EmberDType, as_dtype
from ember_ml.dispatch.scopes import InnerScope
from ember_ml.typing import DTypeLike

__all__ = ["autocast", "outside_autocast"]


class autocast(InnerScope):
    """Compute in ``dtype``, "bfloat16" or "float16", inside the block, wherever that loses little.

    Matrix products, convolutions and attention cast their floats to ``dtype``; reductions, losses, normalizations,
    softmax and exponentials to float32; everything else follows its inputs, which promote as always. Nothing but the
    arguments of ops is cast: parameters, buffers and constants stay what they are, gradients of parameters have their
    dtype, and float64, complex numbers and integers are left alone. The body and the gradient of an op compute without
    autocast, in the dtype that it has chosen. ``autocast(None)`` turns it off inside a block. Like ``use_backend`` it
    is for this thread or task alone, and a decorator too.

    >>> import ember_ml
    >>> from ember_ml import ops
    >>> x = ops.ones((2, 2))
    >>> with ember_ml.autocast("bfloat16"):
    ...     y = ops.matmul(x, x)
    ...     z = ops.softmax(y)
    >>> ops.dtype(y), ops.dtype(z), ops.dtype(ops.matmul(x, x))
    (bfloat16, float32, float32)
    """

    half: EmberDType | None
    watcher: selection.Watcher | None

    def __init__(self, dtype: DTypeLike | None) -> None:
        self.half = None if dtype is None else as_dtype(dtype)
        if self.half is not None and self.half not in HALVES:
            raise ValueError(f"autocast is to bfloat16 or float16, not {self.half}; None turns it off")

    def _recreate_cm(self) -> autocast:
        return autocast(self.half)  # each call of a decorated function has a scope of its own

    def keep(self, outer: selection.Scope | None) -> None:
        self.watcher = None if outer is None else outer.watcher
        if self.half is not None:
            selection.prepare_scopes(self.backend, is_half=True)


def outside_autocast(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` so that it computes without autocast, wherever it is called."""

    @wraps(function)
    def compute(*args: Any, **kwargs: Any) -> Any:
        if selection.half_here() is None:
            return function(*args, **kwargs)
        with autocast(None):
            return function(*args, **kwargs)

    return compute
