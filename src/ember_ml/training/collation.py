"""Collation: how the samples of a data loader become a batch."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from ember_ml.backend.host_batches import pad_rows, stack_rows
from ember_ml.training.sample_trees import is_text, merge_samples

__all__ = ["Pad", "stack"]


def stack(samples: list[Any]) -> Any:
    """Return a batch with the structure of the samples; arrays of one shape, or numbers, become arrays with a row each.

    Texts, bytes and None stay lists, and so do lists of them. It is what a ``DataLoader`` does unless told otherwise.

    Args:
        samples: The samples of one batch, all of one structure.

    >>> from ember_ml.training import collation
    >>> batch = collation.stack([([1.0, 2.0], "a"), ([3.0, 4.0], "b")])
    >>> batch[0].tolist(), batch[1]
    ([[1.0, 2.0], [3.0, 4.0]], ['a', 'b'])
    """
    return merge_samples(samples, _stack_column)


def _stack_column(values: list[Any], key: Any) -> Any:
    if _are_texts(values, key):
        return values
    try:
        return stack_rows(values)
    except (TypeError, ValueError) as error:
        error.add_note(
            f"while the samples of a batch were stacked{_place(key)}; give the loader collate=collation.Pad() for "
            "sequences of different lengths, or a function of your own"
        )
        raise


def _place(key: Any) -> str:
    return "" if key is None else f" at {key!r}"


def _are_texts(values: list[Any], key: Any) -> bool:
    """Whether the values are texts; raise where only some are, whichever of them is the first of the batch."""
    found = [is_text(value) for value in values]
    if not any(found):
        return False
    for value, is_one in zip(values, found, strict=True):
        if not is_one and not (type(value) is list and not value):
            raise TypeError(
                f"some samples of the batch have a text or None{_place(key)}, and others a {type(value).__name__}; let "
                "transform put a value in the place of what is missing, or give the loader your own collate function"
            )
    return True


class Pad:
    """Samples as a batch in which sequences of different lengths are filled up to the longest.

    Every array with an axis is padded along its first one; numbers are stacked. Texts, bytes and None stay lists, and
    so do lists of them.

    Args:
        value: What sequences are filled up with: a number, or numbers by key for samples that are dicts, where a key
            without one has 0.
        multiple_of: The length of a batch is rounded up to a multiple of this, so that fewer shapes are compiled.

    >>> from ember_ml.training import DataLoader, collation
    >>> texts = {"tokens": [[5, 6, 7], [8]], "label": [0, 1]}
    >>> samples = [dict(zip(texts, sample)) for sample in zip(*texts.values())]
    >>> batch = collation.Pad({"tokens": -1})(samples)
    >>> batch["tokens"].tolist(), batch["label"].tolist()
    ([[5, 6, 7], [8, -1, -1]], [0, 1])
    """

    def __init__(self, value: float | Mapping[Any, float] = 0, multiple_of: int = 1) -> None:
        if operator.index(multiple_of) < 1:
            raise ValueError(f"multiple_of is at least 1, not {multiple_of}")
        self.value: float | Mapping[Any, float] = value
        self.multiple_of: int = multiple_of

    def __call__(self, samples: list[Any]) -> Any:
        """Return the batch."""
        return merge_samples(samples, self._pad_column)

    def _pad_column(self, values: list[Any], key: Any) -> Any:
        if _are_texts(values, key):
            return values
        if not (getattr(values[0], "shape", ()) or isinstance(values[0], list)):
            return stack_rows(values)
        value = self.value.get(key, 0) if isinstance(self.value, Mapping) else self.value
        try:
            return pad_rows(values, value, self.multiple_of)
        except (TypeError, ValueError) as error:
            error.add_note(f"while the samples of a batch were padded{_place(key)}")
            raise
