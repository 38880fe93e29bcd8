"""The way of a call that the hot path did not take: bring the arguments over, settle the dtype, run the body, wrap.

Bodies only ever see native tensors of agreed dtypes on one device. Whatever else callers pass is dealt with here, for
every op and every backend alike.
"""

from __future__ import annotations

from typing import Any

from ember_ml.autodiff import tape as tapes
from ember_ml.autodiff.recorder import short_recorder_of
from ember_ml.autodiff.tape import Tape
from ember_ml.backend import selection as backends
from ember_ml.backend.contract import Backend, ByDType
from ember_ml.backend.devices import default_device, resolve_device
from ember_ml.backend.host_arrays import as_host
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType, as_dtype
from ember_ml.core.promotion import integer_range
from ember_ml.dispatch.declare import (
    DATA,
    DEVICE,
    DTYPE,
    INDEX,
    INDICES,
    KEY,
    MASK,
    MASKS,
    OPS,
    SEQUENCE,
    TENSOR,
    VALUE,
    Op,
)
from ember_ml.dispatch.index_arguments import read_index, read_key, read_value
from ember_ml.errors import EmberError, LinAlgError, UnsupportedDType
from ember_ml.tensor.ember_tensor import EmberTensor, wrap
from ember_ml.tensor.var import Var

__all__ = ["bring", "dispatch", "native_dtype"]

_SCALARS = frozenset({bool, int, float, complex})
_PYTHON_DATA = _SCALARS | {list, tuple}


def native_dtype(backend: Backend, dtype: EmberDType) -> Any:
    """The backend's own object for ``dtype``; ``UnsupportedDType`` where it has none."""
    found = backend.dtypes.get(dtype)
    if found is None:
        raise UnsupportedDType(f"the backend {backend.name!r} has no {dtype}; cast first, or use another backend")
    return found


def bring(value: Any, backend: Backend, device: str | None = None) -> Any:
    """``value`` as a native tensor of ``backend``, without a copy where that is safe."""
    if type(value) is EmberTensor:
        value = value._array
    if backend.is_native(value):
        return value
    if type(backend) is Tape:
        return backend.adopt(value, device)
    if type(value) in _PYTHON_DATA and backend.compilation is not None and backend.is_tracing():
        return backend.compilation.from_python(value, None, device)
    host = as_host(value)
    native_dtype(backend, as_dtype(host.dtype))
    return backend.from_host(host, device)


class _Call:
    """The state of one call: which backend, whether a portable tensor was seen, which device the data joins."""

    __slots__ = ("backend", "device", "op", "portable")

    def __init__(self, op: Op, backend: Backend, portable: bool) -> None:
        self.op, self.backend, self.portable, self.device = op, backend, portable, None

    def take(self, value: Any) -> Any:
        """A tensor argument as a native tensor; Python scalars stay what they are until the dtype is settled."""
        if type(value) in _SCALARS:
            return value
        if type(value) is EmberTensor:
            self.portable = True
            value = value._array
        backend = self.backend
        if backend.is_native(value):
            device = backend.device_of(value)
            if self.device is None:
                self.device = device
            elif device != self.device:
                raise ValueError(
                    f"ops.{self.op.name}: the tensors are on two devices, {self.device} and {device}; "
                    "move one of them with ops.to_device"
                )
        return value

    def place(self, value: Any) -> Any:
        """What ``take`` left foreign, brought to the device of the others."""
        if type(value) in _SCALARS:
            return value
        return bring(value, self.backend, self.device)


def dispatch(op: Op, args: tuple[Any, ...], on: Backend | None = None, portable: bool = False) -> Any:
    """Run ``op`` on any arguments; the result is portable if ``portable`` or any tensor argument is."""
    backend = backends.active() if on is None else on
    if on is None and tapes.is_live:
        result = _recorded_shortly(op, args, backend)
        if result is not NotImplemented:
            return result
    if tapes.is_live:
        tape = tapes.find_tape(args, backend.base if type(backend) is Tape else backend)
        if tape is not None:
            backend = tape
    call = _Call(op, backend, portable)
    values = list(args)
    if op.is_plain_group and (_has_one_device(backend) or _are_together(call, values)):
        body = _prepare_group(call, values)
    else:
        body = _select(op.body(backend), _prepare(call, values))
    try:
        if body is op.declaration and not backends.is_active(backend.base if type(backend) is Tape else backend):
            with backends.use_backend(backend.name):  # a derived body calls ops, which ask for the active backend
                result = body(*values)
        else:
            result = body(*values)
    except (Warning, FloatingPointError):
        raise
    except Exception as error:
        if type(backend) is Tape or (isinstance(error, EmberError) and not isinstance(error, LinAlgError)):
            raise  # explained already
        raise _explained(call, values, backend.translate(error) or error) from error
    if type(result) is not backend.tensor_type:
        result = _finish(result, backend)
    return wrap(result, backend) if call.portable else result


