"""Throughput of the data loader beside PyTorch's DataLoader: 100,000 small samples, and a heavy transform.

Both have the same dataset, transform, batches and number of workers, which stay alive between epochs. Epochs of the two
alternate; the figure of each is its fastest one, by the clock and by the time of all processors; starting the workers
is measured apart. PyTorch's workers are forked, as is its default, and spawned, as ours are. ``transport`` sends data
from one process to another by shared memory, as the loader does, and through the connection with arrays out of band.

    python benchmarks/data_loading.py [--rounds 5] [small heavy transport]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pickle
import resource
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

SMALL, WIDTH, BATCH = 100_000, 32, 64
HEAVY, SIDE = 160, 128


class Rows:
    """Samples of 32 numbers and a label."""

    def __init__(self) -> None:
        self.x = np.arange(SMALL * WIDTH, dtype=np.float32).reshape(SMALL, WIDTH)
        self.y = np.arange(SMALL)

    def __len__(self) -> int:
        return SMALL

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.int64]:
        return self.x[index], self.y[index]


class TensorRows:
    """The same samples as tensors of PyTorch."""

    def __init__(self) -> None:
        import torch

        self.x = torch.arange(SMALL * WIDTH, dtype=torch.float32).reshape(SMALL, WIDTH)
        self.y = torch.arange(SMALL)

    def __len__(self) -> int:
        return SMALL

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self.x[index], self.y[index]


class Pictures:
    """Pictures that are filtered when they are read: a few milliseconds each."""

    def __len__(self) -> int:
        return HEAVY

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        picture = np.random.default_rng(index).random((SIDE, SIDE, 3), dtype=np.float32)
        for _ in range(4):
            spectrum = np.fft.rfft2(picture, axes=(0, 1))
            spectrum[SIDE // 4 :] *= 0.5
            picture = np.fft.irfft2(spectrum, axes=(0, 1)).astype(np.float32)
        return picture, index


def ours(dataset: Any, batch_size: int, workers: int) -> Any:
    """Return our loader."""
    from ember_ml.training import DataLoader

    return DataLoader(dataset, batch_size=batch_size, workers=workers, shuffle=True)


def theirs(dataset: Any, batch_size: int, workers: int, start: str) -> Any:
    """Return PyTorch's loader."""
    from torch.utils.data import DataLoader

    more: dict[str, Any] = {"persistent_workers": True, "multiprocessing_context": start} if workers else {}
    return DataLoader(dataset, batch_size=batch_size, shuffle=True, num_workers=workers, **more)


def cpu_seconds() -> float:
    """Return the time that this process and its children have computed for, those included that have ended."""
    ticks = 0
    for child in multiprocessing.active_children():
        fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + ticks / os.sysconf("SC_CLK_TCK")


def run_epoch(loader: Any) -> tuple[float, float]:
    """Return the seconds of an epoch, in which every batch is touched, and those of the processors."""
    start, cpu = time.perf_counter(), cpu_seconds()
    for x, _ in loader:
        assert x[0, 0] is not None
    return time.perf_counter() - start, cpu_seconds() - cpu


def first_batch(make: Callable[[], Any]) -> float:
    """Return the seconds until the first batch of a new loader has come."""
    start = time.perf_counter()
    loader = make()
    next(iter(loader))
    return time.perf_counter() - start


def compare(makers: dict[str, Callable[[], Any]], samples: int, rounds: int) -> None:
    """Print samples per second and the ratio to the fastest of PyTorch's loaders."""
    loaders = {name: make() for name, make in makers.items()}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in makers}
    for loader in loaders.values():
        run_epoch(loader)  # starts the workers
    for _ in range(rounds):
        for name, loader in loaders.items():
            found[name].append(run_epoch(loader))
    fastest = {name: [min(column) for column in zip(*times, strict=True)] for name, times in found.items()}
    best, least = (min(column) for column in zip(*(fastest[name] for name in makers if name != "ours"), strict=True))
    for name, (wall, cpu) in fastest.items():
        figures = f"{samples / wall:9,.0f} samples/s ({best / wall:.2f} of PyTorch's best)"
        print(f"  {name:20} {figures}, {1e6 * cpu / samples:9.1f} us of processors for each ({least / cpu:.2f})")


