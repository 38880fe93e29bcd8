"""Compute special functions that libraries lack, with any library that has NumPy's names.

``xp`` is the library: ``numpy``, ``mlx.core`` or ``torch``. The formulas read no values and stay lazy where the library
is. The tables are Chebyshev coefficients of functions without a closed form, computed with mpmath to 50
digits; the first terms of a table are enough for float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

__all__ = [
    "LEAST_PROBABILITY",
    "NORMAL_TAIL",
    "NORMAL_TAIL_SCALE",
    "bessel_i0",
    "bessel_i1",
    "chebyshev",
    "complex_expm1",
    "complex_tanh",
    "cube_root",
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "lgamma",
    "scaled_bessel_i0",
    "sinc",
]

LEAST_PROBABILITY = 1e-7
"""The least probability whose logarithm a loss takes."""

NORMAL_TAIL = (
    -0.021078569814562798,
    0.0954090803861618,
    -0.14671088755130768,
    0.06533150374889374,
    -0.009379605762660503,
    0.05865464732050896,
    0.08782897889614105,
    0.11462236940860748,
    0.12766094505786896,
    0.12766152620315552,
)
"""The probability of a normal variable above ``a >= 0``, as a polynomial, the highest power first.

It is ``exp(-a * a / 2) * t`` times the polynomial in ``t = 1 / (1 + NORMAL_TAIL_SCALE * a)``, within 3.3e-8 of it:
fitted in float64 to ``0.5 * erfcx(a / sqrt(2)) / t``, for the least relative error.
"""
NORMAL_TAIL_SCALE = 0.32

_ERF = (
    0.9754769393826541,
    -0.14226120510371365,
    0.010035582187599796,
    -0.0005768764699767485,
    2.741993125219606e-05,
    -1.1043175507344507e-06,
    3.8488755420345036e-08,
    -1.1808582533875466e-09,
    3.2334215826050907e-11,
    -7.991015947004549e-13,
    1.7990725113961456e-14,
    -3.718635487818693e-16,
    7.103599003714253e-18,
)
"""erf(x) / x for 0 <= x <= 1, in 2*x*x - 1."""
_ERFC = (
    0.5226852818480617,
    0.06239406251578745,
    -0.0260663015282281,
    0.005894781567304472,
    -0.0007428920123522407,
    1.5128890832418327e-05,
    1.0671610297733193e-05,
    -9.96615539739532e-07,
    -1.8450476010209502e-07,
    2.805919177614582e-08,
    4.5876322428344715e-09,
    -7.389343846411987e-10,
    -1.5469505431115985e-10,
    1.7584896811152985e-11,
    6.057580561126259e-12,
    -2.4273932694348503e-13,
    -2.4051309254593736e-13,
    -1.075182997401723e-14,
    8.586349446804667e-15,
    1.3257658165635783e-15,
    -2.1923478924795032e-16,
    -8.484325968029135e-17,
    -9.106076048618888e-19,
    3.844824579203003e-18,
)
"""x * exp(x*x) * erfc(x) for x >= 1, in (x - 4) / (x + 2)."""
_I0_NEAR = (
    0.33839763720473803,
    -0.3046826723431984,
    0.17162090152220877,
    -0.09490109704804764,
    0.04930528423967071,
    -0.02373741480589947,
    0.010546460394594998,
    -0.004324309995050576,
    0.0016394756169413357,
    -0.0005763755745385824,
    0.00018850288509584165,
    -5.754195010082104e-05,
    1.6448448070728896e-05,
    -4.4167383584587505e-06,
    1.1173875391201037e-06,
    -2.670793853940612e-07,
    6.046995022541919e-08,
    -1.300025009986248e-08,
    2.6598237246823866e-09,
    -5.189795601635263e-10,
    9.675809035373237e-11,
    -1.726826291441556e-11,
    2.95505266312964e-12,
    -4.856446783111929e-13,
    7.676185498604936e-14,
    -1.1685332877993451e-14,
    1.715391285555133e-15,
    -2.431279846547955e-16,
    3.3307945188222384e-17,
    -4.4153416464793395e-18,
    5.669178006921496e-19,
)
"""exp(-x) * I0(x) for 0 <= x <= 8, in x/4 - 1."""
_I0_FAR = (
    0.4022452055070544,
    0.0033691164782556943,
    6.889758346916825e-05,
    2.8913705208347567e-06,
    2.0489185894690638e-07,
    2.266668990498178e-08,
    3.3962320257083865e-09,
    4.94060238822497e-10,
    1.1889147107846439e-11,
    -3.1499165279632416e-11,
    -1.3215811840447713e-11,
    -1.7941785315068062e-12,
    7.180124451383666e-13,
    3.8527783827421426e-13,
    1.54008621752141e-14,
    -4.150569347287222e-14,
    -9.554846698828307e-15,
    3.8116806693526224e-15,
    1.7725601330565263e-15,
    -3.425485619677219e-16,
    -2.8276239805165836e-16,
    3.461222867697461e-17,
    4.46562142029676e-17,
    -4.830504485944182e-18,
    -7.233180487874754e-18,
    9.921475412173699e-19,
)
"""sqrt(x) * exp(-x) * I0(x) for x >= 8, in 16/x - 1."""
_I1_NEAR = (
    0.12629359322181682,
    -0.17641651835783406,
    0.1026436586898471,
    -0.05294598120809499,
    0.024726449030626516,
    -0.010564084894626197,
    0.004156422944312888,
    -0.0015135724506312532,
    0.0005122859561685758,
    -0.00016176081582589674,
    4.781565107550054e-05,
    -1.3273163656039436e-05,
    3.4702513081376785e-06,
    -8.568720264695455e-07,
    2.0032947535521353e-07,
    -4.445059128796328e-08,
    9.381537386495773e-09,
    -1.8872497517228294e-09,
    3.625590281552117e-10,
    -6.663489723502027e-11,
    1.1736186298890901e-11,
    -1.9839743977649436e-12,
    3.223793365945575e-13,
    -5.042185504727912e-14,
    7.600684294735408e-15,
    -1.1055969477353862e-15,
    1.5536319577362005e-16,
    -2.111421214358166e-17,
    2.7779141127610464e-18,
    -3.541581772542136e-19,
)
"""I1(x) / x * exp(-x) for 0 <= x <= 8, in x / 4 - 1."""
_I1_FAR = (
    0.38928811750914005,
    -0.009761097491361469,
    -0.00011058893876262371,
    -3.882564808877691e-06,
    -2.512236237870209e-07,
    -2.6314688468895196e-08,
    -3.835380385964237e-09,
    -5.589743462196584e-10,
    -1.8974958123505413e-11,
    3.2526035830154884e-11,
    1.4125807436613782e-11,
    2.0356285441470896e-12,
    -7.198551776245908e-13,
    -4.0835511110921974e-13,
    -2.1015418427726643e-14,
    4.272440016711951e-14,
    1.0420276984128802e-14,
    -3.8144030724370075e-15,
    -1.8803547755107825e-15,
    3.3082023109209285e-16,
    2.96262899764595e-16,
    -3.209525921993424e-17,
    -4.6503053684893586e-17,
    4.414348323071708e-18,
    7.517296310842105e-18,
    -9.314178867326884e-19,
    -1.242193275194891e-18,
)
"""I1(x) * sqrt(x) * exp(-x) for x >= 8, in 16 / x - 1."""
_LGAMMA = (
    0.44148902545501423,
    -0.11119580321752523,
    0.01951044826068884,
    -0.003922461463025264,
    0.0008478989895953857,
    -0.00019153855341365593,
    4.454470184975607e-05,
    -1.05728743735943e-05,
    2.5474336873408413e-06,
    -6.208535880776316e-07,
    1.526867739907155e-07,
    -3.782637660291326e-08,
    9.428100823624251e-09,
    -2.361999702184645e-09,
    5.943541905817875e-10,
    -1.501312977072867e-10,
    3.805019645807765e-11,
    -9.672485299656325e-12,
    2.465348198388552e-12,
    -6.298868140791711e-13,
    1.6128460026994694e-13,
    -4.137949206814042e-14,
    1.0635701260648816e-14,
    -2.7382420786652826e-15,
    7.060670178305707e-16,
    -1.8232177141662118e-16,
    4.71417229584813e-17,
    -1.2204107319639856e-17,
    3.1630122752604434e-18,
)
"""log(gamma(x)) / ((x - 1) * (x - 2)) for 1 <= x <= 3, in x - 2."""
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def chebyshev(coefficients: Sequence[float], t: Any) -> Any:
    """Return the Chebyshev series at ``t`` in [-1, 1], by Clenshaw's recurrence."""
    b, later = 0.0, 0.0
    for c in reversed(coefficients[1:]):
        b, later = 2 * t * b - later + c, b
    return t * b - later + coefficients[0]


