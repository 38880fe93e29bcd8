"""Check the settings of optimizers whenever they are set: a wrong one would show as NaN, or as nothing at all."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

__all__ = ["FROM_ZERO", "SHARE", "Ranges", "check_rate", "check_setting", "find_arguments"]

Ranges = Mapping[str, tuple[float, float]]
"""The least value of each of these settings, and the value that it is below."""
FROM_ZERO = (0.0, math.inf)
SHARE = (0.0, 1.0)


def find_arguments(kind: type) -> list[str]:
    """Return the names of the arguments of a class; ``**settings`` of it are those of the class above."""
    names: dict[str, None] = {}
    for base in kind.__mro__:
        if "__init__" in vars(base):
            known = list(inspect.signature(base.__init__).parameters.values())[1:]
            names |= dict.fromkeys(x.name for x in known if x.kind is not x.VAR_KEYWORD)
            if all(x.kind is not x.VAR_KEYWORD for x in known):
                break
    return list(names)


def check_rate(rate: Any) -> Any:
    """Return a learning rate: a schedule, or a number from 0 up, of Python."""
    if callable(rate):
        return rate
    if not _is_number(rate) or not 0 <= rate < math.inf:
        raise ValueError(f"a learning rate is a number from 0 up, or a schedule, not {rate!r}")
    return _as_python(rate)


def check_setting(name: str, value: Any, ranges: Ranges, place: str = "") -> Any:
    """Return the value of a setting, a number of another library as one of Python; raise where it is none.

    ``place`` says in a message whose setting it is, as `` of groups[0]``. Names that are not in ``ranges`` are a
    program's own, and may have any value.

    >>> from ember_ml.training.optimizers.settings import SHARE, check_setting
    >>> check_setting("beta1", 0.9, {"beta1": SHARE})
    0.9
    """
    if name == "learning_rate":
        return check_rate(value)
    if name in ("max_norm", "max_value"):
        if value is not None and not (_is_number(value) and value > 0):
            raise ValueError(f"{name}{place} is a positive number, not {value!r}")
        return value
    if name not in ranges:
        return value
    low, high = ranges[name]
    if not _is_number(value) or not low <= value < high:
        limits = f"from {low:g} up" if math.isinf(high) else f"from {low:g} up and below {high:g}"
        raise ValueError(f"{name}{place} is a number {limits}, not {value!r}")
    return _as_python(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _as_python(value: Any) -> int | float:
    """Return a number of NumPy as one of Python, which checkpoints can hold."""
    return value if type(value) in (int, float) else float(value)
