"""How a call is recorded on a tape: the general way, and for most ops a short one, compiled from their signature.

Both compute on the values and keep what the gradient rules of the op read. The short way serves calls whose tensors are
recorded alike already, of one floating dtype; it keeps the shape alone of a tensor that is read as an outline. For
every other call dispatch prepares the arguments first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ember_ml.backend import selection
from ember_ml.backend.contract import Backend, ByDType
from ember_ml.core.dtypes import EmberDType, float32, float64
from ember_ml.dispatch.codegen import compile_function
from ember_ml.dispatch.declare import DTYPE, INDEX, MASK, TENSOR, Op, read_names
from ember_ml.dispatch.slow_path import dispatch, finish, recover
from ember_ml.tensor.var import Node, Var, next_order

__all__ = ["Outline", "Plan", "is_tracked", "not_differentiable", "recorder", "short_recorder_of"]


class Outline:
    """What is left of a tensor of which a gradient rule reads shape and dtype alone."""

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

    ``rules`` has for each parent the rule of its parameter, the indices of the residuals that it reads, None for all,
    and the parent's index in the list that the parameter is, or None. ``shapes`` are the indices of the residuals that
    are the shape of an outline. ``vjp`` is the backend's own for the whole op, which reads the first ``vjp_reads``
    residuals; it serves gradients that are ``native`` tensors, of float32 or float64.
    """

    __slots__ = ("native", "rules", "shapes", "vjp", "vjp_reads")

    native: Any
    rules: Any
    shapes: Any
    vjp: Any
    vjp_reads: int

    def __init__(
        self,
        rules: Sequence[tuple[Callable[..., Any], Sequence[int] | None, int | None]],
        shapes: tuple[int, ...] = (),
        native: type | None = None,
        vjp: Callable[..., Any] | None = None,
        vjp_reads: int = 0,
    ) -> None:
        self.rules, self.shapes = rules, shapes
        self.native, self.vjp, self.vjp_reads = native, vjp, vjp_reads


class _Residuals:
    """What a recorded call of an op keeps: first whatever the backend's vjp names, then what the gradient rules name.

    A name is that of a parameter, ``r`` for the result, ``saved`` for what a vjp's own way forward saved; with a
    leading underscore it means shape and dtype alone. ``reads`` has the indices of what the rule of each parameter
    reads, None where that is everything, in the order in which it is kept.
    """

    __slots__ = ("names", "reads", "vjp_reads")

    def __init__(self, op: Op, vjp: Callable[..., Any] | None = None) -> None:
        of_vjp = () if vjp is None else read_names(vjp, 2)
        strangers = set(of_vjp) - {"r", "saved", *op.parameters}
        if strangers:
            raise TypeError(f"the vjp of ops.{op.name} reads {', '.join(sorted(strangers))}, which it has not")
        by_rule = {name: read_names(rule, 1) for name, rule in op.gradients.items() if rule is not None}
        self.names = tuple(dict.fromkeys([*of_vjp, *(name for names in by_rule.values() for name in names)]))
        self.vjp_reads = len(of_vjp)
        self.reads = {
            name: None if names == self.names else tuple(map(self.names.index, names))
            for name, names in by_rule.items()
        }


_UNKNOWN: Any = object()


def recorder(op: Op, tape: Any) -> Callable[..., Any]:
    """A body that computes ``op`` on the values and records the call."""
    rules = [op.gradients.get(name, _UNKNOWN) for name in op.parameters]
    residuals = _Residuals(op)
    reads = [residuals.reads.get(name, ()) for name in op.parameters]
    sources = [_source_of(name, op) for name in residuals.names]
    base = tape.base
    has_signature = not op.declaration.__kwdefaults__ and not op.declaration.__code__.co_flags & 0x04
    function = op.function

    def body(*args: Any) -> Any:
        values = [_value(arg) for arg in args]
        is_direct = has_signature and selection.is_active(base)
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
                    steps.append((rule, reads[index], place))
                elif is_tracked(result, base):
                    raise not_differentiable(op, op.parameters[index])
        if not parents:
            return _constants(result, tape)
        rest: list[Any] = []
        if op.gives_constants:
            result, *rest = result
        is_several = isinstance(result, list | tuple)
        node = Node(op, parents, len(result) if is_several else 1, Plan(steps))
        recorded = _recorded(result, tape, node)
        outline = [_outline(part) for part in recorded] if is_several else None
        values.append(result)
        outlined = [*args, recorded]
        node.residuals = [_outline(outlined[index]) if is_shape else values[index] for index, is_shape in sources]
        node.parts = outline
        node.is_complex = _any_complex(recorded) or any(
            type(arg) is Var and arg.dtype.kind == "complex" for arg in args
        )
        return (recorded, *[_constants(part, tape) for part in rest]) if rest else recorded

    return body


