"""Convolutions and pooling as loops over places and windows, in wide precision."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.reference import arrays
from tests.reference.spec import spec

__all__ = ["adaptive_pool", "average", "conv", "conv_transpose", "depthwise_conv", "largest", "pool", "separable_conv"]

LIMITS: dict[str, Any] = {"finite": True, "low": -50.0, "high": 50.0}


def _each(value: Any, dimensions: int) -> list[int]:
    return [value] * dimensions if isinstance(value, int) else list(value)


def paddings(padding: Any, sizes: list[int], spans: list[int], strides: list[int]) -> list[tuple[int, int]]:
    """Zeros before and after, by TensorFlow's rule: as many as the last window needs, the odd one after."""
    if padding == "valid":
        return [(0, 0)] * len(sizes)
    if padding == "causal":
        return [(spans[0] - 1, 0)]
    if padding != "same":
        entries = [padding] * len(sizes) if isinstance(padding, int) else padding
        return [(entry, entry) if isinstance(entry, int) else tuple(entry) for entry in entries]
    found = []
    for size, span, stride in zip(sizes, spans, strides, strict=True):
        windows = size // stride + (size % stride > 0)
        needed = max((windows - 1) * stride + span - size, 0)
        found.append((needed // 2, needed - needed // 2))
    return found


def _wide(x: Any) -> np.ndarray:
    return np.asarray(x).astype(np.longdouble)


def _last(x: Any, data_format: str) -> np.ndarray:
    return np.moveaxis(_wide(x), 1, -1) if data_format == "channels_first" else _wide(x)


def _as_given(x: np.ndarray, data_format: str) -> np.ndarray:
    return np.moveaxis(x, -1, 1) if data_format == "channels_first" else x


def _places(counts: list[int]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*map(range, counts))


def conv(
    x: Any,
    kernel: Any,
    strides: Any = 1,
    padding: Any = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = 1,
) -> np.ndarray:
    x, kernel = _last(x, data_format), _wide(kernel)
    sizes, window = list(x.shape[1:-1]), list(kernel.shape[:-2])
    strides, dilations = _each(strides, len(sizes)), _each(dilation_rate, len(sizes))
    spans = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
    pairs = paddings(padding, sizes, spans, strides)
    x = np.pad(x, [(0, 0), *pairs, (0, 0)])
    counts = [(n - span) // s + 1 for n, span, s in zip(x.shape[1:-1], spans, strides, strict=True)]
    inside, outside = kernel.shape[-2:]
    groups = x.shape[-1] // inside
    x = x.reshape(*x.shape[:-1], groups, inside)
    kernel = kernel.reshape(*window, inside, groups, outside // groups)
    result = np.zeros((x.shape[0], *counts, groups, outside // groups), dtype=np.longdouble)
    for place in _places(counts):
        for tap in _places(window):
            at = tuple(p * s + t * d for p, s, t, d in zip(place, strides, tap, dilations, strict=True))
            result[(slice(None), *place)] += np.einsum("bgi,igo->bgo", x[(slice(None), *at)], kernel[tap])
    return _as_given(result.reshape(*result.shape[:-2], outside), data_format)


def depthwise_conv(x: Any, kernel: Any, *how: Any, **more: Any) -> np.ndarray:
    kernel = np.asarray(kernel)
    return conv(x, kernel.reshape(*kernel.shape[:-2], 1, -1), *how, **more)


def separable_conv(x: Any, depthwise_kernel: Any, pointwise_kernel: Any, **how: Any) -> np.ndarray:
    each = depthwise_conv(x, depthwise_kernel, **how)
    return conv(each, pointwise_kernel, data_format=how.get("data_format", "channels_last"))


def conv_transpose(
    x: Any,
    kernel: Any,
    strides: Any = 1,
    padding: Any = "valid",
    output_padding: Any = None,
    data_format: str = "channels_last",
    dilation_rate: Any = 1,
) -> np.ndarray:
    """Each element adds its multiple of the kernel; the result is that part of the whole which the padding leaves."""
    x, kernel = _last(x, data_format), _wide(kernel)
    sizes, window = list(x.shape[1:-1]), list(kernel.shape[:-2])
    strides, dilations = _each(strides, len(sizes)), _each(dilation_rate, len(sizes))
    extras = [None] * len(sizes) if output_padding is None else _each(output_padding, len(sizes))
    spans = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
    whole = [(n - 1) * s + span for n, s, span in zip(sizes, strides, spans, strict=True)]
    room = [n + 8 for n in whole]  # for the zeros that are added after it
    result = np.zeros((x.shape[0], *room, kernel.shape[-2]), dtype=np.longdouble)
    for place in _places(sizes):
        for tap in _places(window):
            at = tuple(p * s + t * d for p, s, t, d in zip(place, strides, tap, dilations, strict=True))
            result[(slice(None), *at)] += np.einsum("bi,oi->bo", x[(slice(None), *place)], kernel[tap])
    cuts = []
    for i, (size, stride, span, extra) in enumerate(zip(sizes, strides, spans, extras, strict=True)):
        if padding == "valid":
            first, length = 0, (size - 1) * stride + (max(span, stride) if extra is None else span + extra)
        elif padding == "same":  # that of the convolution which leads from the result to x
            length = size * stride if extra is None else (size - 1) * stride + span % 2 + extra
            first = max(span - (length - (size - 1) * stride), 0) // 2
        else:
            entry = padding if isinstance(padding, int) else padding[i]
            first, after = (entry, entry) if isinstance(entry, int) else entry
            length = whole[i] - first - after + (extra or 0)
        cuts.append(slice(first, first + length))
    return _as_given(result[(slice(None), *cuts)], data_format)


def pool(
    combine: Callable[..., Any],
    x: Any,
    pool_size: Any,
    strides: Any = None,
    padding: Any = "valid",
    data_format: str = "channels_last",
) -> np.ndarray:
    x = np.moveaxis(np.asarray(x), 1, -1) if data_format == "channels_first" else np.asarray(x)
    sizes = list(x.shape[1:-1])
    window = _each(pool_size, len(sizes))
    strides = window if strides is None else _each(strides, len(sizes))
    pairs = paddings(padding, sizes, window, strides)
    counts = [(n + sum(p) - k) // s + 1 for n, p, k, s in zip(sizes, pairs, window, strides, strict=True)]
    results = np.zeros((x.shape[0], *counts, x.shape[-1]), dtype=np.longdouble if combine is average else x.dtype)
    for place in _places(counts):
        firsts = [p * s - before for p, s, (before, _) in zip(place, strides, pairs, strict=True)]
        cuts = [slice(max(f, 0), min(f + k, n)) for f, k, n in zip(firsts, window, sizes, strict=True)]
        results[(slice(None), *place)] = combine(x[(slice(None), *cuts)])
    return _as_given(results, data_format)


def adaptive_pool(
    combine: Callable[..., Any], x: Any, output_size: Any, data_format: str = "channels_last"
) -> np.ndarray:
    x = np.moveaxis(np.asarray(x), 1, -1) if data_format == "channels_first" else np.asarray(x)
    sizes = list(x.shape[1:-1])
    counts = _each(output_size, len(sizes))
    results = np.zeros((x.shape[0], *counts, x.shape[-1]), dtype=np.longdouble if combine is average else x.dtype)
    for place in _places(counts):
        cuts = [
            slice(int(np.floor(p * n / c)), int(np.ceil((p + 1) * n / c)))
            for p, n, c in zip(place, sizes, counts, strict=True)
        ]
        results[(slice(None), *place)] = combine(x[(slice(None), *cuts)])
    return _as_given(results, data_format)


def largest(window: np.ndarray) -> np.ndarray:
    return window.max(axis=tuple(range(1, window.ndim - 1)))


def average(window: np.ndarray) -> np.ndarray:
    return _wide(window).mean(axis=tuple(range(1, window.ndim - 1)))


def _of_sizes(function: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of absolute terms: the same function of the absolute values."""

    def scale(**arguments: Any) -> Any:
        wide = {key: np.abs(_wide(v)) if isinstance(v, np.ndarray) else v for key, v in arguments.items()}
        return function(**wide)

    return scale


def _geometry(draw: st.DrawFn, dilated: bool) -> dict[str, Any]:
    """Sizes of a window and of what it slides over, with strides, padding and format."""
    dimensions = draw(st.integers(1, 3))
    several = st.lists(st.integers(1, 3 if dimensions < 3 else 2), min_size=dimensions, max_size=dimensions)
    window, strides, dilations = draw(several), draw(several), draw(several) if dilated else [1] * dimensions
    kinds = ["valid", "same", "explicit"] + (["causal"] if dimensions == 1 else [])
    padding: Any = draw(st.sampled_from(kinds))
    spans = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
    if padding == "explicit":
        pairs = st.tuples(st.integers(0, 2), st.integers(0, 2))
        padding = draw(st.lists(pairs, min_size=dimensions, max_size=dimensions))
    least = spans if padding == "valid" else [1] * dimensions
    sizes = [draw(st.integers(low, low + 3)) for low in least]
    if isinstance(padding, list):
        sizes = [max(n, span - sum(pair)) for n, span, pair in zip(sizes, spans, padding, strict=True)]
    return {
        "sizes": sizes,
        "window": window,
        "strides": strides,
        "dilations": dilations,
        "padding": padding,
        "data_format": draw(st.sampled_from(("channels_last", "channels_first"))),
        "batch": draw(st.integers(0, 2)),
    }


def _input(draw: st.DrawFn, dtype: str, how: dict[str, Any], channels: int, **limits: Any) -> np.ndarray:
    first = how["data_format"] == "channels_first"
    shape = (how["batch"], channels, *how["sizes"]) if first else (how["batch"], *how["sizes"], channels)
    return draw(arrays(dtype, shape, **limits))


def _options(how: dict[str, Any]) -> dict[str, Any]:
    return {
        "strides": how["strides"],
        "padding": how["padding"],
        "data_format": how["data_format"],
        "dilation_rate": how["dilations"],
    }


def _conv(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    how = _geometry(draw, True)
    groups, inside, outside = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(1, 2))
    kernel = draw(arrays(dtype, (*how["window"], inside, groups * outside), **LIMITS))
    return {"x": _input(draw, dtype, how, groups * inside, **LIMITS), "kernel": kernel, **_options(how)}


def _depthwise(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    how = _geometry(draw, True)
    channels = draw(st.integers(1, 3))
    kernel = draw(arrays(dtype, (*how["window"], channels, draw(st.integers(1, 2))), **LIMITS))
    return {"x": _input(draw, dtype, how, channels, **LIMITS), "kernel": kernel, **_options(how)}


def _separable(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    found = _depthwise(draw, dtype)
    kernel = found.pop("kernel")
    ones, mixed = (1,) * (kernel.ndim - 2), kernel.shape[-2] * kernel.shape[-1]
    small = {"finite": True, "low": -5.0, "high": 5.0}  # float16 holds no product of three larger numbers
    each, mix = draw(arrays(dtype, kernel.shape, **small)), draw(arrays(dtype, (*ones, mixed, 2), **small))
    return {**found, "depthwise_kernel": each, "pointwise_kernel": mix}


def _transposed(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    how = _geometry(draw, True)
    dimensions, channels = len(how["sizes"]), draw(st.integers(1, 2))
    extra = draw(st.none() | st.integers(0, 2) | st.lists(st.integers(0, 2), min_size=dimensions, max_size=dimensions))
    how["padding"] = draw(st.sampled_from(("valid", "same")))
    kernel = draw(arrays(dtype, (*how["window"], draw(st.integers(1, 2)), channels), **LIMITS))
    if how["padding"] == "same" and extra is not None:
        extra = [max(e, 1) for e in _each(extra, dimensions)]  # 0 leaves nothing of one element and an even window
    x = _input(draw, dtype, how, channels, **LIMITS)
    return {"x": x, "kernel": kernel, **_options(how), "output_padding": extra}


def _pooled(finite: bool) -> Callable[[st.DrawFn, str], dict[str, Any]]:
    def drawn(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
        how = _geometry(draw, False)
        if isinstance(how["padding"], list):
            padding = [(min(b, k - 1), min(a, k - 1)) for (b, a), k in zip(how["padding"], how["window"], strict=True)]
            sizes = [max(n, k - sum(p)) for n, k, p in zip(how["sizes"], how["window"], padding, strict=True)]
            how |= {"padding": padding, "sizes": sizes}
        limits = LIMITS if finite else {}
        return {
            "x": _input(draw, dtype, how, draw(st.integers(1, 2)), **limits),
            "pool_size": how["window"],
            "strides": draw(st.none() | st.just(how["strides"])),
            "padding": how["padding"],
            "data_format": how["data_format"],
        }

    return drawn


def _adapted(finite: bool) -> Callable[[st.DrawFn, str], dict[str, Any]]:
    def drawn(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
        how = _geometry(draw, False)
        how["sizes"] = [draw(st.integers(1, 6)) for _ in how["sizes"]]
        counts = [draw(st.integers(1, n)) for n in how["sizes"]]
        x = _input(draw, dtype, how, draw(st.integers(1, 2)), **(LIMITS if finite else {}))
        return {"x": x, "output_size": counts, "data_format": how["data_format"]}

    return drawn


spec("conv", _conv, conv, ulps=4, scale=_of_sizes(conv))
spec("depthwise_conv", _depthwise, depthwise_conv, ulps=4, scale=_of_sizes(depthwise_conv))
spec("separable_conv", _separable, separable_conv, ulps=4, scale=_of_sizes(separable_conv))
spec("conv_transpose", _transposed, conv_transpose, ulps=4, scale=_of_sizes(conv_transpose))


def max_pool(**arguments: Any) -> np.ndarray:
    return pool(largest, **arguments)


def average_pool(**arguments: Any) -> np.ndarray:
    return pool(average, **arguments)


def adaptive_max_pool(**arguments: Any) -> np.ndarray:
    return adaptive_pool(largest, **arguments)


def adaptive_average_pool(**arguments: Any) -> np.ndarray:
    return adaptive_pool(average, **arguments)


spec("max_pool", _pooled(finite=False), max_pool, ulps=0)
spec("average_pool", _pooled(finite=True), average_pool, ulps=2, scale=_of_sizes(average_pool))
spec("adaptive_max_pool", _adapted(finite=False), adaptive_max_pool, ulps=0)
spec(
    "adaptive_average_pool",
    _adapted(finite=True),
    adaptive_average_pool,
    ulps=2,
    scale=_of_sizes(adaptive_average_pool),
)
