"""The operators of EmberTensor: the same ops, on the tensor's own backend, bound here because ops stand above tensors.

Each operator is compiled from one of the templates below. Operands of one kind (backend and dtype) go straight to the
native function that the kind holds for the op; everything else goes to dispatch.
"""

from __future__ import annotations

import operator
import sys
from types import FrameType, FunctionType
from typing import Any

from ember_ml.backend.contract import ByDType
from ember_ml.backend.selection import backend_of
from ember_ml.dispatch.declare import OPS, Op
from ember_ml.dispatch.portable import on_own_backend
from ember_ml.dispatch.slow_path import dispatch
from ember_ml.tensor.ember_tensor import EmberTensor, wrap_native
from ember_ml.tensor.in_place import is_fixed, is_item_statement, refusal
from ember_ml.tensor.kinds import BINARY_OPERATORS, COMPARISONS, UNARY_OPERATORS, Kind, before_first_kind
from ember_ml.tensor.var import Var

__all__: list[str] = []

_ALL = BINARY_OPERATORS | COMPARISONS | UNARY_OPERATORS
_COMMUTATIVE = {"add", "mul", "and", "or", "xor"}
_SYMBOLS = {
    **{"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@"},
    **{"and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"},
    **{"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="},
}
_REFLECTED = {"sub", "truediv"}

_UNARY_SOURCE = """
def {method}(self):
    k = self._kind
    try:
        f = k.{op}
        r = f(self._array)
        if type(r) is k.native:
            t = NEW(CLS)
            t._array = r
            t._kind = {kind}
            return t
    except Exception:
        pass
    return SLOW(OP, (self,))
"""
# Where a library's operator is its function (MLX), the operator itself is the shortest call, and always gives an array.
_BINARY_SOURCE = """
def {method}(self, other):
    k = self._kind
    try:
        if type(other) is CLS:
            if other._kind is k:
                f = k.{op}
                if f is DIRECT:
                    t = NEW(CLS)
                    t._array = self._array {symbol} other._array
                    t._kind = {kind}
                    return t
                r = f(self._array, other._array)
                if type(r) is k.native:
                    t = NEW(CLS)
                    t._array = r
                    t._kind = {kind}
                    return t
        elif (type(other) is float or type(other) is int) and k.weak:
            f = k.{op}
            r = f(self._array, other)
            if type(r) is k.native:
                t = NEW(CLS)
                t._array = r
                t._kind = {kind}
                return t
    except Exception:
        pass
    return SLOW(OP, (self, other))
"""
# Only numbers and native tensors reach a reflected operator; the library's own operator takes numbers on the left, its
# functions may not.
_REFLECTED_SOURCE = """
def {method}(self, other):
    k = self._kind
    if (type(other) is float or type(other) is int) and k.weak:
        try:
            r = other {symbol} self._array
            if type(r) is k.native:
                t = NEW(CLS)
                t._array = r
                t._kind = k
                return t
        except Exception:
            pass
    return SLOW(OP, (other, self))
"""
_REFLECTED_SLOW_SOURCE = """
def {method}(self, other):
    return SLOW(OP, (other, self))
"""
# The object stays and holds the result from now on; other tensors and the caller's arrays never change.
_IN_PLACE_SOURCE = """
def {method}(self, other):
    r = self.{plain}(other)
    if type(r) is CLS and r._kind is self._kind and r._array.shape == self._array.shape and not FIXED(self):
        self._array = r._array
        return self
    return REBIND(OP, self, other, r, FRAME(1))
"""


def _bind_kind(kind: Kind) -> None:
    """Fill the kind's slots with the native functions that compute their ops for it as the contract says."""
    for name in _ALL.values():
        op = OPS[name]
        body = op.body(kind.backend)
        others = body.others if isinstance(body, ByDType) else {}
        narrows = op.rule.result == "real" and kind.dtype.kind == "complex"  # the result is of another kind
        if kind.dtype in op.rule.domain and kind.dtype not in others and body is not op.declaration and not narrows:
            setattr(kind, name, body.native if isinstance(body, ByDType) else body)
    kind.is_bound = True


def _is_typed_scalar(value: Any) -> bool:
    """Whether ``value`` is a scalar of NumPy, or of what speaks its array interface."""
    speaks = hasattr(value, "__array_interface__")  # emberlint: ignore[EMB502] the interface, whichever library has it
    return speaks and getattr(value, "shape", None) == ()


def _operate(op: Op, values: tuple[Any, ...]) -> Any:
    for value in values:
        if type(value) is EmberTensor:
            if not value._kind.is_bound:
                _bind_kind(value._kind)
        elif not isinstance(value, complex | float | int) and backend_of(value) is None and not _is_typed_scalar(value):
            return NotImplemented
    return on_own_backend(op, values)


def _rebind(op: Op, tensor: EmberTensor, other: Any, result: Any, caller: FrameType) -> Any:
    """An in-place operator whose result is not simply one of the same dtype and shape."""
    if result is NotImplemented:
        return result
    if type(result._array) is Var and result.dtype is tensor.dtype and result.shape == tensor.shape:
        if is_fixed(tensor):
            if is_item_statement(caller):
                return result
            raise refusal(tensor, f"ops.{op.name} in place")
        tensor._array, tensor._kind = result._array, result._kind  # from now on the tensor is recorded
        return tensor
    if result._kind.backend is not tensor._kind.backend:  # in place means on the tensor's own backend
        result = dispatch(op, (tensor, other), tensor._kind.backend, portable=True)
    if result._kind is not tensor._kind and result.dtype.kind == tensor.dtype.kind in ("float", "complex"):
        # written into what it is, as in every library: a wider float is rounded
        result = wrap_native(tensor._kind.backend.cast(result._array, _native_dtype(tensor)), tensor._kind.backend)
    if result._kind is not tensor._kind:
        raise TypeError(
            f"ops.{op.name} in place would change the dtype from {tensor.dtype} to {result.dtype}; "
            f"write x = ops.{op.name}(x, y), or cast y first"
        )
    if result.shape != tensor.shape:
        raise ValueError(f"ops.{op.name} in place would change the shape from {tensor.shape} to {result.shape}")
    if is_fixed(tensor):
        if is_item_statement(caller):
            return result
        raise refusal(tensor, f"ops.{op.name} in place")
    tensor._array = result._array
    return tensor


def _native_dtype(tensor: EmberTensor) -> Any:
    return tensor._kind.backend.dtypes[tensor.dtype]


def _bind(method: str, op: Op, source: str, symbol: str = "") -> None:
    namespace = {
        "CLS": EmberTensor,
        "DIRECT": getattr(operator, method, None),
        "FIXED": is_fixed,
        "FRAME": sys._getframe,
        "NEW": object.__new__,
        "OP": op,
        "REBIND": _rebind,
        "SLOW": _operate,
    }
    kind = "k.boolean" if op.rule.result == "bool" else "k"
    plain = method.replace("__i", "__", 1)
    code = source.format(method=method, op=op.name, kind=kind, symbol=symbol, plain=plain)
    exec(compile(code, f"<EmberTensor.{method}>", "exec"), namespace)
    function = namespace[method]
    assert isinstance(function, FunctionType)
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
            _bind(f"__r{short}__", OPS[name], _REFLECTED_SOURCE, _SYMBOLS[short])
        else:
            _bind(f"__r{short}__", OPS[name], _REFLECTED_SLOW_SOURCE)


before_first_kind(_bind_operators)


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
