"""The code inside each op's function: the hot path of one backend, compiled from the op's signature.

A call whose tensors are the active backend's own, of one dtype that the library computes as the contract says, goes
straight to the native function, one Python frame in all; so does one whose portable tensors hold such. Everything else,
and every exception, goes to :func:`dispatch`.
"""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Callable
from functools import cache, update_wrapper
from types import CodeType, FunctionType
from typing import Any

from ember_ml.autodiff.recorder import short_recorder_of
from ember_ml.backend.contract import Backend, ByDType, FastPath
from ember_ml.backend.selection import is_started
from ember_ml.core import dtypes as dt
from ember_ml.dispatch.declare import DATA, DEVICE, DTYPE, INDEX, INDICES, KEY, MASK, MASKS, SEQUENCE, TENSOR, VALUE, Op
from ember_ml.dispatch.slow_path import dispatch
from ember_ml.tensor.ember_tensor import EmberTensor, wrap
from ember_ml.tensor.kinds import kinds_of
from ember_ml.tensor.var import Var

__all__ = ["bind", "code_for", "compile_function", "complete_bound"]

_SLOW_ROLES = {INDICES, MASKS, KEY, VALUE, DATA}  # they have rules of their own, which dispatch applies
_TENSOR_ROLES = (TENSOR, INDEX, MASK)


def code_for(op: Op, backend: Backend | None) -> CodeType:
    """The code of ``op`` for a backend, or the general one for None."""
    key = "CODE" if backend is None else f"CODE_{backend.name}"
    found = op.namespace.get(key)
    if found is None:
        op.namespace.setdefault("SLOW", dispatch)
        lines = () if backend is None else _hot_lines(op, backend)
        recorded = () if backend is None else _recorded(op, backend)
        code = _compile(_signature(op), lines, op.parameters, recorded)
        found = code.replace(co_name=op.name, co_qualname=op.name)
        op.namespace[key] = found
    return found


