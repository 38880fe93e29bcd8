"""The module that calls others one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ember_ml.nn.modules.module import Module

__all__ = ["Sequential"]


class Sequential(Module):
    """Modules, or any functions of one tensor, one after another.

    >>> from ember_ml import nn, ops
    >>> model = nn.Sequential(nn.Linear(2, 8), ops.relu, nn.Linear(8, 1))
    >>> ops.shape(model(ops.ones((5, 2))))
    (5, 1)
    """

    def __init__(self, *parts: Callable[[Any], Any]) -> None:
        for part in parts:
            if not callable(part):
                raise TypeError(f"Sequential takes modules and functions, not {type(part).__name__}")
        self.parts = parts

    def _modules_in(self, parts: dict[str, Any]) -> Iterator[tuple[str, Module]]:
        """Return the modules among the parts, whose names are their places, and those of a subclass."""
        yield from ((str(place), part) for place, part in enumerate(self.parts) if isinstance(part, Module))
        if len(parts) > 1:
            yield from super()._modules_in({name: value for name, value in parts.items() if name != "parts"})

    def forward(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def __getitem__(self, place: int) -> Any:
        return self.parts[place]

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.parts)

    def repr_settings(self) -> dict[str, Any]:
        return {}

    def repr_parts(self) -> Iterator[tuple[str, Any]]:
        return ((str(place), part) for place, part in enumerate(self.parts))
