"""Comparing what the ranks of a job give with each other, and with one process."""

from __future__ import annotations

from typing import Any


def largest_difference(x: Any, y: Any) -> float:
    if isinstance(x, list):
        return max((largest_difference(a, b) for a, b in zip(x, y, strict=True)), default=0.0)
    return abs(x - y)


def check_equal(ranks: list[Any], alone: dict[str, Any], tolerance: float = 2e-6) -> None:
    """Equal on all ranks bit for bit, and what one process computes on the whole batch but for rounding."""
    for found in ranks:
        for part in ("losses", "parameters", "state"):
            assert found[part] == ranks[0][part]
        for part in ("parameters", "state"):
            assert found[part].keys() == alone[part].keys()
            for name, values in alone[part].items():
                assert largest_difference(found[part][name], values) < tolerance, (part, name)
        assert largest_difference(found["losses"], alone["losses"]) < tolerance
