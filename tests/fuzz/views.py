"""Run random programs of views and changes in place on NumPy's arrays and on portable tensors; all elements must agree.

``python -m tests.fuzz.views mlx 10000 0`` runs 10,000 programs from seed 0 on MLX. A program that disagrees is made as
short as it can be and printed. ``--mode`` runs them in another way: ``grad`` and ``backward`` compare
gradients, ``vmap`` and ``compile`` values.
"""

from __future__ import annotations

import math
import operator
import random
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import ember_ml
from ember_ml import ops
from ember_ml.backend import get_backend_module
from ember_ml.core.dtypes import as_dtype
from ember_ml.nn import tensor
from ember_ml.nn.tensor import EmberTensor
from tests.fuzz.watchdog import main
from tests.reference import views as reference

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
VIEWS = (
    *("get_item", "get_item", "get_item", "get_item", "transpose", "matrix_transpose", "swapaxes", "moveaxis"),
    *("expand_dims", "squeeze", "flip", "fliplr", "flipud", "rot90", "reshape", "reshape", "reshape", "ravel"),
    *("real", "imag", "diagonal", "broadcast_to", "view", "split", "array_split", "unstack", "iterate"),
)
METHODS = frozenset(
    ("transpose", "matrix_transpose", "swapaxes", "expand_dims", "squeeze", "reshape", "ravel", "diagonal", "flatten")
)
STANDARD = frozenset(
    ("matrix_transpose", "moveaxis", "expand_dims", "squeeze", "flip", "reshape", "broadcast_to", "real", "unstack")
)
BITS = {"int32": "float32", "float32": "int16", "int16": "int8", "uint8": "int8", "complex64": "float32"}
IN_PLACE = {
    "+": operator.iadd,
    "-": operator.isub,
    "*": operator.imul,
    "//": operator.ifloordiv,
    "&": operator.iand,
    "|": operator.ior,
    "^": operator.ixor,
}
MODES = ("eager", "grad", "backward", "vmap", "compile")
TRACED = ("vmap", "compile")  # in these modes nothing may depend on the values of a mask


class Step(NamedTuple):
    """One statement: what it does (see ``_run``), the variables it names, and its other operands."""

    kind: str
    target: str
    names: tuple[str, ...]
    operands: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.target or '-'} <- {self.kind} {' '.join(self.names)} {self.operands}"


