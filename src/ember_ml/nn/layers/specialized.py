"""Layers that play a role: each scales, damps or passes what it gets as its role says.

The roles are "default", which changes nothing, "memory", which decays slowly, and "inhibition", which damps and turns
around. :func:`register_role` adds others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml import ops
from ember_ml.nn.modules.module import Module
from ember_ml.nn.tensor import convert_to_tensor
from ember_ml.tensor import EmberTensor
from ember_ml.typing import Tensor, TensorLike

__all__ = ["Specialized", "SpecializedProcessor", "register_role", "roles"]

Role = Callable[[Any], Any]
_ROLES: dict[str, Role] = {}


def register_role(name: str) -> Callable[[Role], Role]:
    """Return a decorator that makes a function of one tensor the role ``name``; a role of that name is replaced.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.layers import specialized
    >>> @specialized.register_role("excitation")
    ... def excite(x):
    ...     return ops.multiply(x, 2.0)
    >>> ops.to_numpy(specialized.Specialized("excitation")([1.0])).tolist()
    [2.0]
    """

    def add(function: Role) -> Role:
        _ROLES[name] = function
        return function

    return add


def roles() -> tuple[str, ...]:
    """Return the names of all roles."""
    return tuple(_ROLES)


@register_role("default")
def _default(x: TensorLike) -> Tensor:
    return ops.convert_to_tensor(x)


@register_role("memory")
def _memory(x: TensorLike) -> Tensor:
    return ops.multiply(x, 0.95)


@register_role("inhibition")
def _inhibition(x: TensorLike) -> Tensor:
    return ops.multiply(x, -0.5)


class Specialized(Module):
    """A layer that applies the function of its role.

    Args:
        role: The name of a role, one of :func:`roles`.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.layers.specialized import Specialized
    >>> ops.to_numpy(Specialized("inhibition")([1.0, 2.0])).tolist()
    [-0.5, -1.0]
    """

    def __init__(self, role: str = "default") -> None:
        if role not in _ROLES:
            raise ValueError(f"there is no role {role!r}; there are {', '.join(_ROLES)}, and register_role adds others")
        self.role = role

    def forward(self, x: TensorLike) -> Tensor:
        return _ROLES[self.role](x)


class SpecializedProcessor(Specialized):
    """A :class:`Specialized` layer whose ``process`` gives a portable tensor for anything tensor-like.

    Args:
        role: The name of a role, one of :func:`roles`.

    >>> from ember_ml.nn.layers.specialized import SpecializedProcessor
    >>> SpecializedProcessor("inhibition").process([2.0]).tolist()
    [-1.0]
    """

    def process(self, x: TensorLike) -> EmberTensor:
        """Return the result of the role for ``x``, as a portable tensor."""
        return self(convert_to_tensor(x))
