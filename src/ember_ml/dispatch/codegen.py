"""Make the code that runs: the only place in the package where source text becomes functions.

Each op has one function object for good, and for each backend a code for it, compiled from the op's signature. A call
whose tensors are the backend's own, of one dtype that the library computes as the contract says, goes straight to the
native function, one Python frame in all; so does one whose portable tensors hold such. Tests of types and dtypes decide
that; everything else goes to :func:`dispatch`. What the native function raises is explained with the arguments, and the
function is not called again.

Every name in generated code that is no parameter begins with an underscore, and no parameter does. What depends on the
backend ends in its name, since the codes of one op share one namespace.
"""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Callable
from functools import cache, update_wrapper
from types import CodeType, FunctionType
from typing import Any
from weakref import ref

from ember_ml.backend import selection
from ember_ml.backend.contract import Backend, ByDType, FastPath
from ember_ml.backend.devices import default_device
from ember_ml.core import dtypes as dt
from ember_ml.dispatch.arguments import number_like
from ember_ml.dispatch.autocast import outside_autocast
from ember_ml.dispatch.autocast_policy import POLICIES
from ember_ml.dispatch.declare import DATA, DEVICE, DTYPE, INDEX, INDICES, KEY, MASK, MASKS, SEQUENCE, TENSOR, VALUE, Op
from ember_ml.dispatch.slow_path import dispatch, finish, recover
from ember_ml.tensor.ember_tensor import EmberTensor, wrap
from ember_ml.tensor.in_place import freeze, link
from ember_ml.tensor.kinds import kinds_of
from ember_ml.tensor.var import Var

__all__ = ["bind", "code_for", "compile_function", "complete_bound", "install_code", "source_of"]

_SLOW_ROLES = {INDICES, MASKS, KEY, VALUE, DATA}  # they have rules of their own, which dispatch applies
_TENSOR_ROLES = (TENSOR, INDEX, MASK)
_NUMBERS = frozenset({bool, int, float, complex, type(None)})


def compile_function(name: str, source: str, filename: str, namespace: dict[str, Any]) -> Any:
    """Run ``source`` in ``namespace`` and return the function ``name`` that it defines; tracebacks show the source."""
    _show_lines(filename, source)
    exec(compile(source, filename, "exec"), namespace)
    return namespace[name]


def _show_lines(filename: str, source: str) -> None:
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)


@cache
def _compile(source: str) -> CodeType:
    """Compile the function ``op``; ops with the same signature and the same lines share the work."""
    return compile_function("op", source, "<ember_ml>", {}).__code__


def code_for(op: Op, backend: Backend | None, is_half: bool = False) -> CodeType:
    """Return the code of ``op`` for a backend; for None, code that hands the arguments to ``_SLOW``.

    With ``is_half`` it is the code for the inside of ``autocast`` blocks.
    """
    key = "" if backend is None else selection.key_of(backend, is_half)
    found = op.codes.get(key)
    if found is None:
        source, filename = source_of(op, backend, is_half), f"<ember_ml {op.name}{key and f' on {key}'}>"
        _show_lines(filename, source)
        code = _compile(source.replace(f"def {op.name}(", "def op(", 1))
        found = op.codes[key] = code.replace(co_name=op.name, co_qualname=op.name, co_filename=filename)
    return found


def install_code(op: Op, backend: Backend) -> None:
    """Give the function of ``op`` the code for ``backend``."""
    op.function.__code__ = code_for(op, backend)


