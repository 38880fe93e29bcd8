"""Datasets, transforms and collate functions that worker processes import: top-level, and with few imports."""

from __future__ import annotations

import os
import signal
import sys
import types
from collections.abc import Iterator
from typing import Any

from ember_ml import ops


class Letters:
    """Samples of a number, its square and a text."""

    def __init__(self, count: int = 23) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"x": [float(index), float(index) ** 2], "y": index, "name": f"n{index}"}


class Held:
    """A dataset that holds arrays."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> Any:
        return self.x[index]


class Drawing:
    """Random numbers drawn by the dataset itself."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return ops.random_uniform((2,)), index


class Backwards:
    """A sampler of so many samples, the last one first."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def order(self, generator: ops.Generator, batch_size: int) -> list[int]:
        return [*range(self.count - 1, -1, -1)]


def add_noise(sample: Any) -> Any:
    return ops.add(sample, ops.random_normal(()))


def add_noise_to_batch(samples: list[Any]) -> Any:
    return ops.add(ops.stack(samples), ops.random_uniform(()))


def double(sample: Any) -> Any:
    return sample * 2


def report_process(sample: Any) -> tuple[Any, int]:
    return sample, os.getpid()


def report_backend(sample: Any) -> tuple[Any, str]:
    import ember_ml

    return sample, ember_ml.get_backend()


class WrongNumber(ValueError):
    """An error that cannot be unpickled."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"{number} is wrong: {reason}")


def refuse_seven(sample: Any) -> Any:
    if sample == 7:
        raise FileNotFoundError(2, "no such picture", "seven.png")
    return sample


def refuse_oddly(sample: Any) -> Any:
    if sample == 7:
        raise WrongNumber(7, "it is odd")
    return sample


def die_at_seven(sample: Any) -> Any:
    if sample == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return sample


def exit_at_seven(sample: Any) -> Any:
    if sample == 7:
        os._exit(3)
    return sample


def give_generators(samples: list[Any]) -> Any:
    return {"x": samples, "bad": (sample for sample in samples)}


def write_into(sample: Any) -> Any:
    """Change the dataset's own memory, as careless transforms do."""
    sample += 1
    return sample


def decode_tar(sample: dict[str, Any]) -> tuple[int, str]:
    """Return the class of a sample of tar files, and its key."""
    return int(sample["cls"]), sample["__key__"]


class Table:
    """A dataset with a shape, the numbers of its rows and columns, as Hugging Face's have one."""

    shape = (5, 2)

    def __len__(self) -> int:
        return 5

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(5))

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"ids": [index, index], "words": ["w"] * index}


class OddError(Exception):
    """An error that becomes something else on its way."""

    def __reduce__(self) -> Any:
        return str, ("no exception",)


def give_and_fail() -> Iterator[Any]:
    yield 1
    raise ValueError("no more")


def refuse_with_an_odd_error(sample: Any) -> Any:
    raise OddError("odd")


def refuse_with_an_error_of_the_worker(sample: Any) -> Any:
    """Raise an error whose class is in a file that only the worker finds."""
    module = types.ModuleType("found_by_the_worker")
    exec("class Lost(Exception): pass", module.__dict__)
    sys.modules[module.__name__] = module
    raise module.Lost("it is lost")
