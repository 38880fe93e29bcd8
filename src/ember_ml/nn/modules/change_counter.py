"""Global modification counter; invalidates cached walks through modules."""

from __future__ import annotations

from collections.abc import Hashable

__all__ = ["changed", "current", "number_of"]

_count = 0
_numbers: dict[Hashable, int] = {}


def changed() -> int:
    """Count that a module was made, or got another part, setting or mode; return the new count."""
    global _count
    _count += 1
    return _count


def number_of(value: Hashable) -> int:
    """Return a number that stands for ``value`` alone: quicker to look up than a long tuple."""
    return _numbers.setdefault(value, len(_numbers))


def current() -> int:
    """Return the number of changes so far."""
    return _count
