"""Neural functions against the best ways of the library itself, on tensors of the size that networks have.

    python benchmarks/neural.py [--backend NAME] [--case NAME] [--seconds S] [--json] [--check]

Ours and every native way take turns in one process, each evaluated to the end; the best of many rounds counts.
``--check`` fails where ours takes more than 1.15 times as long as the fastest way of the library itself. No limit holds
for cases in which that way is less accurate than Ember ML promises: they are shown for comparison.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from typing import Any

import native_layers
from rich.console import Console
from rich.table import Table

from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.bench.measurement import Measurement, active_backend, evaluator, machine
from ember_ml.bench.run import readable
from ember_ml.bench.timing import Timed, best_times

LIMIT = 1.15
ROWS, COLUMNS = 4096, 1024
Ways = dict[str, dict[str, Callable[..., Any]]]

OURS: dict[str, Callable[..., Any]] = {
    "layer norm": lambda x, w: ops.layer_normalization(x, epsilon=1e-5),
    "layer norm, weights": lambda x, w: ops.layer_normalization(x, w, w, epsilon=1e-5),
    "rms norm": lambda x, w: ops.rms_normalization(x, w, epsilon=1e-5),
    "softmax": lambda x, w: ops.softmax(x),
    "gelu": lambda x, w: ops.gelu(x),
    "silu": lambda x, w: ops.silu(x),
}
CASES = OURS | native_layers.OURS
WITHOUT_LIMIT = {("mlx", "softmax"), ("mlx", "silu"), ("mlx", "gelu")}
"""Where the native way is wrong by up to 4e-6 of a value, because its exponential is."""


def inputs(backend: str) -> dict[str, dict[str, Any]]:
    """Return the arguments of each case on the active backend."""
    x = ops.sin(ops.power(ops.arange(ROWS * COLUMNS, dtype="float32"), 1.3))
    rows = {"x": ops.reshape(ops.multiply(x, 4.0), (ROWS, COLUMNS)), "w": ops.linspace(0.5, 1.5, COLUMNS)}
    return dict.fromkeys(OURS, rows) | native_layers.inputs(backend)


def _numpy() -> Ways:
    import numpy as np

    def by_moments(x: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + np.float32(1e-5))

    def in_place(x: Any) -> Any:
        result = x - x.mean(-1, keepdims=True)
        variance = np.einsum("ij,ij->i", result, result) / np.float32(x.shape[-1])
        result *= (1 / np.sqrt(variance + np.float32(1e-5)))[:, None]
        return result

    def with_weights(x: Any, w: Any) -> Any:
        result = in_place(x)
        result *= w
        result += w
        return result

    def rms(x: Any, w: Any) -> Any:
        mean = np.einsum("ij,ij->i", x, x) / np.float32(x.shape[-1])
        result = x * (1 / np.sqrt(mean + np.float32(1e-5)))[:, None]
        result *= w
        return result

    def softmax(x: Any) -> Any:
        result = x - x.max(-1, keepdims=True)
        np.exp(result, out=result)
        result /= result.sum(-1, keepdims=True)
        return result

    def gelu(x: Any) -> Any:
        result = x * x
        result *= 0.044715
        result += 1
        result *= x
        result *= math.sqrt(2 / math.pi)
        np.tanh(result, out=result)
        result += 1
        result *= x
        result *= 0.5
        return result

    def silu(x: Any) -> Any:
        result = np.negative(x)
        np.exp(result, out=result)
        result += 1
        return np.divide(x, result, out=result)

    return {
        "layer norm": {"mean and var": lambda x, w: by_moments(x), "in place, einsum": lambda x, w: in_place(x)},
        "layer norm, weights": {"in place, einsum": with_weights},
        "rms norm": {"in place, einsum": rms},
        "softmax": {"in place": lambda x, w: softmax(x)},
        "gelu": {"in place": lambda x, w: gelu(x)},
        "silu": {"in place": lambda x, w: silu(x)},
    }


def _torch() -> Ways:
    import torch
    import torch.nn.functional as F

    def rms(x: Any, w: Any) -> Any:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * w

    return {
        "layer norm": {"layer_norm": lambda x, w: F.layer_norm(x, (COLUMNS,))},
        "layer norm, weights": {"layer_norm": lambda x, w: F.layer_norm(x, (COLUMNS,), w, w)},
        "rms norm": {"rms_norm": lambda x, w: F.rms_norm(x, (COLUMNS,), w, 1e-5), "by hand": rms},
        "softmax": {"softmax": lambda x, w: torch.softmax(x, -1)},
        "gelu": {"gelu": lambda x, w: F.gelu(x, approximate="tanh")},
        "silu": {"silu": lambda x, w: F.silu(x)},
    }


def _mlx() -> Ways:
    import mlx.core as mx
    import mlx.nn

    def by_hand(x: Any, w: Any) -> Any:
        deviation = x - mx.mean(x, -1, keepdims=True)
        return deviation * mx.rsqrt(mx.mean(mx.square(deviation), -1, keepdims=True) + 1e-5) * w + w

    return {
        "layer norm": {"fast.layer_norm": lambda x, w: mx.fast.layer_norm(x, None, None, 1e-5)},
        "layer norm, weights": {
            "fast.layer_norm": lambda x, w: mx.fast.layer_norm(x, w, w, 1e-5),
            "by hand": by_hand,
        },
        "rms norm": {"fast.rms_norm": lambda x, w: mx.fast.rms_norm(x, w, 1e-5)},
        "softmax": {"softmax": lambda x, w: mx.softmax(x, -1)},
        "gelu": {"gelu_approx": lambda x, w: mlx.nn.gelu_approx(x)},
        "silu": {"silu": lambda x, w: mlx.nn.silu(x)},
    }


WAYS: dict[str, Callable[[], Ways]] = {"numpy": _numpy, "torch": _torch, "mlx": _mlx}


def measure(backend_name: str, cases: list[str], seconds: float) -> list[Measurement]:
    """Return each case on one backend: ours beside the fastest native way."""
    found: list[Measurement] = []
    with active_backend(backend_name) as backend:
        evaluate = evaluator(backend)
        arguments = inputs(backend_name)
        ways = WAYS[backend_name]() | native_layers.WAYS[backend_name]()
        for case in cases:
            names = arguments[case]
            for value in names.values():
                evaluate(value)
            code = f"evaluate(f({', '.join(f'{name}={name}' for name in names)}))"
            functions = {"ops": CASES[case], **ways[case]}
            timed = {way: Timed(code, {"evaluate": evaluate, "f": f, **names}) for way, f in functions.items()}
            times = best_times(timed, seconds, least_rounds=3)
            ours = times.pop("ops")
            best = min(times, key=times.__getitem__)
            found.append(Measurement("neural", backend_name, case, "ops", ours, best, times[best]))
    return found


def limit(row: Measurement) -> float:
    """Return how much longer than the native way ours may take."""
    return math.inf if (row.backend, row.case) in WITHOUT_LIMIT else LIMIT


def table(backend: str, rows: list[Measurement]) -> Table:
    """Return one line per case: our time, the best native way and its time, the ratio."""
    shown = Table(
        "case", "ember_ml", "best native way", "native", "ratio", "limit", title=f"{backend}: neural functions"
    )
    for row in rows:
        allowed = limit(row)
        colour = "green" if row.ratio <= allowed else "bold red"
        times = readable(row.seconds), row.baseline, readable(row.baseline_seconds)
        shown.add_row(row.case, *times, f"[{colour}]{row.ratio:.2f}x[/]", f"{allowed}x" if allowed < math.inf else "")
    return shown


def main() -> int:
    """Measure, print, and say by the exit code whether the limit held."""
    known = [name for name in installed_backends() if name in WAYS]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--backend", action="append", choices=known)
    parser.add_argument("--case", action="append", choices=[*CASES])
    parser.add_argument("--seconds", type=float, default=3.0, help="time spent on each case (3)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--check", action="store_true", help="fail if the limit is exceeded")
    arguments = parser.parse_args()
    cases = arguments.case or [*CASES]
    rows = {name: measure(name, cases, arguments.seconds) for name in arguments.backend or known}
    if arguments.json:
        results = [row.as_dict() for found in rows.values() for row in found]
        print(json.dumps({"machine": machine(), "results": results}, indent=2))
    else:
        console = Console()
        for name, found in rows.items():
            console.print(table(name, found))
    exceeded = any(row.ratio > limit(row) for found in rows.values() for row in found)
    return int(arguments.check and exceeded)


if __name__ == "__main__":
    sys.exit(main())