def source_of(op: Op, backend: Backend | None, is_half: bool = False) -> str:
    """Return the source of ``op`` for a backend, and put what it refers to into the op's namespace.

    Inside ``autocast`` (``is_half``) an op that the policy names has no hot path: dispatch settles its dtype.
    """
    arguments = "".join(f"{name}, " for name in op.parameters)
    lines = [f"def {op.name}({_signature(op)}):"]
    op.namespace.setdefault("_SLOW", dispatch)
    if backend is not None and not (is_half and op.name in POLICIES):
        if not is_half:  # only a call inside the block gets here
            lines += [f"    {line}" for line in _scope_lines(op, backend)]
        hot = _hot_lines(op, backend, is_half) or _creating_lines(op, backend, is_half)
        if hot:
            lines += ["    try:", *(f"        {line}" for line in hot), "    except Exception as _error:"]
            suffix = _suffix(selection.key_of(backend, is_half))
            lines += [f"        return _RECOVER(_OP, ({arguments}), _BACKEND_{suffix}, _error)"]
        lines += [f"    {line}" for line in _recording_lines(op, backend)]
    return "\n".join([*lines, f"    return _SLOW(_OP, ({arguments}))", ""])


def _suffix(name: str) -> str:
    """Return the name of a backend, or the key of its scopes, as the end of an identifier."""
    return re.sub(r"\W", "_", name)


_waiting: list[FunctionType] = []  # functions that get their code with the first backend: compiling takes a while


def bind(op: Op, call: Callable[[Op, tuple[Any, ...]], Any]) -> Callable[..., Any]:
    """Return a function with the signature of ``op`` that hands its arguments, in declared order, to ``call``."""
    namespace: dict[str, Any] = {"_OP": op, "_SLOW": call, "__builtins__": __builtins__}
    function = namespace["_SELF"] = FunctionType(_start.__code__, namespace, op.name, op.declaration.__defaults__)
    function.__kwdefaults__ = op.declaration.__kwdefaults__
    if selection.is_started():
        function.__code__ = code_for(op, None)
    else:
        _waiting.append(function)
    return update_wrapper(function, op.declaration)


