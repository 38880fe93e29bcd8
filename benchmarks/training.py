"""What a step of training costs beside the loop that an expert writes by hand in the same library.

The same model, the same optimizer (Adam), the same batch; forward, backward and update; all in one run, interleaved,
best of many.

    python benchmarks/training.py [--seconds 3] [--models mlp gpt] [--backends numpy torch mlx jax] [--cpu] [--keras]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import hand_numpy
import hand_torch
import numpy as np
from training_models import MODELS, data_of, model_of

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import installed_backends
from ember_ml.backend.selection import active
from ember_ml.training import Trainer, optimizers

Step = Callable[[], Any]
RATE = 1e-3


def ours(name: str, backend: str, compiled: bool, dropout: float) -> tuple[Step, nn.Module]:
    """Return a step of our trainer on the active backend."""
    model = model_of(name, backend, dropout)
    trainer = Trainer(model, optimizers.Adam(RATE), "sparse_categorical_crossentropy", compile=compiled)
    x, y = data_of(name)
    if backend == "mlx" or name.endswith("_last"):
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1)) if x.ndim == 4 else x
    x, y = ops.asarray(x), ops.asarray(y)
    step = trainer._step

    calls = active().bench_calls
    assert calls is not None
    evaluate = calls.evaluate
    return lambda: evaluate(step((x, y))[0]), model


def by_hand(name: str, backend: str, compiled: bool, state: dict[str, np.ndarray], dropout: float) -> Step:
    """Return the step that an expert writes, from the same parameters."""
    x, y = data_of(name)
    if backend == "numpy":
        return hand_numpy.step(name, state, x, y, RATE, dropout)
    if backend == "torch":
        return hand_torch.step(name, state, x, y, RATE, compiled, dropout)
    if backend == "jax":
        import hand_jax

        return hand_jax.step(name, state, x, y, RATE, compiled)
    import hand_mlx

    return hand_mlx.step(name, state, x, y, RATE, compiled, dropout)


def both(name: str, backend: str, compiled: bool, dropout: float) -> dict[str, Step]:
    """Return both steps, from the same parameters."""
    step, model = ours(name, backend, compiled, dropout)
    state = {key: ops.to_numpy(value).copy() for key, value in model.state_dict().items()}
    return {"ember": step, "hand": by_hand(name, backend, compiled, state, dropout)}


def check(name: str, steps: dict[str, Step]) -> None:
    """Check that the steps return the same losses."""
    for count in range(3):
        found = {key: float(np.asarray(ops.to_numpy(step()))) for key, step in steps.items() if key != "keras"}
        low, high = min(found.values()), max(found.values())
        # Adam's first steps move each weight by the rate, however small its gradient: there the order of sums shows
        allowed = 1e-3 * max(high, 0.25) if "resnet" in name else 2e-4 * max(high, 0.1)
        assert high - low < allowed, (name, count, found)


def best_times(steps: dict[str, Step], seconds: float, clock: Callable[[], float]) -> dict[str, float]:
    """Return the shortest time of each step in milliseconds, one after another in turns."""
    best = dict.fromkeys(steps, float("inf"))
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop:
        for key, run in steps.items():
            start = clock()
            run()
            best[key] = min(best[key], (clock() - start) * 1e3)
    return best


def measure(backend: str, name: str, is_compiled: bool, options: argparse.Namespace) -> dict[str, float]:
    """Return the shortest time of each step of a model in milliseconds."""
    ember_ml.set_backend(backend)
    dropout = MODELS[name].dropout
    check(name, both(name, backend, is_compiled, 0.0))  # nobody drops the same elements as we do
    steps = both(name, backend, is_compiled, dropout)
    if options.keras and backend == "torch" and name in ("mlp", "transformer", "tiny"):
        steps["keras"] = hand_torch.keras_step(name, *data_of(name), RATE, is_compiled)
    for run in steps.values():
        for _ in range(2):  # the first update may change the order of weights in memory: the second step compiles anew
            run()
    return best_times(steps, options.seconds, time.process_time if options.cpu else time.perf_counter)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0, help="for each line of the table")
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--backends", nargs="*", default=list(installed_backends()))
    parser.add_argument("--modes", nargs="*", default=["eager", "compiled"])
    parser.add_argument("--cpu", action="store_true", help="CPU time, which neighbours on the machine change less")
    parser.add_argument("--keras", action="store_true", help="also Keras on PyTorch")
    options = parser.parse_args()
    print(f"{'backend':8} {'mode':8} {'model':12} {'ember ms':>9} {'by hand':>9} {'ratio':>6}")
    # a process for each line: whether the C library gives memory back to the system after each step, which costs an
    # LSTM a third of its time, depends on what was allocated before
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as processes:
        for backend, mode, name in product(options.backends, options.modes, options.models):
            if backend not in MODELS[name].backends or (backend == "numpy" and mode == "compiled"):
                continue
            best = processes.submit(measure, backend, name, mode == "compiled", options).result()
            ember, hand = best["ember"], best["hand"]
            keras = f"   Keras {best['keras'] / hand:5.2f}" if "keras" in best else ""
            print(f"{backend:8} {mode:8} {name:12} {ember:9.3f} {hand:9.3f} {ember / hand:6.2f}{keras}", flush=True)


if __name__ == "__main__":
    main()
