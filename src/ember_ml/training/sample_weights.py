"""Convert targets and sample weights for losses and metrics."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.backend.selection import active
from ember_ml.core.dtypes import as_dtype
from ember_ml.tensor import EmberTensor
from ember_ml.typing import Tensor, TensorLike

__all__ = ["as_tensor_near", "broadcast_weights"]


def as_tensor_near(x: TensorLike, partner: Tensor) -> Tensor:
    """Return ``x`` as a tensor; data that is not a tensor yet goes to the device of ``partner``."""
    backend = active()
    if type(x) is backend.tensor_type or type(x) is EmberTensor:
        return x
    return ops.convert_to_tensor(x, device=ops.get_device(partner))


def broadcast_weights(weight: TensorLike, values: Tensor) -> Tensor:
    """Return the weights of samples in the dtype of ``values``, one for each value.

    ``weight`` has one element for each index of the first axes of ``values``, or of all axes; a last axis of length 1
    may follow.

    >>> from ember_ml import ops
    >>> from ember_ml.training.sample_weights import broadcast_weights
    >>> ops.to_numpy(broadcast_weights([1, 2], ops.zeros((2, 3)))).tolist()
    [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    """
    weight = ops.cast(as_tensor_near(weight, values), as_dtype(values.dtype))
    shape, own = tuple(values.shape), tuple(weight.shape)
    if own[-1:] == (1,) and own != shape[: len(own)]:  # a column of a table
        own = own[:-1]
    if own != shape[: len(own)]:
        raise ValueError(f"weights of shape {own} do not fit values of shape {shape}: give one for each sample")
    return ops.broadcast_to(ops.reshape(weight, own + (1,) * (len(shape) - len(own))), shape)
