"""Check plain data that was read from a file; a value of the wrong type raises ``ValueError`` with its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["check_count", "check_measures", "check_number", "check_numbers", "check_table"]

_LARGEST = 2**63 - 1


def check_table(value: Any, name: str, *keys: str) -> dict[str, Any]:
    """Return ``value``, which must be a dict that has the ``keys``.

    >>> from ember_ml.training.state_checks import check_table
    >>> check_table({"a": 1}, "state", "a")
    {'a': 1}
    """
    if not isinstance(value, dict):
        raise ValueError(f"{name} is a table, not {value!r:.60}")
    missing = [key for key in keys if key not in value]
    if missing:
        raise ValueError(f"{name} lacks {', '.join(missing)}")
    return value


def check_count(state: Mapping[str, Any], key: str, largest: int = _LARGEST) -> int:
    """Return the integer from 0 up under ``key``.

    >>> from ember_ml.training.state_checks import check_count
    >>> check_count({"steps": 3}, "steps")
    3
    """
    value = state[key]
    if type(value) is not int or not 0 <= value <= largest:
        raise ValueError(f"{key} is a whole number from 0 to {largest}, not {value!r:.60}")
    return value


def check_number(state: Mapping[str, Any], key: str) -> float:
    """Return the number under ``key``, which may be NaN or infinite.

    >>> from ember_ml.training.state_checks import check_number
    >>> check_number({"best": 0.5}, "best")
    0.5
    """
    value = state[key]
    if not _is_number(value):
        raise ValueError(f"{key} is a number, not {value!r:.60}")
    return value


def check_numbers(state: Mapping[str, Any], key: str) -> list[float]:
    """Return the list of numbers under ``key``.

    >>> from ember_ml.training.state_checks import check_numbers
    >>> check_numbers({"times": [0.5, 1.0]}, "times")
    [0.5, 1.0]
    """
    value = state[key]
    if not isinstance(value, list) or not all(map(_is_number, value)):
        raise ValueError(f"{key} is a list of numbers, not {value!r:.60}")
    return list(value)


def check_measures(state: Mapping[str, Any], key: str) -> list[Any]:
    """Return the list under ``key`` of numbers, and of nested lists of numbers.

    >>> from ember_ml.training.state_checks import check_measures
    >>> check_measures({"values": [0.5, [[1.0, 0.0]]]}, "values")
    [0.5, [[1.0, 0.0]]]
    """
    value = state[key]
    if not isinstance(value, list):
        raise ValueError(f"{key} is a list of numbers, not {value!r:.60}")
    stack = list(value)
    while stack:
        x = stack.pop()
        if isinstance(x, list):
            stack += x
        elif not _is_number(x):
            raise ValueError(f"{key} is a list of numbers, not {value!r:.60}")
    return list(value)


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) <= _LARGEST)
