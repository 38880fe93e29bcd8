"""The base class of layers that mix positions: masks, states between calls, and loops over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml import ops
from ember_ml.nn.layers.base import Layer
from ember_ml.typing import Tensor, TensorLike

__all__ = ["SequenceMixingLayer", "loop_over_time", "split_sizes"]


class SequenceMixingLayer(Layer):
    """A layer over (batch, length, width). ``mask`` is multiplied into ``x``, so that zeros in it hide positions.

    Layers that can go on from where another call stopped take a ``state``, as :meth:`initial_state` gives it, and then
    give their result and the new state. Nothing is kept in the layer.

    >>> from ember_ml import nn, ops
    >>> x = ops.ones((1, 3, 2))
    >>> layer = nn.SequenceMixingLayer()
    >>> ops.to_numpy(layer(x, mask=[[[1.0], [1.0], [0.0]]])).tolist()
    [[[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]]
    """

    def forward(self, x: TensorLike, mask: TensorLike | None = None) -> Any:
        x = ops.convert_to_tensor(x)
        return x if mask is None else ops.multiply(x, mask)

    def sequences(self, x: TensorLike, mask: TensorLike | None = None) -> Tensor:
        """Return ``x`` times the mask, as a tensor; ``ValueError`` unless it is (batch, length, width)."""
        x = SequenceMixingLayer.forward(self, x, mask)
        if x.ndim != 3:
            raise ValueError(f"{type(self).__name__} takes x of shape (batch, length, width), not {tuple(x.shape)}")
        return x

    def initial_state(self, batch: int) -> Any:
        """Return the state before anything was seen, for ``batch`` sequences."""
        raise NotImplementedError(f"{type(self).__name__} carries no state")

    def zeros(self, *shape: int) -> Tensor:
        """Zeros of the dtype, and on the device, of the layer's parameters."""
        floats = [x for x in self.named_variables().values() if x.dtype.kind in ("float", "complex")]
        if not floats:
            raise ValueError(f"{type(self).__name__} has no parameters yet; call it, or build it, before this")
        like = floats[0].value
        return ops.zeros(shape, dtype=like.dtype, device=ops.get_device(like))


def split_sizes(layer: str, first: int | None, second: int | None) -> tuple[int | None, int]:
    """Return the sizes of a layer that is made by ``Layer(inputs, outputs)``, or by ``Layer(outputs)``."""
    inputs, outputs = (None, first) if second is None else (first, second)
    if outputs is None or outputs < 1 or (inputs is not None and inputs < 1):
        raise ValueError(f"the sizes of {layer} are at least 1, and that of its results cannot be left out")
    return inputs, outputs


def loop_over_time(
    step: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: tuple[Tensor, ...], reverse: bool = False
) -> tuple[Any, Tensor]:
    """Return the last ``carry`` and the stacked ``y`` of ``carry, y = step(carry, parts)`` along the second dimension.

    A loop in Python: fastest where each op runs by itself. Compilers unroll it; the loops of PyTorch's compiler do not
    take functions that hold parameters.
    """
    if not xs[0].shape[1]:
        carry, ys = ops.scan(step, carry, tuple(ops.swapaxes(x, 0, 1) for x in xs))
        return carry, ops.swapaxes(ys, 0, 1)
    slices = list(zip(*(ops.unstack(x, axis=1) for x in xs), strict=True))
    found = []
    for parts in reversed(slices) if reverse else slices:
        carry, y = step(carry, parts)
        found.append(y)
    return carry, ops.stack(found[::-1] if reverse else found, axis=1)
