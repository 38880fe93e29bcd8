"""Compute Einstein sums as a chain of matrix products, for backends and dtypes whose library has no such function.

The backend provides the few functions of :class:`Algebra`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

__all__ = ["Algebra", "contract", "read_subscripts"]


class Algebra(Protocol):
    """The functions that a contraction needs."""

    def matmul(self, x: Any, y: Any, /) -> Any: ...
    def sum(self, x: Any, axes: tuple[int, ...], /) -> Any:
        """Return the sum over ``axes`` in the dtype of ``x``, integers wrapping."""
        ...

    def transpose(self, x: Any, order: Any, /) -> Any: ...
    def reshape(self, x: Any, shape: Any, /) -> Any: ...
    def diagonal(self, x: Any, axis1: int, axis2: int, /) -> Any:
        """Return the diagonal of two dimensions, as the last one."""
        ...

    def broadcast_to(self, x: Any, shape: Any, /) -> Any: ...


def contract(algebra: Algebra, subscripts: str, operands: Sequence[Any]) -> Any:
    """Return the sum of products that ``subscripts`` describe."""
    inputs, output = read_subscripts(subscripts, [tuple(x.shape) for x in operands])
    terms = []
    for labels, x in zip(inputs, operands, strict=True):
        terms.append(_without_repeats(algebra, labels, x))
    sizes = _sizes(terms)
    while True:
        labels, x = terms.pop(0)
        needed = set(output).union(*(other for other, _ in terms))
        labels, x = _sum_out(algebra, labels, x, needed, sizes)
        if not terms:
            break
        others, y = terms.pop(0)
        needed = set(output).union(labels, *(other for other, _ in terms))
        others, y = _sum_out(algebra, others, y, needed, sizes)
        kept = set(output).union(*(other for other, _ in terms))
        terms.insert(0, _product(algebra, (labels, x), (others, y), kept, sizes))
    x = algebra.transpose(x, [labels.index(label) for label in output])
    return algebra.broadcast_to(x, [sizes[label] for label in output])


def read_subscripts(subscripts: str, shapes: list[tuple[int, ...]]) -> tuple[list[list[str]], list[str]]:
    """Return the labels of each operand and of the output; an ellipsis becomes numbered labels."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(shapes):
        raise ValueError(f"the subscripts {subscripts!r} describe {len(parts)} operands, not {len(shapes)}")
    hidden = [len(s) - len(p.replace("...", "")) if "..." in p else 0 for p, s in zip(parts, shapes, strict=True)]
    widest = max(hidden)
    inputs = [_labels(p, count, widest) for p, count in zip(parts, hidden, strict=True)]
    for labels, shape in zip(inputs, shapes, strict=True):
        if len(labels) != len(shape):
            raise ValueError(f"the subscripts {subscripts!r} do not fit an operand of {len(shape)} dimensions")
    every = [label for labels in inputs for label in labels]
    if arrow:
        output = _labels(right, widest, widest)
    else:
        dots = [str(k) for k in range(widest)]
        output = dots + sorted(label for label in set(every) if every.count(label) == 1 and label not in dots)
    if len(set(output)) != len(output):
        raise ValueError(f"the output of {subscripts!r} has a letter twice")
    if not set(output) <= set(every):
        raise ValueError(f"the output of {subscripts!r} has a letter that no operand has")
    return inputs, output


def _labels(part: str, hidden: int, widest: int) -> list[str]:
    before, dots, after = part.partition("...")
    if not all(letter.isascii() and letter.isalpha() for letter in before + after):
        raise ValueError(f"subscripts are letters, '...', ',' and '->', not {part!r}")
    middle = [str(k) for k in range(widest - hidden, widest)] if dots else []
    return [*before, *middle, *after]


def _without_repeats(algebra: Algebra, labels: list[str], x: Any) -> tuple[list[str], Any]:
    for label in sorted(set(labels)):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if x.shape[first] != x.shape[second]:
                raise ValueError(f"the letter {label!r} has the sizes {x.shape[first]} and {x.shape[second]}")
            x = algebra.diagonal(x, first, second)
            labels = [other for k, other in enumerate(labels) if k not in (first, second)] + [label]
    return labels, x


def _sizes(terms: list[tuple[list[str], Any]]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for labels, x in terms:
        for label, size in zip(labels, x.shape, strict=True):
            if size != 1 and sizes.setdefault(label, size) not in (1, size):
                raise ValueError(f"the letter {label!r} has the sizes {sizes[label]} and {size}")
            if size != 1 or label not in sizes:
                sizes[label] = size
    return sizes


def _sum_out(
    algebra: Algebra, labels: list[str], x: Any, needed: set[str], sizes: dict[str, int]
) -> tuple[list[str], Any]:
    """Sum over the labels that nothing else needs; multiply by the size where a dimension of size 1 broadcasts."""
    gone = [k for k, label in enumerate(labels) if label not in needed]
    if not gone:
        return labels, x
    full = [sizes[label] if k in gone else size for k, (label, size) in enumerate(zip(labels, x.shape, strict=True))]
    x = algebra.sum(algebra.broadcast_to(x, full), tuple(gone))
    return [label for k, label in enumerate(labels) if k not in gone], x


def _product(
    algebra: Algebra, first: tuple[list[str], Any], second: tuple[list[str], Any], kept: set[str], sizes: dict[str, int]
) -> tuple[list[str], Any]:
    """Multiply two operands by a stacked matrix product: common labels stack or are summed, others are sides."""
    (labels, x), (others, y) = first, second
    common = [label for label in labels if label in others]
    stacked = [label for label in common if label in kept]
    summed = [label for label in common if label not in kept]
    rows = [label for label in labels if label not in common]
    columns = [label for label in others if label not in common]

    def arranged(own: list[str], value: Any, outer: list[str], inner: list[str]) -> Any:
        order = [*stacked, *outer, *inner]
        value = algebra.transpose(value, [own.index(label) for label in order])
        value = algebra.broadcast_to(
            value, [sizes[label] if label in common else n for label, n in zip(order, value.shape, strict=True)]
        )
        groups = (outer, inner)
        shape = [sizes[label] for label in stacked]
        dims = iter(value.shape[len(stacked) :])
        shape += [math.prod(next(dims) for _ in group) for group in groups]
        return algebra.reshape(value, shape)

    row_sizes = [x.shape[labels.index(label)] for label in rows]
    column_sizes = [y.shape[others.index(label)] for label in columns]
    found = algebra.matmul(arranged(labels, x, rows, summed), arranged(others, y, summed, columns))
    shape = [*(sizes[label] for label in stacked), *row_sizes, *column_sizes]
    return [*stacked, *rows, *columns], algebra.reshape(found, shape)