def _polynomial(coefficients: Sequence[float], x: Any) -> Any:
    result = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        result = result * x + c
    return result


def complex_expm1(xp: Any, parts: Any, exp: Any, x: Any) -> Any:
    """``exp(x) - 1`` of complex ``x`` with the standard's special cases; ``parts(real, imag)`` makes the result."""
    a, b = xp.real(x), xp.imag(x)
    odd = ~xp.isfinite(b)
    # the real part is exp(a)cos(b) - 1 without its cancellation near 0; adding zero makes -0 into 0
    real = xp.expm1(a) * xp.cos(b) - 2 * xp.square(xp.sin(b / 2)) + 0.0
    real = xp.where(xp.logical_and(odd, xp.isinf(a)), xp.where(a > 0, a, -1.0), real)
    imag = exp(a) * xp.sin(b)
    imag = xp.where(xp.logical_or(b == 0, xp.logical_and(odd, a == -math.inf)), xp.where(odd, 0.0, b), imag)
    return parts(real, imag)


def complex_tanh(xp: Any, parts: Any, x: Any) -> Any:
    """Return the hyperbolic tangent of complex ``x``; where it is ±1, the imaginary zero keeps the argument's sign."""
    a, b = xp.real(x), xp.imag(x)
    ends = parts(xp.sign(a), xp.where(b == 0, b, xp.where(b < 0, -0.0, 0.0 * xp.abs(xp.sign(a)))))
    return xp.where(xp.isinf(a), ends, xp.tanh(x))


