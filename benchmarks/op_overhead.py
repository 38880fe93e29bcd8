"""What a call of an op costs over the library's own call, with Keras's cost beside it.

    python benchmarks/op_overhead.py [--backend NAME] [--seconds S] [--json] [--check]

Native call, op, EmberTensor operator and Keras op take turns in one process per backend, on float32 tensors of ten
elements; the best of many rounds counts. On MLX this is the time to build the graph. ``--check`` fails above a limit.
"""

from __future__ import annotations

import argparse
import json
import sys

from rich.console import Console
from rich.table import Table

from ember_ml.backend import installed_backends
from ember_ml.bench.calls import OPERATOR, measure_calls
from ember_ml.bench.measurement import Measurement, machine

# at most this many times the native call: an op, EmberTensor's a + b
LIMITS = {"numpy": (1.5, 2.1), "torch": (1.25, 1.4), "mlx": (1.6, 1.9)}


def limit_of(row: Measurement) -> float | None:
    """Return the ratio that this measurement must not exceed, or None where it has no limit."""
    if row.backend not in LIMITS or row.way == "keras":
        return None
    op, operator = LIMITS[row.backend]
    return operator if row.case == OPERATOR else op


def table(backend: str, rows: list[Measurement]) -> Table:
    """Return one line per op: the native time, our ratio, the limit, Keras's ratio."""
    shown = Table("op", "native", "ember_ml", "limit", "Keras", title=f"{backend}: times the native call")
    for case in dict.fromkeys(row.case for row in rows):
        ways = {row.way: row for row in rows if row.case == case}
        ours = ways.get("ops") or ways["EmberTensor"]
        limit = limit_of(ours)
        within = limit is None or ours.ratio <= limit
        shown.add_row(
            case,
            f"{ours.baseline_seconds * 1e9:.0f} ns",
            f"[{'green' if within else 'bold red'}]{ours.ratio:.2f}x[/]",
            "" if limit is None else f"{limit:.2f}x",
            f"{ways['keras'].ratio:.2f}x" if "keras" in ways else "",
        )
    return shown


def main() -> int:
    """Measure, print, and say by the exit code whether the limits held."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--backend", action="append", choices=installed_backends())
    parser.add_argument("--seconds", type=float, default=1.0, help="time spent on each op (1)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--check", action="store_true", help="fail if a limit is exceeded")
    arguments = parser.parse_args()
    rows = {name: measure_calls(name, 10, arguments.seconds) for name in arguments.backend or installed_backends()}
    if arguments.json:
        results = [{**row.as_dict(), "limit": limit_of(row)} for found in rows.values() for row in found]
        print(json.dumps({"machine": machine(), "results": results}, indent=2))
    else:
        console = Console()
        for name, found in rows.items():
            console.print(table(name, found))
    exceeded = any(row.ratio > limit for found in rows.values() for row in found if (limit := limit_of(row)))
    return int(arguments.check and exceeded)


if __name__ == "__main__":
    sys.exit(main())
