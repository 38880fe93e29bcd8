"""Comparing what the ranks of a job give with each other, and with one process."""

from __future__ import annotations

from typing import Any

from ember_ml import ops


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


def plain(x: Any) -> Any:
    """The numbers of a tensor as lists; complex ones as pairs."""
    host = ops.to_numpy(x)
    if host.dtype.kind == "c":
        return [host.real.tolist(), host.imag.tolist()]
    return ops.to_numpy(ops.cast(x, "float64" if host.dtype.kind in "fV" else "int64")).tolist()


def raised(function: Any, *args: Any) -> list[str]:
    """The class and the text of the error that a call raises."""
    try:
        function(*args)
    except Exception as error:
        return [type(error).__name__, str(error)]
    return ["nothing", ""]
