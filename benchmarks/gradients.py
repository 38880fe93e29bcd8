"""What a gradient costs beside the library's own, and beside backpropagation written by hand on NumPy.

Value and gradients of a perceptron 784-256-256-10 with cross entropy, at batch 128, and at batch 4 with hidden layers
of 16, where overhead shows. All are measured in one run, interleaved, best of many.

    python benchmarks/gradients.py [--seconds 2] [--compiled] [--backends jax]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends


def arrays(batch: int, hidden: int) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Random parameters, inputs and classes."""
    rng = np.random.default_rng(0)
    sizes = (784, hidden, hidden, 10)
    parameters = []
    for n, m in pairwise(sizes):
        parameters += [rng.normal(0, n**-0.5, (n, m)).astype(np.float32), np.zeros(m, np.float32)]
    return parameters, rng.normal(size=(batch, 784)).astype(np.float32), rng.integers(0, 10, batch)


def by_hand(parameters: list[np.ndarray], x: np.ndarray, y: np.ndarray) -> tuple[Any, list[np.ndarray]]:
    """Backpropagation as an expert writes it on NumPy."""
    w1, b1, w2, b2, w3, b3 = parameters
    rows = np.arange(len(y))
    h1 = np.maximum(x @ w1 + b1, 0)
    h2 = np.maximum(h1 @ w2 + b2, 0)
    z = h2 @ w3 + b3
    z -= z.max(axis=1, keepdims=True)
    e = np.exp(z)
    s = e.sum(axis=1, keepdims=True)
    loss = (np.log(s[:, 0]) - z[rows, y]).mean()
    d = e / s
    d[rows, y] -= 1
    d /= len(y)
    g3, gb3 = h2.T @ d, d.sum(axis=0)
    d = (d @ w3.T) * (h2 > 0)
    g2, gb2 = h1.T @ d, d.sum(axis=0)
    d = (d @ w2.T) * (h1 > 0)
    return loss, [x.T @ d, d.sum(axis=0), g2, gb2, g3, gb3]


def portable(parameters: list[Any], x: Any, y: Any) -> Any:
    """Return the loss, written once on ops."""
    w1, b1, w2, b2, w3, b3 = parameters
    h = ops.relu(ops.add(ops.matmul(x, w1), b1))
    h = ops.relu(ops.add(ops.matmul(h, w2), b2))
    z = ops.add(ops.matmul(h, w3), b3)
    return ops.mean(ops.sparse_categorical_crossentropy(y, z, from_logits=True))


def on_torch(parameters: list[Any], x: Any, y: Any) -> Callable[[], Any]:
    """Return the step as it is written on PyTorch."""
    import torch
    from torch.nn import functional as F

    leaves = [p.detach().requires_grad_() for p in parameters]

    def step() -> Any:
        w1, b1, w2, b2, w3, b3 = leaves
        h = F.relu(torch.matmul(x, w1) + b1)
        h = F.relu(torch.matmul(h, w2) + b2)
        loss = F.cross_entropy(torch.matmul(h, w3) + b3, y)
        return loss, torch.autograd.grad(loss, leaves)

    return step


def on_mlx(parameters: list[Any], x: Any, y: Any, compiled: bool) -> Callable[[], Any]:
    """Return the step as it is written on MLX."""
    import mlx.core as mx

    def loss(parameters: list[Any], x: Any, y: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = parameters
        h = mx.maximum(x @ w1 + b1, 0)
        h = mx.maximum(h @ w2 + b2, 0)
        z = h @ w3 + b3
        return (mx.logsumexp(z, axis=1) - mx.take_along_axis(z, y[:, None], 1)[:, 0]).mean()

    function = mx.value_and_grad(loss)
    function = mx.compile(function) if compiled else function

    def step() -> Any:
        result = function(parameters, x, y)
        mx.eval(result)
        return result

    return step


def on_jax(parameters: list[Any], x: Any, y: Any, compiled: bool) -> Callable[[], Any]:
    """Return the step as it is written on JAX."""
    import jax
    import jax.numpy as jnp

    def loss(parameters: list[Any], x: Any, y: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = parameters
        h = jax.nn.relu(x @ w1 + b1)
        h = jax.nn.relu(h @ w2 + b2)
        z = h @ w3 + b3
        return jnp.mean(jax.nn.logsumexp(z, axis=1) - jnp.take_along_axis(z, y[:, None], 1)[:, 0])

    function = jax.value_and_grad(loss)
    function = jax.jit(function) if compiled else function
    return lambda: jax.block_until_ready(function(parameters, x, y))


def steps_of(backend: str, batch: int, hidden: int, compiled: bool) -> dict[str, Callable[[], Any]]:
    """Our step and the one to compare with, on one backend."""
    host, x, y = arrays(batch, hidden)
    parameters = [ops.asarray(p) for p in host]
    data, target = ops.asarray(x), ops.asarray(y)
    ours = ops.value_and_grad(portable)
    if backend == "numpy":
        return {"ember": lambda: ours(parameters, data, target), "native": lambda: by_hand(host, x, y)}
    if compiled:
        ours = ember_ml.compile(ours)
    if backend == "torch":
        native = on_torch(parameters, data, target)
        if compiled:
            import torch

            native = torch.compile(native)
        return {"ember": lambda: ours(parameters, data, target), "native": native}
    if backend == "jax":
        import jax

        return {
            "ember": lambda: jax.block_until_ready(ours(parameters, data, target)),
            "native": on_jax(parameters, data, target, compiled),
        }
    import mlx.core as mx

    def step() -> Any:
        result = ours(parameters, data, target)
        mx.eval(result)
        return result

    return {"ember": step, "native": on_mlx(parameters, data, target, compiled)}


def check(steps: dict[str, Callable[[], Any]]) -> None:
    """Check that both steps return the same values."""
    (value, gradients), (other, others) = (step() for step in steps.values())
    assert abs(float(value) - float(other)) < 1e-5, (value, other)
    for one, two in zip(gradients, others, strict=True):
        np.testing.assert_allclose(ops.to_numpy(one), ops.to_numpy(two), atol=2e-6, rtol=1e-4)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each line of the table")
    parser.add_argument("--compiled", action="store_true", help="compile both steps")
    parser.add_argument("--backends", nargs="*", default=list(installed_backends()))
    options = parser.parse_args()
    print(f"{'backend':8} {'batch':>5} {'hidden':>6} {'ember ms':>9} {'native ms':>9} {'ratio':>6}")
    for backend in options.backends:
        if options.compiled and backend == "numpy":
            continue
        ember_ml.set_backend(backend)
        for batch, hidden in ((128, 256), (4, 16)):
            steps = steps_of(backend, batch, hidden, options.compiled)
            check(steps)
            best = dict.fromkeys(steps, float("inf"))
            stop = time.perf_counter() + options.seconds
            while time.perf_counter() < stop:
                for name, step in steps.items():
                    start = time.perf_counter()
                    step()
                    best[name] = min(best[name], time.perf_counter() - start)
            ours, native = best["ember"] * 1e3, best["native"] * 1e3
            print(f"{backend:8} {batch:5} {hidden:6} {ours:9.3f} {native:9.3f} {ours / native:6.2f}", flush=True)


if __name__ == "__main__":
    main()
