"""A step of a language model on a GPU, beside the one written by hand in the same library.

12 layers, width 1024, 16 heads, length 1024, batch 16, vocabulary 32000, bfloat16, AdamW; from the same parameters,
interleaved in one run. PyTorch eager and compiled, with its fused AdamW; JAX compiled, by hand with donated buffers and
cuDNN's attention. Prints a line of JSON for each mode, with the times in milliseconds and their ratios.

    python benchmarks/gpu_transformer.py [--backend torch] [--rounds 12] [--layers 12] [--device cuda] [--tiny]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend.selection import active
from ember_ml.training import Trainer, optimizers

RATE, DECAY = 3e-4, 0.01
SIZES = {"layers": 12, "width": 1024, "heads": 16, "length": 1024, "batch": 16, "vocabulary": 32000}
TINY = {"layers": 2, "width": 64, "heads": 4, "length": 32, "batch": 2, "vocabulary": 100}
STEPS = 3
"""The number of steps in a round, after which it waits for the device."""

Step = Callable[[], Any]


def ours(options: argparse.Namespace, tokens: Any, target: Any, compiled: bool) -> tuple[Step, dict[str, Any]]:
    """Return a step of our trainer, and copies of the parameters that it begins with."""
    ops.random.seed(0)
    model = nn.blocks.LanguageModel(
        options.vocabulary, options.width, options.layers, options.heads, length=options.length, tied=False
    ).to_dtype("bfloat16")
    optimizer = optimizers.AdamW(RATE, weight_decay=DECAY)
    step = Trainer(model, optimizer, "sparse_categorical_crossentropy", compile=compiled)._step
    step.objective.gives_predictions = False
    return lambda: step((tokens, target))[0], model.state_dict()


def by_hand(options: argparse.Namespace, state: dict[str, Any], tokens: Any, target: Any, compiled: bool) -> Step:
    """Return the same step as an expert writes it, from the same parameters."""
    if options.backend == "jax":
        import hand_jax

        return hand_jax.language_step(state, options.heads, tokens, target, RATE, DECAY)
    import hand_torch

    return hand_torch.language_step(state, options.heads, tokens, target, RATE, DECAY, compiled)


def milliseconds(step: Step, evaluate: Callable[[Any], Any]) -> float:
    """Return the time of one step of several, from an idle device until the last is done."""
    ops.synchronize()
    start = time.perf_counter()
    for _ in range(STEPS - 1):
        step()
    evaluate(step())
    return (time.perf_counter() - start) * 1e3 / STEPS


def compare(options: argparse.Namespace, tokens: Any, target: Any, compiled: bool) -> dict[str, Any]:
    """Measure both steps in turns."""
    step, state = ours(options, tokens, target, compiled)
    steps = {"ember": step, "hand": by_hand(options, state, tokens, target, compiled)}
    del state
    losses = {name: [round(float(step()), 4) for _ in range(STEPS)] for name, step in steps.items()}
    np.testing.assert_allclose(losses["ember"], losses["hand"], rtol=2e-2)  # bfloat16
    calls = active().bench_calls
    assert calls is not None
    found: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(options.rounds):
        for name, step in steps.items():
            found[name].append(milliseconds(step, calls.evaluate))
    ember, hand = (min(found[name]) for name in ("ember", "hand"))
    return {
        "backend": options.backend,
        "mode": "compiled" if compiled else "eager",
        "device": ops.get_device(tokens),
        **{name: getattr(options, name) for name in SIZES},
        "losses": losses,
        "ember_ms": round(ember, 3),
        "hand_ms": round(hand, 3),
        "ratio": round(ember / hand, 4),
        "ratio_of_medians": round(statistics.median(found["ember"]) / statistics.median(found["hand"]), 4),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("torch", "jax"), default="torch")
    parser.add_argument("--rounds", type=int, default=12, help=f"of {STEPS} steps each")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true", help="small sizes, to try the script on a CPU")
    for name in SIZES:
        parser.add_argument(f"--{name}", type=int)
    options = parser.parse_args()
    for name, value in (TINY if options.tiny else SIZES).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    ember_ml.set_backend(options.backend)
    ops.set_default_device(options.device)
    shape = (options.batch, options.length + 1)
    dtype = np.int32 if options.backend == "jax" else np.int64  # what each library's own code uses
    text = np.random.default_rng(0).integers(0, options.vocabulary, shape, dtype=dtype)
    tokens, target = (ops.asarray(part) for part in (text[:, :-1], text[:, 1:]))
    for compiled in (True,) if options.backend == "jax" else (False, True):
        print(json.dumps(compare(options, tokens, target, compiled)), flush=True)


if __name__ == "__main__":
    main()