class Maker:
    """Makes programs by running them on NumPy's arrays, whose shapes say what may follow."""

    def __init__(self, seed: int, dtypes: tuple[str, ...], mode: str) -> None:
        self.random = random.Random(seed)
        self.dtypes, self.is_linear, self.has_masks = dtypes, mode != "eager", mode not in TRACED
        self.steps: list[Step] = []
        self.arrays: dict[str, Any] = {}

    def program(self) -> list[Step]:
        for _ in range(self.random.choice((1, 1, 2))):
            self.make_root()
        is_deep = self.random.random() < 0.05
        for _ in range(self.random.randrange(3, 13) + 14 * is_deep):
            kind = self.random.random()
            if kind < (0.9 if is_deep else 0.45):
                self.make_view(is_deep)
            elif kind < 0.5:
                self.make_copy()
            elif kind < 0.95 or len(self.arrays) < 3:
                self.make_change()
            else:
                self.add(Step("del", "", (self.pick(),), ()))
        return self.steps

    def add(self, step: Step) -> None:
        try:
            _run_on_numpy(step, self.arrays)
        except ValueError as error:
            if "read-only" not in str(error):
                return
        self.steps.append(step)

    def pick(self) -> str:
        return self.random.choice(list(self.arrays))

    def name(self) -> str:
        return f"v{len(self.steps)}"

    def make_root(self) -> None:
        shape = tuple(
            self.random.choice((0, 1, 2, 2, 3, 3, 4)) for _ in range(self.random.choice((0, 1, 1, 2, 2, 2, 3)))
        )
        dtype = self.random.choice(self.dtypes)
        count = math.prod(shape)
        values: list[Any] = [self.random.randrange(0, 9) for _ in range(count)]
        if dtype == "bool":
            values = [value % 2 == 1 for value in values]
        if dtype.startswith("complex"):
            values = [complex(value, self.random.randrange(9)) for value in values]
        self.add(Step("root", self.name(), (), (values, shape, dtype)))

    def key(self, shape: tuple[int, ...]) -> Any:
        items: list[Any] = []
        axes = list(shape)
        for length in axes[: self.random.randrange(len(axes) + 1)]:
            if length and self.random.random() < 0.35:
                items.append(self.random.randrange(-length, length))
            else:
                start, stop = (self.random.choice((None, None, 0, 1, 2, -1, -2, 5)) for _ in range(2))
                items.append(slice(start, stop, self.random.choice((None, None, 1, 2, -1, -2))))
        if self.random.random() < 0.25:
            items.insert(self.random.randrange(len(items) + 1), None)
        if self.random.random() < 0.2:
            place = self.random.randrange(len(items) + 1)
            rest = sum(item is not None for item in items[place:])
            if rest == 0 or rest == len(shape):
                items.insert(place if rest == 0 else 0, Ellipsis)
        return items[0] if len(items) == 1 and self.random.random() < 0.7 else tuple(items)

    def make_view(self, is_deep: bool) -> None:
        name = list(self.arrays)[-1] if is_deep and self.arrays else self.pick()
        x = self.arrays[name]
        ndim, choose = x.ndim, self.random.choice
        op = choose(VIEWS)
        axis = self.random.randrange(-ndim, ndim) if ndim else 0
        other = self.random.randrange(-ndim, ndim) if ndim else 0
        order = tuple(self.random.sample(range(ndim), ndim))
        ones = [a for a in range(ndim) if x.shape[a] == 1]
        dtype = x.dtype.name
        operands: tuple[Any, ...] | None
        match op:
            case "get_item":
                operands = (self.key(x.shape),)
            case "transpose":
                operands = (choose((None, order)),)
            case "matrix_transpose":
                operands = () if ndim > 1 else None
            case "swapaxes" | "moveaxis":
                operands = (axis, other) if ndim else None
            case "expand_dims":
                operands = (self.random.randrange(-ndim - 1, ndim + 1),) if ndim < 4 else None
            case "squeeze":
                operands = (choose((None, choose(ones))) if ones else None,)
            case "flip":
                operands = (choose((None, axis)) if ndim else None,)
            case "fliplr":
                operands = () if ndim > 1 else None
            case "flipud":
                operands = () if ndim else None
            case "rot90":
                operands = (self.random.randrange(-4, 5), (0, 1)) if ndim > 1 else None
            case "reshape":
                operands = (self.shape_of(x.size),)
            case "ravel":
                operands = ()
            case "real":
                operands = () if dtype != "bool" else None
            case "imag":
                operands = () if dtype.startswith("complex") else None
            case "diagonal":
                operands = (self.random.randrange(-2, 3), -2, -1) if ndim > 1 else None
            case "broadcast_to":
                operands = ((2, *x.shape),) if ndim < 4 and self.random.random() < 0.3 else None
            case "view":
                fits = dtype in BITS and ndim and not self.is_linear and BITS[dtype] in self.dtypes
                operands = (BITS[dtype],) if fits else None
            case "split":
                operands = (choose((1, [1], [1, 2], [-1])), axis) if ndim else None
            case "array_split":
                operands = (choose((2, 3)), axis) if ndim else None
            case "unstack":
                operands = (axis,) if ndim and x.shape[axis] else None
            case _:
                operands = () if ndim and x.shape[0] else None
        if operands is not None:
            self.add(Step(op, self.name(), (name,), (*operands, self.random.randrange(3))))

    def shape_of(self, size: int) -> tuple[int, ...]:
        if size == 0:
            return self.random.choice(((0,), (0, 2), (3, 0)))
        lengths, rest = [], size
        for _ in range(self.random.randrange(4)):
            divisor = self.random.choice([d for d in range(1, rest + 1) if rest % d == 0])
            lengths.append(divisor)
            rest //= divisor
        shape = [*lengths, rest] if rest > 1 or (not lengths and self.random.random() < 0.7) else lengths
        if shape and self.random.random() < 0.3:
            shape[self.random.randrange(len(shape))] = -1
        return tuple(shape)

    def make_copy(self) -> None:
        name = self.pick()
        x = self.arrays[name]
        op = self.random.choice(("copy", "flatten", "positive", "roll", "select", *("mask",) * self.has_masks))
        operands: tuple[Any, ...] = ()
        if op == "select":
            if not x.ndim or not x.shape[0]:
                return
            operands = ([self.random.randrange(-x.shape[0], x.shape[0]) for _ in range(self.random.randrange(1, 4))],)
        self.add(Step(op, self.name(), (name,), (*operands, self.random.randrange(3))))

    def make_change(self) -> None:
        name = self.pick()
        x = self.arrays[name]
        kinds = ("change", "change", "change_item", "set_item", "set_list", *("set_mask",) * self.has_masks)
        kind = self.random.choice(kinds)
        key: Any = self.key(x.shape)
        if kind == "set_list":
            if not x.ndim or not x.shape[0]:
                return
            key = self.random.sample(range(x.shape[0]), self.random.randrange(1, x.shape[0] + 1))
        part = x if kind in ("change", "set_mask") else x[key] if kind == "set_list" else reference.item_view(x, key)
        is_bool = x.dtype.name == "bool"
        if self.is_linear:
            symbol = self.random.choice(("+", "-", "*"))
        elif is_bool:
            symbol = self.random.choice(("&", "|", "^"))
        else:
            whole = ("&", "|", "^", "//") if x.dtype.name.startswith(("int", "uint")) else ()
            symbol = self.random.choice(("+", "-", "*", *whole))
        others = [n for n, y in self.arrays.items() if y.dtype == x.dtype and _fits(y.shape, part.shape)]
        if kind == "set_mask":
            others = [n for n in others if self.arrays[n].ndim == 0]
        if others and self.random.random() < 0.6 and symbol not in ("*", "//"):
            names, value = (name, self.random.choice(others)), None
        else:
            names, value = (name,), True if is_bool else self.random.choice((1, 2, 3))
        operands = (symbol, value) if kind == "change" else (key, symbol, value)
        self.add(Step(kind, "", names, operands))


