"""The minimum of Rosenbrock's function by Newton's method: gradient and second derivatives, on any backend.

The function is a narrow curved valley, in which gradient descent needs thousands of steps. Newton's method follows the
curvature: it solves ``hessian @ step = -gradient``, and halves the step until the value falls.

    python examples/rosenbrock_newton.py [--backend numpy|torch|mlx] [--start -1.2 1.0] [--steps 40]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import ember_ml
from ember_ml import ops

TOLERANCE = 1e-3
"""The norm of the gradient at which the search ends; the terms of the gradient are of the order of 1000."""


def rosenbrock(x: Any) -> Any:
    """The sum of ``100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2``, whose minimum 0 is where all elements are 1."""
    valley = ops.square(ops.subtract(x[1:], ops.square(x[:-1])))
    slope = ops.square(ops.subtract(1.0, x[:-1]))
    return ops.sum(ops.add(ops.multiply(100.0, valley), slope))


def newton(f: Any, x: Any, steps: int) -> list[tuple[float, float, Any]]:
    """The value, the norm of the gradient and the point, for the start and after every step of Newton's method."""
    value_and_gradient, curvature = ember_ml.value_and_grad(f), ember_ml.hessian(f)
    path = []
    for _ in range(steps + 1):
        value, gradient = value_and_gradient(x)
        path.append((ops.item(value), ops.item(ops.vector_norm(gradient)), x))
        if path[-1][1] < TOLERANCE:
            break
        step, scale = ops.solve(curvature(x), ops.negative(gradient)), 1.0
        while ops.item(f(ops.add(x, ops.multiply(scale, step)))) >= path[-1][0] and scale > 1e-3:
            scale /= 2
        x = ops.add(x, ops.multiply(scale, step))
    return path


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the path from the start to the minimum."""
    parser = argparse.ArgumentParser(description="Newton's method on Rosenbrock's function.")
    parser.add_argument("--backend", help="which library computes; by default the one that is chosen already")
    parser.add_argument("--start", type=float, nargs="+", default=[-1.2, 1.0], help="two numbers or more")
    parser.add_argument("--steps", type=int, default=40, help="at most so many")
    options = parser.parse_args(arguments)
    if options.backend:
        ember_ml.set_backend(options.backend)

    path = newton(rosenbrock, ops.array(options.start), options.steps)
    print(f"computed by {ember_ml.get_backend()}\n\nstep       value  |gradient|  point")
    for step, (value, norm, x) in enumerate(path):
        point = "  ".join(f"{element:8.5f}" for element in ops.to_numpy(x).tolist())
        print(f"{step:4d}  {value:10.3e}  {norm:10.3e}  {point}")
    _, norm, x = path[-1]
    distance = ops.item(ops.max(ops.abs(ops.subtract(x, 1.0))))
    found = "the minimum" if norm < TOLERANCE else "not yet the minimum"
    print(f"\n{found} after {len(path) - 1} steps, {distance:.1e} from (1, ..., 1)")


if __name__ == "__main__":
    main()
