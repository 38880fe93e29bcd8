"""Initializers: functions of a shape that return a tensor, with the same values on every backend for one seed.

Weights of layers have their outputs first: of shape ``(out, in)``, or ``(out, in, ...)`` for convolutions. Layers keep
their initializers, which can therefore be pickled and copied.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ember_ml import ops
from ember_ml.typing import DTypeLike, Tensor

__all__ = [
    "Initializer",
    "constant",
    "count_draws",
    "get",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "zeros",
]

Initializer = Callable[[Sequence[int], Any], Tensor]
"""A function of a shape and a dtype that returns a tensor."""


def zeros(shape: Sequence[int], dtype: DTypeLike = "float32") -> Tensor:
    """Zeros."""
    return ops.zeros(shape, dtype=dtype)


def ones(shape: Sequence[int], dtype: DTypeLike = "float32") -> Tensor:
    """Ones."""
    return ops.ones(shape, dtype=dtype)


def constant(value: float) -> Initializer:
    """Return an initializer that gives ``value`` everywhere."""
    return partial(_fill, value)


def _fill(value: float, shape: Sequence[int], dtype: DTypeLike = "float32") -> Tensor:
    return ops.full(shape, value, dtype=dtype)


def normal(deviation: float = 0.02, mean: float = 0.0) -> Initializer:
    """Return an initializer that draws from a normal distribution."""
    return partial(_draw, ops.random_normal, mean, deviation)


def truncated_normal(deviation: float = 0.02, mean: float = 0.0) -> Initializer:
    """Return an initializer that draws from a normal distribution, within two deviations of its mean."""
    return partial(_draw, ops.random_truncated_normal, mean, deviation)


def uniform(low: float = -0.05, high: float = 0.05) -> Initializer:
    """Return an initializer that draws uniformly from ``low`` to ``high``."""
    return partial(_draw, ops.random_uniform, low, high)


def _draw(
    random: Callable[..., Tensor], first: float, second: float, shape: Sequence[int], dtype: DTypeLike = "float32"
) -> Tensor:
    """Draw from a distribution with two parameters."""
    return random(shape, first, second, dtype=dtype)


def fans(shape: Sequence[int]) -> tuple[int, int]:
    """Return fan in and fan out of a weight of this shape: inputs for each output, outputs for each input."""
    if len(shape) < 2:
        return shape[0] if shape else 1, shape[0] if shape else 1
    places = math.prod(shape[2:])
    return shape[1] * places, shape[0] * places


def _scale_variance(power: float, by: Callable[[int, int], float], is_normal: bool) -> Initializer:
    """Return an initializer with variance ``power / by(fan in, fan out)``."""
    return partial(_draw_scaled, power, by, is_normal)


def _draw_scaled(
    power: float,
    by: Callable[[int, int], float],
    is_normal: bool,
    shape: Sequence[int],
    dtype: DTypeLike = "float32",
) -> Tensor:
    variance = power / max(by(*fans(shape)), 1.0)
    if is_normal:
        return ops.random_normal(shape, 0.0, math.sqrt(variance), dtype=dtype)
    limit = math.sqrt(3.0 * variance)
    return ops.random_uniform(shape, -limit, limit, dtype=dtype)


def _fan_in(inputs: int, outputs: int) -> float:
    return float(inputs)


def _mean_fan(inputs: int, outputs: int) -> float:
    return (inputs + outputs) / 2


glorot_uniform: Initializer = _scale_variance(1.0, _mean_fan, False)
"""Uniform, with variance 2 / (inputs + outputs)."""
glorot_normal: Initializer = _scale_variance(1.0, _mean_fan, True)
"""Normal, with variance 2 / (inputs + outputs)."""
he_uniform: Initializer = _scale_variance(2.0, _fan_in, False)
"""Uniform, with variance 2 / inputs: keeps the size of what rectifiers pass on."""
he_normal: Initializer = _scale_variance(2.0, _fan_in, True)
"""Normal, with variance 2 / inputs."""
lecun_uniform: Initializer = _scale_variance(1.0, _fan_in, False)
"""Uniform, with variance 1 / inputs."""
lecun_normal: Initializer = _scale_variance(1.0, _fan_in, True)
"""Normal, with variance 1 / inputs."""
torch_uniform: Initializer = _scale_variance(1.0 / 3.0, _fan_in, False)
"""Uniform within 1 / sqrt(inputs), as PyTorch and MLX start their linear layers."""


def orthogonal(gain: float = 1.0) -> Initializer:
    """Return an initializer of matrices whose rows, or columns, are orthogonal."""
    return partial(_draw_orthogonal, gain)


def _draw_orthogonal(gain: float, shape: Sequence[int], dtype: DTypeLike = "float32") -> Tensor:
    rows, columns = shape[0], math.prod(shape[1:])
    tall = ops.random_normal((max(rows, columns), min(rows, columns)), dtype="float32")
    q, r = ops.qr(tall)
    q = ops.multiply(q, ops.sign(ops.diag(r)))
    q = q if rows >= columns else ops.transpose(q)
    return ops.cast(ops.multiply(ops.reshape(q, shape), gain), dtype)


_NAMED: dict[str, Initializer] = {
    "glorot_normal": glorot_normal,
    "glorot_uniform": glorot_uniform,
    "he_normal": he_normal,
    "he_uniform": he_uniform,
    "lecun_normal": lecun_normal,
    "lecun_uniform": lecun_uniform,
    "normal": normal(),
    "ones": ones,
    "orthogonal": orthogonal(),
    "torch_uniform": torch_uniform,
    "truncated_normal": truncated_normal(),
    "uniform": uniform(),
    "zeros": zeros,
}


def get(initializer: str | Initializer) -> Initializer:
    """Return the initializer of that name, or the function itself."""
    if callable(initializer):
        return initializer
    if initializer not in _NAMED:
        raise ValueError(f"there is no initializer {initializer!r}; there are {', '.join(_NAMED)}")
    return _NAMED[initializer]


_DRAWS: dict[Any, int] = {zeros: 0, ones: 0, _fill: 0, _draw: 1, _draw_scaled: 1, _draw_orthogonal: 1}
"""How many draws of the generator each of the functions above makes."""


def count_draws(initializer: Initializer) -> int | None:
    """Return how many draws an initializer makes, whatever the shape; None where it is not one of these.

    >>> from ember_ml.nn import initializers
    >>> initializers.count_draws(initializers.normal(0.1)), initializers.count_draws(initializers.zeros)
    (1, 0)
    """
    function = initializer.func if isinstance(initializer, partial) else initializer
    return _DRAWS.get(function)


def draws_anew(initializer: Initializer) -> bool:
    """Whether the initializer draws random numbers at each call, so that nobody else has the tensor that it returns."""
    return isinstance(initializer, partial) and initializer.func in (_draw, _draw_scaled)
