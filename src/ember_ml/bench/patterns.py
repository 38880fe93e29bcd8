"""Measure the cost of careless habits: leaving the backend, loops, copies, operators, reading values.

Each pattern is one computation written twice, carelessly and with care. The slowdowns that are commonly claimed for the
careless way stand beside the measured ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ember_ml import ops
from ember_ml.backend.built_in import HOST
from ember_ml.backend.contract import Backend
from ember_ml.backend.selection import load
from ember_ml.bench.measurement import Measurement, active_backend, evaluator, native_calls
from ember_ml.bench.timing import Timed, best_times
from ember_ml.tensor.ember_tensor import wrap_native

__all__ = ["PATTERNS", "Pattern", "measure_patterns"]

_POINTS = 24  # the loop over pairs runs 276 times
_STEPS = 50


@dataclass(frozen=True, slots=True)
class Pattern:
    """One computation written twice; both take the same tensors and return the same numbers."""

    group: str
    name: str
    claimed: str
    careless: Callable[..., Any]
    careful: Callable[..., Any]
    inputs: str
    """Which inputs: ``vectors`` (a, b, c), ``portable`` (the same as EmberTensors) or ``points``."""


def _log_on_numpy(a: Any, b: Any, c: Any) -> Any:
    calls = native_calls(load(HOST))
    host = ops.to_numpy(a)
    return ops.convert_to_tensor(calls["log"](calls["add"](1, calls["abs"](host))))


def _log(a: Any, b: Any, c: Any) -> Any:
    return ops.log(ops.add(1.0, ops.abs(a)))


def _normalize_with_floats(a: Any, b: Any, c: Any) -> Any:
    low, high = float(ops.min(a)), float(ops.max(a))
    return ops.divide(ops.subtract(a, low), high - low)


def _normalize(a: Any, b: Any, c: Any) -> Any:
    low, high = ops.min(a), ops.max(a)
    return ops.divide(ops.subtract(a, low), ops.subtract(high, low))


def _read_each_step(a: Any, b: Any, c: Any) -> Any:
    total = 0.0
    for _ in range(_STEPS):
        total += float(ops.mean(ops.multiply(a, b)))
    return ops.convert_to_tensor(total)


def _read_once(a: Any, b: Any, c: Any) -> Any:
    total = ops.mean(ops.multiply(a, b))
    for _ in range(_STEPS - 1):
        total = ops.add(total, ops.mean(ops.multiply(a, b)))
    return total


def _one_operator(a: Any, b: Any, c: Any) -> Any:
    return a + b


def _one_function(a: Any, b: Any, c: Any) -> Any:
    return ops.add(a, b)


def _operator_chain(a: Any, b: Any, c: Any) -> Any:
    return ((a - b) * c + a) / (b * b + 1.0)


def _function_chain(a: Any, b: Any, c: Any) -> Any:
    return ops.divide(ops.add(ops.multiply(ops.subtract(a, b), c), a), ops.add(ops.multiply(b, b), 1.0))


def _mixed(a: Any, b: Any, c: Any) -> Any:
    return ops.multiply(a + b, c)


def _unmixed(a: Any, b: Any, c: Any) -> Any:
    return ops.multiply(ops.add(a, b), c)


def _copying(a: Any, b: Any, c: Any) -> Any:
    return ops.add(ops.copy(a), ops.copy(b))


def _distances_in_loops(points: Any) -> Any:
    found = [
        ops.sqrt(ops.sum(ops.square(ops.subtract(points[i], points[j]))))
        for i in range(_POINTS)
        for j in range(i + 1, _POINTS)
    ]
    return ops.stack(found)


def _distances(points: Any) -> Any:
    difference = ops.subtract(ops.expand_dims(points, axis=1), ops.expand_dims(points, axis=0))
    return ops.sqrt(ops.sum(ops.square(difference), axis=2))[ops.triu_indices(_POINTS, k=1)]


PATTERNS = (
    Pattern("leaving", "compute on NumPy and come back", "10-100x", _log_on_numpy, _log, "vectors"),
    Pattern("copies", "copy the operands first", "2-5x", _copying, _one_function, "vectors"),
    Pattern("operators", "native a + b", "2-10x", _one_operator, _one_function, "vectors"),
    Pattern("operators", "native chain of six operators", "up to 100x", _operator_chain, _function_chain, "vectors"),
    Pattern("operators", "EmberTensor a + b", "2-10x", _one_operator, _one_function, "portable"),
    Pattern("operators", "EmberTensor chain of six", "up to 100x", _operator_chain, _function_chain, "portable"),
    Pattern("operators", "operators mixed with ops", "5-20x", _mixed, _unmixed, "vectors"),
    Pattern(
        "loops", f"distances of {_POINTS} points, pair by pair", "10-1000x", _distances_in_loops, _distances, "points"
    ),
    Pattern("scalars", "float(min), float(max) to normalize", "10-100x", _normalize_with_floats, _normalize, "vectors"),
    Pattern("scalars", f"float() in each of {_STEPS} steps", "10-100x", _read_each_step, _read_once, "vectors"),
)


def measure_patterns(name: str, groups: frozenset[str], size: int, seconds: float = 0.3) -> list[Measurement]:
    """Measure every pattern of ``groups`` on the backend ``name``, evaluated, on tensors of ``size`` elements."""
    found: list[Measurement] = []
    with active_backend(name) as backend:
        inputs = _inputs(backend, size)
        native = evaluator(backend)

        def evaluate(x: Any) -> Any:
            return native(getattr(x, "_array", x))

        for pattern in PATTERNS:
            if pattern.group not in groups:
                continue
            values = inputs[pattern.inputs]
            code = f"evaluate(f({', '.join(values)}))"
            ways = {
                "careless": Timed(code, {"evaluate": evaluate, "f": pattern.careless, **values}),
                "careful": Timed(code, {"evaluate": evaluate, "f": pattern.careful, **values}),
            }
            times = best_times(ways, seconds)
            found.append(
                Measurement(
                    pattern.group,
                    name,
                    pattern.name,
                    "careless",
                    times["careless"],
                    "careful",
                    times["careful"],
                    pattern.claimed,
                )
            )
    return found


def _inputs(backend: Backend, size: int) -> dict[str, dict[str, Any]]:
    a = ops.sin(ops.arange(size, dtype="float32"))
    vectors = {"a": a, "b": ops.add(a, 2.0), "c": ops.multiply(a, 0.5)}
    for tensor in vectors.values():
        evaluator(backend)(tensor)
    return {
        "vectors": vectors,
        "portable": {name: wrap_native(tensor, backend) for name, tensor in vectors.items()},
        "points": {"points": ops.reshape(ops.sin(ops.arange(3 * _POINTS, dtype="float32")), (_POINTS, 3))},
    }
