"""Call random ops with odd shapes, dtypes, axes, indices and plain nonsense; only documented exceptions may come out.

Run as a program, because the worst outcome is the end of the process: ``python -m tests.fuzz.random_calls mlx 100000
0``. Each call is written to the log before it is made, so that the last line names the one that killed it.
"""

from __future__ import annotations

import random
import sys
import warnings
from pathlib import Path
from typing import Any

import ember_ml
from ember_ml import dtypes, ops
from ember_ml.dispatch.declare import OPS
from ember_ml.nn import tensor
from ember_ml.tensor import EmberTensor

DOCUMENTED = (ValueError, TypeError, IndexError, OverflowError, MemoryError, NotImplementedError)
NAMES = sorted(dtype.name for dtype in dtypes.ALL)
NONSENSE: list[Any] = [None, "abc", b"x", {}, object(), [], [[1, 2], [3]], float("nan"), 2**70, -(2**70), (1, "a"), 1j]
EXTREMES = [0, 1, -1, 2, -2, 7, -7, 127, -128, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 2**64 - 1]
FLOATS = [0.0, -0.0, 1.0, -1.5, 1e-30, 1e30, -1e30, float("inf"), float("-inf"), float("nan"), 2.0**31, -(2.0**63)]
# Not computed on tensors, or with effects beyond the call.
SKIPPED = {"set_default_device", "set_backend", "get_backend", "use_device", "save", "load", "synchronize", "Generator"}