def _recorded_shortly(op: Op, args: tuple[Any, ...], backend: Backend) -> Any:
    """What ``op`` gives, recorded the short way on a tape of the active ``backend``, or NotImplemented."""
    for value in args:
        if type(value) is EmberTensor:
            value = value._array
        if type(value) is Var:
            break
    else:
        return NotImplemented
    record = short_recorder_of(op, backend)
    if record is None:
        return NotImplemented
    is_portable = False
    values = list(args)
    for place, value in enumerate(args):
        if type(value) is EmberTensor:
            values[place], is_portable = value._array, True
    result = record(*values)
    return wrap(result, result.tape) if is_portable and result is not NotImplemented else result


def _select(body: Any, settled: EmberDType | None) -> Any:
    """The function that computes the settled dtype."""
    if not isinstance(body, ByDType):
        return body
    general = body.general or body.native
    return body.by_name.get(settled.name, general) if settled is not None else general


_one_device: dict[str, bool] = {}  # by hand, because torch.compile does not see through functools.cache


def _has_one_device(backend: Backend) -> bool:
    found = _one_device.get(backend.name)
    if found is None:
        found = len(backend.available_devices()) == 1
        if not backend.is_tracing():
            _one_device[backend.name] = found
    return found


def _are_together(call: _Call, values: list[Any]) -> bool:
    """Whether the arguments are native tensors on one device, and Python scalars, which join them there."""
    backend, device = call.backend, None
    for index, _ in call.op.roles:
        value = values[index]
        if type(value) is EmberTensor:
            value = value._array
        if type(value) is backend.tensor_type and type(value) is not Var:
            own = backend.device_of(value)
            if device is not None and own != device:
                return False
            device = own
        elif type(value) not in _NO_TENSORS:
            return False
    call.device = device
    return device is not None


def _prepare_group(call: _Call, values: list[Any]) -> Any:
    """``_prepare`` for ops whose tensors are all promoted together, and are all on one device; gives the body.

    What the dtypes and Python scalar types settle is remembered per op and backend.
    """
    op, backend = call.op, call.backend
    native = backend.tensor_type
    key: list[Any] = []
    for index, _ in op.roles:
        value = values[index]
        kind = type(value)
        if kind is EmberTensor:
            call.portable = True
            value = values[index] = value._array
            kind = type(value)
        if kind is native:
            if kind is Var and value.tape is not backend:  # recorded by a gradient around this one
                value = values[index] = bring(value, backend)
            key.append(value.dtype)
        elif kind in _SCALARS or value is None:
            key.append(kind)
        else:
            value = values[index] = bring(value, backend)
            key.append(value.dtype)
    memory = op.settled.get(backend.key, _NOTHING_SETTLED)
    found = memory.get(tuple(key))
    if found is None:
        tensors = [values[index] for (index, _), own in zip(op.roles, key, strict=True) if own not in _NO_TENSORS]
        if not all(map(backend.is_native, tensors)):  # NumPy arrays of odd dtypes
            return _select(op.body(backend), _prepare(call, values))
        found = _settle(op, backend, key)
        if not backend.is_tracing():  # PyTorch traces no branch or loop that remembers something
            op.settled.setdefault(backend.key, {})[tuple(key)] = found
    dtype, body, bounds = found
    for (index, _), own in zip(op.roles, key, strict=True):
        if own in _SCALARS:
            value = values[index]
            if own is int and bounds is not None and not _is_within(value, bounds):
                raise _overflow(op, value, bounds)
            values[index] = backend.scalar(value, dtype, call.device)
        elif own is not _NONE and own != dtype:
            values[index] = backend.cast(values[index], dtype)
    return body


_NOTHING_SETTLED: dict[Any, Any] = {}
_NONE = type(None)
_NO_TENSORS = _SCALARS | {_NONE}


