"""Optimizers that follow the gradient, with momentum or by its sign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ember_ml import ops
from ember_ml.training.optimizers.base import Optimizer, Rate
from ember_ml.training.optimizers.groups import Group
from ember_ml.training.optimizers.settings import FROM_ZERO, SHARE, Ranges
from ember_ml.typing import Tensor

__all__ = ["SGD", "Lion"]


class SGD(Optimizer):
    """Gradient descent: ``p -= rate * v``, where ``v = momentum * v + g``; as PyTorch computes it.

    With ``nesterov`` the step is ``g + momentum * v``. ``weight_decay`` times the parameter is added to the gradient.

    Args:
        learning_rate: A number, or a schedule of ``training.schedules``.
        momentum: The part of the last step that is kept.
        nesterov: Whether the gradient counts once more in each step.
        weight_decay: The factor of the parameter in the gradient.
        max_norm: The largest Euclidean norm of all gradients together; larger ones are scaled down.
        max_value: The largest magnitude of each element of the gradients.
        groups: Settings for some of the parameters; see :class:`Optimizer`.

    >>> from ember_ml import nn, ops
    >>> from ember_ml.training import optimizers
    >>> model = nn.Linear(1, 1, bias=False).load_state_dict({"weight": [[1.0]]})
    >>> optimizers.SGD(0.5).update(model, {"weight": ops.array([[1.0]])})
    >>> ops.to_numpy(model.weight).tolist()
    [[0.5]]
    """

    momentum: float
    nesterov: bool
    weight_decay: float

    kernel = "sgd"
    ranges: ClassVar[Ranges] = {"momentum": FROM_ZERO, "weight_decay": FROM_ZERO}

    def __init__(
        self,
        learning_rate: Rate = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
        max_norm: float | None = None,
        max_value: float | None = None,
        groups: Sequence[Group] = (),
    ) -> None:
        self.momentum, self.nesterov, self.weight_decay = momentum, nesterov, weight_decay
        super().__init__(learning_rate, max_norm, max_value, groups)
        if nesterov and not momentum:
            raise ValueError("nesterov needs a momentum")

    def choose_slots(self) -> tuple[str, ...]:
        return ("velocity",) if self.momentum else ()  # plain gradient descent has no state

    def settings(self, scalars: Sequence[Any]) -> dict[str, Any]:
        return {
            "rate": scalars[0],
            "momentum": self.momentum,
            "nesterov": self.nesterov,
            "weight_decay": self.weight_decay,
        }

    def rule(
        self, parameter: Tensor, gradient: Tensor, state: Sequence[Tensor], scalars: Sequence[Any]
    ) -> list[Tensor]:
        (rate,) = scalars
        if self.weight_decay:
            gradient = ops.add(gradient, ops.multiply(parameter, self.weight_decay))
        if not self.momentum:
            return [ops.subtract(parameter, ops.multiply(gradient, rate))]
        velocity = ops.add(ops.multiply(state[0], self.momentum), gradient)
        step = ops.add(gradient, ops.multiply(velocity, self.momentum)) if self.nesterov else velocity
        return [ops.subtract(parameter, ops.multiply(step, rate)), velocity]


class Lion(Optimizer):
    """Steps by the sign of a mean of gradients: ``p -= rate * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * p)``.

    The mean moves by ``m = beta2 * m + (1 - beta2) * g``.

    Args:
        learning_rate: A number, or a schedule of ``training.schedules``.
        beta1: The part of the mean in the sign of the step.
        beta2: The part of the mean that is kept.
        weight_decay: The factor of the parameter in the step.
        max_norm: The largest Euclidean norm of all gradients together; larger ones are scaled down.
        max_value: The largest magnitude of each element of the gradients.
        groups: Settings for some of the parameters; see :class:`Optimizer`.
    """

    beta1: float
    beta2: float
    weight_decay: float

    slots: tuple[str, ...] = ("mean",)
    kernel = "lion"
    ranges: ClassVar[Ranges] = {"beta1": SHARE, "beta2": SHARE, "weight_decay": FROM_ZERO}

    def __init__(
        self,
        learning_rate: Rate = 1e-4,
        beta1: float = 0.9,
        beta2: float = 0.99,
        weight_decay: float = 0.0,
        max_norm: float | None = None,
        max_value: float | None = None,
        groups: Sequence[Group] = (),
    ) -> None:
        super().__init__(learning_rate, max_norm, max_value, groups)
        self.beta1, self.beta2, self.weight_decay = beta1, beta2, weight_decay

    def settings(self, scalars: Sequence[Any]) -> dict[str, Any]:
        return {"rate": scalars[0], "beta1": self.beta1, "beta2": self.beta2, "weight_decay": self.weight_decay}

    def rule(
        self, parameter: Tensor, gradient: Tensor, state: Sequence[Tensor], scalars: Sequence[Any]
    ) -> list[Tensor]:
        (mean,), (rate,) = state, scalars
        step = ops.sign(ops.add(ops.multiply(mean, self.beta1), ops.multiply(gradient, 1.0 - self.beta1)))
        if self.weight_decay:
            step = ops.add(step, ops.multiply(parameter, self.weight_decay))
        mean = ops.add(ops.multiply(mean, self.beta2), ops.multiply(gradient, 1.0 - self.beta2))
        return [ops.subtract(parameter, ops.multiply(step, rate)), mean]
