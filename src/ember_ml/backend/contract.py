"""What a backend must provide, and the form in which its bodies may come.

A backend is a package with the attributes of :class:`BackendModule`, and one module per family of ops. A module
function named like an op is that op's body. Bodies get every declared argument, positionally, in declared order;
tensors arrive native, on one device, in the dtype that the op's rule settled; ``dtype`` arguments arrive as native
dtypes.
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
else:
    Protocol = object  # a protocol takes a millisecond to make, and is asked for nothing at run time

__all__ = ["BackendModule", "Body", "ByDType", "FastPath", "is_compiling", "key_of", "load_bodies"]

Body = Callable[..., Any]


def load_bodies(package: str) -> tuple[ModuleType, ...]:
    """Import the modules in ``package``, which hold the bodies of ops: one per family, named as in ``ops``."""
    from pkgutil import iter_modules  # slow to import

    path = import_module(package).__path__
    return tuple(import_module(f"{package}.{name}") for name in sorted(module.name for module in iter_modules(path)))


def key_of(backend: Any) -> str:
    """What stands for the backend in tables: torch.compile cannot trace those that are keyed by modules."""
    return getattr(backend, "key", None) or backend.name


def is_compiling(backend: Any) -> bool:
    """Whether the backend traces a function for its compiler now; a backend that has none need not say so."""
    found = getattr(backend, "is_compiling", None)
    return found is not None and found()


class ByDType:
    """A body that the library computes rightly for all dtypes but some; those have a body of their own.

    ``native`` is called straight from the hot path. ``others`` maps the dtypes for which it deviates from the contract
    to the body that corrects it. ``general`` is called in place of ``native`` on all ways but the hot path; it also
    takes the arguments that ``native`` refuses. ``when`` is a condition on the op's parameters, as source text, without
    which the hot path leaves ``native`` alone.
    """

    __slots__ = ("by_name", "general", "native", "others", "when")

    native: Body
    others: Mapping[EmberDType, Body]
    general: Body | None
    when: str
    by_name: Mapping[str, Body]
    """``others`` by the names of the dtypes: torch.compile hashes no objects of ours."""

    def __init__(
        self, native: Body, others: Mapping[EmberDType, Body] | None = None, general: Body | None = None, when: str = ""
    ) -> None:
        self.native, self.others, self.general, self.when = native, others or {}, general, when
        self.by_name = {dtype.name: body for dtype, body in self.others.items()}


class FastPath(NamedTuple):
    """The lines that decide, inside an op's own frame, whether the native function may be called at once.

    They are source text: ``{x}`` and ``{y}`` stand for the tensor arguments and ``{args}`` for all arguments. They may
    use the names NATIVE (the tensor class), BODY (the native function), OK (the native dtypes that it computes as the
    contract says), WEAK (those of them which take a Python number as it is), F32 and BACKEND. They return the result,
    or fall through to the slow path; an exception falls through as well. ``unary`` and ``binary`` are each one ``if``
    statement whose tests are false for portable tensors: the branch for those is appended.
    """

    unary: str = "if type({x}) is NATIVE and {x}.dtype in OK:\n    return BODY({args})"
    binary: str = (
        "if type({x}) is NATIVE:\n"
        "    d = {x}.dtype\n"
        "    if type({y}) is NATIVE:\n"
        "        if d == {y}.dtype and d in OK:\n"
        "            return BODY({args})\n"
        "    elif (type({y}) is float or type({y}) is int) and d in WEAK:\n"
        "        return BODY({args})"
    )
    sequence: str = (
        "d = {x}[0].dtype\n"
        "if d in OK:\n"
        "    for t in {x}:\n"
        "        if type(t) is not NATIVE or t.dtype != d:\n"
        "            break\n"
        "    else:\n"
        "        return BODY({args})"
    )


class BackendModule(Protocol):
    """The attributes of a backend package; ``ember_ml.backend.numpy`` is the simplest example."""

    name: str
    tensor_type: type
    dtypes: Mapping[EmberDType, Any]
    """The dtypes that the library holds, with its own object for each."""
    weak_dtypes: frozenset[EmberDType]
    """Dtypes whose tensors take Python numbers in native calls exactly as the contract says."""
    families: tuple[ModuleType, ...]
    fast_path: Callable[[Any, Any], FastPath]
    """Gets the op and its body; gives the lines of its hot path."""

    def is_native(self, x: Any) -> bool:
        """Whether ``x`` is a tensor of this library, subclasses included."""
        ...

    def dtype_of(self, x: Any) -> EmberDType: ...
    def device_of(self, x: Any) -> str: ...
    def from_host(self, array: Any, device: str | None, copy: bool = False) -> Any:
        """A native tensor of a NumPy array, dtype kept, memory shared only where both sides may be changed safely.

        With ``copy`` no memory is shared.
        """
        ...

    def to_host(self, x: Any) -> Any:
        """A NumPy array of a native tensor; read-only where it shares memory with an immutable tensor."""
        ...

    def cast(self, x: Any, dtype: Any) -> Any:
        """``x`` in another native dtype: float to integer saturates and NaN gives 0, integers wrap."""
        ...

    def scalar(self, value: Any, dtype: Any, device: str | None) -> Any:
        """A 0-d tensor of a Python number that is known to fit."""
        ...

    def finish(self, result: Any) -> Any:
        """What a body gave, as a native tensor where the library gave something lesser (NumPy scalars)."""
        ...

    def translate(self, error: Exception) -> Exception | None:
        """The contract's exception for one that the library raised, or None where it is right as it is."""
        ...

    def to_dlpack(self, x: Any, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
        """The DLPack capsule of ``x``; of an immutable tensor that of a copy, unless the caller insists on none."""
        ...

    def dlpack_device(self, x: Any) -> tuple[Any, int]: ...
    def to_device(self, x: Any, device: str) -> Any: ...
    def available_devices(self) -> tuple[str, ...]: ...
    def initial_device(self) -> str:
        """Where new tensors go until the user says otherwise: the accelerator where there is one."""
        ...

    def set_device(self, device: str) -> None:
        """Make ``device`` the library's own default, where the library has such a thing."""
        ...

    def device_scope(self, device: str) -> AbstractContextManager[Any]:
        """The same for the length of a ``with`` block."""
        ...

    def synchronize(self, device: str | None) -> None: ...
    def memory_info(self, device: str) -> dict[str, int | None]: ...
    def is_traced(self, x: Any) -> bool:
        """Whether the value of ``x`` cannot be read now, because a compiled function is being traced."""
        ...

    # A library that differentiates also has ``is_recorded(x)``: whether a gradient could flow through ``x``. One that
    # computes lazily has ``evaluate(*tensors)``, which computes them now, and ``start(*tensors)``, which does not wait.
    # One that leaves gradients to the tape may have ``ADJOINTS``: of some ops a quicker way back than their rules.
