"""An optimization inside another one: how strongly to regularize, by the gradient through a whole training.

Inside, weights are trained by gradient descent on few noisy samples, with a penalty on their size. Outside, the
strength of the penalty is changed so that the trained weights do well on other samples: the loss there is
differentiated by the strength, through every step of the training. For this problem the trained weights are also known
in closed form, and so is that gradient.

    python examples/bilevel.py [--backend numpy|torch|mlx] [--steps 8] [--inner 100]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

import ember_ml
from ember_ml import ops

FEATURES = 8


class Samples(NamedTuple):
    """Features and the values that belong to them."""

    x: Any
    y: Any


def make_samples(count: int, seed: int) -> Samples:
    """Noisy values of a linear function of which few features matter; the same numbers on every backend."""
    weights = ops.array([2.0, -1.0, 0.5] + [0.0] * (FEATURES - 3))
    x = ops.random_normal((count, FEATURES), seed=seed)
    noise = ops.random_normal((count,), seed=seed + 1)
    return Samples(x, ops.add(ops.matmul(x, weights), noise))


def error(weights: Any, samples: Samples) -> Any:
    """The mean square error on the samples."""
    return ops.mean(ops.square(ops.subtract(ops.matmul(samples.x, weights), samples.y)))


def penalized(weights: Any, strength: Any, samples: Samples) -> Any:
    """What the training makes small: the error, and the penalty ``exp(strength)`` times the squares of the weights."""
    return ops.add(error(weights, samples), ops.multiply(ops.exp(strength), ops.sum(ops.square(weights))))


def trained(strength: Any, samples: Samples, steps: int) -> Any:
    """The weights after gradient descent; each step is checkpointed, so that a long training fits into memory."""
    slope = ember_ml.grad(penalized)
    # less than 2 by the largest curvature, which the penalty adds to
    rate = ops.divide(0.3, ops.add(1.0, ops.exp(strength)))

    @ember_ml.checkpoint
    def step(weights: Any) -> Any:
        return ops.subtract(weights, ops.multiply(rate, slope(weights, strength, samples)))

    weights = ops.zeros(FEATURES)
    for _ in range(steps):
        weights = step(weights)
    return weights


def exact(strength: Any, samples: Samples) -> Any:
    """The weights to which the training converges."""
    turned, count = ops.transpose(samples.x), samples.x.shape[0]
    matrix = ops.add(
        ops.divide(ops.matmul(turned, samples.x), count), ops.multiply(ops.exp(strength), ops.eye(FEATURES))
    )
    return ops.solve(matrix, ops.divide(ops.matmul(turned, samples.y), count))


def search(training: Samples, validation: Samples, strength: float, steps: int, inner: int) -> list[dict[str, float]]:
    """The strength, the error on other samples and its gradient, both ways, for the start and after each step."""
    through_training = ember_ml.value_and_grad(lambda s: error(trained(s, training, inner), validation))
    in_closed_form = ember_ml.grad(lambda s: error(exact(s, training), validation))
    path = []
    for _ in range(steps + 1):
        value, gradient = through_training(strength)
        path.append(
            {
                "strength": strength,
                "error": ops.item(value),
                "gradient": ops.item(gradient),
                "exact": ops.item(in_closed_form(strength)),
            }
        )
        strength -= path[-1]["gradient"]
    return path


def main(arguments: Sequence[str] | None = None) -> None:
    """Search for the best strength, and print the way to it."""
    parser = argparse.ArgumentParser(description="Hyperparameters by gradient descent through a training.")
    parser.add_argument("--backend", help="which library computes; by default the one that is chosen already")
    parser.add_argument("--steps", type=int, default=8, help="of the search for the strength")
    parser.add_argument("--inner", type=int, default=100, help="steps of each training")
    options = parser.parse_args(arguments)
    if options.backend:
        ember_ml.set_backend(options.backend)

    training, validation = make_samples(12, seed=5), make_samples(200, seed=55)
    path = search(training, validation, -3.0, options.steps, options.inner)
    print(f"computed by {ember_ml.get_backend()}\n\nstep  strength   error  gradient  in closed form")
    for step, row in enumerate(path):
        print(f"{step:4d}  {row['strength']:8.4f}  {row['error']:6.4f}  {row['gradient']:8.4f}  {row['exact']:14.4f}")
    print(f"\nerror on other samples {path[0]['error']:.3f} before, {path[-1]['error']:.3f} after the search")


if __name__ == "__main__":
    main()
