"""Convert anything tensor-like to a portable tensor."""

from __future__ import annotations

from ember_ml.tensor import EmberTensor
from ember_ml.typing import DeviceLike, DTypeLike, Tensor, TensorLike

__all__ = ["convert_to_tensor"]


def convert_to_tensor(
    data: TensorLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: bool = False
) -> Tensor:
    """Return ``data`` as a portable tensor; one that is portable already comes back as it is.

    A dtype, device or ``requires_grad`` that it does not have makes a new one. The result may share memory with
    ``data``; ``tensor.array`` copies.

    >>> from ember_ml.nn import tensor
    >>> x = tensor.convert_to_tensor([1, 2, 3])
    >>> x.dtype, tensor.convert_to_tensor(x) is x
    (int64, True)
    """
    if type(data) is not EmberTensor:
        return EmberTensor(data, dtype, device, requires_grad)
    result = data
    if dtype is not None and dtype != result.dtype:
        result = result.cast(dtype)
    if device is not None and device != result.device:
        result = result.to_device(device)
    if requires_grad and not result.requires_grad:
        result = result.copy() if result is data else result
        result.requires_grad = True
    return result
