"""Bind the ops to tensors: the operators, methods and indexing of EmberTensor and Var, and portable creation.

They are bound here because ops stand above tensors, and run on the tensor's own backend. Each operator is compiled from
one of the templates below. Operands of one kind (backend and dtype) go straight to the native function that the kind
has for the op; everything else goes to dispatch.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from textwrap import indent
from types import FunctionType
from typing import Any

from ember_ml.backend import selection
from ember_ml.backend.contract import ByDType
from ember_ml.backend.selection import active, backend_of
from ember_ml.dispatch import install as _install  # noqa: F401  it gives the ops their code at each switch
from ember_ml.dispatch.arguments import number_like
from ember_ml.dispatch.autocast_policy import POLICIES
from ember_ml.dispatch.codegen import bind, compile_function
from ember_ml.dispatch.declare import KEY, OPS, SEQUENCE, Op
from ember_ml.dispatch.index_arguments import read_basic_key
from ember_ml.dispatch.slow_path import dispatch, finish, recover
from ember_ml.tensor.ember_tensor import EmberTensor, wrap_native
from ember_ml.tensor.in_place import change, is_part, is_shared
from ember_ml.tensor.kinds import BINARY_OPERATORS, COMPARISONS, UNARY_OPERATORS, Kind, on_new_kinds
from ember_ml.tensor.operations import METHODS
from ember_ml.tensor.var import Var

__all__ = ["make_portable", "on_own_backend"]

_FAMILIES = ("creation", "matrices", "sampling", "choices")
_CONVERSIONS = ("array", "asarray", "convert_to_tensor", "from_dlpack", "from_numpy")

_ALL = BINARY_OPERATORS | COMPARISONS | UNARY_OPERATORS
_COMMUTATIVE = {"add", "mul", "and", "or", "xor"}
_SYMBOLS = {
    **{"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@"},
    **{"and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"},
    **{"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="},
}
_REFLECTED = {
    "sub": "other - self._array",
    # torch 2.13: its operator multiplies the reciprocal of the tensor by the number, so that 49 / 7 is more than 7
    "truediv": "other / self._array if _body is _DIRECT "
    "else _body(_NUMBER(other, self._array, _kind.backend), self._array)",
}

# Generated names begin with an underscore. A slot of a kind is None where dispatch must compute the op. These lines
# take the place of each RETURN.
_RETURN = """
_tensor = _NEW(_TENSOR)
_tensor._array = _result if type(_result) is _kind.native else _FINISH(_result, _kind.backend)
_tensor._kind = {kind}
_tensor._views = None
return _tensor
"""
_UNARY_SOURCE = """
def {method}(self):
    _kind = self._kind
    _body = _kind.{op}
    if _body is not None:
        try:
            _result = _body(self._array)
            RETURN
        except Exception as _error:
            return _RECOVER(_OP, (self,), _kind.backend, _error)
    return _SLOW(_OP, (self,))
"""
# Where a library's operator is its function (MLX), the operator itself is the shortest call, and always makes an array.
_BINARY_SOURCE = """
def {method}(self, other):
    _kind = self._kind
    _body = {body}
    if _body is not None:
        try:
            if type(other) is _TENSOR:
                if other._kind is _kind:
                    if _body is _DIRECT:
                        _tensor = _NEW(_TENSOR)
                        _tensor._array = self._array {symbol} other._array
                        _tensor._kind = {kind}
                        _tensor._views = None
                        return _tensor
                    _result = _body(self._array, other._array)
                    RETURN
            elif {takes_numbers} and (type(other) is float or type(other) is int):
                _result = _body(
                    self._array, other if type(_body) is not _FUNCTION else _NUMBER(other, self._array, _kind.backend)
                )
                RETURN
        except Exception as _error:
            return _RECOVER(_OP, (self, other), _kind.backend, _error)
    return _SLOW(_OP, (self, other))
"""
# Only numbers and native tensors reach a reflected operator; the library's own operator takes numbers on the left, its
# functions may not.
_REFLECTED_SOURCE = """
def {method}(self, other):
    _kind = self._kind
    _body = _kind.{op}
    if _body is not None and _kind.weak and (type(other) is float or type(other) is int):
        try:
            _result = {symbol}
            RETURN
        except Exception as _error:
            return _RECOVER(_OP, (other, self), _kind.backend, _error)
    return _SLOW(_OP, (other, self))
"""
_REFLECTED_SLOW_SOURCE = """
def {method}(self, other):
    return _SLOW(_OP, (other, self))
"""
# The object stays and has the result from now on, and whatever shares elements with it is changed too.
_IN_PLACE_SOURCE = """
def {method}(self, other):
    _result = self.{plain}(other)
    if type(_result) is _TENSOR and _result._kind is self._kind and _result._array.shape == self._array.shape:
        if self._views is None and not _IS_SHARED(self):
            self._array = _result._array
            return self
    return _REBIND(_OP, self, other, _result)
