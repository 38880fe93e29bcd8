"""Tensors that change: what modules and optimizers keep from one step to the next."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ember_ml.backend import selection as backends
from ember_ml.backend.built_in import HOST
from ember_ml.backend.contract import Backend
from ember_ml.backend.devices import resolve_device
from ember_ml.backend.host_arrays import as_host, open_portable_with, zeros_without_memory
from ember_ml.core.dtypes import EmberDType
from ember_ml.tensor.ember_tensor import EmberTensor
from ember_ml.tensor.var import Var

__all__ = ["Loan", "Variable", "assign_all", "keep", "put_back", "settle", "values_of"]

_lock = threading.RLock()
_has_lent = False  # whether a loan was ever opened: only then those who write ask for one


class Variable:
    """A tensor that can be replaced, held on the backend that last used it; it follows a switch when it is next read.

    Inside a ``use_backend`` scope it is copied at each reading, and stays where it was until it is assigned to.
    """

    __slots__ = ("__weakref__", "held", "home", "lender")

    recording: Any = None
    """A function that gives a context in which gradients with respect to the variable are recorded, if that needs one.

    It serves all variables of a gradient alike.
    """

    held: Any
    """The native tensor. It is the variable's own: an optimizer may change it in place."""
    home: Backend
    """The backend of the native tensor."""
    lender: Loan
    """What has the tensor while ``held`` and ``home`` are not set."""

    if not TYPE_CHECKING:  # a type checker would take every attribute for one of these

        def __getattr__(self, name: str) -> Any:
            if name not in ("held", "home"):
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
            self.lender.close()
            return getattr(self, name)

    def __init__(self, value: Any) -> None:
        backend = backends.active()
        self.held, self.home = own(value, backend), backend

    @classmethod
    def holding(cls, native: Any) -> Any:
        """Return a variable that holds a native tensor of the active backend as it is, which may be traced."""
        made = cls.__new__(cls)
        made.held, made.home = native, backends.active()
        return made

    @classmethod
    def holding_zeros(cls, dtype: EmberDType, shape: tuple[int, ...]) -> Any:
        """Return a variable of zeros that take no memory until they are read.

        The host holds them, and not the active backend: on JAX every array has memory of its own.
        """
        made = cls.__new__(cls)
        made.held, made.home = zeros_without_memory(dtype, shape), backends.load(HOST)
        return made

    @property
    def value(self) -> Any:
        """The tensor, native to the active backend."""
        # the whole of the hot path: the process's backend has it, and no scope is open
        if self.home is backends._process and not backends.has_scopes:
            return self.held
        return self._follow()

    @value.setter
    def value(self, value: Any) -> None:
        self.assign(value)

    def assign(self, value: Any) -> None:
        """Hold another value. As a method, since not every version of torch.compile traces the setter of a property."""
        self.hold(value)

    def hold(self, value: Any) -> None:
        """Hold another value, as it is where it is native: nobody else may change it, or need what it is now."""
        backend = backends.active()
        if _has_lent:
            settle((self,))
        if backend.is_native(value):
            self.held, self.home = value, backend
            return
        inner = value._array if type(value) is EmberTensor else value
        # a copy of what is being differentiated would lose its gradient
        is_recorded = inner.tape.base is backend if type(inner) is Var else _is_recorded(inner, backend)
        self.held, self.home = inner if is_recorded else own(value, backend), backend

    def _follow(self) -> Any:
        backend = backends.active()
        if self.home is backend:
            return self.held
        if backends.has_scope_here():
            return own(self.held, backend)
        with _lock:
            if self.home is not backend:
                self.held, self.home = own(self.held, backend), backend
            return self.held

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.held.shape)

    @property
    def dtype(self) -> Any:
        """The dtype, an ``EmberDType``."""
        return self.home.dtype_of(self.held)

    @property
    def device(self) -> str:
        """The device on which the active backend has it, or will have it once it is read."""
        backend = backends.active()
        return backend.device_of(self.held) if self.home is backend else resolve_device(backend, None)

    @property
    def size(self) -> int:
        """The number of elements."""
        count = 1
        for length in self.held.shape:
            count *= length
        return count

    @property
    def nbytes(self) -> int:
        """The memory that the tensor takes."""
        return self.size * self.dtype.itemsize

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        made = type(self).__new__(type(self))
        for name in _slots_of(type(self)):
            setattr(made, name, getattr(self, name))
        made.held = own(self.held, self.home)
        memo[id(self)] = made
        return made

    def __getstate__(self) -> Any:
        """Its tensor as an array of the host, so that a pickle opens on every backend."""
        rest = {name: getattr(self, name) for name in _slots_of(type(self)) if name not in ("held", "home")}
        return as_host(self.held, detach=True), rest

    def __setstate__(self, state: Any) -> None:
        host, rest = state
        for name, value in rest.items():
            setattr(self, name, value)
        self.home = backends.active()
        self.held = own(host, self.home)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype})"


