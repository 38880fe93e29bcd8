"""Targets and weights of samples, as losses and metrics take them."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.backend.selection import active
from ember_ml.core.dtypes import as_dtype
from ember_ml.tensor import EmberTensor
from ember_ml.typing import Tensor, TensorLike

__all__ = ["beside", "spread_weights"]


def beside(x: TensorLike, partner: Tensor) -> Tensor:
    """``x`` as a tensor; what is none yet goes to the device of ``partner``."""
    backend = active()
    if type(x) is backend.tensor_type or type(x) is EmberTensor:
        return x
    return ops.convert_to_tensor(x, device=ops.get_device(partner))


def spread_weights(weight: TensorLike, values: Tensor) -> Tensor:
    """The weights of samples in the dtype of ``values``, one for each value.

    ``weight`` has one number for each place along the first axes of ``values``, or along all; a last axis of length 1
    may follow.

    >>> from ember_ml import ops
    >>> from ember_ml.training.sample_weights import spread_weights
    >>> ops.to_numpy(spread_weights([1, 2], ops.zeros((2, 3)))).tolist()
    [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    """
    weight = ops.cast(beside(weight, values), as_dtype(values.dtype))
    shape, own = tuple(values.shape), tuple(weight.shape)
    if own[-1:] == (1,) and own != shape[: len(own)]:  # a column, as tables give it
        own = own[:-1]
    if own != shape[: len(own)]:
        raise ValueError(f"weights of shape {own} do not fit values of shape {shape}: give one for each sample")
    return ops.broadcast_to(ops.reshape(weight, own + (1,) * (len(shape) - len(own))), shape)
