"""Turn what callers pass into what bodies take: native tensors of agreed dtypes on one device.

This is done here for every op and every backend alike; bodies never promote, convert or move anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from ember_ml.backend.common.shapes import NO_LISTS, broadcast
from ember_ml.backend.contract import Backend, ByDType, TapeBackend
from ember_ml.backend.devices import default_device, resolve_device
from ember_ml.backend.host_arrays import as_host
from ember_ml.backend.selection import half_here
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType, as_dtype
from ember_ml.core.promotion import integer_range
from ember_ml.dispatch.autocast_policy import POLICIES, settle
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
from ember_ml.errors import UnsupportedDType
from ember_ml.tensor.ember_tensor import EmberTensor
from ember_ml.tensor.var import Var
from ember_ml.tensor.variable import Variable

__all__ = ["Call", "bring", "find_tape", "native_dtype", "number_like", "prepare", "read_variables"]

_SCALARS = frozenset({bool, int, float, complex})
_PYTHON_DATA = _SCALARS | {list, tuple}


def find_tape(args: Iterable[Any], base: Backend, best: Any = None) -> Any:
    """Return the innermost tape on ``base`` among recorded values in ``args``, or None where nothing is recorded."""
    for value in args:
        kind = type(value)
        if kind is EmberTensor:
            value = value._array
            kind = type(value)
        if kind is Var:
            if value.tape.base is base and (best is None or value.tape.level > best.level):
                best = value.tape
        elif kind is list or kind is tuple:
            best = find_tape(value, base, best)
    return best


def read_variables(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with the tensors of variables, which modules have as parameters, in their place."""
    for index, role in op.roles:
        value = args[index]
        if isinstance(value, Variable):
            args = (*args[:index], value.value, *args[index + 1 :])
        elif role is SEQUENCE and type(value) in (list, tuple) and any(isinstance(item, Variable) for item in value):
            read = [item.value if isinstance(item, Variable) else item for item in value]
            args = (*args[:index], read, *args[index + 1 :])
    return args


def native_dtype(backend: Backend, dtype: EmberDType) -> Any:
    """Return the backend's own object for ``dtype``; ``UnsupportedDType`` where it has none."""
    found = backend.dtypes.get(dtype)
    if found is None:
        raise UnsupportedDType(f"the backend {backend.name!r} has no {dtype}; cast first, or use another backend")
    return found


def bring(value: Any, backend: Backend, device: str | None = None) -> Any:
    """Return ``value`` as a native tensor of ``backend``, without a copy where that is safe.

    What is not a tensor of ``backend`` yet goes to ``device``, or to the default one.
    """
    if type(value) is EmberTensor:
        value = value._array
    if backend.is_native(value):
        return value
    if backend.is_tape:
        return cast(TapeBackend, backend).adopt(value, device)
    if type(value) in _PYTHON_DATA and backend.compilation is not None and backend.is_tracing():
        return backend.compilation.from_python(value, None, device)
    host = as_host(value)
    native_dtype(backend, as_dtype(host.dtype))
    return backend.from_host(host, default_device(backend) if device is None else device)


def number_like(number: float, x: Any, backend: Backend) -> Any:
    """Return a Python number as a 0-d tensor like ``x``, a native tensor of a dtype that takes such numbers."""
    return backend.scalar(number, x.dtype, backend.device_of(x))


class Call:
    """The state of one call: which backend, whether a portable tensor was seen, which device the data joins.

    ``half`` is the dtype of the ``autocast`` block that settles the dtype of this op, None where none does.
    """

    __slots__ = ("backend", "device", "half", "op", "portable")

    backend: Backend
    device: str | None
    half: EmberDType | None
    op: Op
    portable: bool

    def __init__(self, op: Op, backend: Backend, portable: bool) -> None:
        self.op, self.backend, self.portable, self.device = op, backend, portable, None
        self.half = half_here() if op.name in POLICIES else None

    def settle(self, dtypes: Iterable[EmberDType], scalars: Iterable[type]) -> EmberDType:
        """Return the dtype in which the op computes these arguments; ``TypeError`` where it cannot."""
        op, dtypes, scalars = self.op, list(dtypes), list(scalars)
        found = None if self.half is None else settle(POLICIES[op.name], self.half, dtypes, scalars)
        return op.rule.settle(op.name, dtypes, scalars) if found is None else found

    def take(self, value: Any) -> Any:
        """Return a tensor argument as a native tensor; Python scalars stay what they are until the dtype is settled."""
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
        """Bring what ``take`` left foreign to the device of the others."""
        if type(value) in _SCALARS:
            return value
        return bring(value, self.backend, self.device)


def prepare(call: Call, values: list[Any]) -> Any:
    """Replace the arguments in ``values`` by what the body takes, and return the body."""
    op, backend = call.op, call.backend
    if op.is_plain_group and (_has_one_device(backend) or _are_together(call, values)):
        return _prepare_group(call, values)
    return _select(op.body(backend), _prepare(call, values))


def _select(body: Any, settled: EmberDType | None) -> Any:
    """Return the function that computes the settled dtype."""
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


