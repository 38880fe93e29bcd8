"""Run random programs of 3 to 15 ops on a backend and compare every step with NumPy's result for the same inputs.

``python -m tests.fuzz.programs mlx 10000 0`` runs 10,000 programs from seed 0 on MLX, with native and with portable
tensors, in a process of its own: a crash is a finding, and the run goes on behind it. A finding is shrunk to the steps
that it needs.
"""

from __future__ import annotations

import random
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import ember_ml
from ember_ml import ops
from ember_ml.nn import tensor
from tests.reference import close_stack

ROOT = Path(__file__).parents[2]
DOCUMENTED = (ValueError, TypeError, IndexError, OverflowError, MemoryError, NotImplementedError)
UNARY = (
    "abs negative square sign floor ceil exp tanh sin arctan sigmoid relu softplus isnan logical_not ravel "
    "cumsum sort argsort flip sum mean max min prod argmax any all transpose gelu erf log1p sinh"
)
BINARY = (
    "add subtract multiply maximum minimum fmax fmin less greater equal not_equal logical_and logical_or logical_xor "
    "hypot arctan2 power mod floor_divide where matmul outer copysign append"
)
Step = tuple[str, tuple[int, ...]]
Program = tuple[list[Any], list[Step]]


def make_program(seed: int) -> Program:
    """Return arrays as (dtype, shape, values), and steps whose arguments are numbers of arrays and earlier steps."""
    rng = random.Random(seed)
    shapes = [(), (3,), (2, 3), (3, 2), (1, 3), (0, 3), (2, 1, 3), (4,)]
    inputs = []
    for _ in range(rng.randint(1, 3)):
        shape = rng.choice(shapes)
        count = 1
        for side in shape:
            count *= side
        dtype = rng.choice(["float32", "float32", "float64", "int32", "bool"])
        values = [rng.choice([-2.5, -1.0, -0.0, 0.0, 0.5, 1.0, 3.0, 2.0, -7.0]) for _ in range(count)]
        inputs.append((dtype, shape, values))
    steps: list[Step] = []
    for number in range(rng.randint(3, 15)):
        known = len(inputs) + number
        if rng.random() < 0.5:
            steps.append((rng.choice(UNARY.split()), (rng.randrange(known),)))
        else:
            steps.append((rng.choice(BINARY.split()), (rng.randrange(known), rng.randrange(known))))
    return inputs, steps


def _call(name: str, arguments: list[Any]) -> Any:
    if name == "where":
        return ops.where(ops.greater(arguments[0], 0), arguments[0], arguments[1])
    return getattr(ops, name)(*arguments)


def _bring(array: Any, portable: bool) -> Any:
    return tensor.convert_to_tensor(array) if portable else ops.asarray(array)


def _compute(backend: str, name: str, arrays: list[Any], portable: bool) -> Any:
    """Return the result as an array, or the class of the exception; a tuple counts by its first part."""
    ember_ml.set_backend(backend)
    try:
        return ops.to_numpy(_call(name, [_bring(array, portable) for array in arrays]))
    except DOCUMENTED as error:
        return next(kind for kind in DOCUMENTED if isinstance(error, kind))


def find_fault(backend: str, program: Program, portable: bool) -> tuple[int, str] | None:
    """Return the first step at which the backend and NumPy disagree about the same inputs, and how."""
    inputs, steps = program
    ember_ml.set_backend("numpy")
    arrays: list[Any] = [
        ops.to_numpy(ops.reshape(ops.array([bool(v) if d == "bool" else v for v in values], dtype=d), shape))
        for d, shape, values in inputs
    ]
    for number, (name, places) in enumerate(steps):
        given = [arrays[place] for place in places]
        if any(isinstance(array, type) for array in given):
            arrays.append(ValueError)
            continue
        want = _compute("numpy", name, given, False)
        got = _compute(backend, name, given, portable)
        if isinstance(want, type) or isinstance(got, type):
            if isinstance(want, type) != isinstance(got, type):
                return number, f"{name}{[a.tolist() for a in given]}: NumPy {want!r}, {backend} {got!r}"
        else:
            fault = close_stack(got[None], [want])
            if fault is not None:
                return number, f"{name}{[(str(a.dtype), a.tolist()) for a in given]} on {backend}: {fault}"
        arrays.append(want if not isinstance(want, type) and want.size < 500 else ValueError)
    return None


def shrink(backend: str, program: Program, portable: bool) -> Program:
    """Remove steps after the fault, and those that it does not need."""
    inputs, steps = program
    found = find_fault(backend, program, portable)
    if found is None:
        return program
    steps = steps[: found[0] + 1]
    needed, pending = set(), [len(inputs) + len(steps) - 1]
    while pending:
        place = pending.pop()
        if place not in needed:
            needed.add(place)
            pending += steps[place - len(inputs)][1] if place >= len(inputs) else ()
    order = {place: number for number, place in enumerate(sorted(needed))}
    kept = [inputs[place] for place in sorted(needed) if place < len(inputs)]
    left = [steps[place - len(inputs)] for place in sorted(needed) if place >= len(inputs)]
    return kept, [(name, tuple(order[place] for place in places)) for name, places in left]


def work(backend: str, count: int, seed: int) -> None:
    """Run programs, the number of each printed before it starts: whoever watches knows which one ended the process."""
    warnings.simplefilter("ignore")
    for number in range(seed, seed + count):
        print(f"program {number}", flush=True)
        program = make_program(number)
        for portable in (False, True):
            found = find_fault(backend, program, portable)
            if found is not None:
                small = shrink(backend, program, portable)
                print(f"fault {number} portable={portable}: {found[1]}; {len(small[1])} steps: {small}", flush=True)


def run(backend: str, count: int, seed: int) -> list[str]:
    """Run ``count`` programs in processes that may end; return what was found."""
    findings, start = [], seed
    while start < seed + count:
        command = [
            sys.executable,
            "-m",
            "tests.fuzz.programs",
            backend,
            str(seed + count - start),
            str(start),
            "--work",
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        findings += [line for line in lines if line.startswith("fault ")]
        last = max((int(line.split()[1]) for line in lines if line.startswith("program ")), default=start)
        if done.returncode:
            findings.append(f"program {last} ended the process with {done.returncode}: {done.stderr[-500:]}")
        start = last + 1
    return findings


def main() -> int:
    backend, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if "--work" in sys.argv:
        work(backend, count, seed)
        return 0
    findings = run(backend, count, seed)
    print("\n".join(findings[:40]))
    print(f"{backend}: {count} programs from seed {seed}, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
