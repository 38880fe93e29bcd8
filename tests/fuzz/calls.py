"""Call random ops with odd shapes, dtypes, axes, indices and plain nonsense; only documented exceptions may come out.

``python -m tests.fuzz.calls mlx 1000000 0`` makes a million calls in a process of its own, because the worst outcome is
its end. It prints the resident memory after every 100,000 and by how much it grew after the first, and how many calls
returned or raised a documented exception. ``--mode repeated`` makes the same 2,000 calls again and again: JAX keeps
what it compiles for each new shape, and only where none is new its memory tells whether something else is kept.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import ember_ml
from ember_ml import dtypes, ops
from ember_ml.dispatch.declare import OPS
from ember_ml.nn import tensor
from ember_ml.tensor import EmberTensor
from tests.fuzz.watchdog import counts, main

REPEATED = 2000
"""The number of calls that are made again and again in that mode."""
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


def make_check(backend: str, mode: str) -> Callable[[int], list[str]]:
    """Return a function that makes the call of a number and describes what it raised that is not documented."""
    ember_ml.set_backend(backend)
    make = Maker(0)
    forms = {name: _form(name) for name in sorted(OPS) if name not in SKIPPED}
    names = list(forms)

    def check(number: int) -> list[str]:
        make.random.seed(number if mode == "eager" else number % REPEATED)
        name = make.random.choice(names)
        arguments: dict[str, Any] = {}
        try:
            for parameter, annotation, is_required in forms[name]:
                if is_required or make.random.random() < 0.5:
                    arguments[parameter] = make.argument(parameter, annotation)
            _read(getattr(ops, name)(**arguments))
        except DOCUMENTED:
            counts["calls that raised"] += 1
            return []
        except Exception as error:
            given = {key: _short(value) for key, value in arguments.items()}
            return [f"{name}{given}: {type(error).__name__}: {error}"]
        counts["calls that returned"] += 1
        return []

    return check


def _form(name: str) -> list[tuple[str, str, bool]]:
    """Return the parameters of an op: the name, the annotation, and whether a call must give it."""
    op = OPS[name]
    defaults = op.declaration.__defaults__ or (), op.declaration.__kwdefaults__ or ()
    required = len(op.parameters) - sum(map(len, defaults))
    annotations = op.declaration.__annotations__
    return [(p, str(annotations.get(p, "")), place < required) for place, p in enumerate(op.parameters)]


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


if __name__ == "__main__":
    sys.exit(main("tests.fuzz.calls", make_check, ("eager", "repeated")))
