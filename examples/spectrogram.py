"""A classifier of sounds: what is heard as a tone, a rise, a fall or a tremble, told by its spectrogram.

The sounds are made here, half a second each, at any pitch and in noise. Their spectrograms on the mel scale are images
for a small convolutional network.

    python examples/spectrogram.py [--backend numpy|torch|mlx] [--epochs 8] [--quick]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import pi
from typing import Any

import ember_ml
from ember_ml import nn, ops
from ember_ml.training import Trainer, metrics, optimizers

KINDS = ("tone", "rise", "fall", "tremble")
RATE, LENGTH = 8000, 4000
FRAME, HOP, BANDS = 256, 128, 32


def make_sounds(count: int, seed: int) -> tuple[Any, Any]:
    """Sounds (count, samples) of the kinds in turn, and their kinds; the same numbers on every backend."""
    stream = ops.Generator(seed)

    def chance(low: float, high: float) -> Any:
        return ops.random_uniform((count, 1), low, high, seed=stream)

    kinds = ops.remainder(ops.arange(count), len(KINDS))
    time = ops.divide(ops.arange(LENGTH, dtype="float32"), RATE)
    pitch = ops.multiply(300.0, ops.power(2.0, chance(0.0, 2.0)))
    # the pitch moves by a power of 2: along a line that rises or falls, or in a wave
    line = ops.multiply(chance(0.5, 1.2), ops.subtract(ops.multiply(time, 2.0 * RATE / LENGTH), 1.0))
    wave = ops.multiply(chance(0.08, 0.25), ops.sin(ops.multiply(ops.multiply(time, 2 * pi), chance(5.0, 9.0))))
    moves = ops.stack([ops.zeros_like(line), line, ops.negative(line), wave])
    chosen = ops.take_along_axis(moves, ops.reshape(kinds, (1, count, 1)), 0)[0]
    frequency = ops.multiply(pitch, ops.power(2.0, chosen))
    phase = ops.multiply(ops.cumsum(frequency, axis=1), 2 * pi / RATE)
    overtones = [ops.multiply(chance(0.0, 1.0 / number), ops.sin(ops.multiply(phase, number))) for number in (2, 3)]
    sound = ops.add(ops.add(ops.sin(phase), overtones[0]), overtones[1])
    noise = ops.random_normal((count, LENGTH), seed=stream)
    return ops.add(sound, ops.multiply(noise, chance(0.2, 1.5))), kinds


class SoundClassifier(nn.Module):
    """Sounds become images of loudness by time and pitch, and images become scores of the kinds."""

    def __init__(self) -> None:
        self.filters = nn.Buffer(ops.mel_filterbank(BANDS, FRAME // 2 + 1, RATE, low=150.0))
        self.network = nn.Sequential(
            nn.BatchNorm(1),
            nn.Conv2d(1, 8, 3, padding="same"), ops.relu, nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding="same"), ops.relu, nn.MaxPool2d(2),
            nn.Flatten(), nn.Dropout(0.2), nn.Linear(None, len(KINDS)),
        )  # fmt: skip

    def forward(self, sounds: Any) -> Any:
        power = ops.spectrogram(sounds, FRAME, HOP, ops.hann_window(FRAME))
        loudness = ops.log(ops.add(ops.matmul(power, self.filters), 1e-3))
        return self.network(ops.expand_dims(loudness, -1))


def train(training: Any, test: Any, epochs: int) -> Trainer:
    """A trainer that has heard the training sounds ``epochs`` times."""
    ops.random.seed(0)
    trainer = Trainer(
        SoundClassifier(),
        optimizers.Adam(0.005),
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    trainer.fit(*training, epochs=epochs, batch_size=32, validation=test)
    return trainer


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, and print which sounds are taken for which."""
    parser = argparse.ArgumentParser(description="A network that tells sounds apart by their spectrograms.")
    parser.add_argument("--backend", help="which library computes; by default the one that is chosen already")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--quick", action="store_true", help="listen to 64 sounds once")
    options = parser.parse_args(arguments)
    if options.backend:
        ember_ml.set_backend(options.backend)
    print(f"computed by {ember_ml.get_backend()}\n")

    count, epochs = (64, 1) if options.quick else (800, options.epochs)
    training, test = make_sounds(count, seed=1), make_sounds(max(count // 4, 32), seed=2)
    trainer = train(training, test, epochs)
    print("epoch    loss  accuracy  accuracy on other sounds")
    history = trainer.history
    for epoch in range(epochs):
        row = (history["loss"].epochs[epoch], history["accuracy"][epoch], history["val_accuracy"][epoch])
        print(f"{epoch + 1:5d}  {row[0]:6.4f}  {row[1]:8.1%}  {row[2]:24.1%}")

    matrix = metrics.ConfusionMatrix(len(KINDS))
    matrix.update(test[1], trainer.predict(test[0]))
    print(f"\n{'taken for':9s}" + "".join(f"{kind:>9s}" for kind in KINDS))
    for kind, counts in zip(KINDS, ops.to_numpy(matrix.result()).tolist(), strict=True):
        print(f"{kind:9s}" + "".join(f"{count:9.0f}" for count in counts))


if __name__ == "__main__":
    main()
