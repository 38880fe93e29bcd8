"""The activations that ``config.json`` names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ember_ml import ops
from ember_ml.typing import Tensor

__all__ = ["ACTIVATIONS"]


def _quick_gelu(x: Tensor) -> Tensor:
    """``x * sigmoid(1.702 * x)``, an approximation of GELU."""
    return ops.multiply(x, ops.sigmoid(ops.multiply(x, 1.702)))


_exact_gelu = partial(ops.gelu, approximate=False)
_tanh_gelu = partial(ops.gelu, approximate=True)
ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "gelu": _exact_gelu,
    "gelu_fast": _tanh_gelu,
    "gelu_new": _tanh_gelu,
    "gelu_pytorch_tanh": _tanh_gelu,
    "quick_gelu": _quick_gelu,
    "relu": ops.relu,
    "silu": ops.silu,
    "swish": ops.silu,
    "tanh": ops.tanh,
}
"""By their names there; "gelu" is the exact one, its other names are of the approximation by tanh."""
