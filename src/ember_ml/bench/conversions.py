"""Measure the cost of moving a tensor from one backend to another, and of switching the backend."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

from ember_ml import ops
from ember_ml.backend.selection import set_backend
from ember_ml.bench.measurement import Measurement, active_backend, evaluator
from ember_ml.bench.timing import Timed, best_times

__all__ = ["measure_conversions", "measure_switching"]


def measure_conversions(names: Sequence[str], size: int, seconds: float = 0.3) -> list[Measurement]:
    """Measure the transfer of ``size`` float32 elements from each backend to each other one, beside a copy."""
    found: list[Measurement] = []
    for source, target in product(names, names):
        if source == target:
            continue
        with active_backend(source) as backend:
            x = evaluator(backend)(ops.add(ops.arange(size, dtype="float32"), 0.5))
        with active_backend(target) as backend:
            evaluate = evaluator(backend)
            own = evaluate(ops.convert_to_tensor(x))
            ways = {
                "convert": Timed(
                    "evaluate(convert(x))", {"evaluate": evaluate, "convert": ops.convert_to_tensor, "x": x}
                ),
                "copy": Timed("evaluate(copy(x))", {"evaluate": evaluate, "copy": ops.copy, "x": own}),
            }
            times = best_times(ways, seconds)
        case = f"{source} to {target}"
        found.append(Measurement("conversions", target, case, "convert", times["convert"], "copy", times["copy"]))
    return found


def measure_switching(names: Sequence[str], seconds: float = 0.1) -> list[Measurement]:
    """Measure ``set_backend`` to each backend and back, between loaded backends, beside one op call."""
    found: list[Measurement] = []
    for first, second in pairwise(names):
        with active_backend(first):
            x = ops.arange(10, dtype="float32")
            set_backend(second)
            set_backend(first)
            ways = {
                "set_backend": Timed("s(second); s(first)", {"s": set_backend, "first": first, "second": second}),
                "ops.add": Timed("add(x, x)", {"add": ops.add, "x": x}),
            }
            times = best_times(ways, seconds)
        case = f"{first} to {second} and back"
        found.append(
            Measurement("switching", first, case, "set_backend", times["set_backend"], "ops.add", times["ops.add"])
        )
    return found
