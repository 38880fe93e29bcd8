"""Measure the overhead of calls of ops over the library's own calls, and that of Keras.

Each backend is measured in a process of its own, ``python -m ember_ml.bench.calls torch``, because Keras fixes its
backend at import. Inside it, native, ``ops``, ``EmberTensor`` and Keras take turns. On a lazy backend this is the time
to build the graph.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from typing import Any

from ember_ml import ops
from ember_ml.bench.measurement import Measurement, active_backend, native_calls
from ember_ml.bench.timing import Timed, best_times
from ember_ml.errors import BackendError
from ember_ml.tensor.ember_tensor import wrap_native

__all__ = ["KERAS_BACKENDS", "OPERATOR", "measure_calls"]

KERAS_BACKENDS = ("numpy", "torch", "jax")
OPERATOR = "a + b"
# the arguments of each op, on a and b of n elements, and the matrices m (2, n/2) and k (n/2, 2)
_ARGUMENTS = {
    "add": "a, b",
    "multiply": "a, b",
    "sin": "a",
    "matmul": "m, k",
    "mean": "a",
    "reshape": "a, shape",
    "concatenate": "pair",
}


def measure_calls(backend: str, size: int = 10, seconds: float = 0.3, keras: bool = True) -> list[Measurement]:
    """Return the cost of each compared op on ``backend``, on float32 tensors of ``size`` elements, in a fresh process.

    ``seconds`` is the time spent per op. Keras is measured where it is installed and has that backend.
    """
    command = [sys.executable, "-m", "ember_ml.bench.calls", backend, str(size), str(seconds)]
    environment = dict(os.environ)
    if keras and backend in KERAS_BACKENDS and importlib.util.find_spec("keras"):
        command.append("keras")
        environment["KERAS_BACKEND"] = backend
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise BackendError(f"measuring {backend} failed: {done.stderr.strip().rpartition(chr(10))[2]}")
    return [Measurement(**row) for row in json.loads(done.stdout)]


def _measure_here(name: str, size: int, seconds: float, keras: bool) -> list[Measurement]:
    peer: Any = importlib.import_module("keras").ops if keras else None
    with active_backend(name) as backend:
        names = _inputs(size)
        found: list[Measurement] = []
        for op, arguments in _ARGUMENTS.items():
            functions = {
                "native": native_calls(backend).get(op),
                "ops": getattr(ops, op),
                "keras": getattr(peer, op, None),
            }
            used = {key: value for key, value in names.items() if key in arguments.split(", ")}
            ways = {
                way: Timed(f"call({arguments})", {"call": function, **used})
                for way, function in functions.items()
                if function is not None
            }
            found += _compare(name, op, ways, seconds)
        a, b = names["a"], names["b"]
        portable = {"a": wrap_native(a, backend), "b": wrap_native(b, backend)}
        ways = {"native": Timed(OPERATOR, {"a": a, "b": b}), "EmberTensor": Timed(OPERATOR, portable)}
        return found + _compare(name, OPERATOR, ways, seconds)


def _inputs(size: int) -> dict[str, Any]:
    half = max(size // 2, 1)
    a = ops.arange(2 * half, dtype="float32")
    b = ops.add(a, 1.0)
    shape = (2, half)
    return {
        "a": a,
        "b": b,
        "m": ops.reshape(a, shape),
        "k": ops.reshape(b, (half, 2)),
        "shape": shape,
        "pair": [a, b],
    }


def _compare(backend: str, case: str, ways: dict[str, Timed], seconds: float) -> list[Measurement]:
    times = best_times(ways, seconds)
    native = times.pop("native", None)
    if native is None:
        return []
    return [Measurement("calls", backend, case, way, taken, "native", native) for way, taken in times.items()]


def _main(backend: str, size: str, seconds: str, *options: str) -> None:
    rows = _measure_here(backend, int(size), float(seconds), "keras" in options)
    json.dump([{key: value for key, value in row.as_dict().items() if key != "ratio"} for row in rows], sys.stdout)


if __name__ == "__main__":
    _main(*sys.argv[1:])
