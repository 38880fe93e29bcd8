"""Var: a value on the tape, which remembers how it was computed.

Inside ``grad`` on a library that has no gradients of its own, and in portable tensors that require gradients there, a
``Var`` stands where a native tensor would. Ops record on it; whatever would lose the gradient in silence raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from ember_ml.backend.contract import Backend
from ember_ml.backend.host_arrays import keep_gradient
from ember_ml.core.dtypes import EmberDType
from ember_ml.tensor.operations import Operations

__all__ = ["Node", "Var", "next_order", "read_if_known"]

is_live: bool = False
"""Whether any tape was ever made: until then dispatch need not look for recorded values."""

next_order: Callable[[], int] = count().__next__


class Node:
    """One recorded call: its op, what its gradient rules read, and the nodes of its arguments.

    It never holds the Var that it computes, which would be a cycle that keeps all memory until the collector runs.
    """

    __slots__ = ("dtype", "grad", "is_complex", "op", "order", "outputs", "parents", "parts", "plan", "residuals")

    dtype: EmberDType | None
    """That of all its tensors, where they are of one."""
    grad: Any
    is_complex: bool
    op: Any
    order: int
    outputs: int
    parents: Any
    """For each tensor that it was computed from its node, the index among that node's outputs, and its shape."""
    parts: Any
    """Where the result is several tensors, the shape and dtype of each."""
    plan: Any
    """How its gradient goes on to the parents."""
    residuals: Any
    """What the gradient rules read, in the order of the plan."""

    def __init__(self, op: Any, parents: Any, outputs: int, plan: Any = None, residuals: Any = ()) -> None:
        self.order = next_order()
        self.op, self.parents, self.outputs, self.plan, self.residuals = op, parents, outputs, plan, residuals
        self.is_complex = False
        self.parts = self.dtype = self.grad = None


class Var(Operations):
    """A tensor of the tape: ``value`` is what it holds, ``node`` the call that made it, None for a constant."""

    __slots__ = ("__weakref__", "dtype", "index", "node", "tape", "value")
    __hash__ = None

    dtype: EmberDType
    index: int
    node: Node | None
    tape: Any
    value: Any

    def __init__(self, value: Any, tape: Any, dtype: EmberDType, node: Node | None = None, index: int = 0) -> None:
        self.value, self.tape, self.dtype, self.node, self.index = value, tape, dtype, node, index

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension."""
        return tuple(self.value.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.value.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        total = 1
        for length in self.value.shape:
            total *= length
        return total

    @property
    def device(self) -> str:
        """The name of the device that holds the data."""
        return self.tape.device_of(self)

    @property
    def T(self) -> Var:
        """The tensor with its axes reversed."""
        return self.transpose()  # type: ignore[return-value]

    @property
    def mT(self) -> Var:
        """The transpose of the last two axes."""
        return self.matrix_transpose()  # type: ignore[return-value]

    def plain(self) -> Any:
        """The native tensor underneath, without any recording."""
        value = self.value
        while type(value) is Var:
            value = value.value
        return value

    # Reading one value is honest: Python numbers carry no gradient in any library

    def item(self) -> Any:
        """The one value as a Python number, which carries no gradient."""
        return self.tape.base.to_host(self.plain()).item()

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        return self.item().__index__()

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.value.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"<recorded {self.dtype}{self.shape} on {self.tape.name}: {self.plain()!r}>"

    # What other libraries would make of it

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        keep_gradient(self, self.tape)
        return self.tape.to_host(self).__array__(*args, **kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's ufuncs record like the ops of their names."""
        if method != "__call__" or kwargs:
            raise TypeError(f"np.{ufunc.__name__} cannot be recorded in this form; use the op of that name")
        return self.tape.call_ufunc(ufunc.__name__, inputs)


def read_if_known(native: Any, backend: Backend) -> Any:
    """Return the value of a 0-d native tensor or Var, or None where a traced function does not know it yet."""
    if type(native) is Var:
        return native.item()  # emberlint: ignore[EMB302] what control flow is for
    if backend.control_flow is not None:
        return backend.control_flow.read(native)
    return None if backend.is_traced(native) else backend.to_host(native).item()