def measure_small(rounds: int) -> None:
    """Compare on many small samples."""
    for workers in (0, 2):
        print(f"{SMALL:,} samples of {WIDTH} numbers, batches of {BATCH}, {workers} workers:")
        rows, tensors = Rows(), TensorRows()
        makers = {
            "ours": partial(ours, rows, BATCH, workers),
            "PyTorch, arrays": partial(theirs, rows, BATCH, workers, "fork"),
            "PyTorch, tensors": partial(theirs, tensors, BATCH, workers, "fork"),
        }
        compare(makers, SMALL, rounds)


def measure_heavy(rounds: int) -> None:
    """Compare on a heavy transform, and the time until the first batch."""
    print(f"{HEAVY} filtered pictures of {SIDE} x {SIDE} x 3, batches of 16, 2 workers:")
    makers = {
        "ours": partial(ours, Pictures(), 16, 2),
        "PyTorch": partial(theirs, Pictures(), 16, 2, "fork"),
        "PyTorch, spawned": partial(theirs, Pictures(), 16, 2, "spawn"),
    }
    compare(makers, HEAVY, rounds)
    print("seconds until the first batch of two workers:")
    for name, make in makers.items():
        print(f"  {name:20} {min(first_batch(make) for _ in range(3)):.2f}")


# shared memory and the connection


def send_by_connection(connection: Connection, batches: Iterator[Any]) -> None:
    """Send each batch as a pickle followed by the memory of its arrays."""
    for batch in batches:
        buffers: list[pickle.PickleBuffer] = []
        head = pickle.dumps(batch, protocol=5, buffer_callback=buffers.append)
        connection.send((head, len(buffers)))
        for buffer in buffers:
            connection.send_bytes(buffer.raw())


def receive_by_connection(connection: Connection) -> Any:
    """Return the next batch."""
    head, count = connection.recv()
    return pickle.loads(head, buffers=[bytearray(connection.recv_bytes()) for _ in range(count)])


def send_batches(connection: Connection, turns: Connection, numbers: int, count: int, is_shared: bool) -> None:
    """Send so many batches of so many numbers; the process at the other end allows each."""
    from ember_ml.training.shared_messages import Message, Sender

    batch = (np.ones(numbers, np.float32), np.arange(BATCH))

    def made() -> Iterator[Any]:
        for _ in range(count):
            turns.recv_bytes()
            yield batch

    if not is_shared:
        return send_by_connection(connection, made())
    sender = Sender(connection, 2)
    for item in made():
        sender.send(Message(item))
    return None


def measure_transport(rounds: int) -> None:
    """Print the time of a batch by both ways."""
    from ember_ml.training.shared_messages import Receiver

    context = multiprocessing.get_context("spawn")
    for numbers in (1 << 11, 1 << 16, 1 << 20):
        count = max(50, (1 << 24) // numbers)
        found: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(rounds):
            for is_shared, times in found.items():
                here, there = context.Pipe()
                turns, its_turns = context.Pipe()
                process = context.Process(target=send_batches, args=(there, its_turns, numbers, count, is_shared))
                process.start()
                receive = Receiver(here, 2).receive if is_shared else partial(receive_by_connection, here)
                turns.send_bytes(b"")
                turns.send_bytes(b"")
                receive()
                start = time.perf_counter()
                for number in range(1, count):
                    if number + 1 < count:
                        turns.send_bytes(b"")
                    receive()
                times.append((time.perf_counter() - start) / (count - 1))
                process.join()
        shared, connected = (1e6 * min(found[is_shared]) for is_shared in (True, False))
        print(f"a batch of {4 * numbers:>9,} bytes: shared memory {shared:7.0f} us, connection {connected:7.0f} us")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("parts", nargs="*", default=["small", "heavy", "transport"])
    options = parser.parse_args()
    for part in options.parts:
        {"small": measure_small, "heavy": measure_heavy, "transport": measure_transport}[part](options.rounds)


if __name__ == "__main__":
    import ember_ml

    ember_ml.set_backend("torch")
    main()
