"""How often any module has been changed: what was found out about modules holds as long as this stays the same."""

from __future__ import annotations

__all__ = ["changed", "current"]

_count = 0


def changed() -> None:
    """Note that a module was made, or got another part, setting or mode."""
    global _count
    _count += 1


def current() -> int:
    """The number of changes so far."""
    return _count
