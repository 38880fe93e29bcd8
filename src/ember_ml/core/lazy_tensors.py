"""Tensors by name that are made one at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

__all__ = ["LazyTensors"]


class LazyTensors(Mapping[str, Any]):
    """Tensors by name, each made by ``make`` when it is asked for, so that few are in memory at once.

    Whoever asks for one may keep it: it is made for nobody else.
    """

    def __init__(self, names: Collection[str], make: Callable[[str], Any]) -> None:
        self._names, self._make = names, make

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return self._make(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names  # that of Mapping would make the tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