def _settle(op: Op, backend: Backend, key: list[Any]) -> tuple[Any, Any, tuple[int, int] | None]:
    """The native dtype that these dtypes and scalar types settle, the body for it, and the range of its integers."""
    scalars = [own for own in key if own in _SCALARS]
    tensors = [as_dtype(own) for own in key if own not in _SCALARS and own is not _NONE]
    settled = op.rule.settle(op.name, tensors, scalars)
    bounds = integer_range(settled) if settled.kind in ("int", "uint") else None
    return native_dtype(backend, settled), _select(op.body(backend), settled), bounds


def _is_within(value: int, bounds: tuple[int, int]) -> bool:
    return bounds[0] <= value <= bounds[1]


def _overflow(op: Op, value: int, bounds: tuple[int, int]) -> OverflowError:
    low, high = bounds
    return OverflowError(f"ops.{op.name}: the integer {value} does not fit its tensor's dtype ({low} to {high})")


def _finish(result: Any, backend: Backend) -> Any:
    if isinstance(result, tuple):
        parts = [_finish(part, backend) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if isinstance(result, list):
        return [_finish(part, backend) for part in result]
    return backend.finish(result)


def _prepare(call: _Call, values: list[Any]) -> EmberDType | None:
    """Replace the arguments in ``values`` by what the body gets; the dtype that was settled for the tensors."""
    op, backend = call.op, call.backend
    device_slot = None
    for index, role in op.roles:
        value = values[index]
        if role is DEVICE:
            device_slot = index
        elif value is None and role is not KEY:
            continue
        elif role is SEQUENCE or role is MASKS or role is INDICES:
            values[index] = [call.take(item) for item in _listed(op, value)]
        elif role is DTYPE:
            values[index] = native_dtype(backend, as_dtype(value))
        elif role is KEY:
            values[index] = [call.take(item) for item in (value if type(value) is tuple else (value,))]
        elif role is DATA and type(backend) is Tape and type(value) in (list, tuple):
            values[index] = as_host(value)  # raises where a gradient would be lost
        else:
            values[index] = call.take(value)
    if call.device is None:
        call.device = default_device(backend)
    if device_slot is not None:
        asked = values[device_slot]
        values[device_slot] = call.device if asked is None else resolve_device(backend, asked)
    group: list[Any] = []
    for index, role in op.roles:
        value = values[index]
        if value is None or role is DTYPE or role is DEVICE or role is VALUE or role is DATA:
            continue
        if role is SEQUENCE:
            values[index] = [call.place(item) for item in value]
            group.extend(values[index])
        elif role is TENSOR:
            values[index] = call.place(value)
            group.append(values[index])
        elif role is KEY:
            values[index] = tuple(read_key(item, backend, call.device) for item in value)
        elif role is INDEX:
            values[index] = read_index(value, backend, call.device)
        elif role is INDICES:
            values[index] = [read_index(item, backend, call.device) for item in value]
        elif role is MASK:
            values[index] = _mask(call, value)
        elif role is MASKS:
            values[index] = [_mask(call, item) for item in value]
        else:
            values[index] = bring(value, backend, call.device)
    settled = _promote(call, values, group)
    for index, role in op.roles:
        if role is VALUE and values[index] is not None and settled is not None:
            values[index] = read_value(op.name, values[index], settled, backend, call.device)
    return settled


def _mask(call: _Call, value: Any) -> Any:
    mask = bring(value, call.backend, call.device)
    dtype = call.backend.dtype_of(mask)
    if dtype is not dt.bool_:
        raise TypeError(f"ops.{call.op.name} takes a bool tensor as condition, not {dtype}; compare it first: x != 0")
    return mask


def _listed(op: Op, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return value
    if type(value) is EmberTensor or hasattr(value, "__iter__"):
        return list(value)
    raise TypeError(f"ops.{op.name} takes a list or tuple of tensors, not {type(value).__name__}")


def _promote(call: _Call, values: list[Any], group: list[Any]) -> EmberDType | None:
    op, backend, rule = call.op, call.backend, call.op.rule
    if not group:
        return None
    if not rule.promotes:
        settled = None
        for index, role in op.roles:
            if role is TENSOR and values[index] is not None:
                values[index] = bring(values[index], backend, call.device)
                settled = settled or backend.dtype_of(values[index])
            elif role is SEQUENCE and values[index] is not None:
                values[index] = [bring(item, backend, call.device) for item in values[index]]
        return settled
    if rule.by_value and len(group) == 2:
        group = values[:2] = _comparable(group[0], group[1], backend)
    dtypes = [backend.dtype_of(item) for item in group if type(item) not in _SCALARS]
    scalars = [type(item) for item in group if type(item) in _SCALARS]
    settled = rule.settle(op.name, dtypes, scalars)
    native = native_dtype(backend, settled)

    def convert(item: Any) -> Any:
        if type(item) in _SCALARS:
            if type(item) is int and settled.kind in ("int", "uint"):
                low, high = integer_range(settled)
                if not low <= item <= high:
                    raise _overflow(op, item, (low, high))
            return backend.scalar(item, native, call.device)
        return item if item.dtype == native else backend.cast(item, native)

    for index, role in op.roles:
        value = values[index]
        if value is None:
            continue
        if role is TENSOR:
            values[index] = convert(value)
        elif role is SEQUENCE:
            values[index] = [convert(item) for item in value]
    return settled


def _comparable(x: Any, y: Any, backend: Backend) -> list[Any]:
    """``x`` and ``y`` as they are, or small integers that compare alike where no dtype holds the values of both."""
    if type(x) in _SCALARS or type(y) in _SCALARS:
        if type(y) is int and _is_beyond(y, x, backend):
            return [_zeros(x, backend), 1 if y > 0 else -1]
        if type(x) is int and _is_beyond(x, y, backend):
            return [1 if x > 0 else -1, _zeros(y, backend)]
        return [x, y]
    of_x, of_y = backend.dtype_of(x), backend.dtype_of(y)
    if of_x is dt.uint64 and of_y.kind == "int":
        return [_signs_of_difference(x, y, backend), 0]
    if of_y is dt.uint64 and of_x.kind == "int":
        return [0, _signs_of_difference(y, x, backend)]
    return [x, y]


def _is_beyond(number: int, tensor: Any, backend: Backend) -> bool:
    """Whether the dtype in which ``number`` and ``tensor`` would be compared cannot hold ``number``."""
    if type(tensor) in _SCALARS:
        return False
    dtype = backend.dtype_of(tensor)
    if dtype.kind not in ("bool", "int", "uint"):
        return False
    low, high = integer_range(dt.DEFAULT_INT if dtype.kind == "bool" else dtype)
    return not low <= number <= high


def _zeros(x: Any, backend: Backend) -> Any:
    return backend.cast(x, backend.dtypes[dt.int8]) * 0


def _signs_of_difference(unsigned: Any, signed: Any, backend: Backend) -> Any:
    """The signs of ``unsigned - signed``: 1 where the signed number is negative, else it fits the unsigned dtype."""
    small = backend.dtypes[dt.int8]
    fitting = backend.cast(backend.cast(signed, backend.dtypes[dt.int64]), backend.dtypes[dt.uint64])
    above, below, negative = (
        backend.cast(dispatch(OPS[name], pair, backend), small)
        for name, pair in (("greater", (unsigned, fitting)), ("less", (unsigned, fitting)), ("less", (signed, 0)))
    )
    return dispatch(OPS["maximum"], (above - below, negative), backend)


def _describe(value: Any, backend: Backend) -> str:
    if backend.is_native(value):
        return f"{backend.dtype_of(value)}{tuple(value.shape)}"
    if isinstance(value, list | tuple):
        text = ", ".join(_describe(item, backend) for item in value[:4])
        return f"[{text}{', ...' if len(value) > 4 else ''}]"
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


_DOCUMENTED = (IndexError, TypeError, ValueError, OverflowError, MemoryError, NotImplementedError)


def _explained(call: _Call, values: list[Any], error: Exception) -> Exception:
    """The error with the op and its arguments in the message, of a class that the contract names."""
    kind = next((kind for kind in _DOCUMENTED if isinstance(error, kind)), ValueError)
    if isinstance(error, EmberError):
        kind = type(error)
    elif _axis_is_wrong(call, values):
        kind = IndexError
    arguments = ", ".join(
        f"{name}={_describe(value, call.backend)}" for name, value in zip(call.op.parameters, values, strict=True)
    )
    return kind(f"ops.{call.op.name}({arguments}) on {call.backend.name}: {error}")


def _axis_is_wrong(call: _Call, values: list[Any]) -> bool:
    """Whether an axis argument lies outside the dimensions of the first tensor."""
    if "axis" not in call.op.parameters:
        return False
    axis = values[call.op.parameters.index("axis")]
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    for index, role in call.op.roles:
        value = values[index]
        first = value[0] if role is SEQUENCE and value else value
        if role in (TENSOR, SEQUENCE) and call.backend.is_native(first):
            return any(isinstance(a, int) and not -first.ndim <= a < max(first.ndim, 1) for a in axes)
    return False
