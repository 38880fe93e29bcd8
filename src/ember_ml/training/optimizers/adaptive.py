"""Optimizers that divide each element by the size of its past gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from ember_ml import ops
from ember_ml.training.optimizers.base import Optimizer, Rate
from ember_ml.training.optimizers.groups import Group
from ember_ml.training.optimizers.settings import FROM_ZERO, SHARE, Ranges
from ember_ml.typing import Tensor

__all__ = ["Adagrad", "Adam", "AdamW", "RMSprop"]


class Adam(Optimizer):
    """Adaptive moments: ``p -= rate * m / (sqrt(v) + epsilon)``, with running means of ``g`` and ``g**2``.

    The means start at 0 and are corrected for it.

    ``weight_decay`` times the parameter is added to the gradient; :class:`AdamW` takes it from the parameter instead.

    Args:
        learning_rate: A number, or a schedule of ``training.schedules``.
        beta1: The part of the running mean of gradients that is kept.
        beta2: The part of the running mean of squares that is kept.
        epsilon: Added to divisors, against division by 0.
        weight_decay: The factor of the parameter in the gradient.
        max_norm: The largest Euclidean norm of all gradients together; larger ones are scaled down.
        max_value: The largest magnitude of each element of the gradients.
        groups: Settings for some of the parameters; see :class:`Optimizer`.

    >>> from ember_ml import nn, ops
    >>> from ember_ml.training import optimizers
    >>> model = nn.Linear(1, 1, bias=False).load_state_dict({"weight": [[1.0]]})
    >>> optimizers.Adam(0.25).update(model, {"weight": ops.array([[8.0]])})
    >>> round(ops.item(model.weight), 5)
    0.75
    """

    beta1: float
    beta2: float
    epsilon: float
    weight_decay: float

    slots: tuple[str, ...] = ("first", "second")
    kernel = "adam"
    ranges: ClassVar[Ranges] = {
        "beta1": SHARE,
        "beta2": SHARE,
        "epsilon": FROM_ZERO,
        "weight_decay": FROM_ZERO,
    }
    is_decoupled: ClassVar[bool] = False
    """Whether weight decay acts on the parameter itself."""

    def __init__(
        self,
        learning_rate: Rate = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
        max_norm: float | None = None,
        max_value: float | None = None,
        groups: Sequence[Group] = (),
    ) -> None:
        super().__init__(learning_rate, max_norm, max_value, groups)
        self.beta1, self.beta2, self.epsilon, self.weight_decay = beta1, beta2, epsilon, weight_decay

    def scalars(self, step: int, rate: float) -> tuple[float, ...]:
        # fold the bias corrections of both means into two factors: one of the step, one of epsilon
        root = math.sqrt(1.0 - self.beta2**step)
        return rate, rate * root / (1.0 - self.beta1**step), self.epsilon * root

    def settings(self, scalars: Sequence[Any]) -> dict[str, Any]:
        rate, factor, scaled_epsilon = scalars
        return {
            "rate": rate,
            "factor": factor,
            "scaled_epsilon": scaled_epsilon,
            "step": self.step,
            "beta1": self.beta1,
            "beta2": self.beta2,
            "epsilon": self.epsilon,
            "weight_decay": self.weight_decay,
            "is_decoupled": self.is_decoupled,
        }

    def rule(
        self, parameter: Tensor, gradient: Tensor, state: Sequence[Tensor], scalars: Sequence[Any]
    ) -> list[Tensor]:
        (first, second), (rate, factor, epsilon) = state, scalars
        if self.weight_decay and self.is_decoupled:
            parameter = ops.subtract(parameter, ops.multiply(parameter, ops.multiply(rate, self.weight_decay)))
        elif self.weight_decay:
            gradient = ops.add(gradient, ops.multiply(parameter, self.weight_decay))
        first = ops.add(ops.multiply(first, self.beta1), ops.multiply(gradient, 1.0 - self.beta1))
        second = ops.add(ops.multiply(second, self.beta2), ops.multiply(ops.square(gradient), 1.0 - self.beta2))
        step = ops.divide(ops.multiply(first, factor), ops.add(ops.sqrt(second), epsilon))
        return [ops.subtract(parameter, step), first, second]


class AdamW(Adam):
    """:class:`Adam` whose weight decay takes ``rate * weight_decay`` of each parameter, whatever its gradient.

    The arguments are those of :class:`Adam`.
    """

    is_decoupled = True

    def __init__(
        self,
        learning_rate: Rate = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.01,
        max_norm: float | None = None,
        max_value: float | None = None,
        groups: Sequence[Group] = (),
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, weight_decay, max_norm, max_value, groups)


class RMSprop(Optimizer):
    """Divides by the root of a running mean of squares: ``p -= rate * g / (sqrt(v) + epsilon)``, also with momentum.

    Args:
        learning_rate: A number, or a schedule of ``training.schedules``.
        decay: The part of the running mean of squares that is kept.
        epsilon: Added to divisors, against division by 0.
        momentum: The part of the last step that is kept.
        weight_decay: The factor of the parameter in the gradient.
        max_norm: The largest Euclidean norm of all gradients together; larger ones are scaled down.
        max_value: The largest magnitude of each element of the gradients.
        groups: Settings for some of the parameters; see :class:`Optimizer`.
    """

    decay: float
    epsilon: float
    momentum: float
    weight_decay: float

    kernel = "rmsprop"
    ranges: ClassVar[Ranges] = {
        "decay": SHARE,
        "epsilon": FROM_ZERO,
        "momentum": FROM_ZERO,
        "weight_decay": FROM_ZERO,
    }

    def __init__(
        self,
        learning_rate: Rate = 0.01,
        decay: float = 0.99,
        epsilon: float = 1e-8,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        max_norm: float | None = None,
        max_value: float | None = None,
        groups: Sequence[Group] = (),
    ) -> None:
        self.decay, self.epsilon, self.momentum, self.weight_decay = decay, epsilon, momentum, weight_decay
        super().__init__(learning_rate, max_norm, max_value, groups)

    def choose_slots(self) -> tuple[str, ...]:
        return ("square", "velocity") if self.momentum else ("square",)

    def settings(self, scalars: Sequence[Any]) -> dict[str, Any]:
        return {
            "rate": scalars[0],
            "decay": self.decay,
            "epsilon": self.epsilon,
            "momentum": self.momentum,
            "weight_decay": self.weight_decay,
        }

    def rule(
        self, parameter: Tensor, gradient: Tensor, state: Sequence[Tensor], scalars: Sequence[Any]
    ) -> list[Tensor]:
        square, (rate,) = state[0], scalars
        if self.weight_decay:
            gradient = ops.add(gradient, ops.multiply(parameter, self.weight_decay))
        square = ops.add(ops.multiply(square, self.decay), ops.multiply(ops.square(gradient), 1.0 - self.decay))
        step = ops.divide(gradient, ops.add(ops.sqrt(square), self.epsilon))
        if not self.momentum:
            return [ops.subtract(parameter, ops.multiply(step, rate)), square]
        velocity = ops.add(ops.multiply(state[1], self.momentum), step)
        return [ops.subtract(parameter, ops.multiply(velocity, rate)), square, velocity]


class Adagrad(Optimizer):
    """Divides by the root of the sum of all squares so far: ``p -= rate * g / (sqrt(s) + epsilon)``.

    Args:
        learning_rate: A number, or a schedule of ``training.schedules``.
        epsilon: Added to divisors, against division by 0.
        weight_decay: The factor of the parameter in the gradient.
        max_norm: The largest Euclidean norm of all gradients together; larger ones are scaled down.
        max_value: The largest magnitude of each element of the gradients.
        groups: Settings for some of the parameters; see :class:`Optimizer`.
    """

    epsilon: float
    weight_decay: float

    slots: tuple[str, ...] = ("square",)
    kernel = "adagrad"
    ranges: ClassVar[Ranges] = {"epsilon": FROM_ZERO, "weight_decay": FROM_ZERO}

    def __init__(
        self,
        learning_rate: Rate = 0.01,
        epsilon: float = 1e-10,
        weight_decay: float = 0.0,
        max_norm: float | None = None,
        max_value: float | None = None,
        groups: Sequence[Group] = (),
    ) -> None:
        super().__init__(learning_rate, max_norm, max_value, groups)
        self.epsilon, self.weight_decay = epsilon, weight_decay

    def settings(self, scalars: Sequence[Any]) -> dict[str, Any]:
        return {"rate": scalars[0], "epsilon": self.epsilon, "weight_decay": self.weight_decay}

    def rule(
        self, parameter: Tensor, gradient: Tensor, state: Sequence[Tensor], scalars: Sequence[Any]
    ) -> list[Tensor]:
        (square,), (rate,) = state, scalars
        if self.weight_decay:
            gradient = ops.add(gradient, ops.multiply(parameter, self.weight_decay))
        square = ops.add(square, ops.square(gradient))
        step = ops.divide(gradient, ops.add(ops.sqrt(square), self.epsilon))
        return [ops.subtract(parameter, ops.multiply(step, rate)), square]
