"""The short-time Fourier transform of a million samples, against the best ways of the library itself.

    python benchmarks/signal_ops.py [--backend NAME] [--seconds S] [--scale F] [--json] [--check]

Frames of 1024 samples, 512 apart, float32, under a Hann window: "frames" cuts them as they are, "centred" pads the
signal first. Ours and every native way take turns in one process, each evaluated to the end; the best of many rounds
counts. ``--check`` fails where ours takes more than 1.15 times as long as the fastest way of the library itself. Where
SciPy is installed, its transforms stand beside NumPy's; it is another library, so no limit holds there.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
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

LIMIT = 1.15
LENGTH, HOP = 1024, 512
Ways = dict[str, dict[str, Callable[[Any, Any], Any]]]

OURS: dict[str, Callable[[Any, Any], Any]] = {
    "frames": lambda x, w: ops.stft(ops.multiply(ops.frame(x, LENGTH, HOP), w)),
    "centred": lambda x, w: ops.stft(x, LENGTH, HOP, w),
    "inverse": lambda x, w: ops.istft(ops.stft(x, LENGTH, HOP, w), LENGTH, HOP, w),
}


def _numpy() -> Ways:
    import numpy as np

    view: Any = np.lib.stride_tricks.sliding_window_view

    def frames(x: Any) -> Any:
        return view(x, LENGTH)[::HOP]

    def centred(x: Any) -> Any:
        return frames(np.concatenate((x[LENGTH // 2 : 0 : -1], x, x[-2 : -LENGTH // 2 - 2 : -1])))

    def inverse(x: Any, w: Any) -> Any:
        pieces = np.fft.irfft(np.fft.rfft(centred(x) * w), LENGTH).reshape(-1, 2, HOP) * w.reshape(2, HOP)
        total, weight = (np.zeros((len(pieces) + 1, HOP), np.float32) for _ in range(2))
        for k in range(2):
            total[k : k + len(pieces)] += pieces[:, k]
            weight[k : k + len(pieces)] += w.reshape(2, HOP)[k] ** 2
        return total[1:-1] / weight[1:-1]

    found: Ways = {
        "frames": {"view and np.fft": lambda x, w: np.fft.rfft(frames(x) * w)},
        "centred": {"view and np.fft": lambda x, w: np.fft.rfft(centred(x) * w)},
        "inverse": {"np.fft and sums of blocks": inverse},
    }
    if importlib.util.find_spec("scipy"):
        import scipy.fft

        found["frames"]["SciPy: view and scipy.fft"] = lambda x, w: scipy.fft.rfft(frames(x) * w)
        found["centred"]["SciPy: view and scipy.fft"] = lambda x, w: scipy.fft.rfft(centred(x) * w)
    return found


def _torch() -> Ways:
    import torch

    def stft(x: Any, w: Any, center: bool) -> Any:
        return torch.stft(x, LENGTH, HOP, window=w, center=center, return_complex=True)

    return {
        "frames": {
            "stft": lambda x, w: stft(x, w, False),
            "unfold and rfft": lambda x, w: torch.fft.rfft(x.unfold(-1, LENGTH, HOP) * w),
        },
        "centred": {"stft": lambda x, w: stft(x, w, True)},
        "inverse": {"istft": lambda x, w: torch.istft(stft(x, w, True), LENGTH, HOP, window=w)},
    }


def _mlx() -> Ways:
    import mlx.core as mx

    def frames(x: Any) -> Any:
        return mx.as_strided(x, ((len(x) - LENGTH) // HOP + 1, LENGTH), (HOP, 1))

    def centred(x: Any) -> Any:
        return frames(mx.concatenate([x[LENGTH // 2 : 0 : -1], x, x[-2 : -LENGTH // 2 - 2 : -1]]))

    return {
        "frames": {"as_strided and rfft": lambda x, w: mx.fft.rfft(frames(x) * w)},
        "centred": {"as_strided and rfft": lambda x, w: mx.fft.rfft(centred(x) * w)},
    }


WAYS: dict[str, Callable[[], Ways]] = {"numpy": _numpy, "torch": _torch, "mlx": _mlx}


def measure(backend_name: str, seconds: float, scale: float) -> list[Measurement]:
    """Return each case on one backend: ours beside the fastest way of the library itself, and beside SciPy's."""
    found: list[Measurement] = []
    with active_backend(backend_name) as backend:
        evaluate = evaluator(backend)
        count = max(int(1_000_000 * scale), 2 * LENGTH)
        x = ops.sin(ops.power(ops.arange(count, dtype="float32"), 1.3))
        names = {"evaluate": evaluate, "x": x, "w": ops.hann_window(LENGTH)}
        evaluate(x)
        for case, ways in WAYS[backend_name]().items():
            functions = {"ops": OURS[case], **ways}
            timed = {way: Timed("evaluate(f(x, w))", {"f": f, **names}) for way, f in functions.items()}
            times = best_times(timed, seconds, least_rounds=3)
            ours = times.pop("ops")
            own = min((way for way in times if not way.startswith("SciPy")), key=times.__getitem__)
            shown = [own, *(way for way in times if way.startswith("SciPy"))]
            found += [Measurement("signal", backend_name, case, "ops", ours, way, times[way]) for way in shown]
    return found


def _limit(row: Measurement) -> float:
    return math.inf if row.baseline.startswith("SciPy") or row.case == "inverse" else LIMIT


def table(backend: str, rows: list[Measurement]) -> Table:
    """Return one line per case: our time, the native way and its time, the ratio."""
    shown = Table("case", "ember_ml", "native way", "native", "ratio", "limit", title=f"{backend}: a million samples")
    for row in rows:
        colour = "green" if row.ratio <= _limit(row) else "bold red"
        limit = f"{LIMIT}x" if _limit(row) < math.inf else ""
        times = readable(row.seconds), row.baseline, readable(row.baseline_seconds)
        shown.add_row(row.case, *times, f"[{colour}]{row.ratio:.2f}x[/]", limit)
    return shown


def main() -> int:
    """Measure, print, and say by the exit code whether the limit held."""
    known = [name for name in installed_backends() if name in WAYS]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--backend", action="append", choices=known)
    parser.add_argument("--seconds", type=float, default=3.0, help="time spent on each case (3)")
    parser.add_argument("--scale", type=float, default=1.0, help="this part of a million samples (1)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--check", action="store_true", help="fail if the limit is exceeded")
    arguments = parser.parse_args()
    rows = {name: measure(name, arguments.seconds, arguments.scale) for name in arguments.backend or known}
    if arguments.json:
        results = [row.as_dict() for found in rows.values() for row in found]
        print(json.dumps({"machine": machine(), "scale": arguments.scale, "results": results}, indent=2))
    else:
        console = Console()
        for name, found in rows.items():
            console.print(table(name, found))
    exceeded = any(row.ratio > _limit(row) for found in rows.values() for row in found)
    return int(arguments.check and exceeded)


if __name__ == "__main__":
    sys.exit(main())