"""


def _bind_kinds(kinds: Iterable[Kind]) -> None:
    """Fill the slots of kinds with the native functions that compute their ops for them as the contract says."""
    if "__add__" not in vars(EmberTensor):  # importing is quicker without operators
        _bind_operators()
    for kind in kinds:
        _bind_kind(kind)


def _bind_kind(kind: Kind) -> None:
    for name in _ALL.values():
        op = OPS[name]
        body = op.body(kind.backend)
        others = body.others if isinstance(body, ByDType) else {}
        narrows = op.rule.result == "real" and kind.dtype.kind == "complex"  # the result is of another kind
        if kind.dtype in op.rule.domain and kind.dtype not in others and body is not op.declaration and not narrows:
            setattr(kind, name, body.native if isinstance(body, ByDType) else body)


def _owner(item: Any) -> Any:
    """Return the backend that holds ``item``; of a recorded tensor the one that computes."""
    if type(item) is not EmberTensor:
        return item.tape.base if type(item) is Var else backend_of(item)
    array = item._array
    return array.tape.base if type(array) is Var else item._kind.backend


def on_own_backend(op: Op, args: tuple[Any, ...], otherwise: Any = None) -> Any:
    """Run ``op`` on the backend that its tensors share; on the active one where they differ.

    Without any tensor it runs on the backend ``otherwise``. The result is portable.
    """
    found = None
    for index, role in op.roles:
        value = args[index]
        for item in value if role in (SEQUENCE, KEY) and isinstance(value, list | tuple) else (value,):
            owner = _owner(item)
            if owner is None or owner is found:
                continue
            if found is not None:
                return dispatch(op, args, active(), portable=True)
            found = owner
    return dispatch(op, args, found or otherwise or active(), portable=True)


def _is_typed_scalar(value: Any) -> bool:
    """Whether ``value`` is a scalar of NumPy, or of what speaks its array interface."""
    speaks = hasattr(value, "__array_interface__")  # emberlint: ignore[EMB502] the interface, whichever library has it
    return speaks and getattr(value, "shape", None) == ()


def _operate(op: Op, values: tuple[Any, ...]) -> Any:
    for value in values:
        is_operand = isinstance(value, EmberTensor | complex | float | int) or backend_of(value) is not None
        if not is_operand and not _is_typed_scalar(value):
            return NotImplemented
    return on_own_backend(op, values)


def _rebind(op: Op, tensor: EmberTensor, other: Any, result: Any) -> Any:
    """Finish an in-place operator whose result needs more than to be stored."""
    if result is NotImplemented:
        return result
    is_recorded = type(result._array) is Var and result.dtype is tensor.dtype  # then the tensor is from now on
    if not is_recorded and result._kind.backend is not tensor._kind.backend:  # in place means on its own backend
        result = dispatch(op, (tensor, other), tensor._kind.backend, portable=True)
    if not is_recorded and result._kind is not tensor._kind:
        if result.dtype.kind == tensor.dtype.kind and tensor.dtype.kind in ("float", "complex"):
            # written into what it is, as in every library: a wider float is rounded
            result = wrap_native(tensor._kind.backend.cast(result._array, _native_dtype(tensor)), tensor._kind.backend)
        else:
            raise TypeError(
                f"ops.{op.name} in place would change the dtype from {tensor.dtype} to {result.dtype}; "
                f"write x = ops.{op.name}(x, y), or cast y first"
            )
    if result.shape != tensor.shape:
        raise ValueError(f"ops.{op.name} in place would change the shape from {tensor.shape} to {result.shape}")
    change(tensor, result._array, result._kind, f"ops.{op.name} in place")
    return tensor


def _native_dtype(tensor: EmberTensor) -> Any:
    return tensor._kind.backend.dtypes[tensor.dtype]


def _bind(method: str, op: Op, source: str, symbol: str = "") -> None:
    namespace = {
        "_DIRECT": getattr(operator, method, None) or getattr(operator, f"__{method[3:]}", None),  # __rsub__: __sub__
        "_FINISH": finish,
        "_IS_SHARED": is_shared,
        "_FUNCTION": FunctionType,
        "_NEW": object.__new__,
        "_NUMBER": number_like,
        "_OP": op,
        "_REBIND": _rebind,
        "_RECOVER": recover,
        "_SELECTION": selection,
        "_SLOW": _operate,
        "_TENSOR": EmberTensor,
    }
    kind = "_kind.boolean" if op.rule.result == "bool" else "_kind"
    plain = method.replace("__i", "__", 1)
    source = re.sub("^( *)RETURN$", lambda found: indent(_RETURN.strip(), found[1]), source.strip(), flags=re.MULTILINE)
    takes_numbers = "False" if op.rule.contraction else "_kind.weak"  # no library multiplies matrices by numbers
    body = f"_kind.{op.name}"
    if op.name in POLICIES:  # dispatch settles the dtype inside autocast
        body = f"None if _SELECTION.has_scopes else {body}"
    source = source.format(
        method=method, op=op.name, body=body, kind=kind, symbol=symbol, plain=plain, takes_numbers=takes_numbers
    )
    function = compile_function(method, source + "\n", f"<ember_ml EmberTensor.{method}>", namespace)
    function.__doc__ = f"``ops.{op.name}`` on this tensor's own backend."
    function.__qualname__ = f"EmberTensor.{method}"
    setattr(EmberTensor, method, function)


def _bind_operators() -> None:
    """Give EmberTensor its operators."""
    for short, name in UNARY_OPERATORS.items():
        _bind(f"__{short}__", OPS[name], _UNARY_SOURCE)
    for short, name in (BINARY_OPERATORS | COMPARISONS).items():
        _bind(f"__{short}__", OPS[name], _BINARY_SOURCE, _SYMBOLS[short])
    for short, name in BINARY_OPERATORS.items():
        _bind(f"__i{short}__", OPS[name], _IN_PLACE_SOURCE)
        if short in _COMMUTATIVE:
            _bind(f"__r{short}__", OPS[name], _BINARY_SOURCE, _SYMBOLS[short])
        elif short in _REFLECTED:
            _bind(f"__r{short}__", OPS[name], _REFLECTED_SOURCE, _REFLECTED[short])
        else:
            _bind(f"__r{short}__", OPS[name], _REFLECTED_SLOW_SOURCE)


on_new_kinds(_bind_kinds)


def _record(op: Op, is_reflected: bool = False) -> Any:
    """An operator of recorded tensors."""
    function = op.function

    def unary(self: Var) -> Any:
        return function(self)

    def binary(self: Var, other: Any) -> Any:
        return function(self, other)

    def reflected(self: Var, other: Any) -> Any:
        return function(other, self)

    if op.name in UNARY_OPERATORS.values():
        return unary
    return reflected if is_reflected else binary


for _short, _name in _ALL.items():
    setattr(Var, f"__{_short}__", _record(OPS[_name]))
    if _short in BINARY_OPERATORS:
        setattr(Var, f"__r{_short}__", _record(OPS[_name], is_reflected=True))


def _get_item(self: EmberTensor, key: Any) -> EmberTensor:
    """The part of this tensor that ``key`` selects: integers, slices, None, ``...``, masks and integer tensors."""
    return dispatch(OPS["get_item"], (self, key), self._kind.backend, portable=True)


def _set_item(self: EmberTensor, key: Any, value: Any) -> None:
    """Replace the part that ``key`` selects, in this tensor and in all that share those elements with it."""
    if type(value) is EmberTensor and is_part(value, self, read_basic_key(key)):
        return  # the last step of x[key] += y: the part was changed, and this tensor with it
    result = dispatch(OPS["index_update"], (self, key, value), self._kind.backend, portable=True)
    change(self, result._array, result._kind, "this assignment")


def _gathered(values: tuple[Any, ...]) -> Any:
    """``f(2, 3)`` and ``f((2, 3))`` mean the same."""
    return values[0] if len(values) == 1 and not isinstance(values[0], int) else values


def _reshape(self: EmberTensor, *shape: Any) -> EmberTensor:
    """This tensor in another shape, given as one tuple or as separate lengths."""
    return on_own_backend(OPS["reshape"], (self, _gathered(shape), *_defaults(OPS["reshape"], 2)))


def _transpose(self: EmberTensor, *axes: Any) -> EmberTensor:
    """This tensor with its axes reversed, or in the order of ``axes``, given as one tuple or as separate numbers."""
    return on_own_backend(OPS["transpose"], (self, _gathered(axes) if axes else None, *_defaults(OPS["transpose"], 2)))


def _defaults(op: Op, given: int) -> tuple[Any, ...]:
    """The defaults of the op's parameters after the first ``given``."""
    defaults = (*(op.declaration.__defaults__ or ()), *(op.declaration.__kwdefaults__ or {}).values())
    return defaults[len(defaults) - (len(op.parameters) - given) :]


