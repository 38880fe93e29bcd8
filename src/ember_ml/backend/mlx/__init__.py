"""The MLX backend: lazy, on Apple's GPU or the CPU; float64 on the CPU only, and no complex128."""

from __future__ import annotations

from ember_ml.backend.mlx import blas  # isort: skip  (must come before mlx.core is loaded)

import operator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from ember_ml.backend.capabilities import deferred
from ember_ml.backend.common.own_ops import op_on
from ember_ml.backend.contract import ByDType, FastPath, load_bodies
from ember_ml.backend.devices import host_memory
from ember_ml.backend.mlx import compilation, gradients, laziness, optimizer_kernels, random  # noqa: F401
from ember_ml.backend.mlx import weight_layout as _weight_layout
from ember_ml.backend.mlx.compilation import is_tracing  # noqa: F401
from ember_ml.backend.mlx.gaps import gaps  # noqa: F401
from ember_ml.backend.mlx.graph_probe import is_recorded  # noqa: F401
from ember_ml.backend.mlx.host_transfer import cast, check_device, dtypes, from_host, scalar, to_host  # noqa: F401
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType
from ember_ml.errors import LinAlgError

name = key = "mlx"
is_tape = False
tensor_type = mx.array
weak_dtypes = frozenset({dt.float32, dt.float64})
families = load_bodies(f"{__name__}.bodies")
notes = {"blas": blas.description}
weight_layout = _weight_layout if blas.is_reference else None
processes = deferred(f"{__name__}.processes")
bench_calls = deferred(f"{__name__}.bench_calls")
recurrent = deferred(f"{__name__}.recurrent")
tape_kernels = control_flow = sharding = device_mesh = None

_EMBER = {native: dtype for dtype, native in dtypes.items()}

# Reading and hashing a dtype costs more here than anywhere else, and the width of an element much less. Elements of
# four bytes are float32, int32 or uint32, which MLX's own functions promote and compute as the contract says.
_FOUR_BYTES = FastPath(
    unary=("if type({x}) is _NATIVE and ({x}.itemsize == 4 or {x}.dtype in _OK):\n    return _BODY({args})"),
    binary=(
        "if type({x}) is _NATIVE is type({y}):\n"
        "    if {x}.itemsize == 4 == {y}.itemsize or ({x}.dtype == {y}.dtype and {x}.dtype in _OK):\n"
        "        return _BODY({args})\n"
        "elif type({x}) is _NATIVE:\n"
        "    if (type({y}) is float or type({y}) is int) and {x}.dtype in _WEAK:\n"
        "        return _BODY({number_args})"
    ),
    sequence=(
        "_dtype = {x}[0].dtype\n"
        "if _dtype in _OK:\n"
        "    for _item in {x}:\n"
        "        if type(_item) is not _NATIVE or _item.dtype != _dtype:\n"
        "            break\n"
        "    else:\n"
        "        return _BODY({args})"
    ),
    pair=(
        "if type(_first) is _NATIVE is type(_second) and _first.itemsize == 4 == _second.itemsize:\n"
        "    return _BODY({args})"
    ),
)
# MLX 0.32: contractions take arrays only. They refuse integers, which have a body of their own.
_CONTRACTION = _FOUR_BYTES._replace(
    binary=(
        "if type({x}) is _NATIVE is type({y}):\n"
        "    if {x}.itemsize == 4 == {y}.itemsize or ({x}.dtype == {y}.dtype and {x}.dtype in _OK):\n"
        "        return _BODY({args})"
    ),
    takes_numbers=False,
)
_BY_DTYPE = FastPath()
_ANY_DTYPE = "if type({x}) is _NATIVE:\n    return _BODY({args})"
_NATIVE_FUNCTIONS = (type(mx.add), type(operator.add))
_FOUR_BYTE_DTYPES = frozenset({dt.float32, dt.int32, dt.uint32})


def fast_path(op: Any, body: Any) -> FastPath:
    takes_all = op.rule.lift or op.rule.domain >= _FOUR_BYTE_DTYPES
    corrected = isinstance(body, ByDType) and not body.others.keys().isdisjoint(_FOUR_BYTE_DTYPES)
    native = body.native if isinstance(body, ByDType) else body
    # the body of matmul leaves integers to MLX's own, which refuses them
    is_native_function = isinstance(native, _NATIVE_FUNCTIONS) or op.name == "matmul"
    is_plain = is_native_function and op.rule.promotes and takes_all
    path = _BY_DTYPE
    if is_plain and op.rule.contraction:
        path = _CONTRACTION
    elif is_plain and not corrected:
        path = _FOUR_BYTES
    if op.rule.domain >= dtypes.keys() and not (isinstance(body, ByDType) and body.others):
        return path._replace(unary=_ANY_DTYPE)
    return path


def is_native(x: Any) -> bool:
    return type(x) is mx.array


def dtype_of(x: mx.array) -> EmberDType:
    return _EMBER[x.dtype]


def device_of(x: mx.array) -> str:
    return mx.default_device().type.name  # MLX 0.32: an array has no device of its own


def finish(result: Any) -> Any:
    return result


def translate(error: Exception) -> Exception | None:
    if type(error) is RuntimeError:
        return LinAlgError(str(error)) if "eval_cpu" in str(error) else ValueError(str(error))
    return None


def to_dlpack(x: mx.array, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    if copy is not False:
        return to_host(x).copy().__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)
    if max_version is not None and max_version[0] >= 1:  # which can say that the memory is not to be written
        return to_host(x).__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=False)
    mx.eval(x)
    return x.__dlpack__()


def dlpack_device(x: mx.array) -> tuple[Any, int]:
    return 1, 0  # what is exported lies in host memory


def to_device(x: mx.array, device: str) -> mx.array:
    check_device(device)
    return x


def available_devices() -> tuple[str, ...]:
    return ("cpu", "gpu") if mx.is_available(mx.gpu) else ("cpu",)


def initial_device() -> str:
    return mx.default_device().type.name


def set_device(device: str) -> None:
    mx.set_default_device(mx.Device(_DEVICES[device]))


def device_scope(device: str) -> AbstractContextManager[Any]:
    return mx.stream(mx.Device(_DEVICES[device]))


_DEVICES = {"cpu": mx.cpu, "gpu": mx.gpu}


def synchronize(device: str | None) -> None:
    mx.synchronize()


def memory_info(device: str) -> dict[str, int | None]:
    return {"allocated": mx.get_active_memory(), "peak": mx.get_peak_memory(), "total": host_memory()["total"]}


def is_traced(x: mx.array) -> bool:
    """Whether ``x`` is traced: MLX refuses to evaluate a traced array."""
    try:
        mx.eval(x)
    except ValueError:
        return True
    except RuntimeError as error:  # MLX 0.32: forgets after an inner derivative that it is tracing
        if "without a primitive" not in str(error):
            raise
        return True
    return False


def __getattr__(name: str) -> Any:
    """Find the ops, which are declared above all backends, as functions of this one."""
    return op_on("mlx", name)


if TYPE_CHECKING:  # the type checker compares this module with the contract
    from ember_ml.backend import mlx as _this
    from ember_ml.backend.contract import Backend

    _checked: Backend = _this
