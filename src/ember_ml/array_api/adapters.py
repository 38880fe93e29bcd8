"""The functions of the standard that are more than an op with another signature."""

from __future__ import annotations

from typing import Any

from ember_ml.tensor import EmberTensor
from ember_ml.typing import DeviceLike, DTypeLike

__all__ = ["ADAPTERS"]


def astype(
    x: EmberTensor, dtype: DTypeLike, /, *, copy: bool = True, device: DeviceLike | None = None
) -> EmberTensor:
    """``x`` in another dtype, by the rules of ``ops.cast``; without ``copy``, ``x`` itself where nothing changes."""
    result = x if x.dtype == dtype else x.cast(dtype)
    if device is not None and device != result.device:
        result = result.to_device(device)
    return x.copy() if copy and result is x else result


def reshape(x: EmberTensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> EmberTensor:
    """``x`` in another shape.

    Tensors never write through to one another, so whether memory is shared shows nowhere; ``copy`` of True copies, and
    False is as good as None.
    """
    return (x.copy() if copy else x).reshape(shape)


ADAPTERS: dict[str, Any] = {function.__name__: function for function in (astype, reshape)}
