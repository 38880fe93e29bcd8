"""Large operations against the best way of the library itself: a million elements, or a matrix of 5000 by 50.

    python benchmarks/large_ops.py [--backend NAME] [--seconds S] [--scale F] [--json] [--check]

Our op and every native way take turns in one process, each evaluated to the end; the best of many rounds counts.
``--check`` fails where ours takes more than 1.3 times as long as the fastest native way with the same guarantees.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable
from typing import Any

from native_ways import WAYS
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.bench.measurement import Measurement, active_backend, evaluator, machine
from ember_ml.bench.run import readable
from ember_ml.bench.timing import Timed, best_times

LIMIT = 1.3


def _scatter(values: Any, indices: Any, size: int) -> Any:
    return ops.scatter(values, indices, size, "add")


def _svd(x: Any) -> Any:
    return ops.svd(x, full_matrices=False)


OURS: dict[str, Callable[..., Any]] = {
    "scatter": _scatter,
    "sort": ops.sort,
    "unique": ops.unique,
    "mask": ops.get_item,
    "median": ops.median,
    "svd": _svd,
    "lstsq": ops.lstsq,
}


def inputs(scale: float) -> dict[str, dict[str, Any]]:
    """Return the arguments of each case on the active backend; random, since patterns make sorts and branches fast."""
    count, rows, columns = int(1_000_000 * scale), int(5000 * scale**0.5), 50
    numbers = random.Random(0)
    x = ops.array([numbers.uniform(-1.0, 1.0) for _ in range(count)])
    cells = ops.array([numbers.randrange(1000) for _ in range(count)])
    matrix = ops.sin(ops.reshape(ops.power(ops.arange(rows * columns, dtype="float32"), 1.5), (rows, columns)))
    return {
        "scatter": {"x": x, "i": cells, "n": 1000},
        "sort": {"x": x},
        "unique": {"i": cells},
        "mask": {"x": x, "m": ops.greater(x, 0.0)},
        "median": {"x": x},
        "svd": {"a": matrix},
        "lstsq": {"a": matrix, "b": ops.sin(ops.reshape(ops.arange(rows * 3, dtype="float32"), (rows, 3)))},
    }


def measure(backend_name: str, seconds: float, scale: float) -> list[Measurement]:
    """Return each case on one backend: ours beside the fastest native way."""
    found: list[Measurement] = []
    with active_backend(backend_name) as backend:
        one = evaluator(backend)

        def evaluate(result: Any) -> None:
            for part in result if isinstance(result, tuple | list) else (result,):
                if backend.is_native(part):
                    one(part)

        arguments = inputs(scale)
        for values in arguments.values():
            evaluate(tuple(values.values()))
        for case, ways in WAYS[backend_name]().items():
            names = arguments[case]
            code = f"evaluate(f({', '.join(names)}))"
            functions = {"ops": OURS[case], **ways}
            timed = {way: Timed(code, {"evaluate": evaluate, "f": f, **names}) for way, f in functions.items()}
            times = best_times(timed, seconds, least_rounds=3)
            ours = times.pop("ops")
            best = min(times, key=times.__getitem__)
            found.append(Measurement("large", backend_name, case, "ops", ours, best, times[best]))
    return found


def table(backend: str, rows: list[Measurement]) -> Table:
    """Return one line per case: our time, the best native way and its time, the ratio."""
    shown = Table(
        "case", "ember_ml", "best native way", "native", "ratio", "limit", title=f"{backend}: large operations"
    )
    for row in rows:
        colour = "green" if row.ratio <= LIMIT else "bold red"
        ratio = f"[{colour}]{row.ratio:.2f}x[/]"
        shown.add_row(
            row.case, readable(row.seconds), escape(row.baseline), readable(row.baseline_seconds), ratio, f"{LIMIT}x"
        )
    return shown


def main() -> int:
    """Measure, print, and say by the exit code whether the limit held."""
    known = [name for name in installed_backends() if name in WAYS]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--backend", action="append", choices=known)
    parser.add_argument("--seconds", type=float, default=3.0, help="time spent on each case (3)")
    parser.add_argument("--scale", type=float, default=1.0, help="this part of a million elements (1)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--check", action="store_true", help="fail if the limit is exceeded")
    arguments = parser.parse_args()
    rows = {name: measure(name, arguments.seconds, arguments.scale) for name in arguments.backend or known}
    if arguments.json:
        results = [{**row.as_dict(), "limit": LIMIT} for found in rows.values() for row in found]
        print(json.dumps({"machine": machine(), "scale": arguments.scale, "results": results}, indent=2))
    else:
        console = Console()
        for name, found in rows.items():
            console.print(table(name, found))
    exceeded = any(row.ratio > LIMIT for found in rows.values() for row in found)
    return int(arguments.check and exceeded)


if __name__ == "__main__":
    sys.exit(main())
