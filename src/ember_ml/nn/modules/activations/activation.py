"""The base class of activation modules."""

from __future__ import annotations

from ember_ml.nn.modules.module import Module
from ember_ml.typing import Tensor, TensorLike

__all__ = ["Activation"]


class Activation(Module):
    """A function of one tensor as a module: it may have settings, and parameters that are trained.

    >>> from ember_ml import nn
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.PReLU(), nn.LeakyReLU(0.1))
    >>> list(model.named_parameters())
    ['0.weight', '0.bias', '1.weight']
    >>> model
    Sequential(  # 10 parameters
      (0): Linear(inputs=2, outputs=3, has_bias=True)
      (1): PReLU()
      (2): LeakyReLU(negative_slope=0.1)
    )
    """

    def forward(self, x: TensorLike) -> Tensor:
        """Return the activation of ``x``, element by element unless the class says otherwise."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward")
