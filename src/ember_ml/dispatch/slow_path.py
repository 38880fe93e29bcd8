"""The way of a call that the hot path did not take: prepare the arguments, run the body, wrap the result.

What a body raises becomes one of the documented exceptions, with the op and its arguments in the message. No body runs
a second time to find it.
"""

from __future__ import annotations

from typing import Any, cast

from ember_ml.backend import selection
from ember_ml.backend.contract import Backend, ByDType, TapeBackend
from ember_ml.dispatch.arguments import Call, find_tape, prepare, read_variables
from ember_ml.dispatch.autocast import autocast
from ember_ml.dispatch.autocast_policy import POLICIES
from ember_ml.dispatch.declare import SEQUENCE, TENSOR, Op
from ember_ml.errors import EmberError, LinAlgError
from ember_ml.tensor import var
from ember_ml.tensor.ember_tensor import EmberTensor, wrap
from ember_ml.tensor.var import Var

__all__ = ["dispatch", "finish", "recover"]


_WHOLE_NUMBERS = range(-(2**63), 2**63)


def dispatch(op: Op, args: tuple[Any, ...], on: Backend | None = None, portable: bool = False) -> Any:
    """Run ``op`` on any arguments; the result is portable if ``portable`` or any tensor argument is."""
    args = read_variables(op, args)
    backend = selection.active() if on is None else on
    is_cast = op.name in POLICIES and selection.half_here() is not None
    if var.is_live:
        if on is None and not is_cast:
            result = _record_shortly(op, args, backend)
            if result is not NotImplemented:
                return result
        backend = find_tape(args, _base_of(backend)) or backend
    call = Call(op, backend, portable)
    values = list(args)
    return _run(call, prepare(call, values), values, args)


def recover(op: Op, args: tuple[Any, ...], backend: Backend, error: Exception) -> Any:
    """Go on after the native function raised ``error`` on the hot path.

    Where the body for these arguments is another than that function, it runs now: the general one of a ``ByDType``, or
    that of a dtype for which the hot path did not test. So it does where the function refused a large whole number.
    Everything else raises, explained with the arguments.
    """
    if isinstance(error, Warning | FloatingPointError):
        raise error
    if var.is_live and find_tape(args, backend) is not None:
        return dispatch(op, args)  # nothing ran: native functions refuse what is recorded
    call = Call(op, backend, False)
    values = list(args)
    body = prepare(call, values)
    found = op.body(backend)
    # no library takes a larger whole number beside floats: nothing ran, and as a tensor each does
    is_too_large = any(type(value) is int and value not in _WHOLE_NUMBERS for value in args)
    if is_too_large or body is not (found.native if isinstance(found, ByDType) else found):
        return _run(call, body, values, args)
    raise _explain(call, values, error)


def _base_of(backend: Backend) -> Backend:
    """Return the backend that computes: of a tape, the one below it."""
    return cast(TapeBackend, backend).base if backend.is_tape else backend


def _run(call: Call, body: Any, values: list[Any], args: tuple[Any, ...]) -> Any:
    """Call ``body`` on ``values``, the prepared arguments, and wrap its result."""
    backend = call.backend
    op = call.op
    try:
        if body is op.declaration and not selection.is_active(_base_of(backend)):
            # a derived body calls ops, which ask for the active backend
            with selection.use_backend(backend.name), autocast(None):
                result = body(*values)
        elif selection.has_scopes and (body is op.declaration or backend.is_tape):
            with autocast(None):  # the dtype is settled: what the body calls computes in it
                result = NotImplemented
                if backend.is_tape and call.half is not None:
                    result = _record_shortly(op, tuple(values), _base_of(backend))
                if result is NotImplemented:
                    result = body(*values)
        else:
            result = body(*values)
    except (Warning, FloatingPointError):
        raise
    except Exception as error:
        raise _explain(call, values, error)  # noqa: B904 its cause is set
    if type(result) is not backend.tensor_type:
        result = finish(result, backend)
    return _wrap(op, args, result, backend) if call.portable else result


def _wrap(op: Op, args: tuple[Any, ...], result: Any, backend: Backend) -> Any:
    """Return a native result as portable tensors, linked to the arguments that they are views of."""
    result = wrap(result, backend)
    if op.link_views is not None:
        op.link_views(args, result)
    return result


def _record_shortly(op: Op, args: tuple[Any, ...], backend: Backend) -> Any:
    """Run ``op`` and record it the short way on a tape of the active ``backend``; NotImplemented where it has none."""
    values, tape, is_portable = list(args), None, False
    for index, value in enumerate(args):
        if type(value) is EmberTensor:
            value = values[index] = value._array
            is_portable = True
        if tape is None and type(value) is Var:
            tape = value.tape
    if tape is None or tape.base is not backend:
        return NotImplemented
    record = tape.short_recorder(op)
    if record is None:
        return NotImplemented
    result = record(*values)
    return _wrap(op, args, result, tape) if is_portable and result is not NotImplemented else result


def finish(result: Any, backend: Backend) -> Any:
    """Return what a body returned with native tensors throughout: NumPy's scalars become arrays."""
    if isinstance(result, tuple):
        parts = [finish(part, backend) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if isinstance(result, list):
        return [finish(part, backend) for part in result]
    return backend.finish(result)


_DOCUMENTED = (IndexError, TypeError, ValueError, OverflowError, MemoryError, NotImplementedError)


def _explain(call: Call, values: list[Any], error: Exception) -> Exception:
    """Return what to raise for ``error``: of a class that the contract names, with the op and its arguments.

    The error itself is the cause, unless it is explained already.
    """
    if call.backend.is_tape or (isinstance(error, EmberError) and not isinstance(error, LinAlgError)):
        return error  # explained already
    cause, error = error, call.backend.translate(error) or error
    kind = next((kind for kind in _DOCUMENTED if isinstance(error, kind)), ValueError)
    text = str(error)
    if isinstance(error, EmberError):
        kind = type(error)
    elif (wrong := _wrong_axis(call, values)) is not None:
        kind, text = IndexError, wrong
    arguments = ", ".join(
        f"{name}={_describe(value, call.backend)}" for name, value in zip(call.op.parameters, values, strict=True)
    )
    explained = kind(f"ops.{call.op.name}({arguments}) on {call.backend.name}: {text}")
    explained.__cause__ = cause
    return explained


def _describe(value: Any, backend: Backend) -> str:
    if backend.is_native(value):
        return f"{backend.dtype_of(value)}{tuple(value.shape)}"
    if isinstance(value, list | tuple):
        text = ", ".join(_describe(item, backend) for item in value[:4])
        return f"[{text}{', ...' if len(value) > 4 else ''}]"
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


_ADDING_AXES = {"expand_dims", "stack"}


def _wrong_axis(call: Call, values: list[Any]) -> str | None:
    """Say which axis argument lies outside the dimensions of the first tensor; None if none does."""
    if "axis" not in call.op.parameters:
        return None
    axis = values[call.op.parameters.index("axis")]
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    for index, role in call.op.roles:
        value = values[index]
        first = value[0] if role is SEQUENCE and value else value
        if role in (TENSOR, SEQUENCE) and call.backend.is_native(first):
            ndim = first.ndim + (len(axes) if call.op.name in _ADDING_AXES else 0)
            wrong = [a for a in axes if isinstance(a, int) and not -ndim <= a < ndim]
            return f"axis {wrong[0]} is out of range for a tensor of {ndim} dimensions" if wrong else None
    return None