def _set(name: str, function: Any) -> None:
    function.__name__, function.__qualname__ = name, f"EmberTensor.{name}"
    setattr(EmberTensor, name, function)


def _get_recorded(self: Var, key: Any) -> Any:
    """The part of a recorded tensor that ``key`` selects."""
    return OPS["get_item"].function(self, key)


_BY_NAME = OPS | {alias: op for op in OPS.values() for alias in op.aliases}
for _name in METHODS:
    _set(_name, bind(_BY_NAME[_name], on_own_backend))
    setattr(Var, _name, bind(_BY_NAME[_name], dispatch))
Var.__getitem__ = _get_recorded
_set("reshape", _reshape)
_set("transpose", _transpose)
_set("__getitem__", _get_item)
_set("__setitem__", _set_item)


def _on_active_backend(op: Op, args: tuple[Any, ...]) -> Any:
    return dispatch(op, args, active(), portable=True)


def make_portable(namespace: dict[str, Any]) -> None:
    """Replace the ops in ``namespace`` that make tensors by functions that make portable ones."""
    for op in OPS.values():
        if not op.is_plain and (op.family in _FAMILIES or op.name in _CONVERSIONS):
            function = bind(op, _on_active_backend)
            for name in (op.name, *op.aliases):
                if name in namespace:
                    namespace[name] = function
