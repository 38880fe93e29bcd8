"""Walk the lists, tuples and dicts that are attributes of modules."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from operator import is_
from typing import Any

from ember_ml.tensor.variable import Variable
from ember_ml.transforms.captured_variables import Holder

__all__ = ["CONTAINERS", "Contents", "check_is_new", "check_is_ours", "find_contained"]

CONTAINERS = (list, tuple, dict)
"""What modules and parameters are found in; classes derived from these as well."""
_OTHERS = (set, frozenset, deque)
"""Collections in which they are not."""


def find_contained(name: str, container: Any, kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the objects of ``kind`` in a container and the containers in it, with names such as ``layers.0``."""
    for key, value in container.items() if isinstance(container, dict) else enumerate(container):
        if isinstance(value, kind):
            yield f"{name}.{key}", value
        elif isinstance(value, CONTAINERS):
            yield from find_contained(f"{name}.{key}", value, kind)


class Contents:
    """The elements of a list or dict at one time, to see later whether one was replaced."""

    __slots__ = ("container", "kept")

    container: Any
    kept: list[Any]

    def __init__(self, container: Any) -> None:
        self.container, self.kept = container, list(_elements(container))

    def is_current(self) -> bool:
        """Return whether the container still has the same elements."""
        # by identity: equality of tensors is not a bool
        size = len(self.container) * (2 if isinstance(self.container, dict) else 1)
        return size == len(self.kept) and all(map(is_, _elements(self.container), self.kept))

    @classmethod
    def of_all(cls, containers: Iterable[Any]) -> list[Contents]:
        """Return the contents of lists and dicts, and of those inside them; tuples are only walked through."""
        found: list[Contents] = []
        stack = list(containers)
        while stack:
            container = stack.pop()
            if not isinstance(container, tuple):
                found.append(cls(container))
            values = container.values() if isinstance(container, dict) else container
            stack += [value for value in values if isinstance(value, CONTAINERS)]
        return found


def _elements(container: Any) -> Iterable[Any]:
    return chain(container, container.values()) if isinstance(container, dict) else container


def check_is_new(name: str, names: Container[str], root: str) -> None:
    """Raise where a parameter or buffer has the name of another, which would neither be trained nor saved."""
    if name in names:
        raise ValueError(
            f"two parameters or buffers of {root} have the name {name}: keys of dicts must differ as texts, and a key "
            "with a dot from the names of what is inside of another"
        )


def check_is_ours(path: str, value: Any) -> None:
    """Raise where ``value``, or something in it, holds parameters of another library: they would not be trained."""
    kind = type(value)
    if isinstance(value, CONTAINERS):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            check_is_ours(f"{path}.{key}", part)
    elif isinstance(value, _OTHERS):
        if any(isinstance(part, Holder | Variable) for part in value):
            raise TypeError(
                f"{path} is a {kind.__name__}, in which modules and parameters are not found, so that they would "
                "neither be trained nor saved: use a list, a tuple or a dict"
            )
    elif _holds_foreign_parameters(kind):
        raise TypeError(
            f"{path} is a {kind.__module__}.{kind.__qualname__}, whose parameters would neither be trained nor saved: "
            "build it of ember_ml.nn, or, if it is to stay as it is, wrap it in a function"
        )


@lru_cache(maxsize=1024)
def _holds_foreign_parameters(kind: type) -> bool:
    """Return whether a class is a layer or a parameter of another library, by its attributes: none is imported here."""
    if issubclass(kind, Holder | Variable):
        return False
    if not any("__call__" in vars(base) for base in kind.__mro__):
        has_mark = hasattr(kind, "requires_grad")  # emberlint: ignore[EMB502] asked of a class
        return kind.__name__ == "Parameter" and has_mark
    if callable(getattr(kind, "parameters", None)):
        return hasattr(kind, "state_dict") or hasattr(kind, "trainable_parameters")
    return hasattr(kind, "trainable_weights") or hasattr(kind, "trainable_variables")
