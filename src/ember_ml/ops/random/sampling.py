"""Random numbers: one seed gives the same numbers on every backend.

Every op takes ``seed``: an integer, which gives the same numbers at each call; a :class:`Generator`, which goes on from
call to call; or None for the generator of the process, which :func:`seed` starts. Parameters may be tensors, which
broadcast to ``shape``. Floats are float32 unless ``dtype``, or a tensor among the parameters, says otherwise; half
precision is drawn in float32 and rounded.
"""

from __future__ import annotations

from typing import Any

import ember_ml.ops as ops
from ember_ml.backend.common.shapes import as_shape, broadcast
from ember_ml.backend.random import distributions, generator, rejection_sampling
from ember_ml.backend.random.draw import Change, constant, draw, draw_changed, draw_on_host, stretch
from ember_ml.backend.random.generator import Generator, SeedLike
from ember_ml.backend.random.parameters import checked_integer, checked_number, largest_below, read_parameter
from ember_ml.backend.selection import active
from ember_ml.core.dtypes import DEFAULT_INT, EmberDType, as_dtype, bfloat16, float32, float64
from ember_ml.core.promotion import integer_range
from ember_ml.dispatch.declare import derived, plain
from ember_ml.dispatch.dtype_rules import CREATION, FLOATING
from ember_ml.typing import DataLike, DeviceLike, DTypeLike, ShapeLike, Tensor, TensorLike

__all__ = [
    "Generator",
    "dropout",
    "randint",
    "random_bernoulli",
    "random_beta",
    "random_binomial",
    "random_exponential",
    "random_gamma",
    "random_gumbel",
    "random_integers",
    "random_laplace",
    "random_normal",
    "random_poisson",
    "random_truncated_normal",
    "random_uniform",
    "seed",
]

_MOST_EVENTS = 2.0**52  # beyond it float64 does not hold every integer with a fraction to spare

plain(Generator, "sampling")


@plain
def seed(seed: int | Generator) -> None:
    """Let the random numbers of the process that name no seed of their own start anew, or go on from a generator.

    >>> from ember_ml import ops
    >>> ops.seed(7)
    >>> x = ops.random_uniform(2)
    >>> ops.seed(7)
    >>> ops.to_numpy(ops.random_uniform(2)).tolist() == ops.to_numpy(x).tolist()
    True
    """
    generator.seed(seed)


@derived(CREATION)
def random_uniform(
    shape: ShapeLike,
    minval: DataLike = 0.0,
    maxval: DataLike = 1.0,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    seed: SeedLike | None = None,
) -> Tensor:
    """Numbers from ``minval`` up to but without ``maxval``, all equally likely.

    From 0 to 1 they are the multiples of 2**-24 (float64: 2**-53, float16: 2**-11, bfloat16: 2**-8). Where the two
    bounds are equal, so are the numbers.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.random_uniform(2, seed=1)).tolist()
    [0.6300258040428162, 0.614616334438324]
    """
    shape = as_shape(shape)
    low, high = _check_parameter("minval", minval, shape), _check_parameter("maxval", maxval, shape)
    asked = _choose_dtype(dtype, low, high)
    wide = float64 if asked is float64 else float32
    kind = distributions.UNIFORM.within(asked)
    if isinstance(low, float) and isinstance(high, float):
        if low == 0.0 and high == 1.0:
            return ops.cast(_round_down(draw(kind, shape, device, seed), asked), asked)
        span = checked_number(high - low, "maxval - minval", 0.0, ops.finfo(wide).max)
        is_changed = asked is wide and not active().is_tracing()  # torch.compile would trace NumPy's numbers
        change = stretch(low, high, wide) if is_changed else None
        numbers, on_host = draw_changed(kind, shape, device, seed, change)
        if on_host and change is not None:
            return numbers
        numbers, last = _round_down(numbers, asked), constant(largest_below, device, (low, high), asked.name)
    else:
        numbers = _round_down(draw(kind, shape, device, seed), asked)
        low, high = (end if isinstance(end, float) else ops.cast(end, wide) for end in (low, high))
        span = ops.subtract(high, low)
        ends = (ops.stop_gradient(ops.cast(end, asked)) for end in (high, low))
        last = ops.nextafter(*ends)
    numbers = ops.cast(ops.add(ops.multiply(numbers, span), low), asked)
    return ops.where(ops.greater(numbers, last), last, numbers)  # the sum may have been rounded up to maxval


