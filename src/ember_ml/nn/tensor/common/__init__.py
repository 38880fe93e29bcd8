"""Portable tensors and the functions that make and reshape them.

The functions are the ops. Those that make tensors give portable ones here, on the active backend; the others keep the kind
of their arguments, as everywhere.
"""

from __future__ import annotations

from ember_ml.ops import conversion, creation, device, facts, indexing, scatter, sets, sorting
from ember_ml.ops.conversion import *
from ember_ml.ops.creation import *
from ember_ml.ops.device import *
from ember_ml.ops.facts import *
from ember_ml.ops.indexing import *
from ember_ml.ops.portable import make_portable
from ember_ml.ops.scatter import *
from ember_ml.ops.sets import *
from ember_ml.ops.shape import *
from ember_ml.ops.shape import __all__ as _shape_names
from ember_ml.ops.sorting import *
from ember_ml.tensor import EmberTensor
from ember_ml.typing import DeviceLike, DTypeLike, TensorLike

__all__ = ["EmberTensor", "convert_to_tensor"]
__all__ += conversion.__all__
__all__ += creation.__all__
__all__ += device.__all__
__all__ += facts.__all__
__all__ += indexing.__all__
__all__ += scatter.__all__
__all__ += sets.__all__
__all__ += _shape_names
__all__ += sorting.__all__

make_portable(globals())  # type checkers see the signatures of the ops, and those stay


def convert_to_tensor(
    data: TensorLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: bool = False
) -> EmberTensor:
    """``data`` as a portable tensor; one that is portable already comes back as it is, unless the rest asks for a change.

    The result may share memory with ``data``; ``tensor.array`` copies.

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


