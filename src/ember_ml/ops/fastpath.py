"""The code inside each op's function: the hot path of one backend, compiled from the op's signature.

A call whose tensors are the active backend's own, of one dtype that the library computes as the contract says, goes
straight to the native function, one Python frame in all. Everything else, and every exception, goes to :func:`dispatch`.
"""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Callable
from functools import cache, update_wrapper
from types import CodeType, FunctionType
from typing import Any

from ember_ml import dtypes as dt
from ember_ml.backend.contract import ByDType, FastPath
from ember_ml.ops.declare import DEVICE, DTYPE, INDEX, MASK, SEQUENCE, TENSOR, Op
from ember_ml.ops.dispatch import dispatch

__all__ = ["bind", "code_for"]

_SLOW_ROLES = {INDEX, MASK}  # index and mask tensors have rules of their own, which dispatch applies


def code_for(op: Op, backend: Any) -> CodeType:
    """The code of ``op`` for a backend, or the general one for None."""
    key = "CODE" if backend is None else f"CODE_{backend.name}"
    found = op.namespace.get(key)
    if found is None:
        op.namespace.setdefault("SLOW", dispatch)
        lines = () if backend is None else _hot_lines(op, backend)
        found = _compile(_signature(op), lines, op.parameters).replace(co_name=op.name, co_qualname=op.name)
        op.namespace[key] = found
    return found


def bind(op: Op, call: Callable[[Op, tuple[Any, ...]], Any]) -> Callable[..., Any]:
    """A function with the signature of ``op`` that hands its arguments, in declared order, to ``call``."""
    code = code_for(op, None)
    function = FunctionType(code, {"OP": op, "SLOW": call}, op.name, op.declaration.__defaults__)
    function.__kwdefaults__ = op.declaration.__kwdefaults__
    return update_wrapper(function, op.declaration)


def _signature(op: Op) -> str:
    parts, star = [], False
    for parameter in op.signature.parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        has_default = parameter.default is not inspect.Parameter.empty
        parts.append(f"{parameter.name}=None" if has_default else parameter.name)
    return ", ".join(parts)


def _hot_lines(op: Op, backend: Any) -> tuple[str, ...]:
    """The source lines that try the native call, or nothing where this op has no hot path."""
    body = op.body(backend)
    native = body.native if isinstance(body, ByDType) else body
    others = body.others.keys() if isinstance(body, ByDType) else ()
    tensors = [op.parameters[index] for index, role in op.roles if role is TENSOR]
    sequences = [op.parameters[index] for index, role in op.roles if role is SEQUENCE]
    if any(role in _SLOW_ROLES for _, role in op.roles) or op.rule.result == "own" or not (tensors or sequences):
        return ()
    path: FastPath = backend.fast_path(op, body)
    if sequences and not tensors and len(sequences) == 1:
        template, x, y = path.sequence, sequences[0], ""
    elif len(tensors) == 1 and not sequences:
        template, x, y = path.unary, tensors[0], ""
    elif len(tensors) == 2 and not sequences:
        template, x, y = path.binary, *tensors
    else:
        return ()
    fast = {dtype for dtype in op.rule.domain if dtype in backend.dtypes and dtype not in others}
    suffix = backend.name
    names = {
        "NATIVE": backend.tensor_type,
        "BODY": native,
        "OK": frozenset(backend.dtypes[dtype] for dtype in fast),
        "WEAK": frozenset(backend.dtypes[dtype] for dtype in fast & backend.weak_dtypes),
        "F32": backend.dtypes[dt.float32],
    }
    op.namespace.update({f"{name}_{suffix}": value for name, value in names.items()})
    source = template.format(x=x, y=y, args=", ".join(op.parameters))
    for name in sorted(names, key=len, reverse=True):
        source = _rename(source, name, f"{name}_{suffix}")
    # a dtype or device that the caller names is for dispatch to resolve
    unset = [f"{op.parameters[i]} is None" for i, role in op.roles if role in (DTYPE, DEVICE)]
    lines = source.split("\n")
    if unset:
        lines = [f"if {' and '.join(unset)}:", *(f"    {line}" for line in lines)]
    return tuple(lines)


def _rename(source: str, name: str, new: str) -> str:
    return re.sub(rf"\b{name}\b", new, source)


@cache
def _compile(signature: str, lines: tuple[str, ...], parameters: tuple[str, ...]) -> CodeType:
    """Compile one function; ops with the same signature and the same lines share the code."""
    arguments = "".join(f"{name}, " for name in parameters)
    source = f"def op({signature}):\n"
    if lines:
        source += "    try:\n" + "".join(f"        {line}\n" for line in lines)
        source += "    except Exception:\n        pass\n"
    source += f"    return SLOW(OP, ({arguments}))\n"
    filename = f"<ember_ml op {abs(hash(source)):x}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {}
    exec(compile(source, filename, "exec"), namespace)
    return namespace["op"].__code__
