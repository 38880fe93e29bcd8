"""Fine-tuning: from a folder of text to an adapter of low rank, which PEFT and other programs open.

The texts are cut into pieces of one length, the model stays as it is, and the adapter learns. Without ``--model`` a
small model is made first, with random weights and the bytes of the text as its tokens, so that everything can be tried.

    python examples/finetune.py [--backend numpy|torch|mlx|jax] [--model FOLDER] [--texts FOLDER] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ember_ml
from ember_ml import models, ops
from ember_ml.training import Trainer, optimizers, schedules

BATCH_SIZE = 4
SMALL: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 256,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


def read_tokens(texts: Path, model: Path | None) -> list[int]:
    """The tokens of all texts in a folder, one after the other: those of the model's tokenizer, or bytes."""
    pages = [path.read_bytes() for path in sorted(texts.iterdir()) if path.suffix in (".md", ".txt")]
    if model is None:
        return list(b"\n".join(pages))
    tokenizer = models.tokenizer(model)
    return [token for page in pages for token in tokenizer.encode(page.decode())]


def cut(tokens: Sequence[int], length: int) -> tuple[Any, Any]:
    """Pieces of ``length`` tokens, and for each token the one that comes next."""
    count = (len(tokens) - 1) // length
    x, y = ops.array(tokens[: count * length]), ops.array(tokens[1 : count * length + 1])
    return ops.reshape(x, (count, length)), ops.reshape(y, (count, length))


def train(model: models.PretrainedModel, x: Any, y: Any, steps: int) -> list[float]:
    """Train the adapter of a model; return the loss of each step."""
    optimizer = optimizers.AdamW(schedules.Cosine(1e-2, steps=steps), weight_decay=0.0)
    trainer = Trainer(model, optimizer, "sparse_categorical_crossentropy", progress=False)
    return list(trainer.fit(x, y, epochs=1000, batch_size=BATCH_SIZE, max_steps=steps)["loss"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Train an adapter, write it, open it again, and let the model write with it."""
    parser = argparse.ArgumentParser(description="Train an adapter on a folder of texts.")
    parser.add_argument("--backend", help="which library computes; by default the one that is chosen already")
    parser.add_argument("--model", type=Path, help="a folder as Transformers writes it; by default a small one is made")
    parser.add_argument("--texts", type=Path, default=Path(__file__).parents[1] / "docs", help="with *.md or *.txt")
    parser.add_argument("--out", type=Path, help="where the adapter is written; by default to a temporary folder")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--length", type=int, default=32, help="how many tokens a piece has")
    parser.add_argument("--rank", type=int, default=8)
    options = parser.parse_args(arguments)
    if options.backend:
        ember_ml.set_backend(options.backend)
    print(f"computed by {ember_ml.get_backend()}")
    ops.random.seed(0)  # for the weights, the adapter and the order of the pieces

    with tempfile.TemporaryDirectory() as scratch:
        base = options.model or Path(scratch, "model")
        if options.model is None:
            models.from_config(SMALL).save(base)
        tokens = read_tokens(options.texts, options.model)[: 2000 * options.length + 1]
        model = models.add_lora(models.load(base), rank=options.rank, alpha=2 * options.rank).train()
        trained = sum(parameter.size for parameter in model.trainable().values())
        print(f"{len(tokens)} tokens; {trained} of {model.num_parameters} parameters are trained")
        losses = train(model, *cut(tokens, options.length), options.steps)
        print(f"loss {losses[0]:.4f}, after {options.steps} steps {losses[-1]:.4f}")

        folder = options.out or Path(scratch, "adapter")
        models.save_adapter(model, folder)
        same = models.load_adapter(models.load(base), folder)
        written = same.generate(tokens[:8], max_new_tokens=8, stop=[])
        print(f"opened again, after {tokens[:8]} it writes {written}")


if __name__ == "__main__":
    main()
