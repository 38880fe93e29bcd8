"""How often any module has been changed: what was found out about modules holds as long as this stays the same."""

from __future__ import annotations

from collections.abc import Hashable

__all__ = ["changed", "current", "number_of"]

_count = 0
_numbers: dict[Hashable, int] = {}


def changed() -> None:
    """Note that a module was made, or got another part, setting or mode."""
    global _count
    _count += 1


def number_of(value: Hashable) -> int:
    """A number that stands for ``value``, and for nothing else: quicker to look up than a long tuple."""
    return _numbers.setdefault(value, len(_numbers))


def current() -> int:
    """The number of changes so far."""
    return _count
