"""What common ops cost on JAX over the call of ``jax.numpy`` or ``jax.nn`` that computes the same.

Both take turns in one process, on float32 arrays of each size; the best of many calls counts, each until its result is
there. Where JAX gives no error for an index that is out of range, and our op does, both are said to do the same;
``--unchecked`` switches such checks off.

    python benchmarks/jax_ops.py [--sizes 16 65536] [--seconds 0.5] [--ops take sort] [--unchecked] [--check 1.15]
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import ember_ml
from ember_ml import ops

UNARY = "sin cos tan tanh arctan sinh arcsinh exp expm1 log log1p sqrt square abs negative sign floor round isnan "
BINARY = "add subtract multiply divide power maximum minimum arctan2 less equal logaddexp "
REDUCING = "sum mean max min prod var std argmax argmin any all logsumexp cumsum median "
ACTIVATIONS = "relu sigmoid silu softplus elu leaky_relu log_sigmoid"
Case = tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]


def cases(size: int) -> dict[str, Case]:
    """Return for each op our call, JAX's, and the arguments of both."""
    n = math.isqrt(size)
    key = jax.random.key(0)
    a = jax.random.uniform(key, (n, n), jnp.float32, 0.1, 0.9)
    b, v = a[::-1] + 0.05, a[0]
    mask, k = a > 0.5, jnp.arange(n)[::-1]
    along = jnp.argsort(a, axis=1)
    made: dict[str, Case] = {}
    for name in UNARY.split():
        made[name] = (getattr(ops, name), getattr(jnp, name), (a,))
    for name in BINARY.split():
        made[name] = (getattr(ops, name), getattr(jnp, name), (a, b))
    for name in REDUCING.split():
        native = jax.nn.logsumexp if name == "logsumexp" else getattr(jnp, name)
        made[name] = (getattr(ops, name), native, (a, 1))
    for name in ACTIVATIONS.split():
        made[name] = (getattr(ops, name), getattr(jax.nn, name), (a,))
    made |= {
        "gelu": (ops.gelu, lambda x: jax.nn.gelu(x, approximate=False), (a,)),
        "softmax": (ops.softmax, jax.nn.softmax, (a,)),
        "log_softmax": (ops.log_softmax, jax.nn.log_softmax, (a,)),
        "matmul": (ops.matmul, jnp.matmul, (a, b)),
        "dot": (ops.dot, jnp.dot, (v, v)),
        "outer": (ops.outer, jnp.outer, (v, v)),
        "einsum": (ops.einsum, jnp.einsum, ("ij,jk->ik", a, b)),
        "tensordot": (ops.tensordot, jnp.tensordot, (a, b, 1)),
        "transpose": (ops.transpose, jnp.transpose, (a,)),
        "reshape": (ops.reshape, jnp.reshape, (a, (-1,))),
        "expand_dims": (ops.expand_dims, jnp.expand_dims, (a, 0)),
        "broadcast_to": (ops.broadcast_to, jnp.broadcast_to, (v, (n, n))),
        "concatenate": (ops.concatenate, jnp.concatenate, ([a, b], 0)),
        "stack": (ops.stack, jnp.stack, ([a, b], 0)),
        "flip": (ops.flip, jnp.flip, (a, 0)),
        "roll": (ops.roll, jnp.roll, (a, 1, 0)),
        "tile": (ops.tile, jnp.tile, (v, (2,))),
        "pad": (ops.pad, jnp.pad, (a, ((1, 1), (0, 0)))),
        "clip": (ops.clip, jnp.clip, (a, 0.2, 0.8)),
        "where": (ops.where, jnp.where, (mask, a, b)),
        "cast": (ops.cast, lambda x, dtype: x.astype(dtype), (a, "float64")),
        "tril": (ops.tril, jnp.tril, (a,)),
        "diag": (ops.diag, jnp.diag, (v,)),
        "sort": (ops.sort, jnp.sort, (a,)),
        "argsort": (ops.argsort, jnp.argsort, (a,)),
        "take": (ops.take, jnp.take, (a, k, 0)),
        "take_along_axis": (ops.take_along_axis, jnp.take_along_axis, (a, along, 1)),
        "x[0]": (ops.get_item, lambda x, key: x[key], (a, 0)),
        "x[1:, ::2]": (ops.get_item, lambda x, key: x[key], (a, (slice(1, None), slice(None, None, 2)))),
        "x[k]": (ops.get_item, lambda x, key: x[key], (a, k)),
        "zeros": (ops.zeros, jnp.zeros, ((n, n), "float32")),
        "arange": (ops.arange, jnp.arange, (n,)),
        "linspace": (ops.linspace, jnp.linspace, (0.0, 1.0, n)),
        "zeros_like": (ops.zeros_like, jnp.zeros_like, (a,)),
        "norm": (ops.norm, jnp.linalg.norm, (a,)),
        "one_hot": (ops.one_hot, jax.nn.one_hot, (k, n)),
    }
    return made


def measure(case: Case, seconds: float) -> tuple[float, float]:
    """Return the best time of our call and of JAX's, in seconds."""
    calls, args = case[:2], case[2]
    best = [math.inf, math.inf]
    stop = time.perf_counter() + seconds
    rounds = 0
    while rounds < 30 or time.perf_counter() < stop:
        for place in (0, 1, 1, 0):  # each as often after the other as after itself
            call = calls[place]
            start = time.perf_counter()
            jax.block_until_ready(call(*args))
            best[place] = min(best[place], time.perf_counter() - start)
        rounds += 1
    return best[0], best[1]


def main() -> int:
    """Measure, print, and say by the exit code whether the limit held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[16, 65536], help="elements of each array")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each op and size")
    parser.add_argument("--ops", nargs="*", help="these only")
    parser.add_argument("--check", type=float, help="fail where an op takes more than so many times JAX's call")
    parser.add_argument("--unchecked", action="store_true", help="look at no values, as JAX does not, such as indices")
    options = parser.parse_args()
    ember_ml.set_backend("jax")
    ember_ml.set_value_checks(not options.unchecked)
    slow = 0
    for size in options.sizes:
        for name, case in cases(size).items():
            if options.ops and name not in options.ops:
                continue
            ours, native = measure(case, options.seconds)
            slow += options.check is not None and ours > options.check * native
            print(f"{size:8} {name:16} {ours * 1e6:9.1f} us, JAX {native * 1e6:9.1f}  {ours / native:5.2f}", flush=True)
    return int(slow > 0)


if __name__ == "__main__":
    sys.exit(main())
