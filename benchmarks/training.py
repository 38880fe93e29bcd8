"""What a step of training costs beside the loop that an expert writes by hand in the same library.

The same model, the same optimizer (Adam), the same batch; forward, backward and update; all in one run, interleaved,
best of many.

    python benchmarks/training.py [--seconds 3] [--models mlp tiny] [--backends numpy torch mlx jax] [--keras]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import hand_numpy
import hand_torch
import numpy as np

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import installed_backends
from ember_ml.backend.selection import active
from ember_ml.training import Trainer, optimizers

Step = Callable[[], Any]
SIZES = {"mlp": (784, 256, 256, 10), "tiny": (10, 16, 16, 10)}
BATCH = {"mlp": 128, "tiny": 4, "transformer": 32}
RATE = 1e-3


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a batch of inputs and classes."""
    rng = np.random.default_rng(0)
    if name == "transformer":
        tokens = rng.integers(0, hand_numpy.VOCABULARY, (BATCH[name], hand_numpy.LENGTH + 1))
        return tokens[:, :-1], tokens[:, 1:]
    return rng.normal(size=(BATCH[name], SIZES[name][0])).astype(np.float32), rng.integers(0, 10, BATCH[name])


def model_of(name: str) -> nn.Module:
    """Return the model, written once."""
    ops.random.seed(0)
    if name == "transformer":
        from ember_ml.nn import blocks

        return blocks.LanguageModel(
            hand_numpy.VOCABULARY, 128, hand_numpy.DEPTH, hand_numpy.HEADS, length=hand_numpy.LENGTH, tied=False
        )
    first, second, third, last = SIZES[name]
    return nn.Sequential(nn.Linear(first, second), ops.relu, nn.Linear(second, third), ops.relu, nn.Linear(third, last))


def ours(name: str, compiled: bool) -> tuple[Step, nn.Module]:
    """Return a step of our trainer on the active backend."""
    model = model_of(name)
    trainer = Trainer(model, optimizers.Adam(RATE), "sparse_categorical_crossentropy", compile=compiled)
    x, y = (ops.asarray(part) for part in data(name))
    step = trainer._step

    calls = active().bench_calls
    assert calls is not None
    return lambda: calls.evaluate(step((x, y))[0]), model


def by_hand(name: str, backend: str, compiled: bool, state: dict[str, np.ndarray]) -> Step:
    """Return the step that an expert writes, from the same parameters."""
    x, y = data(name)
    if backend == "numpy":
        return hand_numpy.step(name, state, x, y, RATE)
    if backend == "torch":
        return hand_torch.step(name, state, x, y, RATE, compiled)
    if backend == "jax":
        import hand_jax

        return hand_jax.step(name, state, x, y, RATE, compiled)
    import hand_mlx

    return hand_mlx.step(name, state, x, y, RATE, compiled)


def check(name: str, steps: dict[str, Step]) -> None:
    """Check that the steps return the same losses."""
    for count in range(3):
        found = {key: float(np.asarray(ops.to_numpy(step()))) for key, step in steps.items() if key != "keras"}
        low, high = min(found.values()), max(found.values())
        assert high - low < 2e-4 * max(high, 0.1), (name, count, found)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0, help="for each line of the table")
    parser.add_argument("--models", nargs="*", default=["mlp", "transformer", "tiny"])
    parser.add_argument("--backends", nargs="*", default=list(installed_backends()))
    parser.add_argument("--modes", nargs="*", default=["eager", "compiled"])
    parser.add_argument("--keras", action="store_true", help="also Keras on PyTorch")
    options = parser.parse_args()
    print(f"{'backend':8} {'mode':8} {'model':12} {'ember ms':>9} {'by hand':>9} {'ratio':>6}")
    for backend in options.backends:
        ember_ml.set_backend(backend)
        for mode in options.modes:
            if backend == "numpy" and mode == "compiled":
                continue
            for name in options.models:
                step, model = ours(name, mode == "compiled")
                state = {key: ops.to_numpy(value).copy() for key, value in model.state_dict().items()}
                steps = {"ember": step, "hand": by_hand(name, backend, mode == "compiled", state)}
                if options.keras and backend == "torch":
                    steps["keras"] = hand_torch.keras_step(name, *data(name), RATE, mode == "compiled")
                check(name, steps)
                best = dict.fromkeys(steps, float("inf"))
                stop = time.perf_counter() + options.seconds
                while time.perf_counter() < stop:
                    for key, run in steps.items():
                        start = time.perf_counter()
                        run()
                        best[key] = min(best[key], time.perf_counter() - start)
                ember, hand = best["ember"] * 1e3, best["hand"] * 1e3
                keras = f"   Keras {best['keras'] * 1e3 / hand:5.2f}" if "keras" in best else ""
                print(f"{backend:8} {mode:8} {name:12} {ember:9.3f} {hand:9.3f} {ember / hand:6.2f}{keras}", flush=True)


if __name__ == "__main__":
    main()
