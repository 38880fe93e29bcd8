"""Random numbers of samples: a stream for each, by the loader's seed, the epoch and the sample's place in it."""

from __future__ import annotations

from typing import Any

from ember_ml.backend.random.generator import Generator
from ember_ml.backend.random.threefry import block

__all__ = ["SampleStream", "sampler_generator"]

# Draws of Generator(seed) that nobody reaches by counting: the loader's orders are its first ones, one for each epoch.
_SAMPLERS = 1 << 62
_SAMPLES = 1 << 63


def sampler_generator(seed: int, epoch: int) -> Generator:
    """Return the generator that a sampler has in an epoch.

    >>> from ember_ml.training.sample_streams import sampler_generator
    >>> sampler_generator(0, 1).next_key() == sampler_generator(0, 2).next_key()
    False
    """
    generator = Generator(seed)
    generator.skip(_SAMPLERS + epoch)
    return generator.split(1)[0]


class SampleStream(Generator):
    """The stream of one sample after another, of an epoch.

    A stream begins with its first draw: samples that draw nothing cost next to nothing.

    >>> from ember_ml.training.sample_streams import SampleStream
    >>> stream = SampleStream(seed=0, epoch=3)
    >>> stream.move_to(5)
    >>> first = stream.next_key()
    >>> stream.move_to(6)
    >>> second = stream.next_key()
    >>> stream.move_to(5)
    >>> stream.next_key() == first, first == second
    (True, False)
    """

    __slots__ = ("_epoch", "_epoch_key", "_place", "_seed")

    def __init__(self, seed: int, epoch: int) -> None:
        super().__init__(seed)
        self._seed, self._epoch = seed, epoch
        self._epoch_key: tuple[int, int] | None = None
        self._place: int | None = 0

    def move_to(self, place: int) -> None:
        """Begin the stream of the sample at ``place`` in the epoch."""
        self._place = place

    def _begin(self) -> None:
        if self._place is None:
            return
        if self._epoch_key is None:
            generator = Generator(self._seed)
            generator.skip(_SAMPLES + self._epoch)
            self._epoch_key = generator.next_key()
        self._key, self._counter, self._place = block(self._epoch_key, self._place), 0, None

    def next_key(self) -> tuple[int, int]:
        """Return the key of the sample's next draw."""
        self._begin()
        return super().next_key()

    def skip(self, draws: int) -> None:
        """Move on within the sample's stream."""
        self._begin()
        super().skip(draws)

    def state(self) -> dict[str, Any]:
        """Return where the sample's stream stands."""
        self._begin()
        return super().state()

    def words(self) -> tuple[int, int, int, int]:
        """Return the key and the counter of the sample's stream."""
        self._begin()
        return super().words()