def cube_root(xp: Any, signbit: Any, x: Any) -> Any:
    """Return the cube root: a power, which errs by the rounding of 1/3, and one step of Newton's method."""
    is_end = xp.logical_or(x == 0, xp.isinf(x))
    is_negative = signbit(x)  # also of -0.0, whose root it is
    a = xp.where(is_negative, -x, x)  # unlike abs, its derivative at 0 is not 0
    power = a ** (1 / 3)
    y = xp.where(is_end, 1.0, power)
    y = xp.where(is_end, power, y - (y - xp.where(is_end, 1.0, a) / (y * y)) / 3)
    return xp.where(is_negative, -y, y)


def sinc(xp: Any, sin: Any, x: Any) -> Any:
    """Return ``sin(pi*x) / (pi*x)`` by the sine of the distance to the nearest integer: exactly 0 at the integers."""
    whole = xp.round(x)
    is_odd = whole - 2 * xp.floor(whole / 2) == 1
    part = sin((x - whole) * math.pi)
    angle = xp.where(x == 0, 1.0, x * math.pi)
    return xp.where(xp.isinf(x), 0.0, xp.where(x == 0, 1.0, xp.where(is_odd, -part, part) / angle))


def _erf_near(x: Any, terms: int) -> Any:
    """erf for |x| <= 1."""
    return x * chebyshev(_ERF[:terms], 2 * x * x - 1)


def _erfc_far(xp: Any, exp: Any, x: Any, terms: int) -> Any:
    """erfc for 1 <= x <= 28, relatively accurate: the square in the exponent is split to be exact."""
    high = xp.floor(x * 16) / 16
    tail = exp(-high * high) * exp((high - x) * (high + x))
    return chebyshev(_ERFC[:terms], (x - 4) / (x + 2)) / x * tail


def erf(xp: Any, exp: Any, x: Any, is_short: bool) -> Any:
    """Return the error function; ``is_short`` for float32."""
    a = xp.abs(x)
    near = _erf_near(xp.where(a < 1, x, 0.5), 8 if is_short else 13)
    far = 1 - _erfc_far(xp, exp, xp.clip(a, 1, 28), 12 if is_short else 24)
    return xp.where(a < 1, near, xp.where(x < 0, -far, far))


def erfc(xp: Any, exp: Any, x: Any, is_short: bool) -> Any:
    """``1 - erf(x)``; ``is_short`` for float32."""
    a = xp.abs(x)
    near = 1 - _erf_near(xp.where(a < 1, x, 0.5), 8 if is_short else 13)
    far = _erfc_far(xp, exp, xp.clip(a, 1, 28), 12 if is_short else 24)
    return xp.where(a < 1, near, xp.where(x < 0, 2 - far, far))