def _is_recorded(x: Any, backend: Backend) -> bool:
    return backend.is_native(x) and backend.is_recorded(x)


def _slots_of(cls: type) -> list[str]:
    names = [name for base in cls.__mro__ for name in getattr(base, "__slots__", ())]
    return [name for name in names if name not in ("__weakref__", "lender")]


class Loan:
    """The tensors of variables that a program takes and gives at each call, while nobody else asks for them.

    The variables hold nothing meanwhile, so that a step of training need not touch them. Whoever reads one, or writes
    it by a function of this file, closes the loan: then all of them have their tensors again.
    """

    __slots__ = ("_backend", "_variables", "values")

    values: list[Any] | None
    """The native tensors; None while the loan is closed."""

    def __init__(self, variables: Sequence[Variable], backend: Backend) -> None:
        self._variables = [weakref.ref(variable) for variable in variables]  # which hold the loan
        self._backend, self.values = backend, None

    def open(self, variables: Sequence[Variable]) -> None:
        """Take the tensors of all variables, unless one of them is on another backend."""
        global _has_lent
        values = [variable.held for variable in variables if variable.home is self._backend]
        if len(values) != len(variables):
            return
        _has_lent, self.values = True, values
        for variable in variables:
            variable.lender = self
            del variable.held, variable.home

    def close(self) -> None:
        """Let the variables hold their tensors again."""
        with _lock:
            values, self.values = self.values, None
            for found, native in zip(self._variables, values or (), strict=False):
                variable = found()
                if variable is not None:
                    variable.held, variable.home = native, self._backend


def own(value: Any, backend: Backend) -> Any:
    """A native tensor of ``backend`` that shares memory with nothing; on its device, if it has one there."""
    device = backend.device_of(value) if backend.is_native(value) else resolve_device(backend, None)
    return backend.from_host(as_host(value, detach=True), device, copy=True)


def _open(value: Any) -> tuple[Any, Any] | None:
    """Return the backend and the native tensor of a variable, by which ops and other libraries read it."""
    if not isinstance(value, Variable):
        return None
    return (value.held.tape if type(value.held) is Var else value.home), value.held


open_portable_with(_open)


def values_of(variables: Sequence[Variable]) -> list[Any]:
    """The native tensors of ``variables``."""
    process = backends._process
    if backends.has_scopes:
        return [variable.value for variable in variables]
    return [x.held if x.home is process else x.value for x in variables]


def settle(variables: Iterable[Variable]) -> None:
    """Close the loans that have the tensors of ``variables``, which are written next."""
    for variable in variables:
        variable.home  # noqa: B018


Kept = list[tuple[Variable, Any, Any]]


def keep(variables: Iterable[Variable]) -> Kept:
    """What the variables hold, for :func:`put_back`: while a function is traced or recorded they hold other tensors."""
    return [(variable, variable.held, variable.home) for variable in variables]


def put_back(kept: Kept) -> None:
    """Let variables hold again what they held."""
    if _has_lent:
        settle([variable for variable, _, _ in kept])
    for variable, held, home in kept:
        variable.held, variable.home = held, home


def assign_all(variables: Sequence[Variable], natives: Sequence[Any]) -> None:
    """Make ``natives``, of the active backend, the tensors of ``variables``."""
    backend = backends.active()
    if _has_lent:
        settle(variables)
    for variable, native in zip(variables, natives, strict=True):
        variable.held, variable.home = native, backend
