"""Making the standard's namespaces: functions with its signatures, which call the ops."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ember_ml.array_api.adapters import adapters
from ember_ml.array_api.info import Info
from ember_ml.array_api.signatures import FFT, LINALG, MAIN
from ember_ml.backend.contract import Backend
from ember_ml.backend.selection import load
from ember_ml.dispatch.bind_tensor import on_own_backend
from ember_ml.dispatch.codegen import compile_function
from ember_ml.dispatch.declare import OPS, Op
from ember_ml.dispatch.slow_path import dispatch

__all__ = ["fill"]

_VERSION = "2024.12"
_CONSTANTS = {"e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None, "pi": math.pi}
_CONVERSIONS = {"asarray", "from_dlpack"}
_OP_NAMES = {alias: op.name for op in OPS.values() for alias in op.aliases}


def _caller(backend: Backend) -> Callable[[Op, tuple[Any, ...]], Any]:
    def call(op: Op, args: tuple[Any, ...]) -> Any:
        if op.name in _CONVERSIONS:  # these bring data to the namespace's backend, wherever it was
            return dispatch(op, args, backend, portable=True)
        return on_own_backend(op, args, backend)

    return call


def _function(signature: str, call: Callable[[Op, tuple[Any, ...]], Any], module: str) -> Callable[..., Any]:
    """Return a function of the standard's signature that hands its arguments to the op in the op's order."""
    name = signature.partition("(")[0]
    op = OPS.get(name) or OPS[_OP_NAMES[name]]
    if op.is_plain:
        return op.function
    names: dict[str, Any] = {"_CALL": call, "_OP": op}
    defaults = {p.name: p.default for p in op.signature.parameters.values()}
    given = _parameters(signature, op)
    parts = []
    for parameter in op.parameters:
        if parameter not in given:
            names[f"_DEFAULT_{parameter}"] = defaults[parameter]
        parts.append(given.get(parameter, f"_DEFAULT_{parameter}"))
    source = f"def {signature}:\n    return _CALL(_OP, ({', '.join(parts)},))\n"
    function = compile_function(name, source, f"<ember_ml {name} of {module}>", names)
    function.__doc__, function.__module__ = op.declaration.__doc__, module
    return function


def _parameters(signature: str, op: Op) -> dict[str, str]:
    """Return the standard's parameter for each parameter of the op."""
    name, given = signature.partition("(")[0], {}
    declared = compile_function(name, f"def {signature}: ...\n", f"<ember_ml signature of {name}>", {})
    for index, parameter in enumerate(inspect.signature(declared).parameters.values()):
        by_place = parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
        target = op.parameters[index] if by_place else parameter.name
        if target not in op.parameters:
            raise TypeError(f"the standard's {signature} has a parameter that {op} lacks: {target}")
        given[target] = parameter.name
    return given


def _return_list(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with a list as its result, which the standard requires where the op returns a tuple."""

    @functools.wraps(function)
    def listing(*args: Any, **options: Any) -> list[Any]:
        return list(function(*args, **options))

    return listing


def _extension(name: str, table: str, call: Callable[[Op, tuple[Any, ...]], Any]) -> ModuleType:
    module = ModuleType(name, f"The extension {name.rsplit('.', 1)[-1]} of the array API standard.")
    functions = _functions(table, call, name)
    vars(module).update(functions, __all__=sorted(functions))
    return module


def _functions(table: str, call: Callable[[Op, tuple[Any, ...]], Any], module: str) -> dict[str, Callable[..., Any]]:
    return {line.partition("(")[0]: _function(line, call, module) for line in table.split("\n") if line}


def fill(namespace: dict[str, Any], name: str) -> None:
    """Put everything that the standard names into the module ``namespace`` of the backend ``name``."""
    backend = load(name)
    module = namespace["__name__"]
    call = _caller(backend)
    public: dict[str, Any] = _functions(MAIN, call, module)
    public.update(adapters(backend))
    public.update({name: _return_list(public[name]) for name in ("broadcast_arrays", "meshgrid")})
    public.update(_CONSTANTS)
    public.update({dtype.name: dtype for dtype in backend.dtypes})
    public["linalg"] = _extension(f"{module}.linalg", LINALG, call)
    public["fft"] = _extension(f"{module}.fft", FFT, call)
    info = Info(backend)

    def __array_namespace_info__() -> Info:
        return info

    public["__array_namespace_info__"] = __array_namespace_info__
    public["__array_api_version__"] = _VERSION
    namespace.update(public, __all__=sorted(public))
