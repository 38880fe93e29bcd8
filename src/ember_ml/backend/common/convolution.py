"""Compute the sizes of convolutions and pooling: windows, strides, padding, dilation, groups."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

from ember_ml.backend.common.shapes import NO_LISTS

__all__ = [
    "Convolution",
    "Sliding",
    "Transposed",
    "convolution",
    "is_channels_first",
    "per_dimension",
    "pooling",
    "transposed_convolution",
    "undo_transpose",
    "windowed_convolution",
]

_FORMATS = ("channels_last", "channels_first")
_MOST_DIMENSIONS = 3


class Sliding(NamedTuple):
    """A window over some spatial dimensions, with one entry per dimension in each field."""

    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    results: tuple[int, ...]

    @property
    def is_padded(self) -> bool:
        return any(map(any, self.padding))

    def pairs(self, channels_first: bool = False) -> list[tuple[int, int]]:
        """Return the padding of a whole tensor, one pair per dimension."""
        return [(0, 0), (0, 0), *self.padding] if channels_first else [(0, 0), *self.padding, (0, 0)]

    def cuts(self) -> Iterator[tuple[slice, ...]]:
        """Yield for each position inside the window the slices of a padded, channels-last tensor that it covers."""
        for position in itertools.product(*map(range, self.window)):
            yield (slice(None), *map(_cut, position, self.strides, self.dilations, self.results))

    def meetings(self, sizes: Sequence[int]) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
        """Yield for each position inside the window the slices of the elements that are there, and of their results.

        They cut channels-last tensors, the elements one without padding, of these spatial sizes.
        """
        for position in itertools.product(*map(range, self.window)):
            pairs = map(_meet, position, sizes, self.strides, self.dilations, self.padding, self.results)
            elements, results = zip(*pairs, strict=True)
            yield (slice(None), *elements), (slice(None), *results)


def _meet(
    position: int, size: int, stride: int, dilation: int, padding: tuple[int, int], results: int
) -> tuple[slice, slice]:
    offset = position * dilation - padding[0]  # of the element of the first window, which may lie in the padding
    first = max(-(offset // stride), 0)
    end = max(min((size - 1 - offset) // stride + 1, results), first)
    start = first * stride + offset
    return slice(start, start + (end - first) * stride, stride), slice(first, end)


def _cut(position: int, stride: int, dilation: int, results: int) -> slice:
    first = position * dilation
    return slice(first, first + (results - 1) * stride + 1, stride)


class Convolution(NamedTuple):
    """A sliding window of weights, with the number of independent groups of channels."""

    sliding: Sliding
    groups: int


class Transposed(NamedTuple):
    """A transposed convolution: how much to crop at each end of its full result (negative: how many zeros to add)."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    crops: tuple[tuple[int, int], ...]
    results: tuple[int, ...]


def is_channels_first(data_format: str, ndim: int) -> bool:
    """Check the format and the number of dimensions; return whether the channels come second."""
    if data_format not in _FORMATS:
        raise ValueError(f"data_format is 'channels_last' or 'channels_first', not {data_format!r}")
    if not 1 <= ndim - 2 <= _MOST_DIMENSIONS:
        shape = "(batch, ..., channels)" if data_format == _FORMATS[0] else "(batch, channels, ...)"
        raise ValueError(f"x has {ndim} dimensions; it must have 3, 4 or 5: {shape}, with 1 to 3 spatial ones")
    return data_format == _FORMATS[1]


def per_dimension(value: Any, dimensions: int, name: str, least: int = 1) -> tuple[int, ...]:
    """Return one number for each dimension; a single one is repeated."""
    given: Any = value
    if type(given) is int and given >= least:  # as layers have it
        return (given,) * dimensions
    if isinstance(value, NO_LISTS):
        raise TypeError(f"{name} is an int, or one for each of the {dimensions} dimensions, not {value!r}")
    try:
        found = (operator.index(value),) if hasattr(value, "__index__") else tuple(map(operator.index, value))
    except TypeError as error:
        raise TypeError(f"{name} is an int, or one for each of the {dimensions} dimensions, not {value!r}") from error
    if len(found) == 1:
        found *= dimensions
    if len(found) != dimensions:
        raise ValueError(f"{name} is an int, or one for each of the {dimensions} dimensions, not {value!r}")
    if min(found) < least:
        raise ValueError(f"{name} must be at least {least}, not {value!r}")
    return found


