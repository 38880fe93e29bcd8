"""Reading and replacing parts of tensors."""

from __future__ import annotations

from ember_ml.ops.declare import primitive
from ember_ml.ops.rules import KEEP
from ember_ml.typing import KeyLike, Tensor, TensorLike, ValueLike

__all__: list[str] = ["get_item", "index_update"]


@primitive(KEEP)
def get_item(x: TensorLike, key: KeyLike) -> Tensor:
    """What ``x[key]`` selects, by NumPy's rules: integers, slices, ``None``, ``...``, masks, index tensors, tuples of them.

    An index out of range, a float index and too many indices raise ``IndexError``. A mask selects the elements where it is
    true, so the shape of the result depends on its values.

    >>> from ember_ml import ops
    >>> x = ops.array([[1.0, 2.0], [3.0, 4.0]])
    >>> ops.to_numpy(ops.get_item(x, (slice(None, None, -1), 0))).tolist()
    [3.0, 1.0]
    """
    ...


@primitive(KEEP)
def index_update(x: TensorLike, key: KeyLike, values: ValueLike) -> Tensor:
    """A copy of ``x`` in which ``x[key]`` is ``values``, broadcast; where a place is named twice, the last value stays.

    The result has the dtype of ``x``; values that it cannot hold without loss, such as a float for an integer tensor,
    raise ``TypeError``. ``x`` itself does not change.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.index_update([1.0, 2.0, 3.0], slice(1, None), 0.0)).tolist()
    [1.0, 0.0, 0.0]
    """
    ...
