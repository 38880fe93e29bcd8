"""What a backend must provide, and the form in which its bodies may come.

A backend is a package with the attributes of :class:`Backend`, and one module per family of ops. A module function
named like an op is that op's body. Bodies get every declared argument, positionally, in declared order; tensors arrive
native, on one device, in the dtype that the op's rule settled; ``dtype`` arguments arrive as native dtypes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from ember_ml.core.dtypes import EmberDType

if TYPE_CHECKING:
    from typing import Protocol

    from ember_ml.backend.capabilities import (
        BenchCalls,
        Compilation,
        ControlFlow,
        DeviceMesh,
        Gradients,
        Laziness,
        NativeRandom,
        OptimizerKernels,
        Processes,
        Recurrent,
        Sharding,
        TapeKernels,
        WeightLayout,
    )
else:
    Protocol = object  # making a protocol takes a millisecond, and nothing asks for one at run time

__all__ = ["Backend", "Body", "ByDType", "FastPath", "TapeBackend", "load_bodies"]

Body = Callable[..., Any]


def load_bodies(package: str) -> tuple[ModuleType, ...]:
    """Import the modules in ``package``, which hold the bodies of ops: one per family, named as in ``ops``."""
    from pkgutil import iter_modules  # slow to import

    path = import_module(package).__path__
    return tuple(import_module(f"{package}.{name}") for name in sorted(module.name for module in iter_modules(path)))


class ByDType:
    """A body that the library computes rightly for all dtypes but some; those have a body of their own.

    ``native`` is called straight from the hot path. ``others`` maps the dtypes for which it deviates from the contract
    to the body that corrects it. ``general`` is called in place of ``native`` on all ways but the hot path; it also
    takes the arguments that ``native`` refuses. ``when`` is a condition on the op's parameters, as source text, without
    which the hot path leaves ``native`` alone. ``plain`` is called in place of ``native`` for the library's own tensors
    on the hot path, where those that are differentiated are of other classes.
    """

    __slots__ = ("by_name", "general", "native", "others", "plain", "when")

    native: Body
    others: Mapping[EmberDType, Body]
    general: Body | None
    when: str
    plain: Body | None
    by_name: Mapping[str, Body]
    """``others`` by the names of the dtypes: torch.compile hashes no objects of ours."""

    def __init__(
        self,
        native: Body,
        others: Mapping[EmberDType, Body] | None = None,
        general: Body | None = None,
        when: str = "",
        plain: Body | None = None,
    ) -> None:
        self.native, self.others, self.general, self.when, self.plain = native, others or {}, general, when, plain
        self.by_name = {dtype.name: body for dtype, body in self.others.items()}


class FastPath(NamedTuple):
    """The lines that decide, inside an op's own frame, whether the native function may be called at once.

    They are source text: ``{x}`` and ``{y}`` stand for the tensor arguments, ``{args}`` for all arguments, and
    ``{number_args}`` for the same where ``{y}`` is a Python number, which becomes a 0-d tensor if need be. They may use
    the names _NATIVE (the tensor class), _BODY (the native function), _OK (the native dtypes that it computes as the
    contract says), _WEAK (those of them which take a Python number as it is), _F32, _BACKEND, and _FINISH, a function
    of a result and the backend that makes tensors of the library's scalars. Names of their own begin with an underscore
    too, as no parameter does. They return the result, or fall through to the slow path. Their tests never raise:
    whatever raises is taken for an error of the native function, which is explained and not called again.

    ``unary`` and ``binary`` are each one ``if`` statement whose tests are false for portable tensors: the branch for
    those is appended. ``sequence`` stands where ``{x}`` is known to be a list or tuple whose first item is a native
    tensor; ``pair`` comes before it, where ``{x}`` has two items of any type, _first and _second. ``takes_numbers``: a
    function of the library takes a Python number for ``{y}``; Python code never gets one.
    ``is_compiling`` is a condition, empty where it is never true: a compiler traces the Python code, and follows no
    weak references. ``dtype`` reads the dtype of a native tensor, in tests of further tensors.
    """

    unary: str = "if type({x}) is _NATIVE and {x}.dtype in _OK:\n    return _BODY({args})"
    binary: str = (
        "if type({x}) is _NATIVE:\n"
        "    _dtype = {x}.dtype\n"
        "    if type({y}) is _NATIVE:\n"
        "        if _dtype == {y}.dtype and _dtype in _OK:\n"
        "            return _BODY({args})\n"
        "    elif (type({y}) is float or type({y}) is int) and _dtype in _WEAK:\n"
        "        return _BODY({number_args})"
    )
    sequence: str = (
        "_dtype = {x}[0].dtype\n"
        "if _dtype in _OK:\n"
        "    for _item in {x}:\n"
        "        if type(_item) is not _NATIVE or _item.dtype != _dtype:\n"
        "            break\n"
        "    else:\n"
        "        return _BODY({args})"
    )
    pair: str = ""
    takes_numbers: bool = True
    is_compiling: str = ""
    dtype: str = ".dtype"


class Backend(Protocol):
    """Everything that a backend must have; ``ember_ml.backend.numpy`` is the simplest example.

    A tape is a backend too: its tensors are recorded ones (``ember_ml.autodiff.tape``).
    """

    name: str
    key: str
    """Stands for the backend in tables, where torch.compile can trace no module: the name, except for tapes."""
    is_tape: bool
    tensor_type: type
    weak_dtypes: frozenset[EmberDType]
    """Dtypes whose tensors take Python numbers in native calls exactly as the contract says."""
    families: tuple[ModuleType, ...]
    """The modules that have the bodies of ops."""

    @property
    def dtypes(self) -> Mapping[EmberDType, Any]:
        """The dtypes that the library has, with its own object for each."""
        ...

    @property
    def gaps(self) -> Mapping[tuple[str, str], str]:
        """By op, or ``*`` for all, and dtype: the reason why the backend raises ``UnsupportedDType`` there."""
        ...

    @property
    def notes(self) -> Mapping[str, str]:
        """What ``ember-ml doctor`` says about the library on this machine."""
        ...

    def fast_path(self, op: Any, body: Any) -> FastPath:
        """Return the lines of an op's hot path, given its body."""
        ...

    def is_native(self, x: Any) -> bool:
        """Whether ``x`` is a tensor of this library, subclasses included."""
        ...

    def dtype_of(self, x: Any) -> EmberDType: ...
    def device_of(self, x: Any) -> str: ...
    def from_host(self, array: Any, device: str | None, copy: bool = False) -> Any:
        """Return a native tensor of a NumPy array, dtype kept; memory is shared only where both may be changed safely.

        With ``copy`` no memory is shared.
        """
        ...

    def to_host(self, x: Any) -> Any:
        """Return a NumPy array of a native tensor; read-only where it shares memory with an immutable tensor."""
        ...

    def cast(self, x: Any, dtype: Any, /) -> Any:
        """Return ``x`` in another native dtype: float to integer saturates, NaN becomes 0, integers wrap."""
        ...

    def scalar(self, value: Any, dtype: Any, device: str | None) -> Any:
        """Return a 0-d tensor of a Python number that is known to fit."""
        ...

    def finish(self, result: Any) -> Any:
        """Return what a body returned, as a native tensor where the library made something else (NumPy scalars)."""
        ...

    def translate(self, error: Exception) -> Exception | None:
        """Return the contract's exception for one that the library raised, or None where it is right as it is."""
        ...

    def to_dlpack(self, x: Any, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
        """Return the DLPack capsule of ``x``; of an immutable tensor that of a copy, unless ``copy`` is False."""
        ...

    def dlpack_device(self, x: Any) -> tuple[Any, int]: ...
    def to_device(self, x: Any, device: str) -> Any: ...
    def available_devices(self) -> tuple[str, ...]: ...
    def initial_device(self) -> str:
        """Return the device of new tensors until the user says otherwise: the accelerator where there is one."""
        ...

    def set_device(self, device: str) -> None:
        """Make ``device`` the library's own default, where the library has such a thing."""
        ...

    def device_scope(self, device: str) -> AbstractContextManager[Any]:
        """The same for the length of a ``with`` block."""
        ...

    def synchronize(self, device: str | None) -> None: ...
    def memory_info(self, device: str) -> dict[str, int | None]: ...
    def is_tracing(self) -> bool:
        """Whether a function is being traced for the backend's compiler now, in this thread."""
        ...

    def is_traced(self, x: Any) -> bool:
        """Whether the value of ``x`` cannot be read now: a function is traced, or vectorized, over it."""
        ...

    def is_recorded(self, x: Any) -> bool:
        """Whether a gradient could flow through ``x``."""
        ...

    # The capabilities: None where the backend has none.

    @property
    def gradients(self) -> Gradients | None: ...
    @property
    def tape_kernels(self) -> TapeKernels | None: ...
    @property
    def compilation(self) -> Compilation | None: ...
    @property
    def control_flow(self) -> ControlFlow | None: ...
    @property
    def optimizer_kernels(self) -> OptimizerKernels | None: ...
    @property
    def recurrent(self) -> Recurrent | None: ...
    @property
    def random(self) -> NativeRandom | None: ...
    @property
    def processes(self) -> Processes | None: ...
    @property
    def sharding(self) -> Sharding | None: ...
    @property
    def device_mesh(self) -> DeviceMesh | None: ...
    @property
    def laziness(self) -> Laziness | None: ...
    @property
    def weight_layout(self) -> WeightLayout | None: ...
    @property
    def bench_calls(self) -> BenchCalls | None: ...


class TapeBackend(Backend, Protocol):
    """A backend whose tensors are recorded, and whose bodies record; ``base`` computes."""

    base: Backend
    level: int
    """Within how many gradients it records."""

    def body(self, op: Any) -> Body:
        """Return the function that computes and records ``op``."""
        ...

    def short_recorder(self, op: Any) -> Body | None:
        """Return a function that records a call of ``op`` whose tensors are recorded alike, or None.

        It returns NotImplemented for arguments that dispatch must prepare.
        """
        ...

    def adopt(self, value: Any, device: str | None) -> Any:
        """Return anything tensor-like as a constant of the tape."""
        ...