def erfinv(xp: Any, exp: Any, erf: Any, erfc: Any, x: Any) -> Any:
    """Return the inverse error function: a closed form good to 1 %, then two Halley steps, which cube the error."""
    a = xp.abs(x)
    is_near = a < 0.5
    inner = xp.where(is_near, 0.5, a)
    ends = xp.log1p(-inner) + xp.log1p(inner)
    t = 2 / (math.pi * 0.147) + ends / 2
    y = xp.sqrt(xp.sqrt(t * t - ends / 0.147) - t)
    y = xp.where(is_near, a * (math.sqrt(math.pi) / 2) * (1 + math.pi / 12 * a * a), y)
    for _ in range(2):
        residual = xp.where(is_near, erf(y) - a, (1 - a) - erfc(y))
        step = residual * exp(y * y) * (math.sqrt(math.pi) / 2)
        y = y - step / (1 + y * step)
    y = xp.where(a == 1, math.inf, y)
    return xp.where(x == 0, x * (math.sqrt(math.pi) / 2), xp.where(x < 0, -y, y))


def lgamma(xp: Any, sin: Any, x: Any, is_short: bool) -> Any:
    """Return log(|gamma(x)|): a series in [1, 3), recurrence below and above, Stirling's series from 9 on."""
    p = xp.where(x < 0, 1 - x, x)
    is_below = p < 1
    y, product = xp.where(is_below, p + 1, p), xp.where(is_below, p, 1.0)
    below = xp.log(product)
    product = xp.where(is_below, 1.0, 1.0 + 0 * p)
    for _ in range(6):
        is_above = xp.logical_and(y >= 3, p < 9)
        product = xp.where(is_above, product * (y - 1), product)
        y = xp.where(is_above, y - 1, y)
    u = xp.where(p < 9, y, 2.0)
    near = (u - 1) * (u - 2) * chebyshev(_LGAMMA[: 15 if is_short else 29], u - 2) + xp.log(product) - below
    v = xp.where(p < 9, 9.0, p)
    far = (v - 0.5) * (xp.log(v) - 1) + (math.log(2 * math.pi) / 2 - 0.5) + _polynomial(_STIRLING, 1 / (v * v)) / v
    positive = xp.where(p < 9, near, far)
    fraction = x - xp.round(x)
    reflected = math.log(math.pi) - xp.log(xp.abs(sin(fraction * math.pi))) - positive
    return xp.where(xp.isinf(x), math.inf, xp.where(x < 0, reflected, positive))


def digamma(xp: Any, x: Any) -> Any:
    """Return the derivative of ``lgamma``: recurrence up to 10, then the asymptotic series; reflection if negative."""
    y = xp.where(x < 0, 1 - x, x)
    lower = 0.0
    for _ in range(10):
        is_low = y < 10
        lower = lower + xp.where(is_low, 1 / y, 0.0)
        y = xp.where(is_low, y + 1, y)
    square = 1 / (y * y)
    positive = xp.log(y) - 0.5 / y - square * _polynomial(_DIGAMMA, square) - lower
    fraction = x - xp.round(x)
    reflected = xp.where(fraction == 0, math.nan, positive - math.pi / xp.tan(fraction * math.pi))
    return xp.where(x == 0, -1 / x, xp.where(x < 0, reflected, positive))


def bessel_i0(xp: Any, exp: Any, x: Any, is_short: bool) -> Any:
    """Return the modified Bessel function of order 0; ``is_short`` for float32."""
    a = xp.abs(x)
    half = exp(a / 2)  # twice, since the whole would overflow first
    return xp.where(xp.isinf(a), a, xp.where(a == 0, 1.0, scaled_bessel_i0(xp, a, is_short) * half * half))


def scaled_bessel_i0(xp: Any, a: Any, is_short: bool) -> Any:
    """Return the modified Bessel function of order 0 of ``a``, which is not negative, times ``exp(-a)``."""
    near = chebyshev(_I0_NEAR[: 20 if is_short else 31], xp.clip(a, None, 8.0) / 4 - 1)
    b = xp.clip(a, 8.0, None)
    far = chebyshev(_I0_FAR[: 8 if is_short else 26], 16 / b - 1) / xp.sqrt(b)
    return xp.where(a < 8, near, far)


def bessel_i1(xp: Any, exp: Any, x: Any, is_short: bool) -> Any:
    """Return the modified Bessel function of order 1, the derivative of that of order 0; ``is_short`` for float32."""
    a = xp.abs(x)
    half = exp(a / 2)
    b = xp.clip(a, 8.0, None)
    near = chebyshev(_I1_NEAR[: 20 if is_short else len(_I1_NEAR)], xp.clip(a, None, 8.0) / 4 - 1)
    far = chebyshev(_I1_FAR[: 8 if is_short else len(_I1_FAR)], 16 / b - 1) / (xp.sqrt(b) * b)
    return xp.where(xp.isinf(a), x, x * xp.where(a < 8, near, far) * half * half)