def _round_down(numbers: Tensor, dtype: EmberDType) -> Tensor:
    """Return numbers below 1 as multiples that ``dtype`` has: rounding to nearest could give 1."""
    if dtype.itemsize > 2:
        return numbers
    parts = 2.0**8 if dtype is bfloat16 else 2.0**11
    return ops.multiply(ops.floor(ops.multiply(numbers, parts)), 1.0 / parts)


@derived(CREATION)
def random_normal(
    shape: ShapeLike,
    mean: DataLike = 0.0,
    stddev: DataLike = 1.0,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    seed: SeedLike | None = None,
) -> Tensor:
    """Numbers of the normal distribution with that mean and standard deviation.

    The gradient reaches tensors among ``mean`` and ``stddev``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.random_normal(2, mean=5.0, stddev=0.0)).tolist()
    [5.0, 5.0]
    """
    return _draw_shifted(distributions.NORMAL, shape, "mean", mean, "stddev", stddev, dtype, device, seed)


@derived(CREATION)
def random_truncated_normal(
    shape: ShapeLike,
    mean: DataLike = 0.0,
    stddev: DataLike = 1.0,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    seed: SeedLike | None = None,
) -> Tensor:
    """Numbers of the normal distribution that are at most two standard deviations away from the mean.

    ``stddev`` is that of the distribution before it is cut off.

    >>> from ember_ml import ops
    >>> bool(ops.item(ops.all(ops.less_equal(ops.abs(ops.random_truncated_normal(1000)), 2.0))))
    True
    """
    return _draw_shifted(distributions.TRUNCATED_NORMAL, shape, "mean", mean, "stddev", stddev, dtype, device, seed)


@derived(CREATION)
def random_exponential(
    shape: ShapeLike,
    scale: DataLike = 1.0,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    seed: SeedLike | None = None,
) -> Tensor:
    """Numbers of the exponential distribution with the mean ``scale``.

    >>> from ember_ml import ops
    >>> bool(ops.item(ops.all(ops.greater(ops.random_exponential(1000), 0.0))))
    True
    """
    return _draw_shifted(distributions.EXPONENTIAL, shape, "loc", 0.0, "scale", scale, dtype, device, seed)


@derived(CREATION)
def random_laplace(
    shape: ShapeLike,
    loc: DataLike = 0.0,
    scale: DataLike = 1.0,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    seed: SeedLike | None = None,
) -> Tensor:
    """Numbers of the Laplace distribution: ``loc`` plus or minus an exponential number with the mean ``scale``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.random_laplace(2, loc=3.0, scale=0.0)).tolist()
    [3.0, 3.0]
    """
    return _draw_shifted(distributions.LAPLACE, shape, "loc", loc, "scale", scale, dtype, device, seed)


@derived(CREATION)
def random_gumbel(
    shape: ShapeLike,
    loc: DataLike = 0.0,
    scale: DataLike = 1.0,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    seed: SeedLike | None = None,
) -> Tensor:
    """Numbers of the Gumbel distribution of the largest value: ``loc - scale * log(e)`` of exponential numbers ``e``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.random_gumbel(2, loc=3.0, scale=0.0)).tolist()
    [3.0, 3.0]
    """
    return _draw_shifted(distributions.GUMBEL, shape, "loc", loc, "scale", scale, dtype, device, seed)


@derived(CREATION)
def random_bernoulli(
    shape: ShapeLike,
    p: DataLike = 0.5,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    seed: SeedLike | None = None,
) -> Tensor:
    """True with the probability ``p``, to a multiple of 2**-32; as bools, or as ones and zeros of another ``dtype``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.random_bernoulli(3, 1.0)).tolist(), ops.to_numpy(ops.random_bernoulli(2, 0.0, "int8")).tolist()
    ([True, True, True], [0, 0])
    """
    shape = as_shape(shape)
    p = _check_parameter("p", p, shape)
    if isinstance(p, float):
        chosen = draw(distributions.bernoulli(checked_number(p, "p", 0.0, 1.0)), shape, device, seed)
    else:
        p = p if _dtype_of(p) is float64 else ops.cast(p, float32)
        bounds = ops.cast(ops.floor(ops.multiply(p, 2.0**32)), DEFAULT_INT)
        chosen = ops.less(draw(distributions.WORD, shape, device, seed), bounds)
    return chosen if dtype is None else ops.cast(chosen, dtype)