def _source_of(name: str, op: Op) -> tuple[int, bool]:
    """Return the index of what a rule calls ``name`` among the arguments and the result; whether it is an outline."""
    plain = name.removeprefix("_")
    return len(op.parameters) if plain == "r" else op.parameters.index(plain), plain != name


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
    if isinstance(x, list | tuple):
        return [_outline(item) for item in x]
    return x


def is_tracked(result: Any, base: Backend) -> bool:
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


def short_recorder_of(op: Op, base: Backend) -> Callable[..., Any] | None:
    """A function that records a call of ``op`` on a tape of ``base``, or None where there is no short way.

    It gives NotImplemented for arguments that dispatch must prepare.
    """
    key = op.name, base.name
    found = _short.get(key, _UNKNOWN)
    if found is _UNKNOWN:
        found = _short[key] = _short_recorder(op, base)
    return found


def _short_recorder(op: Op, base: Backend) -> Callable[..., Any] | None:
    roles = {op.parameters[place]: role for place, role in op.roles}
    tensors = [name for name, role in roles.items() if role is TENSOR]
    is_simple = roles.keys() and set(roles.values()) <= _SHORT_ROLES and not op.declaration.__kwdefaults__
    records_one = op.gives_constants or op.declaration.__annotations__["return"] == "Tensor"
    is_floating = op.rule.result in ("same", "real", "wide")
    if not (is_simple and records_one and is_floating and (op.rule.promotes or len(tensors) == 1)):
        return None
    if any(name not in op.gradients for name in tensors) or not any(op.gradients.values()):
        return None
    vjps = base.tape_kernels.vjps if base.tape_kernels is not None else {}
    forward, vjp = vjps.get(op.name, (None, None))
    residuals = _Residuals(op, vjp)
    ruled = [name for name in tensors if op.gradients[name] is not None]
    rules: tuple[Any, ...] = tuple((op.gradients[name], residuals.reads[name], None) for name in ruled)
    shapes = tuple(index for index, name in enumerate(residuals.names) if name.startswith("_"))
    names: dict[str, Any] = {
        "VAR": Var,
        "NODE": Node,
        "NEW": object.__new__,
        "ORDER": next_order,
        "OP": op,
        "BASE": base,
        "NATIVE": base.tensor_type,
        "FUNCTION": op.function,
        "BODY": _direct_body(op, base),
        "FINISH": finish,
        "RECOVER": recover,
        "DTYPES": {d: base.dtypes[d] for d in op.rule.domain if d.kind == "float" and d in base.dtypes},
        "WEAK": base.weak_dtypes,
        "PLAN": Plan(rules, shapes),
        "OWN_PLAN": Plan(rules, shapes, base.tensor_type, vjp, residuals.vjp_reads),
        "FORWARD": forward,
        "FLOAT32": float32,
        "FLOAT64": float64,
        "NATIVE_FLOAT32": base.dtypes.get(float32),
    }
    kept = tuple(_expression(name, roles) for name in residuals.names)
    optional = frozenset(n for n in roles if op.declaration.__annotations__[n].endswith(" | None"))
    source = _source(
        op.parameters,
        tuple(roles.items()),
        optional,
        tuple(ruled),
        kept,
        bool(forward),
        names["BODY"] is not None and not op.gives_constants,
        op.gives_constants,
    )
    return compile_function("record", source, f"<ember_ml record {op.name}>", names)


def _direct_body(op: Op, base: Backend) -> Callable[..., Any] | None:
    """Return the body that ``op.function`` would call with native tensors of float32 or float64; None where it asks."""
    body = op.body(base)
    if not isinstance(body, ByDType):
        return None if body is op.declaration else body
    is_one = not body.when and body.plain is None and float32 not in body.others and float64 not in body.others
    return body.native if is_one else None


def _expression(name: str, roles: dict[str, str]) -> str:
    """Return the expression for what the node keeps of what a rule calls ``name``."""
    plain = name.removeprefix("_")
    if plain == "saved":
        return "_saved"
    if plain == "r":
        return "_result" if plain == name else "_result.shape"
    if roles.get(plain) in (TENSOR, INDEX, MASK):
        return f"_value_{plain}" if plain == name else f"_shape_{plain}"
    return plain