def compile_function(name: str, source: str, filename: str, namespace: dict[str, Any]) -> Any:
    """Run ``source`` in ``namespace`` and return the function ``name`` that it defines; tracebacks show the source."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), namespace)
    return namespace[name]


_waiting: list[FunctionType] = []  # functions that get their code with the first backend: compiling takes a while


def bind(op: Op, call: Callable[[Op, tuple[Any, ...]], Any]) -> Callable[..., Any]:
    """A function with the signature of ``op`` that hands its arguments, in declared order, to ``call``."""
    namespace: dict[str, Any] = {"OP": op, "SLOW": call, "__builtins__": __builtins__}
    function = namespace["SELF"] = FunctionType(_start.__code__, namespace, op.name, op.declaration.__defaults__)
    function.__kwdefaults__ = op.declaration.__kwdefaults__
    if is_started():
        function.__code__ = code_for(op, None)
    else:
        _waiting.append(function)
    return update_wrapper(function, op.declaration)


def _start(*args: Any, **kwargs: Any) -> Any:
    """The code of bound functions until the backend is first known."""
    from ember_ml.backend.selection import active

    active()
    return SELF(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821


def complete_bound() -> None:
    """Give all bound functions the code that hands their arguments over."""
    while _waiting:
        function = _waiting.pop()
        function.__code__ = code_for(function.__globals__["OP"], None)


def _signature(op: Op) -> str:
    """The parameters as they stand in a ``def``, read off the code, which is much quicker than to inspect it."""
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


def _hot_lines(op: Op, backend: Backend) -> tuple[str, ...]:
    """The source lines that try the native call, or nothing where this op has no hot path."""
    body = op.body(backend)
    native = body.native if isinstance(body, ByDType) else body
    others = body.others.keys() if isinstance(body, ByDType) else ()
    tensors = [op.parameters[index] for index, role in op.roles if role is TENSOR]
    sequences = [op.parameters[index] for index, role in op.roles if role is SEQUENCE]
    if any(role in _SLOW_ROLES for _, role in op.roles) or op.rule.result == "own" or not (tensors or sequences):
        return ()
    path: FastPath = backend.fast_path(op, body)
    roles = {op.parameters[index]: role for index, role in op.roles if role in _TENSOR_ROLES}
    y, beside = "", {}
    if sequences:
        if roles or len(sequences) > 1:
            return ()
        template, x = path.sequence, sequences[0]
    elif len(roles) == 1:
        template, x = path.unary, tensors[0]
    elif len(tensors) == 2 == len(roles) and not _is_optional(op, tensors[1]):
        template, x, y = path.binary, *tensors
    elif _is_optional(op, tensors[0]):
        return ()
    else:
        x = tensors[0]
        beside = {name: role for name, role in roles.items() if name != x}
        template = f"if type({x}) is NATIVE:\n    if {_tests(op, x, beside)}:\n" + _indent(_indent(path.unary))
    fast = {dtype for dtype in op.rule.domain if dtype in backend.dtypes and dtype not in others}
    # a body written in Python computes with a Python number as its library reads it alone: in float32
    weak = {dt.float32} if isinstance(native, FunctionType) else backend.weak_dtypes
    suffix = backend.name
    kinds = kinds_of(backend)
    names = {
        "NATIVE": backend.tensor_type,
        "BODY": native,
        "OK": frozenset(backend.dtypes[dtype] for dtype in fast),
        "KINDS": frozenset(kinds[dtype] for dtype in fast),
        "WEAK": frozenset(backend.dtypes[dtype] for dtype in fast & weak),
        "WEAK_KINDS": frozenset(kinds[dtype] for dtype in fast & weak),
        "F32": backend.dtypes[dt.float32],
        "BOOL": backend.dtypes[dt.bool_],
        "INTEGERS": frozenset(backend.dtypes[dtype] for dtype in dt.INTEGERS if dtype in backend.dtypes),
        "INTEGER_KINDS": frozenset(kinds[dtype] for dtype in dt.INTEGERS if dtype in kinds),
        "BACKEND": backend,
    }
    op.namespace.update({f"{name}_{suffix}": value for name, value in names.items()})
    op.namespace.update(CLS=EmberTensor, NEW=object.__new__, WRAP=wrap, VAR=Var)
    source = template.format(x=x, y=y, args=", ".join(op.parameters))
    if not sequences:
        source = source.rstrip("\n") + "\n" + _portable_lines(op, x, y, beside)
    for name in names:
        source = re.sub(rf"\b{name}\b", f"{name}_{suffix}", source)
    # a dtype or device that the caller names is for dispatch to resolve
    conditions = [f"{op.parameters[i]} is None" for i, role in op.roles if role in (DTYPE, DEVICE)]
    if isinstance(body, ByDType) and body.when:
        conditions.append(f"({body.when})")
    lines = source.rstrip().split("\n")
    if conditions:
        lines = [f"if {' and '.join(conditions)}:", *(f"    {line}" for line in lines)]
    return tuple(lines)


def _recorded(op: Op, backend: Backend) -> tuple[str, ...]:
    """The tensor parameters whose being recorded is worth a look, on a backend that has only the tape for gradients."""
    if backend.gradients is not None or not op.gradients:
        return ()

    def record(*args: Any) -> Any:
        found = op.namespace["RECORD"] = short_recorder_of(op, backend) or _no_short_way
        return found(*args)

    op.namespace.update(VAR=Var, RECORD=record)
    return tuple(op.parameters[index] for index, role in op.roles if role is TENSOR)


def _no_short_way(*args: Any) -> Any:
    return NotImplemented


def _is_optional(op: Op, parameter: str) -> bool:
    return op.declaration.__annotations__[parameter].endswith(" | None")


def _tests(op: Op, x: str, beside: dict[str, str], portable: bool = False) -> str:
    """The condition that the tensors beside ``x`` are of its kind, indices integers and masks bools, or None."""
    if portable:
        right = {TENSOR: "{p}._kind is k", INDEX: "{p}._kind in INTEGER_KINDS", MASK: "{p}._kind is k.boolean"}
    else:
        right = {TENSOR: "{p}.dtype == {x}.dtype", INDEX: "{p}.dtype in INTEGERS", MASK: "{p}.dtype == BOOL"}
    tests = []
    for p, role in beside.items():
        test = f"type({p}) is {'CLS' if portable else 'NATIVE'} and {right[role].format(p=p, x=x)}"
        tests.append(f"({p} is None or {test})" if _is_optional(op, p) else test)
    return " and ".join(tests)


def _portable_lines(op: Op, x: str, y: str, beside: dict[str, str]) -> str:
    """The hot path of portable tensors of one kind: the native function on what they hold, its result wrapped.

    It is the last branch of the statement that tries native tensors, which therefore pay nothing for it.
    """
    held = {name: f"{name}._array" for name in (x, y, *beside)}
    held |= {p: f"None if {p} is None else {p}._array" for p in beside if _is_optional(op, p)}
    unwrapped = [held.get(name, name) for name in op.parameters]
    one_weak = [held[x] if name == x else name for name in op.parameters]
    if op.rule.result in ("same", "bool"):
        kind = "k" if op.rule.result == "same" else "k.boolean"
        finish = f"if type(r) is NATIVE:\n    t = NEW(CLS)\n    t._array = r\n    t._kind = {kind}\n    return t\n"
    else:
        finish = "return WRAP(r if type(r) is NATIVE else BACKEND.finish(r), BACKEND)\n"
    call = f"r = BODY({', '.join(unwrapped)})\n" + finish
    weak = f"r = BODY({', '.join(one_weak)})\n" + finish
    if beside:
        inside = _indent(f"if {_tests(op, x, beside, portable=True)}:\n" + _indent(call))
    elif not y:
        inside = _indent(call)
    else:
        inside = _indent(f"if type({y}) is CLS:\n    if {y}._kind is k:\n" + _indent(_indent(call)))
        inside += _indent(f"elif (type({y}) is float or type({y}) is int) and k in WEAK_KINDS:\n" + _indent(weak))
    return f"elif type({x}) is CLS:\n    k = {x}._kind\n    if k in KINDS:\n" + _indent(inside)


def _indent(source: str) -> str:
    return "".join(f"    {line}\n" for line in source.rstrip("\n").split("\n"))


@cache
def _compile(
    signature: str, lines: tuple[str, ...], parameters: tuple[str, ...], recorded: tuple[str, ...] = ()
) -> CodeType:
    """Compile one function; ops with the same signature and the same lines share the code."""
    arguments = "".join(f"{name}, " for name in parameters)
    source = f"def op({signature}):\n"
    if lines:
        source += "    try:\n" + "".join(f"        {line}\n" for line in lines)
        source += "    except Exception:\n        pass\n"
    if recorded:
        tests = " or ".join(f"type({name}) is VAR" for name in recorded)
        source += f"    if {tests}:\n        r = RECORD({arguments})\n"
        source += "        if r is not NotImplemented:\n            return r\n"
    source += f"    return SLOW(OP, ({arguments}))\n"
    filename = f"<ember_ml op {abs(hash(source)):x}>"
    return compile_function("op", source, filename, {}).__code__
