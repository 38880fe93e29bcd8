"""References of reductions, sorting and cumulative ops."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.reference import COMPLEX, arrays, shapes
from tests.reference.spec import reduction, spec, wide_integer


def _abs_sum(x: np.ndarray, axis: Any = None, keepdims: bool = False, **_: Any) -> Any:
    return np.sum(np.abs(x.astype(np.longdouble) if x.dtype.kind in "biu" else x), axis=axis, keepdims=keepdims)


def _floating(x: np.ndarray) -> np.ndarray:
    return x.astype(np.longdouble) if x.dtype.kind in "biu" else x


def _mean(x: np.ndarray, axis: Any, keepdims: bool) -> Any:
    return np.mean(_floating(x), axis=axis, keepdims=keepdims)


def _quiet(function: Any) -> Any:
    def reference(**kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(**kwargs)

    return reference


_MODERATE: dict[str, Any] = {"low": -1e3, "high": 1e3}
reduction(
    "sum", lambda x, axis, keepdims: np.sum(wide_integer(x), axis=axis, keepdims=keepdims), scale=_abs_sum, **_MODERATE
)
reduction(
    "prod",
    lambda x, axis, keepdims: np.prod(wide_integer(x), axis=axis, keepdims=keepdims),
    low=-3.0,
    high=3.0,
    ulps=64,
)
reduction(
    "mean", _mean, scale=lambda x, axis, keepdims: np.max(np.abs(_floating(x)), initial=0), min_side=1, **_MODERATE
)


def _spread(x: np.ndarray, axis: Any, keepdims: bool, **_: Any) -> Any:
    return np.max(np.abs(_floating(x)), initial=1.0) ** 2


reduction(
    "var",
    lambda x, axis, keepdims: np.var(_floating(x), axis=axis, keepdims=keepdims),
    scale=_spread,
    min_side=1,
    ulps=16,
    **_MODERATE,
)
reduction(
    "std",
    lambda x, axis, keepdims: np.std(_floating(x), axis=axis, keepdims=keepdims),
    scale=lambda x, axis, keepdims: np.max(np.abs(_floating(x)), initial=1.0) * 40,
    min_side=1,
    ulps=16,
    **_MODERATE,
)
for _name, _find in (("max", np.max), ("min", np.min)):
    reduction(_name, lambda x, find=_find, **rest: find(x, **rest), min_side=1, ulps=0, initial=True)
reduction(
    "ptp",
    lambda x, axis, keepdims: np.ptp(x, axis=axis, keepdims=keepdims),
    min_side=1,
    finite=True,
    low=0,
    high=50,
    ulps=4,
)
reduction("all", lambda x, axis, keepdims: np.all(x, axis=axis, keepdims=keepdims))
reduction("any", lambda x, axis, keepdims: np.any(x, axis=axis, keepdims=keepdims))
reduction("count_nonzero", lambda x, axis, keepdims: np.count_nonzero(x, axis=axis, keepdims=keepdims))
reduction("argmax", lambda x, axis, keepdims: np.argmax(x, axis=axis, keepdims=keepdims), min_side=1, tuples=False)
reduction("argmin", lambda x, axis, keepdims: np.argmin(x, axis=axis, keepdims=keepdims), min_side=1, tuples=False)
reduction(
    "median", lambda x, axis, keepdims: np.median(_floating(x), axis=axis, keepdims=keepdims), min_side=1, **_MODERATE
)


def _logsumexp(x: np.ndarray, axis: Any, keepdims: bool) -> Any:
    x = _floating(x)
    with np.errstate(all="ignore"):
        top = np.max(x, axis=axis, keepdims=True)
        safe = np.where(np.isfinite(top), top, 0)
        result = np.log(np.sum(np.exp(x - safe), axis=axis, keepdims=True)) + safe
    return result if keepdims else np.squeeze(result, axis=axis if axis is not None else tuple(range(x.ndim)))


reduction(
    "logsumexp",
    _logsumexp,
    min_side=1,
    ulps=16,
    scale=lambda x, axis, keepdims: np.max(np.where(np.isfinite(_floating(x)), np.abs(_floating(x)), 0), initial=1.0),
)


def _nan_aware(name: str) -> Any:
    function = getattr(np, name)

    def reference(x: np.ndarray, axis: Any, keepdims: bool) -> Any:
        widened = wide_integer(x) if name in ("nansum", "nanprod") else x
        if name in ("nanmean", "nanvar", "nanstd", "nanmedian"):
            widened = _floating(x)
        return function(widened, axis=axis, keepdims=keepdims)

    return _quiet(reference)


reduction("nansum", _nan_aware("nansum"), scale=_abs_sum, **_MODERATE)
reduction("nanprod", _nan_aware("nanprod"), low=-3.0, high=3.0, ulps=64)
reduction(
    "nanmean",
    _nan_aware("nanmean"),
    min_side=1,
    scale=lambda x, axis, keepdims: np.max(np.abs(_floating(x)), initial=0),
    **_MODERATE,
)
reduction("nanvar", _nan_aware("nanvar"), min_side=1, scale=_spread, ulps=16, **_MODERATE)
reduction(
    "nanstd",
    _nan_aware("nanstd"),
    min_side=1,
    ulps=16,
    scale=lambda x, axis, keepdims: np.max(np.abs(_floating(x)), initial=1.0) * 40,
    **_MODERATE,
)
reduction("nanmax", _nan_aware("nanmax"), min_side=1, ulps=0, **_MODERATE)
reduction("nanmin", _nan_aware("nanmin"), min_side=1, ulps=0, **_MODERATE)
reduction("nanmedian", _nan_aware("nanmedian"), min_side=1, **_MODERATE)
reduction(
    "nanargmax",
    lambda x, axis, keepdims: np.nanargmax(x, axis=axis, keepdims=keepdims),
    min_side=1,
    tuples=False,
    **_MODERATE,
)
reduction(
    "nanargmin",
    lambda x, axis, keepdims: np.nanargmin(x, axis=axis, keepdims=keepdims),
    min_side=1,
    tuples=False,
    **_MODERATE,
)


def _along(finite: bool = False, low: float | None = None, high: float | None = None, min_side: int = 0) -> Any:
    def draw(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
        x = draw(
            arrays(dtype, shapes(min_dims=1, min_side=min_side), finite=finite or dtype in COMPLEX, low=low, high=high)
        )
        return {"x": x, "axis": draw(st.integers(-x.ndim, x.ndim - 1))}

    return draw


def _ordered(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    drawn = _along()(draw, dtype)
    return drawn | {"axis": draw(st.sampled_from([None, drawn["axis"]])), "descending": draw(st.booleans())}


def _argsort(x: np.ndarray, axis: int | None, descending: bool) -> np.ndarray:
    if axis is None:
        x, axis = x.ravel(), 0
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    # stable and descending: sort the reversed array, and turn positions and order around again
    turned = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - turned, axis)


def _sort(x: np.ndarray, axis: int | None, descending: bool) -> np.ndarray:
    return np.take_along_axis(x, _argsort(x, axis, descending), axis)


spec("sort", _ordered, _sort, ulps=0)
spec("argsort", _ordered, _argsort)
spec(
    "cumsum",
    _along(low=-1e3, high=1e3),
    lambda x, axis: np.cumsum(wide_integer(x), axis=axis),
    scale=lambda x, axis: np.cumsum(np.abs(_floating(x)), axis=axis),
    ulps=8,
)
spec("cumprod", _along(low=-2.0, high=2.0), lambda x, axis: np.cumprod(wide_integer(x), axis=axis), ulps=64)
spec(
    "nancumsum",
    _along(low=-1e3, high=1e3),
    lambda x, axis: np.nancumsum(wide_integer(x), axis=axis),
    scale=lambda x, axis: np.cumsum(np.abs(_floating(x)), axis=axis),
    ulps=8,
)
spec("nancumprod", _along(low=-2.0, high=2.0), lambda x, axis: np.nancumprod(wide_integer(x), axis=axis), ulps=64)


def _cumulative(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    return _along(low=-2.0, high=2.0)(draw, dtype) | {"include_initial": draw(st.booleans())}


def _with_start(function: Any, start: int) -> Any:
    def reference(x: np.ndarray, axis: int, include_initial: bool) -> np.ndarray:
        result = function(wide_integer(x), axis=axis)
        if not include_initial:
            return result
        shape = list(x.shape)
        shape[axis] = 1
        return np.concatenate([np.full(shape, start, dtype=result.dtype), result], axis=axis)

    return reference


spec(
    "cumulative_sum",
    _cumulative,
    _with_start(np.cumsum, 0),
    ulps=16,
    scale=lambda x, axis, include_initial: np.sum(np.abs(_floating(x)), axis=axis, keepdims=True),
)
spec("cumulative_prod", _cumulative, _with_start(np.cumprod, 1), ulps=64)


_CONTINUOUS = ("linear", "hazen", "weibull", "interpolated_inverted_cdf", "median_unbiased", "normal_unbiased")
_IN_STEPS = (
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation"),
    *("lower", "higher", "midpoint", "nearest"),
)


def _quantiles(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=1, min_side=1), finite=True, low=-100.0, high=100.0))
    return {
        "x": x,
        "q": draw(st.floats(0, 1, width=16)),
        "axis": draw(st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1))),
        "method": draw(st.sampled_from([*_CONTINUOUS, *_IN_STEPS])),
    }


def _percents(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    drawn = _quantiles(draw, dtype)
    # percents divided by 100 are rounded, which a method with steps may magnify
    return drawn | {"q": drawn["q"] * 100, "method": draw(st.sampled_from(_CONTINUOUS))}


def _level(name: str, draw: Any) -> None:
    def reference(x: np.ndarray, q: float, **rest: Any) -> Any:
        return getattr(np, name)(_floating(x), np.longdouble(q), **rest)

    spec(name, draw, reference, scale=lambda x, **_: np.max(np.abs(_floating(x))), ulps=16)


_level("quantile", _quantiles)
_level("percentile", _percents)
_level("nanquantile", _quantiles)
_level("nanpercentile", _percents)


def _difference(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    return _along(finite=True, low=-100.0, high=100.0)(draw, dtype) | {"n": draw(st.integers(0, 2))}


spec(
    "diff",
    lambda draw, dtype: (d := _difference(draw, dtype)) and {"x": d["x"], "n": d["n"], "axis": d["axis"]},
    lambda x, n, axis: np.diff(x, n=n, axis=axis),
    ulps=8,
    scale=lambda x, n, axis: np.max(np.abs(_floating(x)), initial=1.0),
)
spec(
    "trapezoid",
    lambda draw, dtype: {"y": (d := _along(finite=True, low=-100.0, high=100.0)(draw, dtype))["x"], "axis": d["axis"]},
    lambda y, axis: np.trapezoid(_floating(y), axis=axis),
    ulps=16,
    scale=lambda y, axis: np.sum(np.abs(_floating(y))),
)
spec(
    "gaussian",
    lambda draw, dtype: {"x": draw(arrays(dtype, low=-8.0, high=8.0)), "mu": 0.5, "sigma": 2.0},
    lambda x, mu, sigma: (
        np.exp(-(((_floating(x) - mu) / sigma) ** 2) / 2) / (sigma * np.sqrt(2 * np.longdouble(np.pi)))
    ),
    ulps=64,
)


def _leading(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=1, min_side=1), finite=True))
    return {"x": x, "k": draw(st.integers(1, x.shape[-1]))}


def _top(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    order = _argsort(x, -1, True)[..., :k]
    return np.take_along_axis(x, order, -1), order


spec("top_k", _leading, _top, ulps=0)