def _fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    if len(shape) > len(target):
        return False
    return all(own in (1, to) for own, to in zip(reversed(shape), reversed(target), strict=False))


def _run_on_numpy(step: Step, arrays: dict[str, Any]) -> None:
    x, value = _operands(step, arrays)
    match step.kind:
        case "root":
            arrays[step.target] = reference.array(*step.operands)
        case "del":
            del arrays[step.names[0]]
        case "change":
            assert IN_PLACE[step.operands[0]](x, value) is x
        case "change_item":
            key, symbol, _ = step.operands
            x[key] = IN_PLACE[symbol](x[key], value)
        case "set_item" | "set_list":
            x[step.operands[0]] = value
        case "set_mask":
            x[x == x] = value
        case kind if kind in reference.COPIES:
            arrays[step.target] = reference.COPIES[kind](x, *step.operands[:-1])
        case kind:
            _store(arrays, step.target, reference.VIEWS[kind](x, *step.operands[:-1]))


def _operands(step: Step, tensors: dict[str, Any]) -> tuple[Any, Any]:
    x = tensors[step.names[0]] if step.names else None
    value = tensors[step.names[1]] if len(step.names) > 1 else step.operands[-1] if step.operands else None
    return x, value


def _store(tensors: dict[str, Any], target: str, result: Any) -> None:
    if isinstance(result, list | tuple):
        tensors.update({f"{target}_{number}": part for number, part in enumerate(result)})
    else:
        tensors[target] = result


