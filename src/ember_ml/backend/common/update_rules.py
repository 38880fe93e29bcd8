"""The updates of one parameter by each rule, for libraries whose tensors are not changed in place.

``xp`` has the functions ``sign``, ``sqrt`` and ``square``; ``given`` has the settings, and the scalars of this step.
Each takes gradient, parameter and slots, and returns the new parameter and slots.
"""

from __future__ import annotations

from typing import Any

__all__ = ["adagrad", "adam", "lion", "rmsprop", "sgd"]


def adam(xp: Any, given: Any, g: Any, p: Any, m: Any, v: Any) -> tuple[Any, ...]:
    if given.weight_decay and given.is_decoupled:
        p = p * (1.0 - given.rate * given.weight_decay)
    elif given.weight_decay:
        g = g + given.weight_decay * p
    m = given.beta1 * m + (1.0 - given.beta1) * g
    v = given.beta2 * v + (1.0 - given.beta2) * xp.square(g)
    return p - given.factor * m / (xp.sqrt(v) + given.scaled_epsilon), m, v


def sgd(xp: Any, given: Any, g: Any, p: Any, velocity: Any = None) -> tuple[Any, ...]:
    g = g + given.weight_decay * p if given.weight_decay else g
    if velocity is None:
        return (p - given.rate * g,)
    new = given.momentum * velocity + g
    return p - given.rate * (g + given.momentum * new if given.nesterov else new), new


def lion(xp: Any, given: Any, g: Any, p: Any, mean: Any) -> tuple[Any, ...]:
    step = xp.sign(given.beta1 * mean + (1.0 - given.beta1) * g)
    step = step + given.weight_decay * p if given.weight_decay else step
    return p - given.rate * step, given.beta2 * mean + (1.0 - given.beta2) * g


def rmsprop(xp: Any, given: Any, g: Any, p: Any, square: Any, velocity: Any = None) -> tuple[Any, ...]:
    g = g + given.weight_decay * p if given.weight_decay else g
    square = given.decay * square + (1.0 - given.decay) * xp.square(g)
    change = g / (xp.sqrt(square) + given.epsilon)
    if velocity is None:
        return p - given.rate * change, square
    new = given.momentum * velocity + change
    return p - given.rate * new, square, new


def adagrad(xp: Any, given: Any, g: Any, p: Any, square: Any) -> tuple[Any, ...]:
    g = g + given.weight_decay * p if given.weight_decay else g
    square = square + xp.square(g)
    return p - given.rate * g / (xp.sqrt(square) + given.epsilon), square
