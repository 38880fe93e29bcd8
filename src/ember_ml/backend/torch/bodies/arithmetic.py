"""Arithmetic on PyTorch: native functions, and bodies where they deviate from the contract."""

from __future__ import annotations

import torch

from ember_ml.backend.contract import Body, ByDType
from ember_ml.backend.torch.bodies.complex import map_parts
from ember_ml.backend.torch.gradients import is_inside_transform, may_be_differentiated_again
from ember_ml.backend.torch.half_precision import in_float32
from ember_ml.backend.torch.readable_values import values_are_read
from ember_ml.backend.torch.unsigned import ordered, to_ordered, unsigned
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType


def _by_parts(native: Body) -> dict[EmberDType, Body]:
    """Return ``native`` for complex numbers, part by part."""
    # torch 2.13: multiplies the second operand by 1+0j first, which makes NaN beside an infinite part

    def body(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = (torch.view_as_real(part.resolve_conj()) for part in (x, y))
        return torch.view_as_complex(native(x, y))

    return dict.fromkeys(dt.COMPLEX, body)


add = ByDType(torch.add, unsigned(torch.add) | _by_parts(torch.add))
subtract = ByDType(torch.subtract, unsigned(torch.subtract) | _by_parts(torch.subtract))
multiply = ByDType(torch.multiply, unsigned(torch.multiply))
square = ByDType(torch.square, unsigned(torch.square))
reciprocal = torch.reciprocal
negative = ByDType(torch.negative, unsigned(torch.negative))
positive = torch.positive
abs = ByDType(torch.abs, dict.fromkeys(dt.UNSIGNED, torch.positive))
maximum = ByDType(torch.maximum, ordered(torch.maximum))
minimum = ByDType(torch.minimum, ordered(torch.minimum))


def _divide(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.divide(x, y)


# torch 2.11 on CUDA: multiplies by the reciprocal of a number, so that 49 / 49 is less than 1. A function of Python's
# gets tensors only; PyTorch's own gets numbers too, which is quicker
divide = _divide if torch.cuda.device_count() else torch.divide


def _is_differentiated(x: torch.Tensor, y: torch.Tensor) -> bool:
    return x.requires_grad or y.requires_grad or is_inside_transform()


def _fmax(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if _is_differentiated(x, y):  # torch 2.13: the first of two equal numbers gets the whole gradient
        return torch.where(torch.isnan(x), y, torch.where(torch.isnan(y), x, torch.maximum(x, y)))
    return torch.fmax(x, y)


def _fmin(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if _is_differentiated(x, y):
        return torch.where(torch.isnan(x), y, torch.where(torch.isnan(y), x, torch.minimum(x, y)))
    return torch.fmin(x, y)


fmax = ByDType(torch.fmax, dict.fromkeys(dt.FLOATS, _fmax) | ordered(torch.fmax))
fmin = ByDType(torch.fmin, dict.fromkeys(dt.FLOATS, _fmin) | ordered(torch.fmin))
ceil = torch.ceil
floor = torch.floor
trunc = torch.trunc


def _float_sign(x: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.isnan(x), x, torch.sign(x))  # torch 2.13: 0 for NaN (pytorch#41245)


def _complex_sign(x: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.isnan(x), complex("nan+nanj"), torch.sgn(x) + 0)  # adding 0 makes -0 into 0


def _unsigned_sign(x: torch.Tensor) -> torch.Tensor:
    return (x != 0).to(x.dtype)


sign = ByDType(
    torch.sign,
    dict.fromkeys(dt.FLOATS, _float_sign)
    | dict.fromkeys(dt.COMPLEX, _complex_sign)
    | dict.fromkeys(dt.UNSIGNED, _unsigned_sign),
)


def _safe(y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return where an integer divisor is 0, and the divisor with 1 in place of 0."""
    is_zero = y == 0
    return is_zero, torch.where(is_zero, 1, y)


def _integer_floor_divide(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    is_zero, safe = _safe(y)
    return torch.where(is_zero, 0, torch.floor_divide(x, safe))


def _integer_mod(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    is_zero, safe = _safe(y)
    return torch.where(is_zero, 0, torch.remainder(x, safe))


def _integer_fmod(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    is_zero, safe = _safe(y)
    return torch.where(is_zero, 0, torch.fmod(x, safe))


def _divide_uint64(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Divide the bits of unsigned integers by signed division: quotient and remainder, both 0 for a zero divisor.

    Half of ``x`` is not negative and can be divided; twice that quotient is at most one too small. A divisor of
    2**63 or more goes into ``x`` at most once.
    """
    a, b = x.view(torch.int64), y.view(torch.int64)
    is_zero, safe = _safe(torch.where(b < 0, 1, b))
    half = (a >> 1) & (2**63 - 1)
    quotient = torch.where(b < 0, 0, (half // safe) << 1)
    rest = a - quotient * b
    is_more = (rest ^ -(2**63)) >= (b ^ -(2**63))
    quotient, rest = quotient + is_more.to(torch.int64), torch.where(is_more, rest - b, rest)
    is_zero = b == 0
    return torch.where(is_zero, 0, quotient).view(torch.uint64), torch.where(is_zero, 0, rest).view(torch.uint64)


def _uint64_quotient(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return _divide_uint64(x, y)[0]


def _uint64_remainder(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return _divide_uint64(x, y)[1]


def _float_floor_divide(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    # torch 2.13: NaN for an infinite numerator, -1 for a finite one over the opposite infinity (pytorch#170178)
    return torch.where(torch.isinf(x) | torch.isinf(y), torch.divide(x, y), torch.div(x, y, rounding_mode="floor"))


def _reduce_first(native: Body) -> Body:
    """Return ``native``, a remainder, also where the quotient overflows: reduce by multiples of the divisor first."""
    # torch 2.13 on the CPU: NaN where the quotient overflows, of eight elements and more

    def body(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        result = native(x, y)
        if x.device.type != "cpu" or (values_are_read(result) and not result.isnan().any()):
            return result
        step = 2.0**540 if x.dtype is torch.float64 else 2.0**80
        multiple = torch.as_tensor(y, dtype=x.dtype).detach() * step
        return native(torch.fmod(torch.fmod(x, multiple * step), multiple), y)

    return body


_fmod = _reduce_first(torch.fmod)
_remainder = _reduce_first(torch.remainder)


def _float_mod(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    rest = _remainder(x, y)
    if not _is_differentiated(x, y):
        return torch.where(rest == 0, torch.copysign(rest, y), rest)  # torch 2.13: a zero has the sign of x
    # the same zeros, by differences that are exact and have a slope
    quotient = torch.div(x, y, rounding_mode="floor").detach()
    multiple = torch.where(torch.isfinite(quotient), quotient, 0) * y
    zero = torch.where(torch.signbit(y), -(multiple - x), x - multiple)
    return torch.where((rest == 0) & (zero == 0), zero, rest)


_SMALL_INTEGERS = dt.SIGNED | {dt.uint8}
floor_divide = ByDType(
    torch.floor_divide,
    dict.fromkeys(dt.FLOATS, _float_floor_divide)
    | in_float32(_float_floor_divide)  # torch 2.13: rounds the quotient before the floor
    | dict.fromkeys(_SMALL_INTEGERS, _integer_floor_divide)
    | unsigned(_integer_floor_divide, _uint64_quotient),
)
mod = ByDType(
    torch.remainder,
    dict.fromkeys(dt.FLOATS, _float_mod)
    | in_float32(_float_mod)
    | dict.fromkeys(_SMALL_INTEGERS, _integer_mod)
    | unsigned(_integer_mod, _uint64_remainder),
)
fmod = ByDType(
    torch.fmod,
    dict.fromkeys(dt.FLOATS, _fmod)
    | in_float32(_fmod)
    | dict.fromkeys(_SMALL_INTEGERS, _integer_fmod)
    | unsigned(_integer_fmod, _uint64_remainder),
)


def _integer_power(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.numel() and values_are_read(y) and bool((y < 0).any()):
        raise ValueError("integers have no negative integer powers; cast to a float dtype first")
    return torch.where(y < 0, 0, torch.pow(x, y.clamp(min=0)))


def _uint64_power(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Compute powers by repeated squaring."""
    # torch 2.13: no power of uint64; in int64, exponents of 2**63 and more are negative (pytorch#58734)
    base, exponent = x.view(torch.int64), y.view(torch.int64)
    result = torch.ones_like(base * exponent)
    for _ in range(64):
        result = torch.where((exponent & 1).bool(), result * base, result)
        base, exponent = base * base, (exponent >> 1) & (2**63 - 1)
    return result.view(torch.uint64)


def _complex_power(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    # torch 2.13: NaN for the complex 0 to the power of 0
    return torch.pow(torch.where((x == 0) & (y == 0), 1, x), y)


def _power(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if isinstance(y, torch.Tensor) and may_be_differentiated_again() and _is_differentiated(x, y):
        # torch 2.13: at an exponent of 0 the derivative by both is 0; x**y is x**(y + 1) / x there
        is_flat = y == 0
        base = torch.where(is_flat & (x != 0), x, 1)
        return torch.where(is_flat, torch.pow(base, y + 1) / base, torch.pow(torch.where(is_flat, 1, x), y))
    return torch.pow(x, y)


power = ByDType(
    _power,
    dict.fromkeys(dt.SIGNED, _integer_power)
    | unsigned(torch.pow, _uint64_power)
    | dict.fromkeys(dt.COMPLEX, _complex_power),
)


def _clamp(x: torch.Tensor, min: torch.Tensor | None, max: torch.Tensor | None) -> torch.Tensor:
    if min is None and max is None:
        return torch.positive(x)
    result = torch.clamp(x, min, max)
    if result.shape != x.shape and (x.requires_grad or is_inside_transform()):
        # torch 2.13: no gradient where the bounds broadcast the tensor
        return torch.clamp(x.expand(result.shape), min, max)
    return result


clip = ByDType(_clamp, ordered(_clamp))


def _round_integer(x: torch.Tensor, decimals: int) -> torch.Tensor:
    # torch 2.13: rounds floats only
    if decimals >= 0:
        return torch.positive(x)
    if x.dtype is torch.uint64:
        unit = torch.tensor(10**-decimals if decimals >= -19 else 2**64 - 1, dtype=torch.uint64, device=x.device)
        quotient, rest = _divide_uint64(x, unit)
        more = to_ordered(rest) > to_ordered((unit.view(torch.int64) - rest.view(torch.int64)).view(torch.uint64))
        even = (rest.view(torch.int64) * 2 == unit.view(torch.int64)) & (quotient.view(torch.int64) & 1).bool()
        return ((quotient.view(torch.int64) + (more | even)) * unit.view(torch.int64)).view(torch.uint64)
    wide = x.to(torch.int64)
    if decimals < -18:
        return torch.zeros_like(x)
    unit = 10**-decimals
    quotient = torch.floor_divide(wide, unit)
    rest = wide - quotient * unit
    up = (rest > unit - rest) | ((rest == unit - rest) & (quotient & 1).bool())
    return ((quotient + up) * unit).to(x.dtype)


def _round_float(x: torch.Tensor, decimals: int) -> torch.Tensor:
    return torch.round(x) if decimals == 0 else torch.round(x, decimals=decimals)


def _round_half(x: torch.Tensor, decimals: int) -> torch.Tensor:
    return _round_float(x.to(torch.float32), decimals).to(x.dtype)


round = ByDType(
    _round_float,
    dict.fromkeys(dt.INTEGERS, _round_integer)
    | dict.fromkeys(dt.HALVES, _round_half)
    | dict.fromkeys(dt.COMPLEX, lambda x, decimals: map_parts(lambda part: _round_float(part, decimals), x)),
)


def nan_to_num(x: torch.Tensor, nan: float, posinf: float | None, neginf: float | None) -> torch.Tensor:
    if x.is_complex():
        return map_parts(lambda part: nan_to_num(part, nan, posinf, neginf), x)
    return torch.nan_to_num(x, nan, posinf, neginf) if x.is_floating_point() else x.clone()


def _gcd_uint64(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    a, b = torch.broadcast_tensors(x, y)
    for _ in range(93):  # the most steps that Euclid's algorithm needs in 64 bits
        rest = _uint64_remainder(a, b)
        signed_a, signed_b = a.view(torch.int64), b.view(torch.int64)  # torch 2.11 on CUDA: no where of uint64
        a, b = torch.where(signed_b == 0, signed_a, signed_b).view(torch.uint64), rest
    return a


def _lcm_uint64(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    parts = _uint64_quotient(x, _gcd_uint64(x, y))
    return (parts.view(torch.int64) * y.view(torch.int64)).view(torch.uint64)


def _gcd(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    # torch 2.13: negative results for the smallest integer (pytorch#187338), and lcm then ends the process
    # (pytorch#121343); half of the smallest integer has the same divisors below it
    smallest = torch.iinfo(x.dtype).min
    if not smallest:
        return torch.gcd(x, y)
    halved = [torch.where(part == smallest, part >> 1, part).abs() for part in (x, y)]
    result = torch.gcd(*halved)
    is_smallest = (x == smallest) & ((y == smallest) | (y == 0)) | (y == smallest) & (x == 0)
    return torch.where(is_smallest, smallest, result)


def _lcm(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    divisor = _gcd(x, y)
    quotient = torch.div(x.abs(), torch.where(divisor > 0, divisor, 1), rounding_mode="floor")
    return torch.where(x == y, x.abs(), torch.where(divisor == 0, 0, quotient * y.abs()))


gcd = ByDType(_gcd, unsigned(_gcd, _gcd_uint64))
lcm = ByDType(_lcm, unsigned(_lcm, _lcm_uint64))
