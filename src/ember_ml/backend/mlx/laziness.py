"""Evaluate MLX arrays now; MLX itself computes when results are needed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import mlx.core as mx

from ember_ml.backend.mlx.host_transfer import check_fits

__all__ = ["evaluate", "is_unchecked", "start", "unchecked"]

_SURELY_FITS = 2**24
"""Bytes of an array that is not worth the check: a training step evaluates one for each parameter and slot."""


def evaluate(*arrays: mx.array | list[mx.array]) -> None:
    _check_fit(arrays)
    mx.eval(*arrays)


def start(*arrays: mx.array | list[mx.array]) -> None:
    _check_fit(arrays)
    mx.async_eval(*arrays)


class _Thread(threading.local):
    is_unchecked = False


_thread = _Thread()


@contextmanager
def unchecked() -> Iterator[None]:
    before, _thread.is_unchecked = _thread.is_unchecked, True
    try:
        yield
    finally:
        _thread.is_unchecked = before


def is_unchecked() -> bool:
    """Whether this thread is inside of :func:`unchecked`."""
    return _thread.is_unchecked


def _check_fit(arrays: tuple[mx.array | list[mx.array], ...]) -> None:
    for x in arrays:
        if isinstance(x, list):
            check_fits(*x)
        elif x.nbytes > _SURELY_FITS:
            check_fits(x)
