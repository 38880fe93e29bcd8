"""Solutions of differential equations: closed forms, and what SciPy finds in double precision with order 8."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

__all__ = ["error", "exp", "integrate", "oscillator"]

exp: Any = np.exp


def integrate(f: Callable[[float, Any], Any], y0: Sequence[float], times: Sequence[float]) -> np.ndarray:
    """The solution at the times, one row each."""
    found = solve_ivp(f, (times[0], times[-1]), y0, "DOP853", times, rtol=1e-13, atol=1e-14)
    assert found.success
    return found.y.T


def oscillator(times: Sequence[float]) -> np.ndarray:
    """Position and speed of a unit mass on a unit spring, let go at 1."""
    t = np.asarray(times)
    return np.stack([np.cos(t), -np.sin(t)], axis=-1)


def error(got: Any, want: Any) -> float:
    """The largest difference."""
    return float(np.abs(np.asarray(got, dtype=np.float64) - want).max())
