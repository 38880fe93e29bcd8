"""The tensors of a module: parameters, which training changes, and buffers, which the module itself changes."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.backend.selection import active
from ember_ml.tensor.variable import Variable
from ember_ml.transforms import change_counter

__all__ = ["Buffer", "Held", "Parameter"]


class Parameter(Variable):
    """A tensor of a module that training changes, unless it is frozen.

    Assigned to an attribute of a module it becomes the module's; reading that attribute gives its native tensor.

    Args:
        value: The first value: a tensor or anything that becomes one.
        is_trainable: Whether training changes it.

    >>> from ember_ml import nn, ops
    >>> class Scale(nn.Module):
    ...     def __init__(self):
    ...         self.factor = nn.Parameter(ops.array([2.0]))
    ...     def forward(self, x):
    ...         return ops.multiply(x, self.factor)
    >>> ops.to_numpy(Scale()([1.0, 3.0])).tolist()
    [2.0, 6.0]
    """

    __slots__ = ("_is_trainable",)

    def __init__(self, value: Any, is_trainable: bool = True) -> None:
        super().__init__(value)
        if self.dtype.kind not in ("float", "complex"):
            raise TypeError(f"a Parameter is a floating-point tensor, not {self.dtype}; a Buffer may be of any dtype")
        self._is_trainable = is_trainable

    def assign(self, value: Any) -> None:
        """Hold a copy of another value: training may change what the parameter holds in place."""
        self.hold(ops.copy(value) if active().is_native(value) else value)

    @property
    def is_trainable(self) -> bool:
        """Whether training changes it."""
        return self._is_trainable

    @is_trainable.setter
    def is_trainable(self, value: bool) -> None:
        self._is_trainable = value
        change_counter.count_change()


class Buffer(Variable):
    """A tensor of a module that is saved with it and that training does not change, as a running mean.

    >>> from ember_ml import nn, ops
    >>> class Counter(nn.Module):
    ...     def __init__(self):
    ...         self.count = nn.Buffer(ops.array(0))
    ...     def forward(self, x):
    ...         self.count = ops.add(self.count, 1)
    ...         return x
    >>> counter = Counter()
    >>> counter(1.0), ops.item(counter.count)
    (1.0, 1)
    """

    __slots__ = ()


class Held:
    """An attribute that is a parameter or buffer of the module, declared in its class.

    No class needs it: a module finds all its tensors. But without it Python first raises an error for each reading,
    which takes longer than an op of NumPy.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, module: Any, owner: type) -> Any:
        if module is None:
            return self
        variable = module._variables.get(self._name)
        if variable is None:
            raise AttributeError  # which the module explains
        return variable.value