def _run(step: Step, tensors: dict[str, Any], roots: dict[str, Any]) -> None:
    """Run one statement on portable tensors; ``roots`` are values for roots that are given from outside."""
    x, value = _operands(step, tensors)
    match step.kind:
        case "root":
            values, shape, dtype = step.operands
            given = roots.get(step.target)
            tensors[step.target] = _root(values, shape, dtype) if given is None else given
        case "del":
            del tensors[step.names[0]]
        case "change":
            assert IN_PLACE[step.operands[0]](x, value) is x
        case "change_item":
            key, symbol, _ = step.operands
            x[key] = IN_PLACE[symbol](x[key], value)  # what Python does for x[key] += value
        case "set_item" | "set_list":
            x[step.operands[0]] = value
        case "set_mask":
            x[x == x] = value
        case "select":
            tensors[step.target] = x[step.operands[0]]
        case "mask":
            tensors[step.target] = x[tensor.ones(x.shape, dtype="bool")]
        case "roll":
            tensors[step.target] = ops.roll(x, 1)
        case "positive":
            tensors[step.target] = ops.copy(x) if x.dtype == "bool" else +x
        case "iterate":
            _store(tensors, step.target, list(x))
        case "get_item":
            tensors[step.target] = x[step.operands[0]] if step.operands[-1] else ops.get_item(x, step.operands[0])
        case kind:
            *operands, flavour = step.operands
            _store(tensors, step.target, _call(kind, x, operands, flavour))


def _call(kind: str, x: EmberTensor, operands: list[Any], flavour: int) -> Any:
    """Call a view op as a method, as a function of the array API standard, or as an op."""
    if flavour == 0 and kind in METHODS and (kind != "transpose" or operands[0] is not None):
        return getattr(x, kind)(*operands)
    if flavour == 1 and kind in STANDARD and not (kind == "squeeze" and operands[0] is None):
        names = {"squeeze": ("axis",), "expand_dims": ("axis",), "flip": ("axis",), "unstack": ("axis",)}.get(kind, ())
        return getattr(x.__array_namespace__(), kind)(
            x, *operands[len(names) :], **dict(zip(names, operands, strict=False))
        )
    return getattr(ops, kind)(x, *operands)


def _root(values: list[Any], shape: tuple[int, ...], dtype: str) -> EmberTensor:
    return EmberTensor(tensor.reshape(tensor.array(values, dtype=dtype), shape))


def _difference(steps: list[Step]) -> str | None:
    """Run a program on both; what disagrees, or None."""
    arrays: dict[str, Any] = {}
    tensors: dict[str, Any] = {}
    for number, step in enumerate(steps):
        refused = None
        try:
            _run_on_numpy(step, arrays)
        except ValueError as error:
            refused = error
        try:
            _run(step, tensors, {})
        except ValueError as error:
            if refused is None:
                return f"statement {number} raised {error!r}"
        else:
            if refused is not None:
                return f"statement {number} did not raise, as NumPy did: {refused}"
        if arrays.keys() != tensors.keys():
            return f"statement {number} made {sorted(tensors)}, not {sorted(arrays)}"
        for name, expected in arrays.items():
            if not reference.is_same(tensors[name].numpy(), expected):
                return f"after statement {number}, {name} is {tensors[name].tolist()}, not {expected.tolist()}"
    return None


def _values(steps: list[Step], roots: dict[str, Any]) -> dict[str, Any]:
    tensors: dict[str, Any] = {}
    for step in steps:
        _run(step, tensors, roots)
    return tensors


def _total(steps: list[Step], roots: dict[str, Any]) -> Any:
    """A number that every element of every variable goes into with a weight of its own."""
    total: Any = 0.0
    for place, value in enumerate(_values(steps, roots).values()):
        weights = tensor.reshape(tensor.arange(value.size, dtype="float32"), value.shape) + (place + 1.0)
        total = total + (value * weights).sum()
    return total


def _total_on_numpy(steps: list[Step]) -> float:
    arrays: dict[str, Any] = {}
    for step in steps:
        _run_on_numpy(step, arrays)
    total = 0.0
    for place, value in enumerate(arrays.values()):
        flat = value.ravel().tolist()
        total += sum((number + place + 1.0) * element for number, element in enumerate(flat))
    return total


