"""Convert trees of tensors to one vector and back, for solvers."""

from __future__ import annotations

import math
from typing import Any

from ember_ml import ops
from ember_ml.backend.contract import Backend
from ember_ml.backend.selection import active
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType, as_dtype
from ember_ml.core.promotion import promote_types
from ember_ml.core.trees import Structure, flatten
from ember_ml.transforms.loop_state import Tree, device_of, is_portable, to_tensor, wrap_portable

__all__ = ["Packed", "floating_dtype"]


def floating_dtype(dtype: EmberDType) -> EmberDType:
    """Return the dtype of a solver's result for data of ``dtype``: the same, or float32 for integers and bools."""
    return dtype if dtype.kind in ("float", "complex") else dt.DEFAULT_FLOAT


class Packed:
    """Converts trees of one structure to vectors and vectors to such trees.

    The vector's dtype is the common one of all tensors and of ``others``, at least float32.
    """

    __slots__ = ("_dtypes", "_op", "_shapes", "_sizes", "backend", "device", "dtype", "portable", "structure")

    backend: Backend
    device: str
    dtype: EmberDType
    portable: bool
    structure: Structure

    def __init__(self, op: str, tree: Tree, *others: Tree) -> None:
        self._op, self.backend, self.portable = op, active(), is_portable(tree, others)
        leaves, self.structure = flatten(tree)
        self.device = device_of((leaves, others), self.backend)
        tensors = [self.tensor(leaf) for leaf in leaves]
        self._shapes = [tuple(x.shape) for x in tensors]
        self._sizes = [math.prod(shape) for shape in self._shapes]
        self._dtypes = [floating_dtype(as_dtype(x.dtype)) for x in tensors]
        self.dtype = dt.float32
        for dtype in (*self._dtypes, *(as_dtype(self.tensor(x).dtype) for x in flatten(others)[0])):
            self.dtype = promote_types(self.dtype, dtype)

    @property
    def size(self) -> int:
        """The length of the vector."""
        return sum(self._sizes)

    def tensor(self, value: Any) -> Any:
        """Return anything tensor-like as a native tensor on the device of the unknowns."""
        return to_tensor(value, self.backend, None, self.device)

    def vector(self, tree: Tree, what: str) -> Any:
        """Concatenate the elements of ``tree``; ``what`` names it in the error where its structure differs."""
        try:
            leaves = self.structure.leaves(tree)
        except ValueError as error:
            raise ValueError(f"ops.{self._op}: {what} must have the structure of the unknowns, and {error}") from None
        tensors = [self.tensor(leaf) for leaf in leaves]
        for tensor, shape in zip(tensors, self._shapes, strict=True):
            if tuple(tensor.shape) != shape:
                raise ValueError(
                    f"ops.{self._op}: {what} must have the shape of the unknowns, {shape}, not {tuple(tensor.shape)}"
                )
        parts = [self._row(x) for x in tensors]
        return parts[0] if len(parts) == 1 else ops.concatenate(parts)

    def _row(self, x: Any) -> Any:
        row = x if x.ndim == 1 else ops.reshape(x, (-1,))
        return row if as_dtype(row.dtype) is self.dtype else ops.cast(row, self.dtype)

    def number(self, value: float) -> Any:
        """Return a Python number as a 0-d tensor in the real dtype of the computation, for the caller's functions."""
        native = to_tensor(value, self.backend, ops.finfo(self.dtype).dtype, self.device)
        return wrap_portable(native, self.backend) if self.portable else native

    def tree(self, vector: Any) -> Tree:
        """Return the tree of a vector for the caller's functions: in the dtype of the computation."""
        return self._unpack(vector, False)

    def result(self, vector: Any) -> Tree:
        """Return the tree of a vector, or of rows of vectors, for the caller: in the dtypes of the data."""
        return self._unpack(vector, True)

    def _unpack(self, vector: Any, is_result: bool) -> Tree:
        lead = tuple(vector.shape)[:-1]
        parts, start = [], 0
        for shape, size, dtype in zip(self._shapes, self._sizes, self._dtypes, strict=True):
            part = vector if size == self.size else ops.get_item(vector, (..., slice(start, start + size)))
            start += size
            if tuple(part.shape) != (*lead, *shape):
                part = ops.reshape(part, (*lead, *shape))
            if dtype.kind == "float" and self.dtype.kind == "complex":
                part = ops.real(part)
            if is_result and dtype is not self.dtype:
                part = ops.cast(part, dtype)
            parts.append(wrap_portable(part, self.backend) if self.portable else part)
        return self.structure(parts)

    def portable_number(self, x: Any) -> Any:
        """Return ``x``, the ``info`` of a solution, as a portable tensor where the solution is one."""
        return wrap_portable(x, self.backend) if self.portable else x