class Maker:
    """Random arguments, most of them plausible, some not."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pick(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def shape(self) -> tuple[int, ...]:
        return tuple(self.random.choice((0, 1, 1, 2, 3, 4)) for _ in range(self.random.randrange(4)))

    def tensor(self, dtype: str | None = None, shape: tuple[int, ...] | None = None) -> Any:
        shape = self.shape() if shape is None else shape
        dtype = dtype or self.random.choice(NAMES)
        count = 1
        for side in shape:
            count *= side
        if dtype == "bool":
            values: list[Any] = [self.random.random() < 0.5 for _ in range(count)]
        elif dtype.startswith(("int", "uint")):
            low, high = ember_ml.core.promotion.integer_range(dtypes.as_dtype(dtype))
            values = [min(max(self.random.choice(EXTREMES), low), high) for _ in range(count)]
        elif dtype.startswith("complex"):
            values = [complex(self.random.choice(FLOATS), self.random.choice(FLOATS)) for _ in range(count)]
        else:
            values = [self.random.choice(FLOATS) for _ in range(count)]
        try:
            made = ops.reshape(ops.array(values, dtype=dtype), shape)
        except NotImplementedError:  # a dtype that this backend has not
            made = ops.zeros(shape)
        return tensor.convert_to_tensor(made) if self.random.random() < 0.3 else made

    def index(self) -> Any:
        kind = self.random.randrange(6)
        if kind == 0:
            return self.random.choice((0, 1, -1, 3, -4, 10, -10, 2**40, 1.5, True))
        return self.tensor(self.random.choice(("int64", "int32", "uint8", "bool", "float32", "int8")))

    def key(self) -> Any:
        def part() -> Any:
            kind = self.random.randrange(7)
            if kind == 0:
                return self.random.choice((0, 1, -1, 5, -7, 2**40))
            if kind in (1, 2):
                ends = [self.random.choice((None, 0, 1, -1, 2, 9, -9)) for _ in range(2)]
                return slice(*ends, self.random.choice((None, 1, -1, 2, -2, 0)))
            if kind == 3:
                return self.random.choice((None, Ellipsis, True, False))
            if kind == 4:
                return self.random.choice(([0, 1], [True, False], [], [5]))
            return self.index()

        if self.random.random() < 0.4:
            return part()
        return tuple(part() for _ in range(self.random.randrange(4)))

    def axis(self) -> Any:
        return self.random.choice((None, 0, 1, -1, 2, -2, 3, -4, (0, 1), (), (0, 0), (-1, 5), 1.5, "x", True))

    def small(self) -> Any:
        return self.random.choice((0, 1, 2, 3, -1, -2, 5, 1.5, None, (1, 2), (0,), (2, 3), -3, "left", True))

    def argument(self, name: str, annotation: str) -> Any:
        if self.random.random() < 0.02:
            return self.random.choice(NONSENSE)
        if annotation.startswith("Sequence[TensorLike]"):
            same = self.shape()
            return [
                self.tensor(shape=same) if self.random.random() < 0.8 else self.tensor()
                for _ in range(self.random.randrange(4))
            ]
        if annotation.startswith("IndexLike"):
            return self.index()
        if annotation.startswith("MaskLike"):
            return self.tensor("bool") if self.random.random() < 0.8 else self.tensor()
        if annotation.startswith("TensorLike"):
            kind = self.random.random()
            if kind < 0.8:
                return self.tensor()
            return self.random.choice((1, -2, 2.5, True, 300, 1j, [1.0, 2.0], [[1, 2], [3, 4]], 2**40))
        if annotation.startswith("DTypeLike"):
            return self.random.choice((None, *NAMES, "float99"))
        if annotation.startswith("DeviceLike"):
            return self.random.choice((None, "cpu", "nowhere"))
        if name == "key":
            return self.key()
        if "axis" in name or "axes" in name:
            return self.axis()
        if "shape" in name or name == "size":
            return self.random.choice((self.shape(), self.shape(), (-1,), (2, -1), (-1, -1), 3, -2, (2**62,), None))
        if annotation.startswith("bool"):
            return self.random.random() < 0.5
        if annotation.startswith("float"):
            return self.random.choice(FLOATS)
        return self.small()


def run(backend: str, count: int, seed: int, log: Path) -> list[str]:
    """Make ``count`` calls; gives a description of each undocumented exception."""
    ember_ml.set_backend(backend)
    make = Maker(seed)
    ops_by_name = {name: op for name, op in OPS.items() if name not in SKIPPED}
    names = sorted(ops_by_name)
    found: list[str] = []
    with log.open("w", buffering=1) as lines:
        for number in range(count):
            name = make.random.choice(names)
            declaration = ops_by_name[name].declaration
            annotations = declaration.__annotations__
            parameters = ops_by_name[name].parameters
            required = len(parameters) - len(declaration.__defaults__ or ()) - len(declaration.__kwdefaults__ or ())
            given = [
                parameter
                for index, parameter in enumerate(parameters)
                if index < required or make.random.random() < 0.5
            ]
            try:
                arguments = {p: make.argument(p, str(annotations.get(p, ""))) for p in given}
            except DOCUMENTED:
                continue
            lines.seek(0)
            lines.write(f"{number} {name} { {key: _short(value) for key, value in arguments.items()} }\n")
            lines.truncate()
            try:
                _read(getattr(ops, name)(**arguments))
            except DOCUMENTED:
                pass
            except Exception as error:
                found.append(f"{name}{ {k: _short(v) for k, v in arguments.items()} }: {type(error).__name__}: {error}")
    return found


def _short(value: Any) -> str:
    try:
        if type(value) is EmberTensor or ops.is_tensor(value):
            return f"{ops.dtype(value)}{list(ops.shape(value))}={ops.to_numpy(value).tolist()}"[:200]
    except Exception as error:
        return f"<unreadable: {error}>"
    return repr(value)[:200]


def _read(result: Any) -> None:
    """Compute what is lazy."""
    if isinstance(result, tuple | list):
        for part in result:
            _read(part)
    elif ops.is_tensor(result):
        ops.to_numpy(result)


def main() -> int:
    warnings.simplefilter("ignore")
    backend, count, seed, log = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    found = run(backend, count, seed, log)
    for line in found[:40]:
        print(line)
    print(f"{backend}: {count} calls, {len(found)} undocumented exceptions")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
