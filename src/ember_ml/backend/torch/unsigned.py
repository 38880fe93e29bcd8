"""Compute with uint16, uint32 and uint64 on PyTorch.

uint16 and uint32 are computed in the next wider signed dtype and wrapped back. uint64 has no wider dtype: it is
computed in int64 on the same bits, which is right for sums, products and bitwise ops, or with the top bit flipped,
which is right for comparisons.
"""

# torch 2.13: stores these dtypes, but has almost no functions for them (pytorch#58734)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ember_ml.backend.contract import Body
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType

__all__ = ["UNSIGNED", "from_ordered", "moved", "ordered", "through_bits", "through_order", "to_ordered", "unsigned"]

UNSIGNED = frozenset({torch.uint16, torch.uint32, torch.uint64})
_WIDER = {torch.uint16: torch.int32, torch.uint32: torch.int64}
_SAME_WIDTH = {
    dt.uint16: (torch.uint16, torch.int16),
    dt.uint32: (torch.uint32, torch.int32),
    dt.uint64: (torch.uint64, torch.int64),
}
_TOP_BIT = -(2**63)


def unsigned(native: Body, uint64: Body | None = None, values: bool = True) -> dict[EmberDType, Body]:
    """Return the bodies for uint16, uint32 and uint64 of an op that ``native`` computes for signed integers.

    ``uint64`` is the body for that dtype where computing in int64 on the same bits is wrong. Without ``values`` the
    result of ``native`` is not cast back: indices, counts, floats. Usage: ``add = ByDType(torch.add,
    unsigned(torch.add))``.
    """
    return {
        dt.uint16: _through_wider(native, torch.uint16, values),
        dt.uint32: _through_wider(native, torch.uint32, values),
        dt.uint64: uint64 or through_bits(native, values),
    }


def ordered(native: Body, values: bool = True) -> dict[EmberDType, Body]:
    """Return the bodies for an op that compares its elements: maximum, sort, less."""
    return unsigned(native, through_order(native, values), values)


def moved(native: Body) -> dict[EmberDType, Body]:
    """Return the bodies for an op that only moves its elements, as signed integers: flip, roll, tril."""
    return {dtype: _through_signed(native, *pair) for dtype, pair in _SAME_WIDTH.items()}


def to_ordered(x: torch.Tensor) -> torch.Tensor:
    """Flip the top bit of a uint64 tensor: int64 values in the same order."""
    return x.view(torch.int64) ^ _TOP_BIT


def from_ordered(x: torch.Tensor) -> torch.Tensor:
    """Undo :func:`to_ordered`."""
    return (x ^ _TOP_BIT).view(torch.uint64)


def through_bits(native: Body, values: bool = True) -> Body:
    """Wrap ``native`` to compute uint64 in int64 on the same bits."""
    return _through(native, torch.uint64, _as_int64, _as_uint64 if values else None)


def through_order(native: Body, values: bool = True) -> Body:
    """Wrap ``native`` to compute uint64 in int64 on values in the same order."""
    return _through(native, torch.uint64, to_ordered, from_ordered if values else None)


def _as_int64(x: torch.Tensor) -> torch.Tensor:
    return x.view(torch.int64)


def _as_uint64(x: torch.Tensor) -> torch.Tensor:
    return x.view(torch.uint64)


def _through_wider(native: Body, dtype: torch.dtype, values: bool) -> Body:
    wider = _WIDER[dtype]
    return _through(native, dtype, lambda x: x.to(wider), (lambda x: x.to(dtype)) if values else None)


def _through(
    native: Body,
    dtype: torch.dtype,
    there: Callable[[torch.Tensor], torch.Tensor],
    back: Callable[[torch.Tensor], torch.Tensor] | None,
) -> Body:
    signed = _WIDER.get(dtype, torch.int64)

    def body(*args: Any) -> Any:
        result = native(*(there(x) if isinstance(x, torch.Tensor) and x.dtype is dtype else x for x in args))
        if back is None or not isinstance(result, torch.Tensor) or result.dtype is not signed:
            return result  # comparisons return bools, divisions floats
        return back(result)

    return body


def _through_signed(native: Body, dtype: torch.dtype, signed: torch.dtype) -> Body:
    def body(x: torch.Tensor, *args: Any) -> torch.Tensor:
        return native(x.view(signed), *args).view(dtype)

    return body
