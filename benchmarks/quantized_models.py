"""Measure weights of few bits: size, error and speed, printed as rows of a table.

    python benchmarks/quantized_models.py [--backend torch] [--steps 400] [--hidden 512]

A small decoder is trained on the documentation, byte by byte, and asked about pages that it has not seen. The speed is
that of a larger one with random weights, batch 1: the best of several runs for each kind of weights, in turns.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import ember_ml
from ember_ml import models, ops
from ember_ml.training import Trainer, losses, optimizers, schedules

KINDS: tuple[str | None, ...] = (None, "int8", "int4")
LENGTH = 64


def make(hidden: int, layers: int) -> models.PretrainedModel:
    """A decoder of the Llama family whose tokens are bytes."""
    heads = hidden // 32
    sizes = {"hidden_size": hidden, "intermediate_size": 3 * hidden, "num_hidden_layers": layers}
    return models.from_config(
        {"model_type": "llama", "vocab_size": 256, **sizes, "num_attention_heads": heads, "num_key_value_heads": heads}
    )


def cut(text: bytes) -> tuple[Any, Any]:
    """Pieces of text, and for each byte the next one."""
    count = (len(text) - 1) // LENGTH
    x, y = ops.array(list(text[: count * LENGTH])), ops.array(list(text[1 : count * LENGTH + 1]))
    return ops.reshape(x, (count, LENGTH)), ops.reshape(y, (count, LENGTH))


def perplexities(folder: Path, steps: int) -> dict[str | None, float]:
    """Train a decoder, save it, and return its perplexity with each kind of weights."""
    pages = [page.read_bytes() for page in sorted(Path(__file__).parents[1].glob("docs/*.md"))]
    ops.random.seed(0)
    model = make(128, 2).train()
    optimizer = optimizers.AdamW(schedules.Cosine(3e-3, steps=steps), weight_decay=0.0)
    trainer = Trainer(model, optimizer, "sparse_categorical_crossentropy", compile=False, progress=False)
    trainer.fit(*cut(b"".join(pages[2:])), epochs=1000, batch_size=16, max_steps=steps)
    model.save(folder)
    x, y = cut(b"".join(pages[:2])[: 200 * LENGTH])
    found: dict[str | None, float] = {}
    for kind in KINDS:
        logits = models.load(folder, quantize=kind)(x)
        found[kind] = math.exp(ops.item(losses.sparse_categorical_crossentropy(y, logits)))
    return found


def speeds(folder: Path, hidden: int) -> dict[str | None, tuple[float, int]]:
    """Return the new tokens per second, and the bytes of the weights, with each kind of weights."""
    make(hidden, 4).to_dtype("float32").save(folder)
    opened = {kind: models.load(folder, quantize=kind) for kind in KINDS}
    best = dict.fromkeys(KINDS, 0.0)
    for _ in range(6):
        for kind, model in opened.items():
            begun = time.perf_counter()
            model.generate([1, 2, 3], max_new_tokens=16, stop=[])
            best[kind] = max(best[kind], 16 / (time.perf_counter() - begun))
    sizes = {kind: sum(x.nbytes for x in model.named_variables().values()) for kind, model in opened.items()}
    return {kind: (best[kind], sizes[kind]) for kind in KINDS}


def main() -> None:
    """Print a row for each kind of weights."""
    import tempfile

    parser = argparse.ArgumentParser(description="Measure weights of few bits.")
    parser.add_argument("--backend", default="torch")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--hidden", type=int, default=512)
    options = parser.parse_args()
    ember_ml.set_backend(options.backend)
    with tempfile.TemporaryDirectory() as folder:
        fast = speeds(Path(folder, "fast"), options.hidden)
        found = perplexities(Path(folder, "trained"), options.steps) if options.steps else {}
    for kind in KINDS:
        speed, size = fast[kind]
        print(f"{options.backend} {kind or 'float32'}: {speed:.1f} tokens/s, {size / 1e6:.2f} MB", end="")
        print(f", perplexity {found[kind]:.4f} ({found[kind] / found[None] - 1:+.2%})" if found else "")


if __name__ == "__main__":
    main()