@derived(CREATION, "randint")
def random_integers(
    shape: ShapeLike,
    minval: int,
    maxval: int,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    seed: SeedLike | None = None,
) -> Tensor:
    """Integers from ``minval`` up to but without ``maxval``, all equally likely; int64 unless ``dtype`` says otherwise.

    Each is the upper half of a random word times the number of integers: of a word of 32 bits for up to 2**16
    integers, of 64 bits for more. So the probabilities are equal to one part in 2**16 or better, up to 2**48 integers.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.random_integers(5, 0, 10, seed=1)).tolist()
    [0, 4, 3, 2, 3]
    """
    low, high = checked_integer(minval, "minval"), checked_integer(maxval, "maxval")
    asked = DEFAULT_INT if dtype is None else as_dtype(dtype)
    if asked.kind not in ("int", "uint"):
        raise TypeError(f"random integers have an integer dtype, not {asked}; cast them, or use random_uniform")
    if low >= high:
        raise ValueError(f"there is no integer from minval={low} up to but without maxval={high}")
    smallest, largest = integer_range(asked)
    if low < smallest or high > largest + 1:
        raise OverflowError(f"the integers from {low} up to {high} do not fit {asked} ({smallest} to {largest})")
    return ops.cast(draw(distributions.integers(low, high - low), as_shape(shape), device, seed), asked)


randint = random_integers


@derived(CREATION)
def random_gamma(
    shape: ShapeLike,
    alpha: DataLike = 1.0,
    scale: DataLike = 1.0,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    seed: SeedLike | None = None,
) -> Tensor:
    """Numbers of the gamma distribution with the shape parameter ``alpha`` and that scale: their mean is the product.

    Drawn by rejection on the host, in float64, whatever the backend; a compiled function raises ``UnsupportedOp``. The
    gradient reaches a tensor ``scale``; asking for that by ``alpha`` raises ``LostGradient``.

    >>> from ember_ml import ops
    >>> bool(ops.item(ops.all(ops.greater(ops.random_gamma(1000, 2.0), 0.0))))
    True
    """
    shape = as_shape(shape)
    scale = _check_parameter("scale", scale, shape)
    asked = _choose_dtype(dtype, alpha, scale)

    def compute(key: tuple[int, int]) -> Any:
        return rejection_sampling.gamma(key, read_parameter(alpha, shape, "alpha", 0.0, positive=True))

    numbers = draw_on_host(compute, float64 if asked is float64 else float32, device, seed)
    return ops.cast(_scale(numbers, "scale", scale), asked)


@derived(CREATION)
def random_beta(
    shape: ShapeLike,
    alpha: DataLike,
    beta: DataLike,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    seed: SeedLike | None = None,
) -> Tensor:
    """Numbers from 0 to 1 of the beta distribution with the parameters ``alpha`` and ``beta``.

    Drawn by rejection on the host, in float64, whatever the backend; a compiled function raises ``UnsupportedOp``, and
    asking for the gradient by a parameter ``LostGradient``.

    >>> from ember_ml import ops
    >>> bool(ops.item(ops.all(ops.less_equal(ops.random_beta(1000, 2.0, 3.0), 1.0))))
    True
    """
    shape = as_shape(shape)

    def compute(key: tuple[int, int]) -> Any:
        first = read_parameter(alpha, shape, "alpha", 0.0, positive=True)
        return rejection_sampling.beta(key, first, read_parameter(beta, shape, "beta", 0.0, positive=True))

    return draw_on_host(compute, _choose_dtype(dtype, alpha, beta), device, seed)


@derived(CREATION)
def random_poisson(
    shape: ShapeLike,
    lam: DataLike = 1.0,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    seed: SeedLike | None = None,
) -> Tensor:
    """Numbers of events, of the Poisson distribution with the mean ``lam``; int64 unless ``dtype`` says otherwise.

    Drawn by rejection on the host, in float64, whatever the backend; a compiled function raises ``UnsupportedOp``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.random_poisson(3, 0.0)).tolist()
    [0, 0, 0]
    """
    shape = as_shape(shape)

    def compute(key: tuple[int, int]) -> Any:
        return rejection_sampling.poisson(key, read_parameter(lam, shape, "lam", 0.0, _MOST_EVENTS))

    return draw_on_host(compute, DEFAULT_INT if dtype is None else as_dtype(dtype), device, seed)


