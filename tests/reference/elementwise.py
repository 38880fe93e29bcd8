"""References of the elementwise ops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import special

from tests.reference import COMPLEX, arrays, broadcastable
from tests.reference.spec import binary, spec, unary


def lifted(function: Any) -> Any:
    """Integers and bools enter as floats, as the contract lifts them."""

    def reference(x: np.ndarray, *rest: np.ndarray) -> np.ndarray:
        parts = [part.astype(np.longdouble) if part.dtype.kind in "biu" else part for part in (x, *rest)]
        return function(*parts)

    return lambda **kwargs: reference(*kwargs.values())


def double(function: Any) -> Any:
    """A SciPy function, which computes in double precision."""

    def reference(*parts: np.ndarray) -> np.ndarray:
        return function(*(part.astype(np.complex128 if part.dtype.kind == "c" else np.float64) for part in parts))

    return lambda **kwargs: reference(*kwargs.values())


def plain(function: Any) -> Any:
    return lambda **kwargs: function(*kwargs.values())


unary("abs", plain(np.abs))
unary("fabs", lifted(np.abs))
unary("negative", plain(np.negative), ulps=0)
unary("positive", plain(np.positive), ulps=0)
unary("square", plain(np.square))
unary("sign", plain(lambda x: x / np.abs(np.where(x == 0, 1, x)) if x.dtype.kind == "c" else np.sign(x)))
for _name in ("floor", "ceil", "trunc"):
    unary(_name, plain(getattr(np, _name)), ulps=0)
unary("conj", plain(np.conj), ulps=0)
unary("real", plain(np.real), ulps=0)
unary("imag", plain(np.imag), ulps=0)
unary("signbit", plain(np.signbit))
for _name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "arctan", "arcsinh", "tanh"):
    unary(_name, lifted(getattr(np, _name)))
for _name in ("sin", "cos", "tan"):
    # near multiples of pi the last digits of pi decide; and beyond 1e4 only argument reduction is measured
    unary(_name, lifted(getattr(np, _name)), low=-1e4, high=1e4, ulps=8)
for _name in ("sinh", "cosh", "arcsin", "arccos", "arccosh", "arctanh"):
    unary(_name, lifted(getattr(np, _name)), ulps=6)


def _divisor(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, finite=dtype in COMPLEX, low=-30.0, high=30.0))
    return {"x": np.where(x == 0, x.dtype.type(1), x) if dtype in COMPLEX else x}  # 1 / 0j has no agreed parts


spec("reciprocal", _divisor, lifted(lambda x: 1 / x), ulps=2)
unary("rsqrt", lifted(lambda x: 1 / np.sqrt(x)))
spec(
    "sinc",
    lambda draw, dtype: {"x": draw(arrays(dtype, low=-50, high=50, finite=True))},
    lifted(np.sinc),
    ulps=64,
    scale=lambda x: np.ones(x.shape),  # near its zeros, the last digits of pi decide
)
unary("deg2rad", lifted(lambda x: x * (np.longdouble("3.14159265358979323846264338327950288") / 180)))
unary("rad2deg", lifted(lambda x: x * (180 / np.longdouble("3.14159265358979323846264338327950288"))))
unary("angle", lifted(np.angle))
unary("erf", double(special.erf))
unary("erfc", double(special.erfc), low=-20, high=5, ulps=64)
unary("erfinv", double(special.erfinv), low=-0.99, high=0.99, ulps=16)
# SciPy's function is accurate to 1e-16 absolutely, not relatively, near its zeros at 1 and 2
unary(
    "lgamma",
    double(special.gammaln),
    low=0.1,
    high=60,
    ulps=64,
    scale=lambda x: 0.1 + np.abs(special.gammaln(np.float64(x))),
)
unary("digamma", double(special.digamma), low=0.1, high=60, ulps=128)
unary("i0", double(special.i0), low=-20, high=20, ulps=16)
for _name in ("isfinite", "isinf", "isnan"):
    unary(_name, plain(getattr(np, _name)))
unary("isneginf", plain(lambda x: np.isinf(x) & (x < 0)))
unary("isposinf", plain(lambda x: np.isinf(x) & (x > 0)))
unary("isreal", plain(np.isreal))
unary("logical_not", plain(np.logical_not))
unary("bitwise_invert", plain(np.invert))

_SUM: dict[str, Any] = {"scale": lambda x, y: np.abs(x) + np.abs(y)}
binary("add", plain(np.add), **_SUM)
binary("subtract", plain(np.subtract), **_SUM)
binary("multiply", plain(np.multiply), scale=lambda x, y: np.abs(x) * np.abs(y))
binary("divide", lifted(np.divide), ulps=8)
binary(
    "divide_no_nan",
    lifted(lambda x, y: np.where(y == 0, 0 * np.where(np.isfinite(x), x, 0), x / np.where(y == 0, 1, y))),
    finite=True,
)
binary("maximum", plain(np.maximum), ulps=0)
binary("minimum", plain(np.minimum), ulps=0)
binary("fmax", plain(np.fmax), ulps=0)
binary("fmin", plain(np.fmin), ulps=0)
binary("arctan2", lifted(np.arctan2))
binary("hypot", lifted(np.hypot))
binary("copysign", lifted(np.copysign), ulps=0)
# where the sum is near 1, its logarithm is a difference of numbers of the arguments' size
_LOG_SUM: dict[str, Any] = {"scale": lambda x, y: np.abs(x.astype(np.longdouble)) + np.abs(y.astype(np.longdouble))}
binary("logaddexp", lifted(np.logaddexp), ulps=8, **_LOG_SUM)
binary("logaddexp2", lifted(np.logaddexp2), ulps=8, **_LOG_SUM)
binary("xlogy", lifted(lambda x, y: np.where((x == 0) & ~np.isnan(y), 0, x * np.log(y))), ulps=8)
binary("heaviside", lifted(np.heaviside), ulps=0)
for _name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
    binary(_name, plain(getattr(np, _name)))
for _name in ("logical_and", "logical_or", "logical_xor"):
    binary(_name, plain(getattr(np, _name)))
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    binary(_name, plain(getattr(np, _name)))


def _nextafter(x: np.ndarray, y: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.nextafter(x.astype(dtype), y.astype(dtype))


def _exact_quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Floor of the exact quotient; integers divided by zero give 0."""
    if x.dtype.kind in "iu":
        safe = np.where(y == 0, 1, y).astype(object)
        quotient = np.where(y == 0, 0, x.astype(object) // safe)
        bits = x.dtype.itemsize * 8
        wrapped = [int(v) & ((1 << bits) - 1) for v in np.ravel(quotient)]
        unsigned = np.array(wrapped, dtype=f"uint{bits}").reshape(quotient.shape)
        return unsigned.astype(x.dtype)
    return np.floor(x / y)


def _exact_remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind in "iu":
        safe = np.where(y == 0, 1, y).astype(object)
        return np.where(y == 0, 0, x.astype(object) % safe).astype(x.dtype)
    return np.mod(x, y)


# Floats: moderate magnitudes, where the exact quotient is what the wide precision gives.
def _division(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    first, second = draw(broadcastable(2))
    limits: dict[str, Any] = {} if dtype.startswith(("int", "uint")) else {"low": -100.0, "high": 100.0, "finite": True}
    x, y = draw(arrays(dtype, first, **limits)), draw(arrays(dtype, second, **limits))
    return {"x": x, "y": y if dtype.startswith(("int", "uint")) else np.where(np.abs(y) < 0.1, y.dtype.type(1), y)}


spec("floor_divide", _division, plain(_exact_quotient), ulps=1)
spec("mod", _division, plain(_exact_remainder), ulps=4, scale=lambda x, y: np.abs(y) + np.abs(x))
spec(
    "fmod",
    _division,
    plain(lambda x, y: np.fmod(x, np.where(y == 0, 1, y)) * (y != 0) if x.dtype.kind in "iu" else np.fmod(x, y)),
    ulps=1,
)


def _powers(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    first, second = draw(broadcastable(2))
    if dtype.startswith(("int", "uint")):
        return {"x": draw(arrays(dtype, first)), "y": draw(arrays(dtype, second, low=0, high=20))}
    if dtype in COMPLEX:
        return {
            "x": draw(arrays(dtype, first, finite=True, low=0.5, high=2.0)),
            "y": draw(arrays(dtype, second, finite=True, low=-2.0, high=2.0)),
        }
    return {"x": draw(arrays(dtype, first, low=0.0, high=20.0)), "y": draw(arrays(dtype, second, low=-4.0, high=4.0))}


def _power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind not in "iu":
        return np.power(x, y)
    bits = x.dtype.itemsize * 8
    a, b = np.broadcast_arrays(x, y)
    wrapped = [pow(int(p), int(q), 1 << bits) for p, q in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)]
    return np.array(wrapped, dtype=f"uint{bits}").reshape(a.shape).astype(x.dtype)


spec("power", _powers, plain(_power), ulps=16)


def _shifts(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    first, second = draw(broadcastable(2))
    return {"x": draw(arrays(dtype, first)), "y": draw(arrays(dtype, second, low=0, high=70))}


def _shift(left: bool) -> Any:
    def reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        a, b = np.broadcast_arrays(x, y)
        bits = x.dtype.itemsize * 8
        values = [
            (int(p) << int(q) if left else int(p) >> int(q)) & ((1 << bits) - 1)
            for p, q in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
        ]
        return np.array(values, dtype=f"uint{bits}").reshape(a.shape).astype(x.dtype)

    return plain(reference)


spec("bitwise_left_shift", _shifts, _shift(True))
spec("bitwise_right_shift", _shifts, _shift(False))


def _integer_pairs(function: Any) -> Any:
    def reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        a, b = np.broadcast_arrays(x, y)
        values = [function(int(p), int(q)) for p, q in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)]
        return np.array(values, dtype=object).reshape(a.shape).astype(x.dtype)

    return plain(reference)


binary("gcd", _integer_pairs(math.gcd), low=-100, high=100)
binary("lcm", _integer_pairs(math.lcm), low=-10, high=10)


def _clip(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype))
    low, high = sorted(draw(st.tuples(st.integers(0, 5), st.integers(0, 5))))
    cast = float if dtype in ("float16", "bfloat16", "float32", "float64") else int
    return {"x": x, "min": draw(st.sampled_from([None, cast(low)])), "max": draw(st.sampled_from([None, cast(high)]))}


def _clipped(x: np.ndarray, min: Any, max: Any) -> np.ndarray:
    result = x
    if min is not None:
        result = np.where(result < min, x.dtype.type(min), result)
    if max is not None:
        result = np.where(result > max, x.dtype.type(max), result)
    return result


spec("clip", _clip, _clipped, ulps=0)


def _round(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    return {"x": draw(arrays(dtype, finite=dtype in COMPLEX, low=-1000.0, high=1000.0))}


spec("round", _round, plain(np.round), ulps=0)


def _choice(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    mask, first, second = draw(broadcastable(3))
    return {"condition": draw(arrays("bool", mask)), "x": draw(arrays(dtype, first)), "y": draw(arrays(dtype, second))}


spec("where", _choice, plain(np.where), ulps=0)
unary("nan_to_num", plain(lambda x: np.where(np.isnan(x), 0, x)), finite=True, ulps=0)


def _closeness(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype))
    nudge = draw(st.sampled_from([0.0, 1e-3, 1.0]))
    with np.errstate(all="ignore"):
        y = x if x.dtype.kind in "biu" else (x * (1 + nudge)).astype(x.dtype)
    return {"x": x, "y": y}


spec(
    "isclose",
    _closeness,
    plain(lambda x, y: np.isclose(x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble), y)),
)
spec(
    "allclose",
    _closeness,
    plain(lambda x, y: np.allclose(x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble), y)),
)


def _members(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    return {"x": draw(arrays(dtype)), "test_elements": draw(arrays(dtype))}


spec("isin", _members, lambda x, test_elements: np.isin(x, test_elements), ulps=0)
