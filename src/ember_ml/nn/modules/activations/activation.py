"""What all activation classes share."""

from __future__ import annotations

from ember_ml.typing import Tensor, TensorLike

__all__ = ["Activation"]


class Activation:
    """A function of one tensor as an object: calling it computes ``forward``."""

    def forward(self, x: TensorLike) -> Tensor:
        """The activation of ``x``, element by element unless the class says otherwise."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward")

    def __call__(self, x: TensorLike) -> Tensor:
        return self.forward(x)

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({settings})"
