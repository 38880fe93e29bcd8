"""The tape: gradients for libraries that have none, and ``backward()`` on those that have no such thing.

A tape looks to dispatch like a backend whose tensors are ``Var``s: arguments are brought over and promoted as always,
every cast included, and the body that runs is one that computes on the values and records. So a derived op is
differentiated through its body, and an op with gradient rules by those. Rules are written on ops: inside a second
``grad`` they record too. Tapes are told apart by level, one for each ``grad`` inside which the program is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dis import get_instructions
from functools import cache
from operator import attrgetter
from types import CodeType
from typing import Any

from ember_ml import backend as backends
from ember_ml.dtypes import EmberDType, as_dtype
from ember_ml.ops.declare import DTYPE, OPS, TENSOR, Op
from ember_ml.tensor.ember_tensor import EmberTensor
from ember_ml.tensor.var import Node, Var

__all__ = [
    "Outline",
    "Tape",
    "backpropagate",
    "conjugated",
    "find_tape",
    "is_tracked",
    "leaf",
    "mark",
    "not_differentiable",
    "propagate",
    "sources_of",
    "tape_for",
    "unbroadcast",
]

is_live: bool = False
"""Whether any tape was ever made: until then dispatch need not look for recorded values."""
has_variables: bool = False
"""Whether any variable of ``requires_grad`` was ever made: until then no result can depend on one."""


class Outline:
    """What is left of a tensor that a gradient rule does not need."""

    __slots__ = ("dtype", "shape")

    dtype: EmberDType
    shape: tuple[int, ...]

    def __init__(self, shape: tuple[int, ...], dtype: EmberDType) -> None:
        self.shape, self.dtype = shape, dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)


class Tape:
    """The backend of recorded tensors: ``base`` computes, ``level`` says within how many ``grad`` calls."""

    is_tape: bool = True
    tensor_type: type = Var
    base: Any
    level: int
    name: str
    key: str
    dtypes: dict[EmberDType, EmberDType]
    weak_dtypes: frozenset[EmberDType]
    families: tuple[Any, ...]
    available_devices: Callable[[], tuple[str, ...]]
    initial_device: Callable[[], str]
    device_scope: Callable[[str], Any]
    set_device: Callable[[str], None]
    synchronize: Callable[[str | None], None]
    memory_info: Callable[[str], dict[str, int | None]]

    def __init__(self, base: Any, level: int) -> None:
        self.base, self.level, self.name = base, level, base.name
        self.key = f"{base.name}, tape {level}"
        self.dtypes = {dtype: dtype for dtype in base.dtypes}
        self.weak_dtypes = base.weak_dtypes
        self.families = base.families
        self.available_devices, self.initial_device = base.available_devices, base.initial_device
        self.device_scope, self.set_device = base.device_scope, base.set_device
        self.synchronize, self.memory_info = base.synchronize, base.memory_info
        self._bodies: dict[str, Callable[..., Any]] = {}
        self._quick: dict[Op, Callable[[tuple[Any, ...]], Any] | None] = {}

    def __repr__(self) -> str:
        return f"<tape {self.level} on {self.name}>"

    def is_native(self, x: Any) -> bool:
        return type(x) is Var and x.tape is self

    def constant(self, value: Any) -> Var:
        """A value of the floors below as a tensor of this tape that nothing is recorded of."""
        return Var(value, self, value.dtype if type(value) is Var else self.base.dtype_of(value))

    def adopt(self, value: Any, device: str | None) -> Var:
        """Anything tensor-like as a constant; recorded values of other tapes keep what they recorded."""
        from ember_ml.ops.dispatch import bring

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

    def is_traced(self, x: Any) -> bool:
        return self.base.is_traced(x.plain() if type(x) is Var else x)

    def is_recorded(self, x: Any) -> bool:
        """Whether a gradient could flow through ``x``, on this floor or one below."""
        while type(x) is Var:
            if x.node is not None:
                return True
            x = x.value
        found = getattr(self.base, "is_recorded", None)
        return found is not None and found(x)

    def call(self, name: str, args: tuple[Any, ...]) -> Any:
        """The op called ``name`` on this tape."""
        from ember_ml.ops.dispatch import dispatch

        op = OPS.get(name) or _named(name)
        if op is None:
            raise TypeError(f"np.{name} is no op of Ember ML and cannot be recorded")
        defaults = (*(op.declaration.__defaults__ or ()), *(op.declaration.__kwdefaults__ or {}).values())
        missing = len(op.parameters) - len(args)
        return dispatch(op, (*args, *(defaults[len(defaults) - missing :] if missing else ())), self)

    def quick(self, op: Op, args: tuple[Any, ...]) -> Any:
        """What ``op`` gives, recorded the short way, or NotImplemented where dispatch must prepare the arguments."""
        record = self._quick.get(op, _UNKNOWN)
        if record is _UNKNOWN:
            record = self._quick[op] = _quick(op, self) if op.gradients else None
        return NotImplemented if record is None else record(args)

    def body(self, op: Op) -> Callable[..., Any]:
        """What runs for ``op`` on this tape."""
        found = self._bodies.get(op.name)
        if found is None:
            found = op.declaration if op.derived and not op.gradients else _recorder(op, self)
            self._bodies[op.name] = found
        return found


_NUMPY_NAMES = {"conjugate": "conj", "degrees": "rad2deg", "radians": "deg2rad"}


@cache
def _named(name: str) -> Op | None:
    """The op that NumPy calls ``name``."""
    found = _NUMPY_NAMES.get(name, name)
    return next((op for op in OPS.values() if found == op.name or found in op.aliases), None)


@cache
def tape_for(base: Any, level: int) -> Tape:
    """The tape of a backend at a level; ``requires_grad`` records at level 0, ``grad`` above it."""
    global is_live, has_variables
    is_live = True
    has_variables |= not level
    return Tape(base, level)


def leaf(value: Any, tape: Tape) -> Var:
    """A variable: a value with respect to which gradients will be asked."""
    dtype = value.dtype if type(value) is Var else tape.base.dtype_of(value)
    return Var(value, tape, dtype, Node(None, None, None, (), 1, False))


def find_tape(args: Iterable[Any], base: Any, best: Tape | None = None) -> Tape | None:
    """The innermost tape on ``base`` among recorded values in ``args``, or None where nothing in it is recorded."""
    for value in args:
        kind = type(value)
        if kind is EmberTensor:
            value = value._array
            kind = type(value)
        if kind is Var:
            if value.tape.base is base and (best is None or value.tape.level > best.level):
                best = value.tape
        elif kind is list or kind is tuple:
            best = find_tape(value, base, best)
    return best


def _value(x: Any) -> Any:
    kind = type(x)
    if kind is Var:
        return x.value
    if kind is list or kind is tuple:
        return kind([_value(item) for item in x])
    return x


def _outline(x: Any) -> Any:
    if type(x) is Var:
        return Outline(x.shape, x.dtype)
    return [_outline(item) for item in x] if type(x) is list else x  # emberlint: ignore[EMB801] a list


def _recorder(op: Op, tape: Tape) -> Callable[..., Any]:
    """A body that computes ``op`` on the values and records the call."""
    from ember_ml.ops.dispatch import dispatch

    rules = [op.gradients.get(name, _UNKNOWN) for name in op.parameters]
    needs = _Needs(op)
    base = tape.base
    has_signature = not op.declaration.__kwdefaults__ and not op.declaration.__code__.co_flags & 0x04
    function = op.function

    def body(*args: Any) -> Any:
        values = [_value(arg) for arg in args]
        is_direct = has_signature and backends.is_active(base)
        result = function(*values) if is_direct else dispatch(op, tuple(values), base)
        parents = []
        for index, arg in enumerate(args):
            kind = type(arg)
            if kind is Var:
                if arg.node is not None and rules[index] is not None:
                    if rules[index] is _UNKNOWN:
                        if is_tracked(result, base):
                            raise not_differentiable(op, op.parameters[index])
                        continue
                    parents.append((rules[index], None, arg.node, arg.index, arg.shape))
            elif kind is list and rules[index] is not None:
                for place, item in enumerate(arg):
                    if type(item) is Var and item.node is not None:
                        if rules[index] is _UNKNOWN:
                            if is_tracked(result, base):
                                raise not_differentiable(op, op.parameters[index])
                            continue
                        parents.append((rules[index], place, item.node, item.index, item.shape))
        if not parents:
            return _constants(result, tape)
        outputs = len(result) if isinstance(result, list | tuple) else 1
        node = Node(op, needs.of(args, values), None, parents, outputs, False)
        recorded = _recorded(result, tape, node)
        if needs.result == "whole":
            node.result = result
        elif outputs > 1 or isinstance(result, list | tuple):
            node.result = [Outline(tuple(part.shape), part.dtype) for part in recorded]
        else:
            node.result = Outline(recorded.shape, recorded.dtype)
        node.is_complex = _any_complex(recorded) or any(
            type(arg) is Var and arg.dtype.kind == "complex" for arg in args
        )
        return recorded

    return body


_UNKNOWN: Any = object()


class _Needs:
    """What an op's gradient rules read of each argument and of the result.

    An argument that a rule names with an underscore is given as an outline; one that no rule reads at all, as None.
    """

    __slots__ = ("kept", "outlined", "result")

    def __init__(self, op: Op) -> None:
        count = len(op.parameters)
        self.kept, self.outlined = [False] * count, [False] * count
        self.result = ""
        for rule in op.gradients.values():
            if rule is not None:
                self._add(rule.__code__, count)

    def _add(self, code: CodeType, count: int) -> None:
        names = code.co_varnames[: code.co_argcount]
        if len(names) != count + 2:
            raise TypeError(f"a gradient rule takes the gradient, the result and {count} arguments, not {names}")
        read = {i.argval for i in get_instructions(code) if i.opname.startswith("LOAD")} | set(code.co_cellvars)
        for place, name in enumerate(names[2:]):
            if name in read:
                (self.outlined if name.startswith("_") else self.kept)[place] = True
        if names[1] in read:
            self.result = "outline" if names[1].startswith("_") and self.result != "whole" else "whole"

    def of(self, args: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        """What is held of the arguments."""
        return [
            value if kept else _outline(arg) if outlined or type(arg) is not Var else None
            for arg, value, kept, outlined in zip(args, values, self.kept, self.outlined, strict=True)
        ]


def _quick(op: Op, tape: Tape) -> Callable[[tuple[Any, ...]], Any] | None:
    """A shorter way to record ``op`` where its tensors are recorded alike already, or None where there is none.

    It gives NotImplemented for arguments that dispatch must prepare.
    """
    places = [place for place, role in op.roles if role is TENSOR]
    simple = {role for _, role in op.roles} <= {TENSOR, DTYPE} and not op.declaration.__kwdefaults__
    rules = [op.gradients.get(op.parameters[place]) for place in places]
    if not simple or None in rules or op.rule.result not in ("same", "real", "wide") or not op.rule.promotes:
        return None
    domain = frozenset(dtype for dtype in op.rule.domain if dtype.kind == "float")
    natives = {dtype: tape.base.dtypes[dtype] for dtype in domain if dtype in tape.base.dtypes}
    dtype_places = tuple(place for place, role in op.roles if role is DTYPE)
    needs, function, base = _Needs(op), op.function, tape.base
    native_type, weak = base.tensor_type, base.weak_dtypes
    kept, outlined, result_needs = needs.kept, needs.outlined, needs.result

    def of_result(result: Any, dtype: EmberDType) -> Any:
        if result_needs == "whole":
            return result
        return Outline(result.shape, dtype) if result_needs else None

    def record_one(args: tuple[Any, ...]) -> Any:
        """The way of an op with one tensor, its first parameter."""
        x = args[0]
        dtype = x.dtype
        if dtype not in domain or x.tape is not tape:
            return NotImplemented
        for place in dtype_places:
            if args[place] is not None:
                return NotImplemented
        value, node = x.value, x.node
        result = function(value, *args[1:])
        if node is None:
            return Var(result, tape, dtype)
        held = [value if kept[0] else Outline(value.shape, dtype) if outlined[0] else None, *args[1:]]
        parents = ((rules[0], None, node, x.index, value.shape),)
        return Var(result, tape, dtype, Node(op, held, of_result(result, dtype), parents, 1, False))

    def record_several(args: tuple[Any, ...]) -> Any:
        dtype = next(args[place].dtype for place in places if type(args[place]) is Var)
        if dtype not in domain:
            return NotImplemented
        for place in dtype_places:
            if args[place] is not None:
                return NotImplemented
        values, held, parents = list(args), list(args), []
        for place, rule in pairs:
            arg = args[place]
            kind = type(arg)
            if kind is Var:
                if arg.tape is not tape or arg.dtype is not dtype:
                    return NotImplemented
                value = values[place] = arg.value
                if arg.node is not None:
                    parents.append((rule, None, arg.node, arg.index, value.shape))
            elif kind is native_type:
                value = arg
                if arg.dtype != natives[dtype]:
                    return NotImplemented
            elif (kind is float or kind is int) and dtype in weak:
                continue
            else:
                return NotImplemented
            if not kept[place]:
                held[place] = Outline(value.shape, dtype) if outlined[place] else None
            else:
                held[place] = value
        result = function(*values)
        if not parents:
            return Var(result, tape, dtype)
        return Var(result, tape, dtype, Node(op, held, of_result(result, dtype), parents, 1, False))

    pairs = tuple(zip(places, rules, strict=True))
    return record_one if places == [0] else record_several


def is_tracked(result: Any, base: Any) -> bool:
    """Whether a gradient could flow out of ``result``."""
    if isinstance(result, list | tuple):
        return any(is_tracked(part, base) for part in result)
    dtype = result.dtype if type(result) is Var else base.dtype_of(result) if base.is_native(result) else None
    return dtype is not None and dtype.kind in ("float", "complex")


def _any_complex(recorded: Any) -> bool:
    if type(recorded) is Var:
        return recorded.dtype.kind == "complex"
    return any(_any_complex(part) for part in recorded)


def _recorded(result: Any, tape: Tape, node: Node, index: int = 0) -> Any:
    """The parts of a result as recorded tensors; integers and bools are constants."""
    if isinstance(result, list | tuple):
        parts = [_recorded(part, tape, node, place) for place, part in enumerate(result)]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    var = tape.constant(result)
    if var.dtype.kind in ("float", "complex"):
        var.node, var.index = node, index
    return var


def _constants(result: Any, tape: Tape) -> Any:
    if isinstance(result, list | tuple):
        parts = [_constants(part, tape) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return tape.constant(result) if type(result) is Var or tape.base.is_native(result) else result


def not_differentiable(op: Op, parameter: str) -> TypeError:
    """The error for asking for a gradient that there is not."""
    return TypeError(
        f"ops.{op.name} is not differentiable with respect to {parameter!r}; "
        f"cut the gradient there if that is meant: ops.stop_gradient({parameter})"
    )


Slots = dict[Node, list[Any]]
"""For each node the gradients of its outputs."""


def backpropagate(seeds: Sequence[tuple[Node, int, Any]], base: Any, retain: bool = True) -> Slots:
    """The gradients that reach each leaf, of the outputs named by (node, index, gradient), computed on ``base``.

    Without ``retain`` the tape is used up: what each call kept is let go as soon as it was used.
    """
    with nullcontext() if backends.is_active(base) else backends.use_backend(base.name):
        return propagate(seeds, 0, retain)


def propagate(seeds: Sequence[tuple[Node, int, Any]], until: int, retain: bool) -> Slots:
    """The gradients that reach each leaf, and each node recorded before ``until``, at which it stops."""
    pending: Slots = {}
    for node, index, gradient in seeds:
        _accumulate(pending, node, index, gradient)
    reached: Slots = {}
    for node in _in_reverse([node for node, _, _ in seeds], until):
        gradients = pending.pop(node, None)
        if gradients is None:
            continue
        if node.op is None or node.order < until:
            reached[node] = gradients
            continue
        if node.parents is None:
            raise RuntimeError("this part of the graph was differentiated already and let go; compute it again")
        _propagate(node, gradients, pending)
        if not retain:
            node.args = node.result = node.parents = None
    return reached


def mark() -> int:
    """A place in the order of recording: nodes made from now on come after it."""
    return Node(None, None, None, (), 0, False).order


def _in_reverse(roots: Iterable[Node], until: int) -> list[Node]:
    """Every node below the roots, each one before those that it was computed from."""
    seen: set[Node] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            if node.order >= until:
                stack.extend([parent[2] for parent in node.parents or ()])
    return sorted(seen, key=_order_of, reverse=True)


_order_of = attrgetter("order")


def sources_of(roots: Iterable[Node], until: int) -> list[tuple[Node, int, tuple[int, ...]]]:
    """The outputs of nodes recorded before ``until`` from which the roots were computed: node, index and shape."""
    found: dict[tuple[Node, int], tuple[int, ...]] = {}
    for node in _in_reverse(roots, until):
        if node.order >= until:
            before = [parent for parent in node.parents if parent[2].order < until]
            found.update({(parent, index): shape for _, _, parent, index, shape in before})
    return [(node, index, shape) for (node, index), shape in found.items()]


def _propagate(node: Node, gradients: list[Any], pending: Slots) -> None:
    args, result = node.args, node.result
    gradient = gradients[0]
    if node.outputs > 1 or isinstance(result, list | tuple):
        gradient = [_zeros_of(part) if g is None else g for g, part in zip(gradients, result, strict=True)]
    if node.is_complex and node.op.is_holomorphic:
        # the derivative of a holomorphic function at the conjugate is the conjugate of its derivative
        args, result = conjugated(args), conjugated(result)
    shared: Any = None  # a rule for a list of tensors gives all their gradients in one call
    for rule, place, parent, index, shape in node.parents:
        if place is None:
            found = rule(gradient, result, *args)
        else:
            if shared is None or shared[0] is not rule:
                shared = rule, rule(gradient, result, *args)
            found = shared[1][place]
        if found is None:
            continue
        if found.shape != shape:
            found = unbroadcast(found, tuple(shape))
        _accumulate(pending, parent, index, found)


def _accumulate(pending: Slots, node: Node, index: int, gradient: Any) -> None:
    slots = pending.get(node)
    if slots is None:
        slots = pending[node] = [None] * node.outputs
    slots[index] = gradient if slots[index] is None else OPS["add"].function(slots[index], gradient)


def conjugated(x: Any) -> Any:
    """Tensors, in lists and tuples too, with their complex numbers conjugated."""
    if isinstance(x, Outline):
        return x
    if isinstance(x, list | tuple):
        parts = [conjugated(item) for item in x]
        return tuple(parts) if type(x) is tuple else parts  # the key of an element is a tuple
    is_complex = hasattr(x, "dtype") and as_dtype(x.dtype).kind == "complex"
    return OPS["conj"].function(x) if is_complex else x


def _zeros_of(part: Any) -> Any:
    return OPS["zeros"].function(tuple(part.shape), as_dtype(part.dtype))


def unbroadcast(gradient: Any, shape: tuple[int, ...]) -> Any:
    """The gradient of what was broadcast: summed over the axes along which it was repeated."""
    extra = len(gradient.shape) - len(shape)
    if extra == 1 and gradient.shape[1:] == shape:  # a bias that was added to rows
        return OPS["sum"].function(gradient, 0)
    axes = tuple(
        axis for axis, length in enumerate(gradient.shape) if axis < extra or (shape[axis - extra] == 1 and length != 1)
    )
    summed = OPS["sum"].function(gradient, axes[0] if len(axes) == 1 else axes) if axes else gradient
    return summed if tuple(summed.shape) == shape else OPS["reshape"].function(summed, shape)
