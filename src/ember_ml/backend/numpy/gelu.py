"""Compute GELU and its derivative on NumPy, block by block: the passes over a block stay in the processor's cache."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ember_ml.backend.common.special import NORMAL_TAIL, NORMAL_TAIL_SCALE
from ember_ml.backend.numpy.bodies.special import erfc

__all__ = ["gelu"]

Array = np.ndarray[Any, Any]

_BLOCK = 1 << 15
_DENSITY = 1 / math.sqrt(2 * math.pi)
_ROOT = 2 * math.sqrt(2 / math.pi)
_FIRST, *_MIDDLE, _LAST = (np.float32(coefficient) for coefficient in NORMAL_TAIL)
_UPPER_BITS = np.int32(-(1 << 12))
"""The sign, the exponent and the first 11 digits of a float32: the square of such a number is exact."""


def gelu(x: Array, approximate: bool, has_slope: bool = False) -> tuple[Array, Array | None]:
    """Return GELU of float32 or float64, and its derivative where it is asked for."""
    result = np.empty(x.shape, x.dtype)
    slope = np.empty(x.shape, x.dtype) if has_slope else None
    numbers, results = x.reshape(-1), result.reshape(-1)
    slopes = None if slope is None else slope.reshape(-1)
    part = _approximate if approximate else _exact if x.dtype == np.float32 else _exact_in_double
    work = np.empty((4, min(numbers.size, _BLOCK)), x.dtype)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for start in range(0, numbers.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            own = numbers[block]
            part(own, results[block], None if slopes is None else slopes[block], work[:, : own.size])
    return result, slope


def _approximate(x: Array, result: Array, slope: Array | None, work: Array) -> None:
    kind = x.dtype.type
    near, cubic, gate, _ = work
    np.clip(x, kind(-30), kind(30), out=near)  # beyond, the sigmoid is 0 or 1; and the cube would overflow
    np.multiply(near, near, out=cubic)
    cubic *= kind(-0.044715 * _ROOT)
    np.subtract(cubic, kind(_ROOT), out=gate)
    gate *= near
    np.exp(gate, out=gate)
    gate += kind(1)
    np.reciprocal(gate, out=gate)
    np.multiply(x, gate, out=result)
    if slope is None:
        return
    # the derivative is the gate, plus x times the derivative of the gate
    np.multiply(cubic, kind(-3), out=slope)
    slope += kind(_ROOT)
    slope *= near
    np.multiply(gate, gate, out=near)
    np.subtract(gate, near, out=near)
    slope *= near
    slope += gate


def _exact(x: Array, result: Array, slope: Array | None, work: Array) -> None:
    """Compute GELU in float32, within four last digits, small results below 0 too."""
    kind = np.float32
    near, series, density, rest = work
    np.clip(x, kind(-20), kind(20), out=near)  # beyond, the density is 0; and infinity times 0 would be NaN
    np.abs(near, out=rest)
    t = np.multiply(rest, kind(NORMAL_TAIL_SCALE), out=density)
    t += kind(1)
    np.reciprocal(t, out=t)
    np.multiply(t, _FIRST, out=series)
    for coefficient in _MIDDLE:
        series += coefficient
        series *= t
    series += _LAST
    series *= t
    # exp(-a * a / 2) with a split in two, so that the larger square is exact: the rounding error of a * a would show
    np.bitwise_and(rest.view(np.int32), _UPPER_BITS, out=density.view(np.int32))
    np.subtract(rest, density, out=result)
    rest += density
    rest *= result
    rest *= kind(-0.5)
    np.exp(rest, out=rest)
    density *= density
    density *= kind(-0.5)
    np.exp(density, out=density)
    density *= rest
    series *= density
    # the probability below x: the tail where x is negative, 1 minus the tail elsewhere
    np.copyto(rest, np.greater(x, kind(0)))
    rest -= series
    np.abs(rest, out=rest)
    np.multiply(x, rest, out=result)
    if slope is not None:
        density *= kind(_DENSITY)
        np.multiply(density, near, out=slope)
        slope += rest


def _exact_in_double(x: Array, result: Array, slope: Array | None, work: Array) -> None:
    near, density, *_ = work
    probability = erfc(x * -math.sqrt(0.5))
    probability *= 0.5
    np.multiply(x, probability, out=result)
    if slope is not None:
        np.clip(x, -50, 50, out=near)
        np.multiply(near, near, out=density)
        density *= -0.5
        np.exp(density, out=density)
        density *= _DENSITY
        np.multiply(density, near, out=slope)
        slope += probability