def _are_together(call: Call, values: list[Any]) -> bool:
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


def _prepare_group(call: Call, values: list[Any]) -> Any:
    """Do what ``prepare`` does for ops whose tensors are all promoted together, and are all on one device.

    What the dtypes and Python scalar types settle is cached per op and backend.
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
    place = backend.key if call.half is None else f"{backend.key}, {call.half.name}"
    memory = op.settled.get(place, _NOTHING_SETTLED)
    found = memory.get(tuple(key))
    if found is None:
        tensors = [values[index] for (index, _), own in zip(op.roles, key, strict=True) if own not in _NO_TENSORS]
        if not all(map(backend.is_native, tensors)):  # NumPy arrays of odd dtypes
            return _select(op.body(backend), _prepare(call, values))
        found = _settle(call, key)
        if not backend.is_tracing():  # PyTorch traces no branch or loop that remembers something
            _remember(op.settled.setdefault(place, {}), key, found)
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


_MOST_SETTLED = 64
"""So many kinds of arguments an op remembers: programs have a few, and an op with six tensors takes millions."""
_MOST_SHARED = 4096
_shared: dict[Any, Any] = {}


def _remember(memory: dict[Any, Any], key: list[Any], found: Any) -> None:
    """Keep what the dtypes and scalar types in ``key`` settled; a full memory starts anew."""
    if len(memory) >= _MOST_SETTLED:
        memory.clear()
    if len(_shared) >= _MOST_SHARED:
        _shared.clear()
    memory[_share(tuple(map(_share, key)))] = _share(found)  # MLX 0.32: each tensor makes its dtype anew


def _share(value: Any) -> Any:
    """Return the first of all equal values: ops have thousands of cached entries, and few of them differ."""
    return _shared.setdefault(value, value)


_NOTHING_SETTLED: dict[Any, Any] = {}
_NONE = type(None)
_NO_TENSORS = _SCALARS | {_NONE}


def _settle(call: Call, key: list[Any]) -> tuple[Any, Any, tuple[int, int] | None]:
    """Return the native dtype that these dtypes and scalar types settle, the body for it, its range of integers."""
    op, backend = call.op, call.backend
    scalars = [own for own in key if own in _SCALARS]
    tensors = [as_dtype(own) for own in key if own not in _SCALARS and own is not _NONE]
    settled = call.settle(tensors, scalars)
    bounds = integer_range(settled) if settled.kind in ("int", "uint") else None
    return native_dtype(backend, settled), _select(op.body(backend), settled), bounds


def _is_within(value: int, bounds: tuple[int, int]) -> bool:
    return bounds[0] <= value <= bounds[1]


def _overflow(op: Op, value: int, bounds: tuple[int, int]) -> OverflowError:
    low, high = bounds
    return OverflowError(f"ops.{op.name}: the integer {value} does not fit its tensor's dtype ({low} to {high})")


def _prepare(call: Call, values: list[Any]) -> EmberDType | None:
    """Replace the arguments in ``values`` by what the body takes; return the dtype that was settled for the tensors."""
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
        elif role is DATA and backend.is_tape and type(value) in (list, tuple):
            as_host(value)  # raises where a gradient would be lost
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


def _mask(call: Call, value: Any) -> Any:
    mask = bring(value, call.backend, call.device)
    dtype = call.backend.dtype_of(mask)
    if dtype is not dt.bool_:
        raise TypeError(f"ops.{call.op.name} takes a bool tensor as condition, not {dtype}; compare it first: x != 0")
    return mask


def _listed(op: Op, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return value
    if type(value) is EmberTensor or (hasattr(value, "__iter__") and not isinstance(value, NO_LISTS)):
        return list(value)
    raise TypeError(f"ops.{op.name} takes a list or tuple of tensors, not {type(value).__name__}")


def _promote(call: Call, values: list[Any], group: list[Any]) -> EmberDType | None:
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
    settled = call.settle(dtypes, scalars)
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
    """Return ``x`` and ``y``, or small integers that compare alike where no dtype holds the values of both."""
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
    """Return the signs of ``unsigned - signed``: 1 where that is negative, else it fits the unsigned dtype."""
    broadcast([tuple(unsigned.shape), tuple(signed.shape)])  # each library has an exception of its own for shapes
    small = backend.dtypes[dt.int8]
    fitting = backend.cast(backend.cast(signed, backend.dtypes[dt.int64]), backend.dtypes[dt.uint64])
    zero = backend.scalar(0, signed.dtype, backend.device_of(signed))
    above, below, negative = (
        backend.cast(_compute(name, x, y, backend), small)
        for name, x, y in (("greater", unsigned, fitting), ("less", unsigned, fitting), ("less", signed, zero))
    )
    return _compute("maximum", above - below, negative, backend)


def _compute(name: str, x: Any, y: Any, backend: Backend) -> Any:
    """Compute an op of two native tensors of one dtype."""
    return backend.finish(_select(OPS[name].body(backend), backend.dtype_of(x))(x, y))
