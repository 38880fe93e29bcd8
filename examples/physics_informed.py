"""A network that solves a differential equation: it never sees the solution, only the equation.

The equation is ``u'' = -pi^2 sin(pi x)`` on [0, 1] with ``u(0) = u(1) = 0``; its solution is ``sin(pi x)``. The
network's second derivative by its input stands in the loss, and the loss is differentiated by the parameters: a third
derivative in all, on any backend.

    python examples/physics_informed.py [--backend numpy|torch|mlx] [--steps 400] [--width 16] [--points 33]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from math import pi
from typing import Any

import ember_ml
from ember_ml import ops
from ember_ml.core.trees import map_tree


def make_network(width: int) -> dict[str, Any]:
    """The parameters of a network with one hidden layer; the same numbers on every backend."""
    return {
        "inner": ops.random_normal((1, width), stddev=2.0, seed=1),
        "bias": ops.random_normal((width,), seed=2),
        "outer": ops.random_normal((width, 1), stddev=width**-0.5, seed=3),
    }


def solution(network: dict[str, Any], x: Any) -> Any:
    """What the network takes for ``u`` at the points ``x``: a factor ``x (1 - x)`` makes it 0 at both ends."""
    hidden = ops.tanh(ops.add(ops.matmul(ops.expand_dims(x, 1), network["inner"]), network["bias"]))
    raw = ops.squeeze(ops.matmul(hidden, network["outer"]), 1)
    return ops.multiply(ops.multiply(x, ops.subtract(1.0, x)), raw)


def derivative(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The derivative of ``f`` at every point: each value depends on its own point alone, so their sum will do."""
    return ember_ml.grad(lambda x: ops.sum(f(x)))


def loss(network: dict[str, Any], x: Any) -> Any:
    """The mean square by which the equation fails at the points ``x``."""
    curvature = derivative(derivative(lambda points: solution(network, points)))(x)
    wanted = ops.multiply(-(pi**2), ops.sin(ops.multiply(pi, x)))
    return ops.mean(ops.square(ops.subtract(curvature, wanted)))


def adam(step: int, rate: float, parameter: Any, gradient: Any, mean: Any, square: Any) -> tuple[Any, Any, Any]:
    """One step of Adam for one tensor: the parameter and both running means."""
    mean = ops.add(ops.multiply(0.9, mean), ops.multiply(0.1, gradient))
    square = ops.add(ops.multiply(0.99, square), ops.multiply(0.01, ops.square(gradient)))
    scale = ops.sqrt(ops.divide(square, 1 - 0.99**step))
    change = ops.divide(ops.divide(mean, 1 - 0.9**step), ops.add(scale, 1e-8))
    return ops.subtract(parameter, ops.multiply(rate, change)), mean, square


def train(network: dict[str, Any], x: Any, steps: int) -> tuple[dict[str, Any], list[float]]:
    """The network after so many steps, and the loss before each."""
    step_of = ember_ml.value_and_grad(loss)
    mean = square = map_tree(ops.zeros_like, network)
    losses = []
    for step in range(1, steps + 1):
        value, gradients = step_of(network, x)
        losses.append(ops.item(value))
        rate = 0.02 * 0.05 ** (step / steps)
        updated = {name: adam(step, rate, network[name], gradients[name], mean[name], square[name]) for name in network}
        network, mean, square = ({name: parts[place] for name, parts in updated.items()} for place in range(3))
    return network, losses


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the network, and print how far it is from the solution."""
    parser = argparse.ArgumentParser(description="A network that solves u'' = -pi^2 sin(pi x).")
    parser.add_argument("--backend", help="which library computes; by default the one that is chosen already")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--width", type=int, default=16, help="hidden units")
    parser.add_argument("--points", type=int, default=33, help="where the equation is asked for")
    options = parser.parse_args(arguments)
    if options.backend:
        ember_ml.set_backend(options.backend)

    x = ops.linspace(0.0, 1.0, options.points)
    network, losses = train(make_network(options.width), x, options.steps)
    print(f"computed by {ember_ml.get_backend()}\n\nstep        loss")
    for step in sorted({*range(0, options.steps, max(1, options.steps // 8)), options.steps - 1}):
        print(f"{step:4d}  {losses[step]:10.3e}")
    print("\n   x   network  solution")
    for place in (0.0, 0.25, 0.5, 0.75, 1.0):
        value = ops.item(solution(network, ops.array([place])))
        print(f"{place:4.2f}  {value:8.5f}  {ops.item(ops.sin(pi * place)):8.5f}")
    fine = ops.linspace(0.0, 1.0, 200)
    error = ops.max(ops.abs(ops.subtract(solution(network, fine), ops.sin(ops.multiply(pi, fine)))))
    print(f"\nlargest error {ops.item(error):.1e}")


if __name__ == "__main__":
    main()
