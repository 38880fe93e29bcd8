"""Ten million random numbers that are the same on every backend, beside the library's own generator.

    python benchmarks/random_numbers.py --check

Portable numbers come from Threefry, native ones through ``Generator(seed, native=True)`` from the library. Both are set
against the library's plain call, in turns, the best of many. PyTorch computes with one thread, as the others do, and
its compiled function is compiled whole.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.bench.measurement import Measurement, active_backend, evaluator, machine
from ember_ml.bench.run import readable
from ember_ml.bench.timing import Timed, best_times

LIMITS = {
    ("numpy", "uniform"): 6.0,
    ("torch", "uniform"): 5.0,
    ("torch", "uniform, compiled"): 2.2,
    ("mlx", "uniform"): 1.15,
    ("numpy", "native uniform"): 1.05,
    ("torch", "native uniform"): 1.05,
    ("mlx", "native uniform"): 1.05,
}
Way = Callable[[int], Any]


def _numpy() -> dict[str, Way]:
    import numpy as np

    generator = np.random.default_rng(1)
    return {
        "uniform": lambda n: generator.random(n, np.float32),
        "normal": lambda n: generator.standard_normal(n, np.float32),
    }


def _torch() -> dict[str, Way]:
    import torch

    torch.set_num_threads(1)
    return {"uniform": torch.rand, "normal": torch.randn}


def _mlx() -> dict[str, Way]:
    import mlx.core as mx

    return {
        "uniform": lambda n: mx.random.uniform(shape=(n,)),
        "normal": lambda n: mx.random.normal(shape=(n,)),
    }


NATIVE: dict[str, Callable[[], dict[str, Way]]] = {"numpy": _numpy, "torch": _torch, "mlx": _mlx}


def _compiled(way: Way) -> Way:
    import torch

    return torch.compile(way, fullgraph=True, dynamic=False)


def cases(backend: str) -> dict[str, tuple[str, Way]]:
    """Return for each case the library's way that it is set against, and ours."""
    stream = ops.Generator(1)
    native = ops.Generator(1, native=True)
    found: dict[str, tuple[str, Way]] = {
        "uniform": ("uniform", lambda n: ops.random_uniform(n, seed=stream)),
        "normal": ("normal", lambda n: ops.random_normal(n, seed=stream)),
        "native uniform": ("uniform", lambda n: ops.random_uniform(n, seed=native)),
        "native normal": ("normal", lambda n: ops.random_normal(n, seed=native)),
    }
    if backend == "torch":
        found["uniform, compiled"] = ("uniform", _compiled(lambda n: ops.random_uniform(n)))
        found["normal, compiled"] = ("normal", _compiled(lambda n: ops.random_normal(n)))
    return found


def measure(backend_name: str, count: int, seconds: float) -> list[Measurement]:
    """Return each case on one backend, in turns with the library's own."""
    found: list[Measurement] = []
    with active_backend(backend_name) as backend:
        evaluate = evaluator(backend)
        ways = NATIVE[backend_name]()
        for case, (baseline, ours) in cases(backend_name).items():
            code = "evaluate(f(n))"
            timed = {
                name: Timed(code, {"evaluate": evaluate, "f": f, "n": count})
                for name, f in (("ours", ours), ("library", ways[baseline]))
            }
            times = best_times(timed, seconds, least_rounds=5)
            found.append(Measurement("random", backend_name, case, "ops", times["ours"], baseline, times["library"]))
    return found


def table(backend: str, rows: list[Measurement], count: int) -> Table:
    """Return one line per case: our time, the library's, the ratio, its limit."""
    shown = Table("case", "ember_ml", "library", "ratio", "limit", title=f"{backend}: {count:,} float32 numbers")
    for row in rows:
        limit = LIMITS.get((backend, row.case))
        colour = "green" if limit is None or row.ratio <= limit else "bold red"
        shown.add_row(
            row.case,
            readable(row.seconds),
            readable(row.baseline_seconds),
            f"[{colour}]{row.ratio:.2f}x[/]",
            "" if limit is None else f"{limit}x",
        )
    return shown


def main() -> int:
    """Measure, print, and say by the exit code whether the limits held."""
    known = [name for name in installed_backends() if name in NATIVE]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--backend", action="append", choices=known)
    parser.add_argument("--count", type=int, default=10_000_000, help="how many numbers (ten million)")
    parser.add_argument("--seconds", type=float, default=5.0, help="time spent on each case (5)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--check", action="store_true", help="fail if a limit is exceeded")
    arguments = parser.parse_args()
    rows = {name: measure(name, arguments.count, arguments.seconds) for name in arguments.backend or known}
    if arguments.json:
        results = [row.as_dict() for found in rows.values() for row in found]
        print(json.dumps({"machine": machine(), "count": arguments.count, "results": results}, indent=2))
    else:
        console = Console()
        for name, found in rows.items():
            console.print(table(name, found, arguments.count))
    exceeded = any(
        row.ratio > LIMITS.get((name, row.case), float("inf")) for name, found in rows.items() for row in found
    )
    return int(arguments.check and exceeded)


if __name__ == "__main__":
    sys.exit(main())
