"""Differentiate random programs of smooth ops on a backend and compare with differences of their values in float64.

``python -m tests.fuzz.gradients mlx 10000 0`` checks 10,000 programs from seed 0, each in one of the ways of ``WAYS``:
``grad``, ``jvp``, ``backward()``, ``grad`` inside ``vmap``, and the derivative of a gradient. What is compared is the
derivative along one random direction; a program with a kink there, where differences say nothing, is left out. It
prints how many derivatives were compared.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import ember_ml
from ember_ml import ops
from ember_ml.nn import tensor
from tests.fuzz.watchdog import counts, main
from tests.reference import array_of, is_finite_below

SHAPES = ((), (3,), (2, 3), (3, 3), (1, 3), (2, 1, 3))
STEP = 1e-3
LARGEST = 50.0
"""Larger values are left out: differences of large numbers say little."""


def _spread(x: Any) -> Any:
    """Return a matrix that is symmetric, positive definite, and has no eigenvalue twice."""
    rows = ops.reshape(x, (ops.size(x), 1))
    return ops.add(ops.matmul(rows, ops.transpose(rows)), ops.diag(ops.arange(2.0, 2.0 + ops.size(x), dtype="float64")))


def _above_one(x: Any) -> Any:
    return ops.add(ops.square(x), 1.0)


UNARY_OPS = (
    "abs negative square tanh sin cos sinh arctan arcsinh sigmoid relu softplus silu gelu elu selu mish erf erfc "
    "expm1 exp celu leaky_relu hard_tanh hard_sigmoid log_sigmoid tanh_shrink softsign floor sign i0 sinc ravel "
    "cumsum cumprod sort flip sum mean max min prod var std median logsumexp transpose softmax log_softmax copy tril "
    "triu diff norm vector_norm nan_to_num exp2 deg2rad"
)
BINARY_OPS = (
    "add subtract multiply maximum minimum fmax fmin matmul outer logaddexp append hypot kron arctan2 dot inner "
    "mean_squared_error huber_loss cosine_similarity heaviside"
)
UNARY: dict[str, Callable[[Any], Any]] = {name: getattr(ops, name) for name in UNARY_OPS.split()} | {
    "log": lambda x: ops.log(_above_one(x)),
    "sqrt": lambda x: ops.sqrt(_above_one(x)),
    "rsqrt": lambda x: ops.rsqrt(_above_one(x)),
    "lgamma": lambda x: ops.lgamma(_above_one(x)),
    "reciprocal": lambda x: ops.reciprocal(_above_one(x)),
    "cbrt": lambda x: ops.cbrt(_above_one(x)),
    "arcsin": lambda x: ops.arcsin(ops.multiply(ops.tanh(x), 0.9)),
    "arctanh": lambda x: ops.arctanh(ops.multiply(ops.tanh(x), 0.9)),
    "erfinv": lambda x: ops.erfinv(ops.multiply(ops.tanh(x), 0.9)),
    "sum of columns": partial(ops.sum, axis=0),
    "mean of rows": partial(ops.mean, axis=-1, keepdims=True),
    "max of columns": partial(ops.max, axis=0),
    "prod of rows": partial(ops.prod, axis=-1),
    "descending sort": partial(ops.sort, axis=0, descending=True),
    "cumsum of rows": partial(ops.cumsum, axis=-1),
    "last": lambda x: ops.get_item(x, -1),
    "reversed": lambda x: ops.get_item(x, (..., slice(None, None, -1))),
    "rows twice": lambda x: ops.get_item(x, [0, -1, 0]),
    "new axis": partial(ops.expand_dims, axis=1),
    "roll": partial(ops.roll, shift=1),
    "pad": lambda x: ops.pad(x, 1),
    "pad by reflection": lambda x: ops.pad(x, 1, mode="reflect"),
    "repeat": partial(ops.repeat, repeats=2),
    "tile": partial(ops.tile, repeats=2),
    "power": lambda x: ops.power(x, 3),
    "clip": lambda x: ops.clip(x, -0.7, 0.8),
    "top_k": lambda x: ops.top_k(x, 2)[0],
    "inv": lambda x: ops.inv(_spread(x)),
    "det": lambda x: ops.log(ops.det(_spread(x))),
    "cholesky": lambda x: ops.cholesky(_spread(x)),
    "eigvalsh": lambda x: ops.sum(ops.square(ops.eigvalsh(_spread(x)))),
    "qr": lambda x: ops.qr(_spread(x))[1],
    "svdvals": lambda x: ops.sum(ops.sin(ops.svdvals(_spread(x)))),
    "layer_normalization": lambda x: ops.layer_normalization(ops.multiply(x, 3.0)),
    "segment_sum": lambda x: ops.segment_sum(ops.ravel(x), ops.mod(ops.arange(ops.size(x)), 2), 3),
    "segment_max": lambda x: ops.segment_max(ops.ravel(x), ops.mod(ops.arange(ops.size(x)), 2), 2),
    "fft": lambda x: ops.real(ops.fft(x)),
    "checkpoint": lambda x: ops.checkpoint(lambda y: ops.sin(ops.multiply(y, y)))(x),
    "scan": lambda x: ops.scan(lambda c, y: (ops.add(ops.sin(c), y), ops.multiply(c, y)), ops.sum(x), ops.ravel(x))[1],
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {name: getattr(ops, name) for name in BINARY_OPS.split()} | {
    "divide": lambda x, y: ops.divide(x, _above_one(y)),
    "power": lambda x, y: ops.power(_above_one(x), ops.tanh(y)),
    "xlogy": lambda x, y: ops.xlogy(x, _above_one(y)),
    "mod": lambda x, y: ops.mod(x, _above_one(y)),
    "where": lambda x, y: ops.where(ops.greater(x, 0), x, y),
    "stack": lambda x, y: ops.stack([x, y]),
    "concatenate": lambda x, y: ops.concatenate([x, y], axis=-1),
    "einsum": lambda x, y: ops.einsum("...i,...i->...", x, y),
    "index_update": lambda x, y: ops.index_update(x, 0, ops.sum(y)),
    "scatter_add": lambda x, y: ops.scatter_add(ops.ravel(y), ops.zeros(ops.size(y), dtype="int64"), ops.size(x)),
    "put_along_axis": lambda x, y: ops.put_along_axis(ops.ravel(x), [0, 0], ops.sum(y)),
    "solve": lambda x, y: ops.solve(_spread(x), ops.broadcast_to(ops.mean(y), (ops.size(x),))),
    "cdist": lambda x, y: ops.square(ops.cdist(x, y)),
    "convolve": lambda x, y: ops.convolve(ops.ravel(x), ops.ravel(y)),
    "attention": lambda x, y: ops.dot_product_attention(*(ops.reshape(ops.sin(z), (1, -1, 1, 3)) for z in (x, y, y))),
    "cond": lambda x, y: ops.cond(ops.greater(ops.sum(x), 0), lambda: ops.sum(x), lambda: ops.sum(ops.sin(y))),
}
CALLS: dict[str, Callable[..., Any]] = UNARY | BINARY
UNARY_NAMES, BINARY_NAMES = list(UNARY), list(BINARY)


class Program(NamedTuple):
    """Arrays, steps whose operands are the places of arrays and earlier steps, and a direction for each array."""

    inputs: list[Any]
    steps: list[tuple[str, tuple[int, ...]]]
    directions: list[Any]

    def value(self, *tensors: Any) -> Any:
        """Return one number made of every element of the last steps, each with a weight of its own."""
        values = list(tensors)
        for name, places in self.steps:
            values.append(CALLS[name](*[values[place] for place in places]))
        total: Any = 0.0
        for x in values[-2:]:
            weights = ops.cos(ops.arange(ops.size(x), dtype="float64"))
            total = ops.add(total, ops.sum(ops.multiply(ops.ravel(x), weights)))
        return total

    def at(self, distance: float) -> float:
        """Return the value at a distance along the directions."""
        moved = [x + distance * v for x, v in zip(self.inputs, self.directions, strict=True)]
        return float(ops.item(self.value(*moved)))


def make_program(number: int) -> Program:
    """Make a program by running it, on the active backend: a step that raises or whose values are large is left out."""
    rng = random.Random(number)

    def array(shape: tuple[int, ...], low: float, high: float) -> Any:
        count = 1
        for side in shape:
            count *= side
        return array_of("float64", [rng.uniform(low, high) for _ in range(count)]).reshape(shape)

    inputs = [array(rng.choice(SHAPES), -1.5, 1.5) for _ in range(rng.randint(1, 2))]
    directions = [array(x.shape, -1.0, 1.0) for x in inputs]
    arrays = list(inputs)
    steps: list[tuple[str, tuple[int, ...]]] = []
    for _ in range(rng.randint(1, 7)):
        if rng.random() < 0.6:
            name, places = rng.choice(UNARY_NAMES), (rng.randrange(len(arrays)),)
        else:
            name, places = rng.choice(BINARY_NAMES), (rng.randrange(len(arrays)), rng.randrange(len(arrays)))
        try:
            result = ops.to_numpy(CALLS[name](*[arrays[place] for place in places]))
        except (ValueError, TypeError, IndexError):
            continue
        if result.dtype == "float64" and 0 < result.size < 200 and is_finite_below(result, LARGEST):
            arrays.append(result)
            steps.append((name, places))
    return Program(inputs, steps, directions)


def differences(program: Program) -> tuple[float, float, float] | None:
    """Return the first and second derivative along the directions and the scale of errors; None at a kink."""
    middle = program.at(0.0)
    near = [program.at(STEP / 2), program.at(-STEP / 2)]
    far = [program.at(STEP), program.at(-STEP)]
    slopes = [(near[0] - near[1]) / STEP, (far[0] - far[1]) / (2 * STEP)]
    bends = [(near[0] - 2 * middle + near[1]) * 4 / STEP**2, (far[0] - 2 * middle + far[1]) / STEP**2]
    first, second = (4 * slopes[0] - slopes[1]) / 3, (4 * bends[0] - bends[1]) / 3
    scale = max(1.0, abs(middle), abs(first), abs(second))
    if abs(slopes[0] - slopes[1]) > 1e-4 * scale or abs(bends[0] - bends[1]) > 1e-2 * scale:
        return None
    return first, second, scale


def _dot(gradients: Any, directions: list[Any]) -> float:
    return sum(float((ops.to_numpy(g) * v).sum()) for g, v in zip(gradients, directions, strict=True))


def _by_grad(program: Program) -> float:
    inputs = [ops.asarray(x) for x in program.inputs]
    gradients = ops.grad(program.value, argnums=tuple(range(len(inputs))))(*inputs)
    return _dot(gradients, program.directions)


def _by_jvp(program: Program) -> float:
    inputs, directions = (tuple(map(ops.asarray, arrays)) for arrays in (program.inputs, program.directions))
    return float(ops.item(ops.jvp(program.value, inputs, directions)[1]))


def _by_backward(program: Program) -> float:
    inputs = [tensor.convert_to_tensor(x) for x in program.inputs]
    for x in inputs:
        x.requires_grad = True
    value = program.value(*inputs)
    if not value.requires_grad:
        return 0.0
    value.backward()
    return 0.0 + sum(_dot([x.grad], [v]) for x, v in zip(inputs, program.directions, strict=True) if x.grad is not None)


def _by_vmap(program: Program) -> float:
    """Return the derivative of the second of two samples; of two inputs, only the first differs between the samples."""
    first, *others = (ops.asarray(x) for x in program.inputs)
    pair = ops.stack([ops.multiply(first, 0.5), first])
    argnums = tuple(range(1 + len(others)))
    mapped = ops.vmap(ops.grad(program.value, argnums=argnums), in_axes=(0, *[None] * len(others)))
    return _dot([ops.get_item(g, 1) for g in mapped(pair, *others)], program.directions)


def _by_grad_twice(program: Program) -> float:
    inputs, directions = ([ops.asarray(x) for x in arrays] for arrays in (program.inputs, program.directions))
    argnums = tuple(range(len(inputs)))

    def slope(*tensors: Any) -> Any:
        gradients = ops.grad(program.value, argnums=argnums)(*tensors)
        return sum(ops.sum(ops.multiply(g, v)) for g, v in zip(gradients, directions, strict=True))

    return _dot(ops.grad(slope, argnums=argnums)(*inputs), program.directions)


WAYS = {"grad": _by_grad, "jvp": _by_jvp, "backward": _by_backward, "vmap": _by_vmap, "grad twice": _by_grad_twice}


def _check(number: int) -> list[str]:
    with ember_ml.use_backend("numpy"):
        program = make_program(number)
        want = differences(program) if program.steps else None
    if want is None:
        return []
    name = list(WAYS)[number % len(WAYS)]
    derivative, tolerance = (want[1], 1e-2) if name == "grad twice" else (want[0], 1e-5)
    try:
        got: Any = WAYS[name](program)
    except NotImplementedError:  # a derivative that the backend says it has not
        counts["refused derivatives"] += 1
        return []
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
    counts["compared derivatives"] += 1
    if isinstance(got, float) and abs(got - derivative) <= tolerance * want[2]:
        return []
    return [f"{name}: {got} instead of {derivative}; {[x.tolist() for x in program.inputs]} {program.steps}"]


def make_check(backend: str, _mode: str) -> Callable[[int], list[str]]:
    """Return a function that differentiates the program of a number and describes what is wrong."""
    ember_ml.set_backend(backend)
    return _check


if __name__ == "__main__":
    sys.exit(main("tests.fuzz.gradients", make_check, ("eager",)))
