"""Run random programs of 3 to 15 ops on a backend and compare every step with NumPy's result for the same operands.

``python -m tests.fuzz.programs mlx 10000 0`` runs 10,000 programs from seed 0 on MLX, with native and with portable
tensors; ``--mode compiled`` compiles each of them as one function. A finding is shrunk to the steps that it needs.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import ember_ml
from ember_ml import ops
from ember_ml.nn import tensor
from tests.fuzz.watchdog import main
from tests.reference import EPS, array_of, close_stack, sum_of_sizes

DOCUMENTED = (ValueError, TypeError, IndexError, OverflowError, MemoryError, NotImplementedError)
SHAPES = ((), (3,), (2, 3), (3, 2), (3, 3), (1, 3), (0, 3), (2, 1, 3), (4,), (2, 3, 3))
DTYPES = ("float32", "float32", "float32", "float64", "float64", "int32", "int32", "int64", "uint8", "bool")
VALUES = (-2.5, -1.0, -0.0, 0.0, 0.5, 1.0, 3.0, 2.0, -7.0, 0.001, 300.0)

LARGEST_PRODUCT = 1e38
"""Beyond this a product in float32 may overflow before a factor of 0 comes."""

UNARY_OPS = (
    "abs negative square sign floor ceil trunc round exp expm1 log log1p log2 sqrt cbrt tanh sin cos sinh cosh arctan "
    "arcsinh sigmoid relu softplus silu gelu elu selu hard_sigmoid mish erf erfc isnan isfinite isinf signbit "
    "logical_not ravel cumsum cumprod sort argsort flip sum mean max min prod argmax argmin any all var std median "
    "logsumexp transpose softmax log_softmax count_nonzero nan_to_num zeros_like ones_like copy tril triu"
)
BINARY_OPS = (
    "add subtract multiply divide maximum minimum fmax fmin less greater less_equal greater_equal equal not_equal "
    "logical_and logical_or logical_xor hypot arctan2 power mod fmod floor_divide matmul outer copysign append "
    "logaddexp bitwise_and bitwise_or bitwise_xor heaviside tensordot kron isclose"
)
UNARY: dict[str, Callable[[Any], Any]] = {name: getattr(ops, name) for name in UNARY_OPS.split()} | {
    "sum of columns": partial(ops.sum, axis=0),
    "mean of rows": partial(ops.mean, axis=-1, keepdims=True),
    "max of columns": partial(ops.max, axis=0),
    "argmin of rows": partial(ops.argmin, axis=-1),
    "descending sort": partial(ops.sort, axis=0, descending=True),
    "last": lambda x: ops.get_item(x, -1),
    "reversed": lambda x: ops.get_item(x, (..., slice(None, None, -1))),
    "every second": lambda x: ops.get_item(x, slice(None, None, 2)),
    "new axis": partial(ops.expand_dims, axis=1),
    "flat": partial(ops.reshape, shape=(-1,)),
    "roll": partial(ops.roll, shift=2),
    "diff": ops.diff,
    "pad": lambda x: ops.pad(x, 1),
    "repeat": partial(ops.repeat, repeats=2),
    "as float32": partial(ops.cast, dtype="float32"),
    "as int32": lambda x: ops.cast(ops.clip(ops.nan_to_num(x), -1000, 1000), "int32"),
    "one_hot": lambda x: ops.one_hot(ops.mod(ops.cast(ops.isnan(x), "int32"), 3), 3),
    "clip": lambda x: ops.clip(x, -1, 2),
    "x + 1": lambda x: ops.add(x, 1),
    "2.5 * x": lambda x: ops.multiply(2.5, x),
    "top_k": lambda x: ops.top_k(x, 1)[0],
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {name: getattr(ops, name) for name in BINARY_OPS.split()} | {
    "where": lambda x, y: ops.where(ops.greater(x, 0), x, y),
    "stack": lambda x, y: ops.stack([x, y]),
    "concatenate": lambda x, y: ops.concatenate([x, y], axis=-1),
    "einsum": lambda x, y: ops.einsum("...i,...j->...ij", x, y),
    "take": lambda x, y: ops.take(x, ops.mod(ops.cast(ops.isnan(y), "int32"), 2), axis=0),
    "index_update": lambda x, y: ops.index_update(x, 0, ops.max(y)),
}
CALLS: dict[str, Callable[..., Any]] = UNARY | BINARY
SUMS = frozenset(
    (
        *("sum", "mean", "cumsum", "var", "std", "matmul", "tensordot", "sum of columns", "mean of rows"),
        *("softmax", "log_softmax", "logsumexp", "index_update", "gelu"),
    )
)
"""Their error is a part of the sizes of the terms, not of the result."""
LARGEST = 500
"""Elements of the largest result that a later step may use."""

Step = tuple[str, tuple[int, ...]]
Program = tuple[list[Any], list[Step]]
FAILED = ValueError
"""Stands for the result of a step that raised."""


def make_program(number: int) -> Program:
    """Return arrays, and steps whose arguments are the places of arrays and earlier steps."""
    rng = random.Random(number)
    inputs = []
    for _ in range(rng.randint(1, 3)):
        shape = rng.choice(SHAPES)
        count = 1
        for side in shape:
            count *= side
        dtype = rng.choice(DTYPES)
        values: list[Any] = rng.choices(VALUES, k=count)
        if dtype == "uint8":
            values = [abs(int(value)) % 256 for value in values]
        inputs.append(array_of(dtype, values).reshape(shape))
    steps: list[Step] = []
    unary, binary = _NAMES
    for place in range(len(inputs), len(inputs) + rng.randint(3, 15)):
        if rng.random() < 0.5:
            steps.append((rng.choice(unary), (rng.randrange(place),)))
        else:
            steps.append((rng.choice(binary), (rng.randrange(place), rng.randrange(place))))
    return inputs, steps


_NAMES = (list(UNARY), list(BINARY))


def _compute(name: str, operands: Iterable[Any], read: Callable[[Any], Any] = ops.to_numpy) -> Any:
    """Return what ``read`` makes of the result, the class of a documented exception, or another one in words."""
    try:
        return read(CALLS[name](*operands))
    except DOCUMENTED as error:
        return next(kind for kind in DOCUMENTED if isinstance(error, kind))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def run_on_numpy(program: Program) -> list[Any]:
    """Return the arrays of a program and of its steps; a class stands for a step that raised."""
    inputs, steps = program
    arrays = list(inputs)
    with ember_ml.use_backend("numpy"):
        for name, places in steps:
            operands = [arrays[place] for place in places]
            arrays.append(_compute(name, operands) if _can_use(operands) else FAILED)
    return arrays


def _can_use(operands: list[Any]) -> bool:
    return not any(isinstance(operand, type | str) or operand.size > LARGEST for operand in operands)


def find_fault(program: Program) -> tuple[int, str] | None:
    """Return the first step at which the backend and NumPy disagree about the same operands, and how."""
    inputs, steps = program
    arrays = run_on_numpy(program)
    for kind, make in (("native", ops.asarray), ("portable", tensor.convert_to_tensor)):
        tensors = [None if isinstance(array, type | str) else make(array) for array in arrays]
        # read after all of them were computed: where computation is lazy, they are computed together
        results = [
            _compute(name, [tensors[place] for place in places], lambda result: result)
            if _can_use([arrays[place] for place in places])
            else FAILED
            for name, places in steps
        ]
        for number, (name, places) in enumerate(steps):
            got, want = results[number], arrays[len(inputs) + number]
            fault = compare(name, [arrays[place] for place in places], _array(got), want)
            if fault is not None:
                operands = [(str(arrays[place].dtype), arrays[place].tolist()) for place in places]
                return number, f"{kind} {name}{operands}: {fault}"
    return None


def _array(result: Any) -> Any:
    return result if isinstance(result, type | str) else ops.to_numpy(result)


def compare(name: str, operands: list[Any], got: Any, want: Any) -> str | None:
    """Return how two results of a step differ, each an array, the class of an exception, or what was not documented."""
    if isinstance(got, str) or isinstance(want, str):
        return f"{got} and {want}"
    if isinstance(want, type) or isinstance(got, type):
        return None if isinstance(want, type) and isinstance(got, type) else f"{got!r} instead of {want!r}"
    if got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes():
        return None
    if name == "power" and operands[1].size == 1 and operands[1].item() == 0.5:
        # documented: NumPy takes the square root of minus infinity, which is NaN, where the others give infinity
        is_lowest = operands[0] + operands[1] == -math.inf
        got, want = got[~is_lowest], want[~is_lowest]
    if name == "prod" and math.prod(abs(float(x)) for x in operands[0].ravel() if x) > LARGEST_PRODUCT:
        return None  # documented: the order of the factors decides
    fault = close_stack(got[None], [want])
    if fault is not None and name in SUMS and str(want.dtype) in EPS:
        fault = close_stack(got[None], [want], 64 * EPS[str(want.dtype)] * sum_of_sizes(operands))
    return fault


def find_compiled_fault(program: Program) -> tuple[int, str] | None:
    """Return the first step whose result in the compiled program is not what NumPy makes of the same operands."""
    inputs, steps = program
    known = run_on_numpy(program)
    kept = [
        (place, name, places) for place, (name, places) in enumerate(steps, len(inputs)) if _can_use([known[place]])
    ]

    def function(*tensors: Any) -> list[Any]:
        values = dict(enumerate(tensors))
        for place, name, places in kept:
            values[place] = CALLS[name](*[values[operand] for operand in places])
        return [values[place] for place, _, _ in kept]

    try:
        results = ops.compile(function)(*map(ops.asarray, inputs))
    except Exception as error:
        return len(steps) - 1, f"compiled: {type(error).__name__}: {error}"
    arrays: list[Any] = [*inputs, *[FAILED] * len(steps)]
    for (place, _, _), result in zip(kept, results, strict=True):
        arrays[place] = ops.to_numpy(result)
    for place, name, places in kept:
        operands = [arrays[operand] for operand in places]
        with ember_ml.use_backend("numpy"):
            want = _compute(name, operands)
        fault = compare(name, operands, arrays[place], want)
        if fault is not None:
            return place - len(inputs), f"compiled {name}{[(str(x.dtype), x.tolist()) for x in operands]}: {fault}"
    return None


FINDERS = {"eager": find_fault, "compiled": find_compiled_fault}


def shrink(program: Program, last: int) -> Program:
    """Leave out the steps after one, and those that it does not need."""
    inputs, steps = program
    needed, pending = set(), [len(inputs) + last]
    while pending:
        place = pending.pop()
        if place not in needed:
            needed.add(place)
            pending += steps[place - len(inputs)][1] if place >= len(inputs) else ()
    order = {place: number for number, place in enumerate(sorted(needed))}
    kept = [inputs[place] for place in sorted(needed) if place < len(inputs)]
    left = [steps[place - len(inputs)] for place in sorted(needed) if place >= len(inputs)]
    return kept, [(name, tuple(order[place] for place in places)) for name, places in left]


def make_check(backend: str, mode: str) -> Callable[[int], list[str]]:
    """Return a function that runs the program of a number and describes what is wrong."""
    ember_ml.set_backend(backend)
    return partial(_check, FINDERS[mode])


def _check(find: Callable[[Program], tuple[int, str] | None], number: int) -> list[str]:
    program = make_program(number)
    found = find(program)
    if found is None:
        return []
    inputs, steps = shrink(program, found[0])
    given = [(str(array.dtype), array.tolist()) for array in inputs]
    return [f"{found[1]}; {len(steps)} of {len(program[1])} steps: {given} {steps}"]


if __name__ == "__main__":
    sys.exit(main("tests.fuzz.programs", make_check, tuple(FINDERS)))
