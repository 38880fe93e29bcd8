"""The tape: gradients for libraries that have none, and ``backward()`` on those that have no such thing.

A tape looks to dispatch like a backend whose tensors are ``Var``s: arguments are brought over and promoted as always,
every cast included, and the body that runs is one that computes on the values and records. So a derived op is
differentiated through its body, and an op with gradient rules by those. Rules are written on ops: inside a second
``grad`` they record too. Tapes are told apart by level, one for each ``grad`` inside which the program is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from ember_ml.autodiff.recorder import recorder, short_recorder_of
from ember_ml.backend.contract import Backend, FastPath
from ember_ml.core.dtypes import EmberDType
from ember_ml.dispatch.arguments import bring, find_tape
from ember_ml.dispatch.declare import OPS, Op
from ember_ml.dispatch.slow_path import dispatch
from ember_ml.tensor import var as recorded_tensors
from ember_ml.tensor.var import Node, Var, next_order

__all__ = ["Tape", "make_leaves", "tape_for"]

live_on: set[str] = set()
"""The names of the backends on which any tape was ever made."""
has_variables: bool = False
"""Whether any variable of ``requires_grad`` was ever made: until then no result can depend on one."""


class Tape:
    """The backend of recorded tensors: ``base`` computes, ``level`` says within how many ``grad`` calls."""

    is_tape: bool = True
    tensor_type: type = Var
    base: Backend
    level: int
    name: str
    key: str
    dtypes: dict[EmberDType, EmberDType]
    weak_dtypes: frozenset[EmberDType]
    families: tuple[Any, ...]
    gaps: Mapping[tuple[str, str], str]
    notes: Mapping[str, str]
    # none of the library's abilities is one of recorded tensors
    gradients: None = None
    tape_kernels: None = None
    compilation: None = None
    control_flow: None = None
    optimizer_kernels: None = None
    recurrent: None = None
    random: None = None
    processes: None = None
    sharding: None = None
    device_mesh: None = None
    weight_layout: None = None
    laziness: None = None
    bench_calls: None = None

    def __init__(self, base: Backend, level: int) -> None:
        self.base, self.level, self.name = base, level, base.name
        self.key = f"{base.name}, tape {level}"
        self.dtypes = {dtype: dtype for dtype in base.dtypes}
        self.weak_dtypes = base.weak_dtypes
        self.families, self.gaps, self.notes = base.families, base.gaps, base.notes
        self._bodies: dict[str, Callable[..., Any]] = {}

    def __repr__(self) -> str:
        return f"<tape {self.level} on {self.name}>"

    def fast_path(self, op: Op, body: Any) -> FastPath:
        return self.base.fast_path(op, body)

    def available_devices(self) -> tuple[str, ...]:
        return self.base.available_devices()

    def initial_device(self) -> str:
        return self.base.initial_device()

    def set_device(self, device: str) -> None:
        self.base.set_device(device)

    def device_scope(self, device: str) -> AbstractContextManager[Any]:
        return self.base.device_scope(device)

    def synchronize(self, device: str | None) -> None:
        self.base.synchronize(device)

    def memory_info(self, device: str) -> dict[str, int | None]:
        return self.base.memory_info(device)

    def is_native(self, x: Any) -> bool:
        return type(x) is Var and x.tape is self

    def constant(self, value: Any) -> Var:
        """A value of the floors below as a tensor of this tape that nothing is recorded of."""
        return Var(value, self, value.dtype if type(value) is Var else self.base.dtype_of(value))

    def adopt(self, value: Any, device: str | None) -> Var:
        """Anything tensor-like as a constant; recorded values of other tapes keep what they recorded."""
        is_ours = type(value) is Var and value.tape.base is self.base
        return self.constant(value if is_ours else bring(value, self.base, device))

    def dtype_of(self, x: Var) -> EmberDType:
        return x.dtype

    def device_of(self, x: Var) -> str:
        return self.base.device_of(x.plain())

    def from_host(self, array: Any, device: str | None, copy: bool = False) -> Var:
        return self.constant(self.base.from_host(array, device, copy))

    def to_host(self, x: Var) -> Any:
        return self.base.to_host(x.plain())

    def scalar(self, value: Any, dtype: EmberDType, device: str | None) -> Var:
        return Var(self.base.scalar(value, self.base.dtypes[dtype], device), self, dtype)

    def cast(self, x: Var, dtype: EmberDType) -> Var:
        return x if x.dtype is dtype else self.call("cast", (x, dtype))

    def to_device(self, x: Var, device: str) -> Var:
        return self.call("to_device", (x, device))

    def to_dlpack(self, x: Var, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
        return self.base.to_dlpack(x.plain(), stream, max_version, dl_device, copy)

    def dlpack_device(self, x: Var) -> tuple[Any, int]:
        return self.base.dlpack_device(x.plain())

    def finish(self, result: Any) -> Any:
        return result

    def translate(self, error: Exception) -> Exception | None:
        return self.base.translate(error)

    def is_tracing(self) -> bool:
        return self.base.is_tracing()

    def is_traced(self, x: Any) -> bool:
        return self.base.is_traced(x.plain() if type(x) is Var else x)

    def is_recorded(self, x: Any) -> bool:
        """Whether a gradient could flow through ``x``, on this floor or one below."""
        while type(x) is Var:
            if x.node is not None:
                return True
            x = x.value
        return self.base.is_recorded(x)

    def call(self, name: str, args: tuple[Any, ...]) -> Any:
        """The op called ``name`` on this tape."""
        op = OPS[name]
        defaults = (*(op.declaration.__defaults__ or ()), *(op.declaration.__kwdefaults__ or {}).values())
        missing = len(op.parameters) - len(args)
        return dispatch(op, (*args, *(defaults[len(defaults) - missing :] if missing else ())), self)

    def call_ufunc(self, name: str, args: tuple[Any, ...]) -> Any:
        """The op that NumPy calls ``name``, on the innermost tape among ``args``."""
        op = _named(name)
        if op is None:
            raise TypeError(f"np.{name} is no op of Ember ML and cannot be recorded")
        short = self.short_recorder(op) if len(args) == len(op.parameters) else None
        recorded = NotImplemented if short is None else short(*args)
        if recorded is not NotImplemented:
            return recorded
        return (find_tape(args, self.base) or self).call(op.name, args)

    def short_recorder(self, op: Op) -> Callable[..., Any] | None:
        """Return a function that records a call of ``op`` whose tensors are recorded alike, or None."""
        return short_recorder_of(op, self.base)

    def body(self, op: Op) -> Callable[..., Any]:
        """What runs for ``op`` on this tape."""
        found = self._bodies.get(op.name)
        if found is None:
            found = op.declaration if op.derived and not op.gradients else recorder(op, self)
            self._bodies[op.name] = found
        return found


_NUMPY_NAMES = {"conjugate": "conj", "degrees": "rad2deg", "radians": "deg2rad"}


@cache
def _named(name: str) -> Op | None:
    """The op that NumPy calls ``name``."""
    found = _NUMPY_NAMES.get(name, name)
    return next((op for op in OPS.values() if found == op.name or found in op.aliases), None)


@cache
def tape_for(base: Backend, level: int) -> Tape:
    """The tape of a backend at a level; ``requires_grad`` records at level 0, ``grad`` above it."""
    global has_variables
    recorded_tensors.is_live = True
    live_on.add(base.name)
    has_variables |= not level
    return Tape(base, level)


_new = object.__new__


def make_leaves(values: Sequence[Any], tape: Tape) -> list[Var]:
    """Variables: values with respect to which gradients will be asked."""
    found: list[Var] = []
    native = dtype = None
    for value in values:
        var, node = _new(Var), _new(Node)  # without calls of constructors, for leaves are many
        if value.dtype is not native:
            native = value.dtype
            dtype = native if type(value) is Var else tape.base.dtype_of(value)
        assert dtype is not None
        var.value, var.tape, var.dtype, var.node, var.index = value, tape, dtype, node, 0
        node.order, node.op, node.parents, node.outputs, node.is_complex = next_order(), None, (), 1, False
        node.plan = node.dtype = node.grad = node.parts = node.residuals = None
        found.append(var)
    return found
