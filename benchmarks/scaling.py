"""The arithmetic of data-parallel scaling, checked against a simulation of every message between the ranks.

A ring of n ranks sums B bytes in 2 (n - 1) rounds, in each of which every rank sends B / n bytes to the next one. The
gradients travel in buckets, each as soon as the backward pass of the slowest rank has come so far; the step ends when
the last one has arrived. The formula looks only at the bucket that decides; the simulation follows each message.

    python benchmarks/scaling.py [--parameters 1e9] [--step 1.0] [--gigabits 100] [--microseconds 20]
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass

BUCKET = 25 * 2**20


@dataclass(frozen=True)
class Job:
    """A model on a cluster: bytes of gradients, seconds of computing, bytes per second, seconds per message."""

    gradients: float
    step: float
    bandwidth: float
    latency: float
    backward: float = 2 / 3
    """The part of computing that is the backward pass: two of the three matrix products of each layer."""

    def buckets(self) -> list[float]:
        """Return the sizes of the messages; a simulation of thousands of them would tell no more than one of dozens."""
        count = max(1, min(64, round(self.gradients / BUCKET)))
        return [self.gradients / count] * count

    def ready(self, number: int, count: int) -> float:
        """When the gradients of a bucket are known."""
        return self.step * (1 - self.backward) + self.step * self.backward * (number + 1) / count


def predicted(job: Job, ranks: int, slowest: float = 1.0) -> float:
    """Return the seconds of a step: the most that computing up to a bucket and sending it and all later ones takes."""
    sizes = job.buckets()
    each = [2 * (ranks - 1) * (job.latency + size / ranks / job.bandwidth) for size in sizes]
    return max(job.ready(k, len(sizes)) * slowest + sum(each[k:]) for k in range(len(sizes)))


def simulated(job: Job, ranks: int, speeds: Sequence[float]) -> float:
    """Simulate a step message by message; rank i computes ``speeds[i]`` times as long. Return its seconds."""
    sizes = job.buckets()
    free = [0.0] * ranks  # when each rank's line to the next is free again
    end = 0.0
    for number, size in enumerate(sizes):
        holds = [job.ready(number, len(sizes)) * speed for speed in speeds]  # when each rank can send
        travel = size / ranks / job.bandwidth
        for _ in range(2 * (ranks - 1)):
            starts = [max(hold, line) for hold, line in zip(holds, free, strict=True)]
            free = [start + travel for start in starts]
            holds = [start + travel + job.latency for start in (starts[-1], *starts[:-1])]
        end = max(end, *holds)
    return end


def main() -> None:
    """Print both for growing numbers of ranks; they must agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parameters", type=float, default=1e9, help="how many, of 4 bytes each")
    parser.add_argument("--step", type=float, default=1.0, help="seconds of computing per step on one rank")
    parser.add_argument("--gigabits", type=float, default=100.0, help="per second, from a rank to the next")
    parser.add_argument("--microseconds", type=float, default=20.0, help="that a message takes besides")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8, 16, 64, 256])
    given = parser.parse_args()
    job = Job(4 * given.parameters, given.step, given.gigabits / 8 * 1e9, given.microseconds * 1e-6)
    print(f"{'ranks':>6} {'sent GB':>8} {'network s':>9} {'step s':>8} {'simulated':>9} {'efficiency':>10}")
    generator = random.Random(0)
    for ranks in given.ranks:
        speeds = [1 + 0.05 * generator.random() for _ in range(ranks)]
        formula, followed = predicted(job, ranks, max(speeds)), simulated(job, ranks, speeds)
        sent = 2 * (ranks - 1) / ranks * job.gradients
        network = sent / job.bandwidth + 2 * (ranks - 1) * len(job.buckets()) * job.latency
        print(
            f"{ranks:6} {sent / 1e9:8.2f} {network:9.3f} {formula:8.3f} {followed:9.3f} {given.step / formula:10.0%}",
            flush=True,
        )
        assert abs(formula - followed) < 0.03 * followed, "the formula is wrong"


if __name__ == "__main__":
    main()
