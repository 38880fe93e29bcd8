"""What all layers share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.nn import initializers
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.parameter import Parameter
from ember_ml.typing import DTypeLike, TensorLike

__all__ = ["Layer"]


class Layer(Module):
    """A module whose sizes may be left out: it makes its parameters in ``build`` when it is first called.

    A subclass that knows all its sizes may make its parameters in ``__init__``. One that does not sets ``is_built`` to
    False there, and defines ``build(shape)``, which gets the shape of the first input.
    """

    def build(self, shape: tuple[int, ...]) -> None:
        """Make the parameters for inputs of ``shape``."""

    def __call__(self, x: TensorLike, *args: Any, **kwargs: Any) -> Any:
        if not self.is_built:
            self.build(tuple(ops.shape(x)))
            self.is_built = True
        return self.forward(x, *args, **kwargs)

    def add_parameter(
        self,
        name: str,
        shape: Sequence[int],
        initializer: str | initializers.Initializer = "zeros",
        dtype: DTypeLike = "float32",
    ) -> None:
        """Make the parameter ``name``, with the values that the initializer gives."""
        setattr(self, name, Parameter(initializers.get(initializer)(tuple(shape), dtype)))