def _start(*args: Any, **kwargs: Any) -> Any:
    """Choose a backend: the code of bound functions until then."""
    from ember_ml.dispatch.install import start

    start()
    return _SELF(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821


def complete_bound() -> None:
    """Give all bound functions the code that hands their arguments over."""
    while _waiting:
        function = _waiting.pop()
        function.__code__ = code_for(function.__globals__["_OP"], None)


def _signature(op: Op) -> str:
    """Return the parameters as they stand in a ``def``, read off the code, which is quicker than to inspect it."""
    declaration = op.declaration
    code = declaration.__code__
    places, last = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    first_default = places - len(declaration.__defaults__ or ())
    parts = [f"{p}=None" if i >= first_default else p for i, p in enumerate(code.co_varnames[:places])]
    if code.co_flags & inspect.CO_VARARGS:
        parts.append(f"*{code.co_varnames[last]}")
    elif last > places:
        parts.append("*")
    defaults = declaration.__kwdefaults__ or {}
    return ", ".join(parts + [f"{p}=None" if p in defaults else p for p in code.co_varnames[places:last]])


def _scope_lines(op: Op, backend: Backend) -> tuple[str, ...]:
    """Return the lines that hand a call inside a scope of another backend to the op's function for that one."""
    code = op.declaration.__code__
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    starred = op.parameters[code.co_argcount] if code.co_flags & inspect.CO_VARARGS else None
    given = [f"{p}={p}" if p in keywords else f"*{p}" if p == starred else p for p in op.parameters]
    own = f"_BACKEND_{_suffix(backend.name)}"
    op.namespace.update({"_SELECTION": selection, own: backend})
    return (
        "if _SELECTION.has_scopes:",
        "    _scopes = _SELECTION.scopes_here()",
        f"    if _scopes and _scopes[-1].target is not {own}:",
        f"        return _ON[_scopes[-1].key]({', '.join(given)})",
    )


def _hot_lines(op: Op, backend: Backend, is_half: bool) -> list[str]:
    """Return the lines that test the arguments and make the native call; none where this op has no hot path."""
    body = op.body(backend)
    native = body.native if isinstance(body, ByDType) else body
    if is_half and body is op.declaration:
        native = outside_autocast(native)
    others = body.others.keys() if isinstance(body, ByDType) else ()
    tensors = [op.parameters[index] for index, role in op.roles if role is TENSOR]
    sequences = [op.parameters[index] for index, role in op.roles if role is SEQUENCE]
    if any(role in _SLOW_ROLES for _, role in op.roles) or not (tensors or sequences):
        return []
    has_own_result = op.rule.result == "own"  # of other kinds than its tensor: dispatch wraps the portable ones
    if has_own_result and not (tensors and len(op.roles) == 1):
        return []
    path: FastPath = backend.fast_path(op, body)
    roles = {op.parameters[index]: role for index, role in op.roles if role in _TENSOR_ROLES}
    y, beside = "", {}
    if sequences:
        if roles or len(sequences) > 1:
            return []
        x = sequences[0]
        several = "if {x} and type({x}[0]) is _NATIVE:\n" + _indent(path.sequence)
        if path.pair:
            several = "if len({x}) == 2:\n    _first, _second = {x}\n" + _indent(path.pair) + several
        template = "if type({x}) is list or type({x}) is tuple:\n" + _indent(several)
    elif len(roles) == 1:
        template, x = path.unary, tensors[0]
    elif len(tensors) == 2 == len(roles) and not _is_optional(op, tensors[1]):
        template, x, y = path.binary, *tensors
    elif _is_optional(op, tensors[0]):
        return []
    else:
        x = tensors[0]
        beside = {name: role for name, role in roles.items() if name != x}
        template = f"if type({x}) is _NATIVE:\n    if {_tests(op, x, beside, path.dtype)}:\n" + _indent(
            _indent(path.unary)
        )
        if TENSOR in beside.values():
            numbers = _tests(op, x, beside, path.dtype, numbers=True)
            template += f"    if {x}{path.dtype} in _WEAK and {numbers}:\n"
            template += _indent(_indent(path.unary.replace("{args}", "{number_args}")))
    fast = {dtype for dtype in op.rule.domain if dtype in backend.dtypes and dtype not in others}
    suffix = _suffix(selection.key_of(backend, is_half))
    kinds = kinds_of(backend)
    names = {
        "_NATIVE": backend.tensor_type,
        "_BODY": native,
        "_PLAIN": body.plain if isinstance(body, ByDType) else None,
        "_OK": frozenset(backend.dtypes[dtype] for dtype in fast),
        "_KINDS": frozenset(kinds[dtype.name] for dtype in fast),
        "_WEAK": frozenset(backend.dtypes[dtype] for dtype in fast & backend.weak_dtypes),
        "_F32": backend.dtypes[dt.float32],
        "_BOOL": backend.dtypes[dt.bool_],
        "_INTEGERS": frozenset(backend.dtypes[dtype] for dtype in dt.INTEGERS if dtype in backend.dtypes),
        "_INTEGER_KINDS": frozenset(kinds[dtype.name] for dtype in dt.INTEGERS if dtype.name in kinds),
        "_BACKEND": backend,
    }
    op.namespace.update({f"{name}_{suffix}": value for name, value in names.items()})
    op.namespace.update(_TENSOR=EmberTensor, _NEW=object.__new__, _WRAP=wrap, _FINISH=finish)
    op.namespace.update(_NUMBER=number_like, _RECOVER=recover)
    op.namespace.update(_FREEZE=freeze, _LINK=link, _REF=ref, _RULE=op.view_rule)
    # by the contract a body gets tensors; the library's own functions may take a number as it is, which is quicker
    is_direct = path.takes_numbers and not isinstance(native, FunctionType)
    number = "{y}" if is_direct else "_NUMBER({y}, {x}, _BACKEND)"
    made = {p: number.format(x=x, y=p) for p, role in beside.items() if role is TENSOR and not is_direct}
    made = {p: f"{made[p]} if type({p}) is float or type({p}) is int else {p}" for p in made}
    made[y] = number.format(x=x, y=y)
    number_args = ", ".join(made.get(name, name) for name in op.parameters)
    source = template.format(x=x, y=y, args=", ".join(op.parameters), number_args=number_args)
    if names["_PLAIN"] is not None:
        source = source.replace("_BODY(", "_PLAIN(")
    if not sequences and not has_own_result:
        source = source.rstrip("\n") + "\n" + _portable_lines(op, x, y, beside, number, path)
    source = re.sub(rf"\b({'|'.join(names)})\b", rf"\1_{suffix}", source)
    # a dtype or device that the caller names is for dispatch to resolve
    conditions = [f"{op.parameters[i]} is None" for i, role in op.roles if role in (DTYPE, DEVICE)]
    if isinstance(body, ByDType) and body.when:
        conditions.append(f"({body.when})")
    lines = source.rstrip().split("\n")
    if conditions:
        lines = [f"if {' and '.join(conditions)}:", *(f"    {line}" for line in lines)]
    return lines


def _creating_lines(op: Op, backend: Backend, is_half: bool) -> list[str]:
    """Return the lines for Python numbers in an op that makes tensors, of the default dtype and where it makes them."""
    body, roles = op.body(backend), [role for _, role in op.roles]
    if DEVICE not in roles or not {*roles} <= {DATA, DTYPE, DEVICE} or isinstance(body, ByDType):
        return []
    suffix = _suffix(selection.key_of(backend, is_half))
    native = outside_autocast(body) if is_half and body is op.declaration else body
    names = {"_BODY": native, "_NATIVE": backend.tensor_type, "_BACKEND": backend}
    op.namespace.update({f"{name}_{suffix}": value for name, value in names.items()})
    op.namespace.update(_NUMBERS=_NUMBERS, _DEVICE=default_device, _FINISH=finish, _RECOVER=recover)
    data = [op.parameters[index] for index, role in op.roles if role is DATA]
    named = [op.parameters[index] for index, role in op.roles if role is not DATA]
    device = op.parameters[next(index for index, role in op.roles if role is DEVICE)]
    tests = [f"{name} is None" for name in named] + [f"type({name}) in _NUMBERS" for name in data]
    arguments = [f"_DEVICE(_BACKEND_{suffix})" if name == device else name for name in op.parameters]
    return [
        f"if {' and '.join(tests)}:",
        f"    _result = _BODY_{suffix}({', '.join(arguments)})",
        f"    return _result if type(_result) is _NATIVE_{suffix} else _FINISH(_result, _BACKEND_{suffix})",
    ]


def _recording_lines(op: Op, backend: Backend) -> list[str]:
    """Return the lines for recorded tensors, on a backend that has only the tape for gradients."""
    if backend.gradients is not None or not op.gradients:
        return []
    own = f"_RECORD_{_suffix(backend.name)}"

    def record(*args: Any) -> Any:
        """Ask the tape for the short way to record the op, once."""
        tape = next(value.tape for value in args if type(value) is Var)
        if tape.base is not backend:
            return NotImplemented
        found = op.namespace[own] = tape.short_recorder(op) or _no_short_way
        return found(*args)

    op.namespace.update({"_VAR": Var, own: record})
    tests = [f"type({op.parameters[index]}) is _VAR" for index, role in op.roles if role is TENSOR]
    if not tests:
        return []
    return [
        f"if {' or '.join(tests)}:",
        f"    _result = {own}({', '.join(op.parameters)})",
        "    if _result is not NotImplemented:",
        "        return _result",
    ]


def _no_short_way(*args: Any) -> Any:
    return NotImplemented


def _is_optional(op: Op, parameter: str) -> bool:
    return op.declaration.__annotations__[parameter].endswith(" | None")


def _tests(op: Op, x: str, beside: dict[str, str], dtype: str = "", numbers: bool = False) -> str:
    """Return the condition that the tensors beside ``x`` are of its kind, indices integers and masks bools, or None.

    ``dtype`` reads the dtype of a native tensor; without it the tensors are portable. With ``numbers`` a tensor may
    also be a Python number.
    """
    if not dtype:
        right = {TENSOR: "{p}._kind is _kind", INDEX: "{p}._kind in _INTEGER_KINDS", MASK: "{p}._kind is _kind.boolean"}
    else:
        same, integer, boolean = f"{{p}}{dtype} == {{x}}{dtype}", f"{{p}}{dtype} in _INTEGERS", f"{{p}}{dtype} == _BOOL"
        right = {TENSOR: same, INDEX: integer, MASK: boolean}
    tests = []
    for p, role in beside.items():
        test = f"type({p}) is {'_NATIVE' if dtype else '_TENSOR'} and {right[role].format(p=p, x=x)}"
        if numbers and role is TENSOR:
            test = f"({test} or type({p}) is float or type({p}) is int)"
        tests.append(f"({p} is None or {test})" if _is_optional(op, p) else test)
    return " and ".join(tests)


def _portable_lines(op: Op, x: str, y: str, beside: dict[str, str], number: str, path: FastPath) -> str:
    """Return the hot path of portable tensors of one kind: call the native function, wrap its result.

    It is the last branch of the statement that tests native tensors, which therefore pay nothing for it.
    """
    if op.link_views is not None and (op.view_rule is None or op.rule.result != "same"):
        return ""  # dispatch links the results
    held = {name: f"{name}._array" for name in (x, y, *beside)}
    held |= {p: f"None if {p} is None else {p}._array" for p in beside if _is_optional(op, p)}
    unwrapped = [held.get(name, name) for name in op.parameters]
    with_number = dict(held) | {y: number.format(x=held[x], y=y)}
    one_weak = [with_number.get(name, name) for name in op.parameters]
    if op.view_rule is not None:
        wrapped = _view_lines(op, x, path)
    elif op.rule.result in ("same", "bool") and op.declaration.__annotations__["return"] == "Tensor":
        kind = "_kind" if op.rule.result == "same" else "_kind.boolean"
        wrapped = (
            "_tensor = _NEW(_TENSOR)\n"
            "_tensor._array = _result if type(_result) is _NATIVE else _FINISH(_result, _BACKEND)\n"
            f"_tensor._kind = {kind}\n"
            "_tensor._views = None\n"
            "return _tensor\n"
        )
    else:
        wrapped = "return _WRAP(_result if type(_result) is _NATIVE else _FINISH(_result, _BACKEND), _BACKEND)\n"
    call = f"_result = _BODY({', '.join(unwrapped)})\n" + wrapped
    weak = f"_result = _BODY({', '.join(one_weak)})\n" + wrapped
    if beside:
        inside = _indent(f"if {_tests(op, x, beside)}:\n" + _indent(call))
    elif not y:
        inside = _indent(call)
    else:
        inside = _indent(f"if type({y}) is _TENSOR:\n    if {y}._kind is _kind:\n" + _indent(_indent(call)))
        inside += _indent(f"elif (type({y}) is float or type({y}) is int) and _kind.weak:\n" + _indent(weak))
    return f"elif type({x}) is _TENSOR:\n    _kind = {x}._kind\n    if _kind in _KINDS:\n" + _indent(inside)


def _view_lines(op: Op, x: str, path: FastPath) -> str:
    """Return the lines that wrap a view of ``x`` and link both, in the op's own frame where ``x`` has no other view."""
    args = "".join(
        f", {p} if type({p}) is int or type({p}) is tuple else _FREEZE({p})" for p in op.parameters if p != x
    )
    is_eager = f"not {path.is_compiling} and " if path.is_compiling else ""
    return (
        "_tensor = _NEW(_TENSOR)\n"
        "_tensor._array = _result if type(_result) is _NATIVE else _FINISH(_result, _BACKEND)\n"
        "_tensor._kind = _kind\n"
        "_tensor._views = ()\n"
        f"_tensor._base = ({x}, _RULE{args})\n"
        f"if {is_eager}((_links := {x}._views) is None or type(_links) is _REF and _links() is None):\n"
        f"    {x}._views = _REF(_tensor)\n"
        "else:\n"
        f"    _LINK({x}, _tensor)\n"
        "return _tensor\n"
    )


def _indent(source: str) -> str:
    return "".join(f"    {line}\n" for line in source.rstrip("\n").split("\n"))
