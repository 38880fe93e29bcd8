"""Tables of names, written as text that is easy to read and to extend."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """Return the words of a text.

    >>> sorted(words("sin cos"))
    ['cos', 'sin']
    """
    return frozenset(text.split())


def pairs(text: str) -> dict[str, str]:
    """Return the pairs ``key=value`` of a text.

    >>> pairs("cat=concatenate mm=matmul")
    {'cat': 'concatenate', 'mm': 'matmul'}
    """
    return dict(pair.split("=", 1) for pair in text.split())
