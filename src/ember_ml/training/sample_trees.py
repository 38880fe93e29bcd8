"""Samples and batches as nested dicts and tuples of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["drop_rows", "is_text", "map_arrays", "merge_samples"]


def map_arrays(function: Callable[[Any], Any], batch: Any) -> Any:
    """Apply ``function`` to each array in the dicts and tuples of a batch; lists of arrays count as tuples.

    >>> from ember_ml.training.sample_trees import map_arrays
    >>> map_arrays(sum, {"x": [1, 2], "y": ([3], [4])})
    {'x': 3, 'y': (3, 4)}
    """
    if isinstance(batch, Mapping):
        return {key: map_arrays(function, value) for key, value in batch.items()}
    if isinstance(batch, tuple) or (type(batch) is list and any(map(_is_part, batch))):
        parts = [map_arrays(function, value) for value in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else tuple(parts)
    return function(batch)


def drop_rows(x: Any) -> Any:
    """Return a part of a batch without its rows; a single text stays.

    >>> from ember_ml.training.sample_trees import drop_rows
    >>> drop_rows(["a", "b"]), drop_rows("a")
    ([], 'a')
    """
    return x[:0] if getattr(x, "shape", ()) or type(x) is list else x


def _is_part(value: Any) -> bool:
    return isinstance(value, Mapping) or (hasattr(value, "shape") and not is_text(value))


def is_text(value: Any) -> bool:
    """Whether the value is text, bytes or None, which are in no tensor, or a list of such.

    Texts of NumPy are among them, although they have a shape and a dtype.

    >>> from ember_ml.training.sample_trees import is_text
    >>> [is_text(value) for value in ("a", [[], ["a"]], [[], [1]], [])]
    [True, True, False, False]
    """
    if type(value) is list:  # empty lists in it tell nothing
        return is_text(next((item for item in value if type(item) is not list or item), 0))
    return value is None or isinstance(value, str | bytes)


def merge_samples(samples: list[Any], join: Callable[..., Any], key: Any = None) -> Any:
    """Return samples as one batch of their structure: ``join(values, key)`` of each part's values in all samples.

    ``key`` is the key of the innermost dict that the part lies in, or None.

    >>> from ember_ml.training.sample_trees import merge_samples
    >>> merge_samples([(1, {"a": 2}), (3, {"a": 4})], lambda values, key: (key, values))
    ((None, [1, 3]), {'a': ('a', [2, 4])})
    """
    first = samples[0]
    if not isinstance(first, Mapping | tuple):
        return join(samples, key)
    if len({*map(type, samples)}) > 1:
        raise ValueError("the samples of a batch must be alike: some are tuples or dicts, others are not")
    if isinstance(first, Mapping):
        if any(sample.keys() != first.keys() for sample in samples):
            raise ValueError(f"the samples of a batch must have the same keys, here {', '.join(map(str, first))}")
        return {part: merge_samples([sample[part] for sample in samples], join, part) for part in first}
    if len({*map(len, samples)}) > 1:
        raise ValueError(f"the samples of a batch must have the same number of parts, here {len(first)}")
    parts = [merge_samples([sample[number] for sample in samples], join, key) for number in range(len(first))]
    return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
