"""Time emberlint, flake8, TorchFix and pylint over one tree in one run: wall and CPU seconds, one process each.

``python benchmarks/lint_speed.py TREE [TOOL ...]``; tools that are not installed are left out. emberlint runs with the
profile keras, so that operators are found in a tree of Keras and TensorLy.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time


def timed(command: list[str], folder: str) -> tuple[float, float, int]:
    """Wall seconds, CPU seconds and lines of output of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, done.stdout.count(b"\n")


def main() -> None:
    """Print one line per tool."""
    tree = os.path.abspath(sys.argv[1])
    chosen = sys.argv[2:]
    files = [os.path.join(d, f) for d, _, names in os.walk(tree) for f in names if f.endswith(".py")]
    lines = 0
    for path in files:
        with open(path, "rb") as stream:
            lines += stream.read().count(b"\n")
    print(f"{len(files)} files, {lines} lines; Python {sys.version.split()[0]}; load {os.getloadavg()[0]:.1f}")
    tools = os.path.dirname(sys.executable)
    lint = [sys.executable, "-m", "ember_ml.lint", "--jobs", "1", "--format", "json", "--profile", "keras", tree]
    commands = {
        "emberlint cold": lint,
        "emberlint warm": lint,
        "flake8": [os.path.join(tools, "flake8"), "-j", "1", tree],
        "torchfix": [os.path.join(tools, "torchfix"), "--select", "ALL", tree],
        "pylint": [os.path.join(tools, "pylint"), "-j", "1", "--score", "n", *files],
    }
    with tempfile.TemporaryDirectory() as folder:  # the cache is put there
        for name, command in commands.items():
            if (chosen and name.split()[0] not in chosen) or not shutil.which(command[0]):
                continue
            wall, cpu, found = timed(command, folder)
            print(f"{name:15} {wall:7.2f} s wall {cpu:7.2f} s CPU {found:7} lines of output", flush=True)


if __name__ == "__main__":
    main()
