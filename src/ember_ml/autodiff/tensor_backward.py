"""``requires_grad``, ``backward()`` and ``grad`` of portable tensors, on every backend.

PyTorch's tensors record by themselves. Elsewhere a tensor that requires gradients holds a variable of the tape, on
which every op records from then on.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from ember_ml.autodiff.reverse_pass import backpropagate
from ember_ml.autodiff.tape import Tape, make_leaves, tape_for
from ember_ml.backend.contract import Backend
from ember_ml.backend.selection import watcher_here
from ember_ml.dispatch.declare import OPS
from ember_ml.dispatch.slow_path import dispatch
from ember_ml.dispatch.watching import watch_ops
from ember_ml.tensor.ember_tensor import EmberTensor, record_with, wrap, wrap_native
from ember_ml.tensor.kinds import kind_of
from ember_ml.tensor.var import Node, Var
from ember_ml.typing import TensorLike

__all__: list[str] = []


def _record(tensor: EmberTensor, value: bool) -> None:
    """Make a tensor a variable of the tape, or a plain tensor again."""
    array = tensor._array
    native = array.plain() if type(array) is Var else array
    base = array.tape.base if type(array) is Var else tensor._kind.backend
    tensor._array = make_leaves([native], tape_for(base, 0))[0] if value else native
    tensor._kind = kind_of(tape_for(base, 0) if value else base, tensor._array)


def _backward(self: EmberTensor, gradient: TensorLike | None = None) -> None:
    """Add to the ``grad`` of every variable that this tensor was computed from its derivative by that variable.

    A tensor of more than one element needs the ``gradient`` of what is made of it, of the same shape. What was recorded
    is let go: a second call needs a second computation.

    >>> from ember_ml.nn.tensor import EmberTensor
    >>> x = EmberTensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad.tolist()
    [2.0, 4.0]
    """
    if not self.requires_grad:
        raise RuntimeError("backward() of a tensor that no variable went into; make one with requires_grad=True")
    if gradient is None and self.shape != ():
        raise ValueError(f"backward() of a tensor of shape {self.shape} needs the gradient of that shape; or sum it")
    if gradient is None and self.dtype.kind == "complex":
        raise ValueError("backward() of a complex number needs its gradient; or take its real part or abs")
    with nullcontext() if watcher_here() is None else watch_ops(None):  # ops are watched in the forward pass
        _propagate(self, gradient)


def _propagate(self: EmberTensor, gradient: TensorLike | None) -> None:
    array = self._array
    if type(array) is not Var:
        array.backward(None if gradient is None else _seed(gradient, self, self._kind.backend))
        return
    tape: Tape = array.tape
    node = array.node
    assert node is not None
    ones = (OPS["ones_like"], (array.plain(), None, None), tape.base)
    seed = dispatch(*ones) if gradient is None else _seed(gradient, self, tape.base)
    for variable, slots in backpropagate([(node, array.index, seed)], tape.base, retain=False).items():
        old = variable.grad
        variable.grad = slots[0] if old is None else dispatch(OPS["add"], (old, slots[0]), tape.base)


def _seed(gradient: Any, tensor: EmberTensor, base: Backend) -> Any:
    native = EmberTensor(gradient, tensor.dtype)
    if native.shape != tensor.shape:
        raise ValueError(f"the gradient has shape {native.shape}, and the tensor {tensor.shape}")
    return native._array if native._kind.backend is base else base.from_host(native.numpy(), tensor.device)


def _variable(tensor: EmberTensor) -> Node | None:
    """The tape's node of a variable, None for anything that was computed."""
    node = tensor._array.node if type(tensor._array) is Var else None
    return node if node is not None and node.op is None else None


def _get_gradient(self: EmberTensor) -> EmberTensor | None:
    """What ``backward()`` has added up for this variable, or None."""
    if type(self._array) is not Var:
        is_variable = self.requires_grad and self._array.is_leaf
        found = self._array.grad if is_variable else None  # PyTorch holds it
        # the next backward() adds to PyTorch's own in place
        return None if found is None else wrap_native(found, self._kind.backend).copy()
    node = _variable(self)
    return None if node is None or node.grad is None else wrap(node.grad, self._array.tape.base)


def _set_gradient(self: EmberTensor, value: TensorLike | None) -> None:
    node = _variable(self)
    if node is not None:
        node.grad = None if value is None else _seed(value, self, self._array.tape.base)
    elif self.requires_grad and getattr(self._array, "is_leaf", False):  # of PyTorch
        self._array.grad = None if value is None else _seed(value, self, self._kind.backend)
    elif value is not None:
        raise ValueError("only a variable has a gradient: a tensor that requires it and was not computed from others")


def _detach(self: EmberTensor) -> EmberTensor:
    """The same values as a constant, on which nothing is recorded."""
    array = self._array
    if type(array) is Var:
        return wrap_native(array.plain(), array.tape.base)
    return wrap_native(OPS["stop_gradient"].body(self._kind.backend)(array), self._kind.backend)  # type: ignore[operator]


record_with(_record)
for _name, _member in (
    ("backward", _backward),
    ("grad", property(_get_gradient, _set_gradient)),
    ("detach", _detach),
):
    setattr(EmberTensor, _name, _member)
