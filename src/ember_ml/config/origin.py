"""Record the arguments from which an object was made, to write a configuration of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["ATTRIBUTE", "Origin"]

ATTRIBUTE = "_origin"
"""The attribute that holds an object's origin."""


class Origin:
    """The arguments of an object's class, or of the ``maker``: a registered name, or the configuration that created it.

    It is not a container: traversals of the object do not look into it.
    """

    __slots__ = ("args", "kwargs", "maker")

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    maker: Any

    def __init__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], maker: Any = None) -> None:
        self.args = args
        self.kwargs = kwargs
        self.maker = maker

    def __reduce__(self) -> tuple[Any, ...]:
        return Origin, (self.args, self.kwargs, self.maker)