def _is_writable(steps: list[Step]) -> bool:
    try:
        _total_on_numpy(steps)
    except ValueError:
        return False
    return True


def _with_root(steps: list[Step], name: str, values: list[float]) -> list[Step]:
    return [
        s._replace(operands=(values, *s.operands[1:])) if s.target == name and s.kind == "root" else s for s in steps
    ]


def _gradients(steps: list[Step]) -> dict[str, list[float]]:
    """The exact derivatives of the total: the program is linear, so differences say them."""
    found = {}
    for step in steps:
        if step.kind == "root":
            size = len(step.operands[0])
            zero = _total_on_numpy(_with_root(steps, step.target, [0.0] * size))
            found[step.target] = [
                _total_on_numpy(_with_root(steps, step.target, [float(i == j) for i in range(size)])) - zero
                for j in range(size)
            ]
    return found


def _transformed(steps: list[Step], mode: str) -> str | None:
    """What disagrees under a transformation; None where nothing does."""
    roots = {s.target: _root(*s.operands) for s in steps if s.kind == "root"}
    names = list(roots)

    def function(*given: Any) -> Any:
        return _total(steps, {name: x * 1.0 for name, x in zip(names, given, strict=True)})

    want = _total_on_numpy(steps)
    if mode == "compile":
        got = ops.compile(function)(*roots.values()).item()
        return None if got == want else f"the total is {got}, not {want}"
    if mode == "vmap":
        pairs = [ops.stack([x, x * 0.0]) for x in roots.values()]
        got = ops.vmap(function)(*pairs).tolist()
        zeros = steps
        for name, x in roots.items():
            zeros = _with_root(zeros, name, [0.0] * x.size)
        expected = [want, _total_on_numpy(zeros)]
        return None if got == expected else f"the totals are {got}, not {expected}"
    if mode == "backward":
        for x in roots.values():
            x.requires_grad = True
        function(*roots.values()).backward()
        found = [tensor.zeros_like(x.detach()) if x.grad is None else x.grad for x in roots.values()]
    else:
        found = ops.grad(function, argnums=tuple(range(len(names))))(*roots.values())
    gradients: list[Any] = list(found)
    for name, gradient, expected in zip(names, gradients, _gradients(steps).values(), strict=True):
        if gradient.ravel().tolist() != expected:
            return f"the gradient by {name} is {gradient.ravel().tolist()}, not {expected}"
    return None


def _disagreement(steps: list[Step], mode: str) -> str | None:
    try:
        if mode == "eager":
            return _difference(steps)
        return _transformed(steps, mode) if _is_writable(steps) else None
    except Exception as error:
        return f"raised {error!r}"


def _shorten(steps: list[Step], mode: str) -> list[Step]:
    """Leave statements out as long as the program still runs on NumPy and disagrees."""
    place = len(steps) - 1
    while place >= 0:
        fewer = steps[:place] + steps[place + 1 :]
        if _is_program(fewer) and _disagreement(fewer, mode):
            steps = fewer
            place = len(steps)
        place -= 1
    return steps


def _is_program(steps: list[Step]) -> bool:
    arrays: dict[str, Any] = {}
    try:
        for step in steps:
            try:
                _run_on_numpy(step, arrays)
            except ValueError as error:
                if "read-only" not in str(error):
                    return False
    except (KeyError, IndexError):
        return False
    return any(step.kind == "root" for step in steps)


def make_check(backend: str, mode: str) -> Callable[[int], list[str]]:
    """Return a function that runs the program of a number and describes what is wrong."""
    ember_ml.set_backend(backend)
    known = get_backend_module().dtypes
    dtypes = tuple(d for d in DTYPES if as_dtype(d) in known) if mode == "eager" else ("float32",)

    def check(number: int) -> list[str]:
        steps = Maker(number, dtypes, mode).program()
        if not _disagreement(steps, mode):
            return []
        steps = _shorten(steps, mode)
        return [f"{_disagreement(steps, mode)}: " + "; ".join(map(str, steps))]

    return check


if __name__ == "__main__":
    sys.exit(main("tests.fuzz.views", make_check, MODES))
