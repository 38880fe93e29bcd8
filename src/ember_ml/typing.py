"""The types that annotate Ember ML code.

``Tensor`` is any tensor (native or portable); ``TensorLike`` is what ops accept: tensors, Python numbers, nested lists
and anything that NumPy can read. ``IndexLike`` and ``MaskLike`` say what a tensor argument means: dispatch brings them
to the backend but never promotes them together with the others. ``KeyLike`` is what may stand between the brackets of
``x[...]``, ``ValueLike`` what may be stored into a tensor, which keeps its own dtype. ``DataLike`` is ``TensorLike``
that reaches the body as it was given, so that Python numbers meet the dtype asked for without a detour.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

__all__ = [
    "AxisLike",
    "DTypeInterface",
    "DTypeLike",
    "DataLike",
    "DeviceLike",
    "IndexLike",
    "KeyLike",
    "MaskLike",
    "Numeric",
    "Shape",
    "ShapeLike",
    "Tensor",
    "TensorInterface",
    "TensorLike",
    "TensorTypes",
    "ValueLike",
]

# A native tensor is whatever the active library uses; no static type covers four libraries, three of which may be
# absent.
Tensor: TypeAlias = Any
TensorLike: TypeAlias = Any
IndexLike: TypeAlias = Any
MaskLike: TypeAlias = Any
KeyLike: TypeAlias = Any
ValueLike: TypeAlias = Any
DataLike: TypeAlias = Any
TensorTypes: TypeAlias = Any
DTypeLike: TypeAlias = Any
DeviceLike: TypeAlias = str
Numeric: TypeAlias = int | float
Shape: TypeAlias = Sequence[int]
ShapeLike: TypeAlias = int | Sequence[int]
AxisLike: TypeAlias = int | tuple[int, ...]


@runtime_checkable
class TensorInterface(Protocol):
    """What every portable tensor offers; ``isinstance`` checks for the names."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def device(self) -> str: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    def numpy(self) -> Any: ...
    def item(self) -> Any: ...
    def tolist(self) -> Any: ...


@runtime_checkable
class DTypeInterface(Protocol):
    """What every dtype offers."""

    @property
    def name(self) -> str: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def kind(self) -> str: ...