def _make_sliding(
    sizes: Sequence[int],
    window: tuple[int, ...],
    strides: int | Sequence[int],
    padding: Any,
    dilation_rate: int | Sequence[int] = 1,
) -> Sliding:
    """Return a window over dimensions of these sizes; ``ValueError`` where it does not fit into them once."""
    dimensions = len(sizes)
    strides = per_dimension(strides, dimensions, "strides")
    dilations = per_dimension(dilation_rate, dimensions, "dilation_rate")
    spans = tuple((k - 1) * d + 1 for k, d in zip(window, dilations, strict=True))
    pairs = _pairs(padding, sizes, spans, strides)
    results = []
    for size, (before, after), span, stride in zip(sizes, pairs, spans, strides, strict=True):
        room = size + before + after - span
        if size < 1 or room < 0:
            raise ValueError(
                f"a window that spans {spans} does not fit into {tuple(sizes)} with padding={padding!r}; "
                "make the window smaller, or pad with padding='same'"
            )
        results.append(room // stride + 1)
    return Sliding(window, strides, dilations, pairs, tuple(results))


def _pairs(
    padding: Any, sizes: Sequence[int], spans: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[tuple[int, int], ...]:
    """Return how many elements to add before and after each dimension."""
    dimensions = len(sizes)
    if padding == "valid":
        return ((0, 0),) * dimensions
    if padding == "same":
        missing = [max((-(-n // s) - 1) * s + span - n, 0) for n, s, span in zip(sizes, strides, spans, strict=True)]
        return tuple((m // 2, m - m // 2) for m in missing)
    if padding == "causal" and dimensions == 1:
        return ((spans[0] - 1, 0),)
    return _explicit(padding, dimensions)


def _explicit(padding: Any, dimensions: int) -> tuple[tuple[int, int], ...]:
    """Padding in numbers: one for all sides, or for each dimension one or a pair (before, after)."""
    if type(padding) is int and padding >= 0:  # as layers have it
        return ((padding, padding),) * dimensions
    if isinstance(padding, str):
        known = "'valid', 'same', 'causal' (one dimension only)"
        raise ValueError(f"padding is {known} or numbers of elements, not {padding!r}")
    entries = padding if isinstance(padding, tuple | list) else (padding,) * dimensions
    if len(entries) != dimensions:
        raise ValueError(f"padding has {len(entries)} entries, not one for each of the {dimensions} dimensions")
    pairs = [entry if isinstance(entry, tuple | list) else (entry, entry) for entry in entries]
    found = tuple(per_dimension(pair, 2, "padding", least=0) for pair in pairs)
    return tuple((before, after) for before, after in found)


def pooling(
    x: Sequence[int],
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None,
    padding: Any,
    data_format: str,
) -> Sliding:
    """Return a window over the spatial dimensions of a tensor of shape ``x`` that always meets some of its elements."""
    sizes = tuple(x[2:]) if is_channels_first(data_format, len(x)) else tuple(x[1:-1])
    window = per_dimension(pool_size, len(sizes), "pool_size")
    found = _make_sliding(sizes, window, window if strides is None else strides, padding)
    if any(max(pair) >= size for pair, size in zip(found.padding, window, strict=True)):
        raise ValueError(f"padding={padding!r} is not smaller than the window {window}: some windows would be empty")
    return found


def convolution(
    x: Sequence[int],
    kernel: Sequence[int],
    strides: int | Sequence[int],
    padding: Any,
    data_format: str,
    dilation_rate: int | Sequence[int],
) -> Convolution:
    """Plan the convolution of shape ``x`` with a kernel of shape (window..., channels of a group, results)."""
    channels, sizes = _channels_and_sizes(x, kernel, data_format)
    *window, inside, outside = kernel
    if channels % inside or channels == 0:
        raise ValueError(f"the kernel takes {inside} channels, which do not divide the {channels} of x into groups")
    groups = channels // inside
    if outside % groups:
        raise ValueError(f"the kernel gives {outside} channels, which cannot be shared out among {groups} groups")
    return Convolution(_make_sliding(sizes, tuple(window), strides, padding, dilation_rate), groups)


def _channels_and_sizes(x: Sequence[int], kernel: Sequence[int], data_format: str) -> tuple[int, tuple[int, ...]]:
    first = is_channels_first(data_format, len(x))
    if len(kernel) != len(x):
        raise ValueError(f"x has {len(x)} dimensions and the kernel {len(kernel)}; they must have equally many")
    if math.prod(kernel) == 0:
        raise ValueError(f"a kernel of shape {tuple(kernel)} has no elements")
    return (x[1], tuple(x[2:])) if first else (x[-1], tuple(x[1:-1]))


def transposed_convolution(
    x: Sequence[int],
    kernel: Sequence[int],
    strides: int | Sequence[int],
    padding: Any,
    output_padding: int | Sequence[int] | None,
    data_format: str,
    dilation_rate: int | Sequence[int],
) -> Transposed:
    """Plan the transposed convolution of shape ``x`` with a kernel of shape (window..., results, channels)."""
    channels, sizes = _channels_and_sizes(x, kernel, data_format)
    *window, _, inside = kernel
    if channels != inside:
        raise ValueError(f"the kernel takes {inside} channels in its last dimension, and x has {channels}")
    dimensions = len(sizes)
    strides = per_dimension(strides, dimensions, "strides")
    dilations = per_dimension(dilation_rate, dimensions, "dilation_rate")
    extra: tuple[int | None, ...] = (None,) * dimensions
    if output_padding is not None:
        extra = per_dimension(output_padding, dimensions, "output_padding", least=0)
    spans = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
    if padding in ("valid", "same"):
        crops = tuple(map(_crop_valid if padding == "valid" else _crop_same, spans, strides, extra))
    else:
        explicit = _explicit(padding, dimensions)
        crops = tuple((before, after - (more or 0)) for (before, after), more in zip(explicit, extra, strict=True))
    full = [(n - 1) * s + span for n, s, span in zip(sizes, strides, spans, strict=True)]
    results = tuple(length - sum(crop) for length, crop in zip(full, crops, strict=True))
    beyond = any(before >= length for (before, _), length in zip(crops, full, strict=True))
    if min(sizes) < 1 or min(results) < 1 or beyond:
        raise ValueError(f"nothing is left of a result of size {tuple(full)} with padding={padding!r}")
    return Transposed(strides, dilations, crops, results)


def _crop_valid(span: int, stride: int, extra: int | None) -> tuple[int, int]:
    return 0, -(max(stride - span, 0) if extra is None else extra)


def _crop_same(span: int, stride: int, extra: int | None) -> tuple[int, int]:
    """Transpose :func:`conv` with padding "same": by default the result is ``stride`` times as long as x."""
    beyond = stride if extra is None else span % 2 + extra  # the length of the result is (n - 1) * stride + beyond
    before = max((span - beyond) // 2, 0)
    return before, span - beyond - before


def undo_transpose(plan: Transposed, window: Sequence[int], sizes: Sequence[int]) -> Sliding:
    """Return the convolution whose transpose is ``plan``, with results of these sizes."""
    padding = tuple((before, max(after, 0)) for before, after in plan.crops)
    return Sliding(tuple(window), plan.strides, plan.dilations, padding, tuple(sizes))


def windowed_convolution(xp: Any, x: Any, kernel: Any, plan: Convolution) -> Any:
    """Convolve by a matrix product: the windows, one per row, times the weights."""
    sliding, groups = plan
    if sliding.is_padded:
        x = xp.pad(x, sliding.pairs())
    inside, outside = kernel.shape[-2:]
    if inside == 1 and outside > groups > 1:
        x = xp.repeat(x, outside // groups, axis=-1)
    parts = [x[cut] for cut in sliding.cuts()]
    shape = (x.shape[0], *sliding.results)
    if groups == 1:
        weights = xp.reshape(kernel, (len(parts) * inside, outside))
        products = xp.matmul(_rows(xp, parts, (math.prod(shape),)), weights)
    elif inside == 1:
        weights = xp.reshape(kernel, (len(parts), outside))
        products = reduce(xp.add, (xp.multiply(part, weights[i]) for i, part in enumerate(parts)))
    else:
        weights = xp.reshape(kernel, (len(parts), inside, groups, outside // groups))
        weights = xp.reshape(xp.moveaxis(weights, 2, 0), (groups, len(parts) * inside, outside // groups))
        parts = [xp.reshape(part, (math.prod(shape), groups, inside)) for part in parts]
        rows = _rows(xp, parts, (math.prod(shape), groups))
        products = xp.moveaxis(xp.matmul(xp.moveaxis(rows, 1, 0), weights), 0, 1)
    return xp.reshape(products, (*shape, outside))


def _rows(xp: Any, parts: list[Any], shape: tuple[int, ...]) -> Any:
    """Return the windows as rows."""
    joined = parts[0] if len(parts) == 1 else xp.concatenate(parts, axis=-1)
    return xp.reshape(joined, (*shape, joined.shape[-1]))
