"""A language model of characters: a small transformer reads a text, and then writes some of its own.

Without another file it reads the documentation of Ember ML, which lies beside the examples.

    python examples/character_model.py [--backend numpy|torch|mlx] [--epochs 8] [--text FILE] [--quick]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ember_ml
from ember_ml import nn, ops
from ember_ml.features import Windows
from ember_ml.training import Trainer, optimizers, schedules

LENGTH, BATCH_SIZE = 128, 16
DOCUMENTATION = Path(__file__).parents[1] / "docs"


class Alphabet:
    """The characters of a text, and their numbers."""

    def __init__(self, text: str) -> None:
        self.characters = sorted(set(text))
        self.numbers = {character: number for number, character in enumerate(self.characters)}

    def encode(self, text: str) -> Any:
        """The numbers of the characters of ``text``."""
        return ops.array([self.numbers[character] for character in text], dtype="int64")

    def decode(self, tokens: Any) -> str:
        """The text of numbers."""
        return "".join(self.characters[number] for number in ops.to_numpy(tokens).tolist())


def samples(tokens: Any) -> tuple[Any, Any]:
    """Pieces of a text, and for each character the one that follows it."""
    pieces = Windows(LENGTH + 1, hop=LENGTH).extract(tokens)
    return pieces[:, :-1], pieces[:, 1:]


def train(tokens: Any, vocabulary: int, epochs: int) -> Trainer:
    """A trainer that has read the text ``epochs`` times."""
    ops.random.seed(0)
    model = nn.blocks.LanguageModel(vocabulary, hidden=64, layers=2, heads=4)
    x, y = samples(tokens)
    steps = -(-x.shape[0] // BATCH_SIZE) * epochs
    rate = schedules.Warmup(max(steps // 10, 1), schedules.Cosine(0.004, steps=max(steps - steps // 10, 1)))
    trainer = Trainer(model, optimizers.AdamW(rate, max_norm=1.0), "sparse_categorical_crossentropy")
    trainer.fit(x, y, epochs=epochs, batch_size=BATCH_SIZE)
    return trainer


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, print the loss of each epoch, and write."""
    parser = argparse.ArgumentParser(description="A transformer that learns to write, one character at a time.")
    parser.add_argument("--backend", help="which library computes; by default the one that is chosen already")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--text", type=Path, help="the file to learn from")
    parser.add_argument("--start", default="The ", help="what the model goes on from")
    parser.add_argument("--quick", action="store_true", help="read 5000 characters once")
    options = parser.parse_args(arguments)
    if options.backend:
        ember_ml.set_backend(options.backend)
    print(f"computed by {ember_ml.get_backend()}\n")

    pages = [options.text] if options.text else sorted(DOCUMENTATION.glob("*.md"))
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    epochs = options.epochs
    if options.quick:
        text, epochs = text[:5000], 1
    alphabet = Alphabet(text + options.start)
    trainer = train(alphabet.encode(text), len(alphabet.characters), epochs)
    print(f"{len(text)} characters, {len(alphabet.characters)} different; {trainer.model.num_parameters} parameters\n")
    print("epoch  loss of a character")
    for epoch, loss in enumerate(trainer.history["loss"].epochs, 1):
        print(f"{epoch:5d}  {loss:19.4f}")

    # no longer than what was learnt from: the model knows nothing of places further on
    start, count = alphabet.encode(options.start), 20 if options.quick else LENGTH - len(options.start)
    for seed in (1, 2, 3):
        written = trainer.model.generate(start, count, temperature=0.7, seed=seed)
        print(f"\n{alphabet.decode(written)}")


if __name__ == "__main__":
    main()
