"""Global modification counter of modules and optimizers; invalidates what was found out about them."""

from __future__ import annotations

from collections.abc import Hashable

__all__ = ["count_change", "number_of"]

count: int = 0
"""The number of changes so far; read it as an attribute of this module."""
_numbers: dict[Hashable, int] = {}


def count_change() -> int:
    """Count that a module was made or got another part, setting or mode, or an optimizer other slots; return it."""
    global count
    count += 1
    return count


def number_of(value: Hashable) -> int:
    """Return a number that stands for ``value`` alone: quicker to look up than a long tuple."""
    return _numbers.setdefault(value, len(_numbers))
