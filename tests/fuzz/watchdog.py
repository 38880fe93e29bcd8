"""Run the cases of a fuzzer in processes that may end or hang: a crash is a finding, and the run goes on behind it.

Every fuzzer has the same command: ``python -m tests.fuzz.<name> BACKEND COUNT SEED [--mode MODE]`` checks the cases
SEED to SEED + COUNT - 1. A case depends on its number alone, so ``COUNT 1`` and the number of a finding repeat it, and
ranges of numbers can be checked by several commands at the same time.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import gc
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from ember_ml.backend.devices import host_memory
from tests.reference import compiling

ROOT = Path(__file__).parents[2]
LONGEST = 600
"""After so many seconds without the end of a case a process counts as hanging."""
MOST = 100
"""After so many findings a process that ended is not started again."""
MEMORY = 8 << 30
"""Bytes that a process may reserve: what needs more raises MemoryError before the machine is in need."""
MEMORY_EVERY = 100_000
"""After so many cases the memory of the process is read; after the first time it may grow by ``GROWTH`` each time."""
GROWTH = 0.01
Check = Callable[[int], Sequence[str]]
"""Checks the case of a number; returns what is wrong."""
counts: Counter[str] = Counter()
"""What the checks of this process counted, such as the calls that a case made; printed at its end."""


def watch(module: str, backend: str, count: int, seed: int, mode: str) -> list[str]:
    """Check ``count`` cases in processes of their own; print and return the findings."""
    findings: list[str] = []
    start, end = seed, seed + count
    with tempfile.TemporaryDirectory() as folder:
        progress, errors = Path(folder, "progress"), Path(folder, "errors")
        while start < end and len(findings) < MOST:
            progress.write_text(str(start))
            arguments = [backend, str(end - start), str(start), "--mode", mode, "--progress", str(progress)]
            with (
                errors.open("w") as stderr,
                subprocess.Popen(
                    [sys.executable, "-m", module, *arguments],
                    cwd=ROOT,
                    env={**compiling.SETTINGS, **os.environ},
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    text=True,
                ) as process,
            ):
                for line in process.stdout or ():
                    print(line, end="", flush=True)
                    if line.startswith("fault "):
                        findings.append(line.rstrip())
            if process.returncode == 0:
                break
            last = int(progress.read_text())
            findings.append(f"case {last} ended the process with {process.returncode}: {errors.read_text()[-2000:]}")
            print(findings[-1], flush=True)
            start = last + 1
    return findings


def work(check: Check, count: int, seed: int, progress: Path) -> None:
    """Check cases one after the other, the number of each written to a file before it starts."""
    warnings.simplefilter("ignore")
    if "jax" in sys.modules:
        compiling.share_context()
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    readings: list[int] = []
    started = 0.0
    with progress.open("wb", buffering=0) as file:
        for number in range(seed, seed + count):
            if time.monotonic() > started + 1:  # to start the watch costs more than most cases
                started = time.monotonic()
                faulthandler.dump_traceback_later(LONGEST, exit=True)
            file.seek(0)
            file.write(b"%d" % number)
            for fault in check(number):
                print(f"fault {number}: {fault}", flush=True)
            if (number - seed + 1) % MEMORY_EVERY == 0:
                _return_freed_memory()
                readings.append(host_memory()["allocated"] or 0)
                print(f"{number - seed + 1} cases: {readings[-1]} bytes are resident", flush=True)
    for name, times in counts.items():
        print(f"{name}: {times}", flush=True)
    if len(readings) > 1:
        growth = (readings[-1] / readings[0] - 1) / (len(readings) - 1)
        said = f"memory grew from {readings[0]} to {readings[-1]} bytes, {growth:.2%} per {MEMORY_EVERY} cases"
        print(f"fault {seed + count - 1}: {said}" if growth > GROWTH else said, flush=True)


def _return_freed_memory() -> None:
    """Return free memory to the system: of one large call the allocator may keep megabytes."""
    gc.collect()
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).malloc_trim(0)


def main(module: str, make_check: Callable[[str, str], Check], modes: Sequence[str]) -> int:
    """Run the command of a fuzzer, whose module makes the check for a backend and a mode."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("backend")
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--mode", default=modes[0], choices=modes)
    parser.add_argument("--progress", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.progress:
        work(make_check(options.backend, options.mode), options.count, options.seed, options.progress)
        return 0
    findings = watch(module, options.backend, options.count, options.seed, options.mode)
    cases = f"cases {options.seed} to {options.seed + options.count - 1} of {module} --mode {options.mode}"
    print(f"{options.backend}: {cases}: {len(findings)} findings", flush=True)
    return 1 if findings else 0