@derived(CREATION)
def random_binomial(
    shape: ShapeLike,
    n: DataLike = 1,
    p: DataLike = 0.5,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    seed: SeedLike | None = None,
) -> Tensor:
    """Numbers of successes in ``n`` tries, each with the probability ``p``; int64 unless ``dtype`` says otherwise.

    ``n`` loses what is behind its decimal point. Drawn by rejection on the host, in float64, whatever the backend; a
    compiled function raises ``UnsupportedOp``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.random_binomial(2, 10, 1.0)).tolist()
    [10, 10]
    """
    shape = as_shape(shape)

    def compute(key: tuple[int, int]) -> Any:
        tries = read_parameter(n, shape, "n", 0.0, _MOST_EVENTS) // 1.0  # emberlint: ignore[EMB401] on the host
        return rejection_sampling.binomial(key, tries, read_parameter(p, shape, "p", 0.0, 1.0))

    return draw_on_host(compute, DEFAULT_INT if dtype is None else as_dtype(dtype), device, seed)


@derived(FLOATING.giving("own"))
def dropout(x: TensorLike, rate: float, seed: SeedLike | None = None) -> Tensor:
    """``x`` with each element zero with the probability ``rate``, and the others divided by ``1 - rate``.

    So the expected value of each element stays what it was. A ``rate`` of 0 gives ``x``, of 1 zeros.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.dropout([1.0, 2.0], 0.0)).tolist(), ops.to_numpy(ops.dropout([1.0, 2.0], 1.0)).tolist()
    ([1.0, 2.0], [0.0, 0.0])
    """
    rate = checked_number(rate, "rate", 0.0, 1.0)
    if rate == 0.0:
        return x
    if rate == 1.0:
        return ops.zeros_like(x)
    kept = draw(distributions.bernoulli(1.0 - rate), tuple(x.shape), ops.get_device(x), seed)
    return ops.where(kept, ops.multiply(x, 1.0 / (1.0 - rate)), 0.0)


def _draw_shifted(
    kind: distributions.FloatVariate,
    shape: ShapeLike,
    place_name: str,
    place: Any,
    scale_name: str,
    scale: Any,
    dtype: Any,
    device: Any,
    seed: SeedLike | None,
) -> Tensor:
    """Return numbers of a standard distribution, times ``scale``, plus ``place``."""
    shape = as_shape(shape)
    place, scale = _check_parameter(place_name, place, shape), _check_parameter(scale_name, scale, shape)
    asked = _choose_dtype(dtype, place, scale)
    if isinstance(place, float) and isinstance(scale, float) and asked.itemsize > 2:
        change = Change(checked_number(scale, scale_name, 0.0), place)
        numbers, is_done = draw_changed(kind.within(asked), shape, device, seed, change)
        if is_done:
            return numbers
    else:
        numbers = draw(kind.within(asked), shape, device, seed)
    numbers = _scale(numbers, scale_name, scale)
    if not isinstance(place, float):
        numbers = ops.add(numbers, ops.cast(place, _dtype_of(numbers)))
    elif place != 0.0:
        numbers = ops.add(numbers, place)
    return ops.cast(numbers, asked)


def _scale(numbers: Tensor, name: str, scale: Any) -> Tensor:
    if not isinstance(scale, float):
        return ops.multiply(numbers, ops.cast(scale, _dtype_of(numbers)))
    return numbers if checked_number(scale, name, 0.0) == 1.0 else ops.multiply(numbers, scale)


def _check_parameter(name: str, value: Any, shape: tuple[int, ...]) -> Any:
    """Return a number as a float, or a tensor that broadcasts to the shape of the result."""
    if isinstance(value, int | float):
        return float(value)
    own = tuple(value.shape) if hasattr(value, "shape") else ops.shape(value)
    if broadcast((own, shape)) != shape:
        raise ValueError(f"{name} of shape {own} does not broadcast to the shape {shape} of the result")
    return value


def _dtype_of(value: Any) -> EmberDType:
    return as_dtype(value.dtype) if hasattr(value, "dtype") else ops.dtype(value)


def _choose_dtype(dtype: Any, *parameters: Any) -> EmberDType:
    """Return the floating dtype of the result: the given one, or that of tensors among the parameters, or float32."""
    if dtype is not None:
        asked = as_dtype(dtype)
        if asked.kind != "float":
            raise TypeError(f"these random numbers have a real floating dtype, not {asked}")
        return asked
    found = [_dtype_of(value) for value in parameters if not isinstance(value, int | float)]
    found = [own for own in found if own.kind == "float"]
    return ops.result_type(*found) if found else float32
