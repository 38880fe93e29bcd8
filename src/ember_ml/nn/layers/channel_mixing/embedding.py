"""Embeddings: vectors for the words of a vocabulary."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.nn.initializers import Initializer, normal
from ember_ml.nn.layers.base import Layer
from ember_ml.typing import DeviceLike, DTypeLike, IndexLike, Tensor

__all__ = ["Embedding"]


class Embedding(Layer):
    """``weight[indices]``: one vector of ``width`` numbers for each integer below ``count``.

    The weight has shape ``(count, width)``; it starts with standard normal numbers. Negative indices count from
    the end; one out of range raises ``IndexError``.

    Args:
        count: The number of vectors.
        width: The length of each vector.
        initializer: How the weight starts: a name or function of ``nn.initializers``; None: standard normal.
        dtype: The dtype of the parameters.
        device: Where they are made; None: on the default device.

    >>> from ember_ml import nn, ops
    >>> embedding = nn.Embedding(3, 2).load_state_dict({"weight": [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]})
    >>> ops.to_numpy(embedding([[2, 0]])).tolist()
    [[[4.0, 5.0], [0.0, 1.0]]]
    """

    count: int
    width: int

    def __init__(
        self,
        count: int,
        width: int,
        initializer: str | Initializer | None = None,
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
    ) -> None:
        self.count, self.width, self._device = count, width, device
        self.add_parameter("weight", (count, width), initializer or normal(1.0), dtype)

    def forward(self, indices: IndexLike) -> Tensor:
        return ops.take(self.weight, indices, 0)
