"""How a call is recorded on a tape: the general way, and for most ops a short one, compiled from their signature.

Both compute on the values and keep what the gradient rules of the op will read. The short way serves calls whose
tensors are recorded alike already, of one floating dtype; it holds the shape alone of a tensor that is needed as an
outline. For every other call dispatch prepares the arguments first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dis import get_instructions
from functools import cache
from types import CodeType
from typing import Any

from ember_ml.backend import selection as backends
from ember_ml.core.dtypes import EmberDType, float32, float64
from ember_ml.dispatch.declare import DTYPE, INDEX, MASK, TENSOR, Op
from ember_ml.tensor.var import Node, Var, next_order

__all__ = ["Outline", "Plan", "is_tracked", "not_differentiable", "recorder", "short_recorder_of"]


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


class Plan:
    """How the gradient of a recorded call goes on to its parents.

    ``rules`` has for each parent the rule of its parameter, and its place in the list that the parameter is, or None.
    ``shapes`` names the arguments of which the node holds the shape alone, ``has_shape`` says it of the result.
    ``adjoint`` is what the backend brings for the whole op; it serves gradients that are ``native`` tensors, of float32
    or float64.
    """

    __slots__ = ("adjoint", "has_shape", "native", "rules", "shapes")

    adjoint: Any
    has_shape: Any
    native: Any
    rules: Any
    shapes: Any

    def __init__(
        self,
        rules: Sequence[tuple[Callable[..., Any], int | None]],
        shapes: tuple[int, ...] = (),
        has_shape: bool = False,
        native: type | None = None,
        adjoint: Callable[..., Any] | None = None,
    ) -> None:
        self.rules, self.shapes, self.has_shape, self.native, self.adjoint = rules, shapes, has_shape, native, adjoint


_UNKNOWN: Any = object()


def recorder(op: Op, tape: Any) -> Callable[..., Any]:
    """A body that computes ``op`` on the values and records the call."""
    from ember_ml.dispatch.slow_path import dispatch

    rules = [op.gradients.get(name, _UNKNOWN) for name in op.parameters]
    needs = _Needs(op)
    base = tape.base
    has_signature = not op.declaration.__kwdefaults__ and not op.declaration.__code__.co_flags & 0x04
    function = op.function

    def body(*args: Any) -> Any:
        values = [_value(arg) for arg in args]
        is_direct = has_signature and backends.is_active(base)
        result = function(*values) if is_direct else dispatch(op, tuple(values), base)
        parents, steps = [], []
        for index, arg in enumerate(args):
            kind, rule = type(arg), rules[index]
            if rule is None or (kind is not Var and kind is not list):
                continue
            for place, item in enumerate(arg) if kind is list else ((None, arg),):
                if type(item) is not Var or item.node is None:
                    continue
                if rule is not _UNKNOWN:
                    parents.append((item.node, item.index, item.shape))
                    steps.append((rule, place))
                elif is_tracked(result, base):
                    raise not_differentiable(op, op.parameters[index])
        if not parents:
            return _constants(result, tape)
        outputs = len(result) if isinstance(result, list | tuple) else 1
        node = Node(op, needs.of(args, values), None, parents, outputs, Plan(steps))
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


class _Needs:
    """What an op's gradient rules, and the backend's own adjoint, read of each argument and of the result.

    An argument that a rule names with an underscore is given as an outline; one that no rule reads at all, as None.
    """

    __slots__ = ("kept", "outlined", "result")

    def __init__(self, op: Op, adjoint: Callable[..., Any] | None = None) -> None:
        count = len(op.parameters)
        self.kept, self.outlined = [False] * count, [False] * count
        self.result = ""
        for rule in op.gradients.values():
            if rule is not None:
                self._add(rule.__code__, count, 1)
        if adjoint is not None:
            self._add(adjoint.__code__, count, 3)

    def _add(self, code: CodeType, count: int, before: int) -> None:
        names = code.co_varnames[: code.co_argcount]
        if len(names) != before + 1 + count:
            raise TypeError(f"a gradient rule takes the gradient, the result and {count} arguments, not {names}")
        read = {i.argval for i in get_instructions(code) if i.opname.startswith("LOAD")} | set(code.co_cellvars)
        for place, name in enumerate(names[before + 1 :]):
            if name in read:
                (self.outlined if name.startswith("_") else self.kept)[place] = True
        if names[before] in read:
            self.result = "outline" if names[before].startswith("_") and self.result != "whole" else "whole"

    def of(self, args: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        """What is held of the arguments."""
        return [
            value if kept else _outline(arg) if outlined or type(arg) is not Var else None
            for arg, value, kept, outlined in zip(args, values, self.kept, self.outlined, strict=True)
        ]


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


def _recorded(result: Any, tape: Any, node: Node, index: int = 0) -> Any:
    """The parts of a result as recorded tensors; integers and bools are constants."""
    if isinstance(result, list | tuple):
        parts = [_recorded(part, tape, node, place) for place, part in enumerate(result)]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    var = tape.constant(result)
    if var.dtype.kind in ("float", "complex"):
        var.node, var.index = node, index
    return var


def _constants(result: Any, tape: Any) -> Any:
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


_SHORT_ROLES = {TENSOR, INDEX, MASK, DTYPE}
_short: dict[tuple[str, str], Callable[..., Any] | None] = {}


def short_recorder_of(op: Op, base: Any) -> Callable[..., Any] | None:
    """A function that records a call of ``op`` on a tape of ``base``, or None where there is no short way.

    It gives NotImplemented for arguments that dispatch must prepare.
    """
    key = op.name, base.name
    found = _short.get(key, _UNKNOWN)
    if found is _UNKNOWN:
        found = _short[key] = _short_recorder(op, base)
    return found


def _short_recorder(op: Op, base: Any) -> Callable[..., Any] | None:
    roles = {op.parameters[place]: role for place, role in op.roles}
    tensors = [name for name, role in roles.items() if role is TENSOR]
    is_simple = roles.keys() and set(roles.values()) <= _SHORT_ROLES and not op.declaration.__kwdefaults__
    gives_one = op.declaration.__annotations__["return"] == "Tensor" and op.rule.result in ("same", "real", "wide")
    if not is_simple or not gives_one or not (op.rule.promotes or len(tensors) == 1):
        return None
    if any(name not in op.gradients for name in tensors) or not any(op.gradients.values()):
        return None
    forward, adjoint = getattr(base, "ADJOINTS", {}).get(op.name, (None, None))
    needs = _Needs(op, adjoint)
    ruled = [name for name in tensors if op.gradients[name] is not None]
    rules: tuple[Any, ...] = tuple((op.gradients[name], None) for name in ruled)
    shapes = tuple(
        place
        for place, name in enumerate(op.parameters)
        if roles.get(name) in (TENSOR, INDEX, MASK) and needs.outlined[place] and not needs.kept[place]
    )
    plan = Plan(rules, shapes, needs.result == "outline")
    names: dict[str, Any] = {
        "VAR": Var,
        "NODE": Node,
        "NEW": object.__new__,
        "ORDER": next_order,
        "OP": op,
        "BASE": base,
        "NATIVE": base.tensor_type,
        "FUNCTION": op.function,
        "DTYPES": {d: base.dtypes[d] for d in op.rule.domain if d.kind == "float" and d in base.dtypes},
        "WEAK": base.weak_dtypes,
        "PLAN": plan,
        "OWN_PLAN": Plan(rules, shapes, plan.has_shape, base.tensor_type, adjoint),
        "FORWARD": forward,
        "FLOAT32": float32,
        "FLOAT64": float64,
        "NATIVE_FLOAT32": base.dtypes.get(float32),
    }
    held = tuple(_held(name, roles.get(name), needs.kept[i], i in shapes) for i, name in enumerate(op.parameters))
    optional = frozenset(n for n in roles if op.declaration.__annotations__[n].endswith(" | None"))
    source = _source(op.parameters, tuple(roles.items()), optional, tuple(ruled), held, needs.result, bool(forward))
    exec(_compiled(source), names)
    return names["record"]


def _held(name: str, role: str | None, is_kept: bool, is_shape: bool) -> str:
    """The expression for what the node holds of an argument."""
    if role is None or role is DTYPE:
        return name
    return f"{name}_value" if is_kept else f"{name}_shape" if is_shape else "None"


@cache
def _compiled(source: str) -> CodeType:
    return compile(source, "<ember_ml record>", "exec")


def _source(
    parameters: tuple[str, ...],
    roles: tuple[tuple[str, str], ...],
    optional: frozenset[str],
    ruled: tuple[str, ...],
    held: tuple[str, ...],
    result: str,
    has_forward: bool,
) -> str:
    tensors = [name for name, role in roles if role is TENSOR]
    others = [name for name, role in roles if role is INDEX or role is MASK]
    lines = ["tape = None"]
    lines += [f"if {name} is not None: return NotImplemented" for name, role in roles if role is DTYPE]
    for name in tensors:
        lines += [
            f"if type({name}) is VAR:",
            "    if tape is None:",
            f"        tape = {name}.tape",
            f"        dtype_ = {name}.dtype",
            f"    elif {name}.tape is not tape or {name}.dtype is not dtype_:",
            "        return NotImplemented",
            f"    {name}_value = {name}.value",
            f"    {name}_node = {name}.node",
            f"    {name}_shape = {name}_value.shape",
            "else:",
            f"    {name}_value = {name}",
            f"    {name}_node = None",
        ]
    lines += [
        "if tape is None or tape.base is not BASE:",
        "    return NotImplemented",
        "own = NATIVE_FLOAT32 if dtype_ is FLOAT32 else DTYPES.get(dtype_)",
        "if own is None:",
        "    return NotImplemented",
    ]
    for name in tensors if len(tensors) > 1 else ():
        is_none = f"{name} is None or " if name in optional else ""
        lines += [
            f"if {name}_value is {name}:",
            f"    if type({name}) is NATIVE:",
            f"        if {name}.dtype != own:",
            "            return NotImplemented",
            f"        {name}_shape = {name}.shape",
            f"    elif {is_none}(type({name}) is float or type({name}) is int) and dtype_ in WEAK:",
            f"        {name}_shape = {name}",
            "    else:",
            "        return NotImplemented",
        ]
    for name in others:
        lines += [
            f"{name}_value = {name}",
            f"if type({name}) is VAR:",
            f"    if {name}.tape is not tape:",
            "        return NotImplemented",
            f"    {name}_value = {name}.value",
            f"elif type({name}) is not NATIVE{f' and {name} is not None' if name in optional else ''}:",
            "    return NotImplemented",
            f"{name}_shape = {name} if {name} is None else {name}_value.shape",
        ]
    is_own_result = "type(result) is NATIVE and (dtype_ is FLOAT32 or dtype_ is FLOAT64)"
    given = [f"{name}_value" if name in tensors or name in others else name for name in parameters]
    held_result = {"whole": "result", "outline": "result.shape", "": "None"}[result]
    parents = [f"None if {name}_node is None else ({name}_node, {name}.index, {name}_shape)" for name in ruled]
    lines.append("saved = None")
    if has_forward:
        kinds = {n: "NATIVE" if n not in optional else f"NATIVE or {n} is None" for n in tensors}
        is_own = " and ".join(f"(type({n}_value) is {kind})" for n, kind in kinds.items())
        lines += [
            f"if (dtype_ is FLOAT32 or dtype_ is FLOAT64) and {is_own}:",
            "    try:",
            f"        result, saved = FORWARD({', '.join(given)})",
            "    except Exception:",
            "        saved = None",
            "if saved is None:",
            f"    result = FUNCTION({', '.join(given)})",
        ]
    else:
        lines.append(f"result = FUNCTION({', '.join(given)})")
    lines += [
        "var = NEW(VAR)",
        "var.value = result",
        "var.tape = tape",
        "var.dtype = dtype_",
        "var.index = 0",
        f"if {' and '.join(f'{name}_node is None' for name in ruled)}:",
        "    var.node = None",
        "    return var",
        "node = NEW(NODE)",
        "node.order = ORDER()",
        "node.op = OP",
        f"node.args = ({', '.join(held)},)",
        f"node.result = {held_result}",
        f"node.parents = ({', '.join(parents)},)",
        "node.outputs = 1",
        "node.is_complex = False",
        "node.dtype = dtype_",
        f"node.plan = OWN_PLAN if {'saved is not None' if has_forward else is_own_result} else PLAN",
        "node.saved = saved",
        "node.grad = None",
        "var.node = node",
        "return var",
    ]
    return f"def record({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in lines)