def _source(
    parameters: tuple[str, ...],
    roles: tuple[tuple[str, str], ...],
    optional: frozenset[str],
    ruled: tuple[str, ...],
    kept: tuple[str, ...],
    has_forward: bool,
    is_direct: bool,
    gives_constants: bool,
) -> str:
    tensors = [name for name, role in roles if role is TENSOR]
    others = [name for name, role in roles if role is INDEX or role is MASK]
    lines = ["_tape = None"]
    lines += [f"if {name} is not None: return NotImplemented" for name, role in roles if role is DTYPE]
    for name in tensors:
        lines += [
            f"if type({name}) is VAR:",
            "    if _tape is None:",
            f"        _tape = {name}.tape",
            f"        _dtype = {name}.dtype",
            f"    elif {name}.tape is not _tape or {name}.dtype is not _dtype:",
            "        return NotImplemented",
            f"    _value_{name} = {name}.value",
            f"    _node_{name} = {name}.node",
            f"    _shape_{name} = _value_{name}.shape",
            "else:",
            f"    _value_{name} = {name}",
            f"    _node_{name} = None",
        ]
    lines += [
        "if _tape is None or _tape.base is not BASE:",
        "    return NotImplemented",
        "_own = NATIVE_FLOAT32 if _dtype is FLOAT32 else DTYPES.get(_dtype)",
        "if _own is None:",
        "    return NotImplemented",
    ]
    for name in tensors if len(tensors) > 1 else ():
        is_none = f"{name} is None or " if name in optional else ""
        lines += [
            f"if _value_{name} is {name}:",
            f"    if type({name}) is NATIVE:",
            f"        if {name}.dtype != _own:",
            "            return NotImplemented",
            f"        _shape_{name} = {name}.shape",
            f"    elif {is_none}(type({name}) is float or type({name}) is int) and _dtype in WEAK:",
            f"        _shape_{name} = {name}",
            "    else:",
            "        return NotImplemented",
        ]
    for name in others:
        lines += [
            f"_value_{name} = {name}",
            f"if type({name}) is VAR:",
            f"    if {name}.tape is not _tape:",
            "        return NotImplemented",
            f"    _value_{name} = {name}.value",
            f"elif type({name}) is not NATIVE{f' and {name} is not None' if name in optional else ''}:",
            "    return NotImplemented",
            f"_shape_{name} = {name} if {name} is None else _value_{name}.shape",
        ]
    is_own_result = "type(_result) is NATIVE and (_dtype is FLOAT32 or _dtype is FLOAT64)"
    given = [f"_value_{name}" if name in tensors or name in others else name for name in parameters]
    parents = [f"None if _node_{name} is None else (_node_{name}, {name}.index, _shape_{name})" for name in ruled]
    kinds = {n: "NATIVE" if n not in optional else f"NATIVE or {n} is None" for n in tensors}
    are_own = " and ".join(f"(type(_value_{n}) is {kind})" for n, kind in kinds.items())
    if has_forward:
        lines += [
            "_saved = None",
            f"if (_dtype is FLOAT32 or _dtype is FLOAT64) and {are_own}:",
            f"    _result, _saved = FORWARD({', '.join(given)})",
            "if _saved is None:",
            f"    _result = FUNCTION({', '.join(given)})",
        ]
    elif is_direct and not others:
        lines += [
            f"if (_dtype is FLOAT32 or _dtype is FLOAT64) and {are_own}:",
            "    try:",
            f"        _result = BODY({', '.join(given)})",
            "        if type(_result) is not NATIVE:",
            "            _result = FINISH(_result, BASE)",
            "    except Exception as _error:",
            f"        _result = RECOVER(OP, ({', '.join(given)},), BASE, _error)",
            "else:",
            f"    _result = FUNCTION({', '.join(given)})",
        ]
    else:
        lines.append(f"_result = FUNCTION({', '.join(given)})")
    returned = "_var"
    if gives_constants:
        lines.append("_result, *_rest = _result")
        returned = "(_var, *map(_tape.constant, _rest))"
    lines += [
        "_var = NEW(VAR)",
        "_var.value = _result",
        "_var.tape = _tape",
        "_var.dtype = _dtype",
        "_var.index = 0",
        f"if {' and '.join(f'_node_{name} is None' for name in ruled)}:",
        "    _var.node = None",
        f"    return {returned}",
        "_node = NEW(NODE)",
        "_node.order = ORDER()",
        "_node.op = OP",
        f"_node.residuals = ({', '.join(kept)}{',' * (len(kept) == 1)})",
        f"_node.parents = ({', '.join(parents)},)",
        "_node.outputs = 1",
        "_node.is_complex = False",
        "_node.dtype = _dtype",
        f"_node.plan = OWN_PLAN if {'_saved is not None' if has_forward else is_own_result} else PLAN",
        "_node.parts = None",
        "_node.grad = None",
        "_var.node = _node",
        f"return {returned}",
    ]
    return f"def record({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in lines)
