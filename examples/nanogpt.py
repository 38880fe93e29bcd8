"""nanoGPT's recipe: python examples/nanogpt.py [--backend numpy|torch|mlx|jax] [--steps 200] [--precision bfloat16]."""

import argparse
from pathlib import Path
from typing import Any

import ember_ml
from ember_ml import nn, ops
from ember_ml.training import Trainer, optimizers, schedules

LENGTH, BATCH_SIZE, ACCUMULATE, RATE = 64, 8, 4, 1e-3


class GPT(nn.Module):
    """A transformer with learned positions, whose output weights are its embeddings."""

    def __init__(self, vocabulary: int, hidden: int = 64, heads: int = 4, layers: int = 2) -> None:
        self.tokens, self.positions = nn.Embedding(vocabulary, hidden), nn.Embedding(LENGTH, hidden)
        self.blocks = nn.Sequential(*[nn.blocks.TransformerBlock(hidden, heads, causal=True) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, vocabulary, bias=False)
        self.head.weight = self.tokens.variable("weight")
        for name, parameter in self.named_parameters().items():
            scale = 0.02 / (2 * layers) ** 0.5 if name.endswith(("output.weight", "down.weight")) else 0.02
            if len(parameter.shape) > 1:
                parameter.value = ops.random_normal(parameter.shape, stddev=scale)

    def forward(self, x: Any) -> Any:
        x = ops.add(self.tokens(x), self.positions(ops.arange(x.shape[1])))
        return self.head(self.norm(self.blocks(x)))


def make_trainer(vocabulary: int, updates: int, **settings: Any) -> Trainer:
    """A trainer for so many updates: decay of matrices alone, warm-up and cosine, clipping, accumulation."""
    warmup = max(updates // 10, 1)
    rate = schedules.Warmup(warmup, schedules.Cosine(RATE, updates - warmup, RATE / 10), RATE / (warmup + 1))
    groups = [{"match": lambda name, x: len(x.shape) < 2, "weight_decay": 0.0}]
    optimizer = optimizers.AdamW(rate, beta2=0.95, weight_decay=0.1, max_norm=1.0, groups=groups)
    return Trainer(GPT(vocabulary), optimizer, "sparse_categorical_crossentropy", accumulate=ACCUMULATE, **settings)


def main(arguments: list[str] | None = None) -> None:
    """Train on the documentation of Ember ML, character by character."""
    parser = argparse.ArgumentParser()
    for name, kind, usual in (("backend", str, ember_ml.get_backend()), ("steps", int, 200), ("precision", str, None)):
        parser.add_argument(f"--{name}", type=kind, default=usual)
    options = parser.parse_args(arguments)
    ember_ml.set_backend(options.backend)
    text = "".join(page.read_text("utf-8") for page in sorted(Path(__file__).parents[1].glob("docs/*.md")))
    characters = sorted(set(text))
    numbers = ops.array([characters.index(c) for c in text[: 2000 * LENGTH + 1]])
    x, y = ops.reshape(numbers[:-1], (-1, LENGTH)), ops.reshape(numbers[1:], (-1, LENGTH))
    ops.random.seed(0)
    trainer = make_trainer(len(characters), options.steps, precision=options.precision, progress=False)
    losses = trainer.fit(x, y, epochs=1000, batch_size=BATCH_SIZE, max_steps=options.steps * ACCUMULATE)["loss"]
    print(f"computed by {options.backend}\nloss {losses[0]:.4f}, after {options.steps} updates {losses[-1]:.4f}")


if __name__ == "__main__":
    main()
