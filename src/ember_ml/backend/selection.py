"""Which backend computes: choosing one, switching, scopes, and finding what is installed.

The choice is made in this order: :func:`set_backend` or :func:`use_backend`; the variable ``EMBER_ML_BACKEND``; the
file ``~/.ember/backend``; then whatever :func:`auto_select_backend` finds. It is made when the first op runs, not at
import.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from contextlib import ContextDecorator
from contextvars import ContextVar
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, cast

from ember_ml.backend.built_in import BUILT_IN
from ember_ml.backend.contract import Backend
from ember_ml.backend.loading import backend_names, import_backend, installed_backends, is_installed
from ember_ml.core.dtypes import EmberDType, find_dtype
from ember_ml.core.trees import known_leaves
from ember_ml.errors import UnknownBackend

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "Scope",
    "active",
    "auto_select_backend",
    "backend_file",
    "backend_names",
    "backend_of",
    "chosen_by",
    "close_scope",
    "get_backend",
    "get_backend_module",
    "half_here",
    "has_scope_here",
    "installed_backends",
    "is_active",
    "is_installed",
    "is_started",
    "key_of",
    "load",
    "on_scope",
    "on_switch",
    "open_scope",
    "prepare_scopes",
    "recount_scopes",
    "scopes_here",
    "set_backend",
    "starting_backend",
    "use_backend",
    "watched_key",
    "watcher_here",
]

VARIABLE = "EMBER_ML_BACKEND"
_PACKAGES = {entry.tensors or name: name for name, entry in BUILT_IN.items()} | {name: name for name in BUILT_IN}
_NUMBERS = (bool, int, float, complex)  # torch 2.13: torch.compile does not trace a walk over their base classes

if "_loaded" not in globals():  # importlib.reload keeps all that was chosen
    _loaded: dict[str, Backend] = {}
    _owners: dict[type, Backend] = {}
    _process: Backend | None = None
    _chosen_by: str = ""
    _scopes: ContextVar[tuple[Scope, ...]] = ContextVar("ember_ml_backend", default=())
    _open_scopes: int = 0
    has_scopes: bool = False
    """Whether a scope is open in any thread or task: only then the ops ask whether they are inside one."""
    scopes_here: Callable[[], tuple[Scope, ...]] = _scopes.get
    """Return the scopes that are open in this thread or task, the innermost one last.

    It is the method itself, for speed. PyTorch's backend replaces it by a function that torch.compile traces.
    """
    _lock: threading.RLock = threading.RLock()
    _on_switch: list[Callable[[Backend], None]] = []
    _on_scope: list[Callable[[Backend, str], None]] = []
    _with_scopes: set[str] = set()  # the keys of the scopes that were opened
    _halves_were_open: bool = False
    """Whether a scope of half precision was ever open: from then on, a switch prepares those of the new backend too."""


def load(name: str) -> Backend:
    """The backend's module, imported at the first request.

    Raises ``UnknownBackend`` for a name that nobody registered, ``MissingBackend`` with the extra to install where the
    library is absent, and ``BrokenBackend`` where importing it fails.
    """
    found = _loaded.get(name)
    if found is not None:
        return found
    with _lock:
        if name not in _loaded:
            module = import_backend(name)
            _loaded[name] = module
            _owners[module.tensor_type] = module
            known_leaves(module.tensor_type)
            for native in module.dtypes.values():
                find_dtype(native)  # remembered now, since traced functions must not remember anything
        return _loaded[name]


def backend_of(x: Any) -> Backend | None:
    """The backend module whose native tensor ``x`` is, or None where ``x`` is no tensor of any library.

    A library that the program has imported by itself is recognised too.
    """
    kind = type(x)
    owner = _owners.get(kind)
    if owner is not None or kind in _NUMBERS:
        return owner
    for base in kind.__mro__:
        if base in _owners:
            owner = _owners[base]
            return owner if owner.is_native(x) else None
    name = _PACKAGES.get(kind.__module__.partition(".")[0])
    return load(name) if name is not None and load(name).is_native(x) else None


def backend_file() -> Path:
    """The file that holds the backend which :func:`set_backend` was asked to remember."""
    from pathlib import Path  # slow to import

    return Path.home() / ".ember" / "backend"


def _from_file() -> str | None:
    """Return the backend that the file names; None, with a warning, where it names none."""
    path = backend_file()
    try:
        text = path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        problem = f"cannot be read ({error}); correct or delete it"
    else:
        if text in backend_names() and is_installed(text):
            return text
        reason = "which is not installed" if text in backend_names() else "which is no backend"
        names = ", ".join(installed_backends())
        problem = f"says {text[:40]!r}, {reason}; write one of {names}, or delete the file"
    warnings.warn(f"the backend file {path} {problem}", stacklevel=2)
    return None


def auto_select_backend() -> tuple[str, str | None]:
    """The backend that suits this machine, found without importing any library, and None for its device.

    PyTorch where it is installed; MLX on a Mac with Apple silicon; NumPy otherwise. The device is found when it is
    first needed: ``ops.get_device()``.

    >>> import ember_ml
    >>> ember_ml.auto_select_backend()[0] in ember_ml.backend.installed_backends()
    True
    """
    ranked = sorted(BUILT_IN.values(), key=lambda entry: -entry.preference)
    return next(entry.name for entry in ranked if entry.suits() and is_installed(entry.name)), None


def _choose() -> tuple[str, str]:
    """The backend to start with, and what said so."""
    name = os.environ.get(VARIABLE, "").strip()
    if name:
        if name not in backend_names():
            raise UnknownBackend(
                f"the variable {VARIABLE} says {name!r}, which is no backend; "
                f"the backends are {', '.join(backend_names())}"
            )
        return name, f"the variable {VARIABLE}"
    name = _from_file()
    if name:
        return name, f"the file {backend_file()}"
    return auto_select_backend()[0], "auto-detection"


def starting_backend() -> str:
    """The name of the backend that a program which is started now computes on, found without importing any library.

    >>> from ember_ml.backend import installed_backends, starting_backend
    >>> starting_backend() in installed_backends()
    True
    """
    return _choose()[0]


def active() -> Backend:
    """Return the module of the backend that computes for this thread or task."""
    if has_scopes:
        scopes = scopes_here()
        if scopes:
            return scopes[-1].backend
    return _process if _process is not None else _start()


def is_started() -> bool:
    """Whether a backend was chosen yet, for the process or for a scope in it."""
    return _process is not None or has_scopes


def has_scope_here() -> bool:
    """Whether this thread or task is inside a scope that has chosen its backend."""
    scopes = scopes_here() if has_scopes else ()
    return bool(scopes) and scopes[-1].chosen is not None


def half_here() -> EmberDType | None:
    """Return the dtype of the innermost ``autocast`` block of this thread or task; None outside of such blocks."""
    scopes = scopes_here() if has_scopes else ()
    return scopes[-1].half if scopes else None


def watcher_here() -> Watcher | None:
    """Return what the ops of this thread or task are handed to, inside of ``dispatch.watching.watch_ops``."""
    scopes = scopes_here() if has_scopes else ()
    return scopes[-1].watcher if scopes else None


def is_active(backend: Backend) -> bool:
    """Whether ``backend`` computes for this thread or task; asking does not choose one."""
    scopes = scopes_here() if has_scopes else ()
    return (scopes[-1].backend if scopes else _process) is backend


def _start() -> Backend:
    name, reason = _choose()
    with _lock:
        if _process is None:
            _switch(load(name), reason)
        assert _process is not None
        return _process


def _switch(backend: Backend, reason: str) -> None:
    global _process, _chosen_by
    _process, _chosen_by = backend, reason
    for listener in _on_switch:
        listener(backend)
    if _halves_were_open:
        prepare_scopes(backend, is_half=True)


def on_switch(listener: Callable[[Backend], None]) -> None:
    """Call ``listener`` with the backend module after every switch of the process."""
    _on_switch.append(listener)


def on_scope(listener: Callable[[Backend, str], None]) -> None:
    """Call ``listener`` with the backend module and the scope's key before such a scope is first opened."""
    _on_scope.append(listener)


def chosen_by() -> str:
    """What chose the backend of this process: a call, a variable, a file or auto-detection."""
    active()
    return "use_backend" if has_scope_here() else _chosen_by


def get_backend() -> str:
    """The name of the backend that computes for this thread or task.

    >>> import ember_ml
    >>> ember_ml.get_backend() in ember_ml.backend.installed_backends()
    True
    """
    return active().name


def get_backend_module() -> ModuleType:
    """The module of the active backend, ``ember_ml.backend.<name>``."""
    return cast(ModuleType, active())


def set_backend(backend: str, persist: bool = False) -> None:
    """Make ``backend`` compute from now on, in the whole process; open scopes keep theirs.

    With ``persist`` the choice is also written to ``~/.ember/backend`` for later programs.

    >>> import ember_ml
    >>> before = ember_ml.get_backend()
    >>> ember_ml.set_backend("numpy")
    >>> ember_ml.get_backend()
    'numpy'
    >>> ember_ml.set_backend(before)
    """
    module = load(_checked(backend))
    with _lock:
        _switch(module, "set_backend")
    if persist:
        _write_file(backend)


def _checked(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"a backend is named by a string such as 'torch', not by {name!r}")
    return name


def _write_file(backend: str) -> None:
    path = backend_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"backend.{os.getpid()}")
    draft.write_text(backend + "\n", encoding="utf-8")
    draft.replace(path)


Watcher = Callable[[Any, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""Gets an op, its function and the arguments of a call; returns the result of the call."""


class Scope(Protocol):
    """A block that changes how ops compute, for this thread or task: :class:`use_backend`, or ``autocast``.

    The code of every op compares the ``target`` of the innermost scope with its own backend, and where they differ goes
    on to the op's function for the scope's ``key``.
    """

    @property
    def backend(self) -> Backend:
        """The module of the backend that computes inside the block."""
        ...

    @property
    def chosen(self) -> Backend | None:
        """The backend, where a block chose it; None where it is that of the process, which may be switched inside."""
        ...

    @property
    def half(self) -> EmberDType | None:
        """The dtype of ``autocast`` inside the block, or None."""
        ...

    @property
    def watcher(self) -> Watcher | None:
        """What every op inside the block is handed to, or None."""
        ...

    @property
    def target(self) -> Backend | None:
        """The backend whose usual code serves the block; None inside ``autocast``, or where ops are watched."""
        ...

    @property
    def key(self) -> str:
        """The name under which ops have their functions for the block."""
        ...


def watched_key(backend: Backend) -> str:
    """Return the key of the scopes of a backend in which ops are watched, for which the ops are prepared now."""
    key = f"{backend.name} watched"
    _prepare(backend, key)
    return key


def key_of(backend: Backend, is_half: bool) -> str:
    """Return the key of the scopes of a backend, with or without ``autocast``."""
    return f"{backend.name} autocast" if is_half else backend.name


class use_backend(ContextDecorator):
    """Compute on ``backend`` inside the ``with`` block, for this thread or asyncio task only.

    A thread started inside the block begins with the process-wide backend, unless it runs in a copy of the context
    (``contextvars.copy_context().run``), as ``asyncio.to_thread`` does. Blocks that overlap, as in two generators, may
    end in any order: each takes its own scope away and leaves the others.

    >>> import ember_ml
    >>> from ember_ml import ops
    >>> with ember_ml.use_backend("numpy"):
    ...     ember_ml.get_backend()
    'numpy'
    """

    backend: Backend
    """The module of the backend, once the block has begun."""
    chosen: Backend | None
    half: EmberDType | None
    key: str
    name: str
    target: Backend | None
    watcher: Watcher | None

    def __init__(self, backend: str) -> None:
        self.name = _checked(backend)

    def _recreate_cm(self) -> use_backend:
        return use_backend(self.name)  # each call of a decorated function has a scope of its own

    def __enter__(self) -> None:
        self.backend = self.chosen = load(self.name)
        self.half, self.watcher = half_here(), watcher_here()
        self.target = self.backend if self.half is None and self.watcher is None else None
        is_half = self.half is not None
        self.key = key_of(self.backend, is_half) if self.watcher is None else watched_key(self.backend)
        prepare_scopes(self.backend, is_half=False)
        if self.half is not None:
            prepare_scopes(self.backend, is_half=True)
        open_scope(self)

    def __exit__(self, *error: object) -> None:
        close_scope(self)


def open_scope(scope: Scope) -> None:
    """Make ``scope`` the innermost one of this thread or task."""
    _count_scopes(+1)
    _scopes.set((*scopes_here(), scope))


def close_scope(scope: Scope) -> None:
    """Take ``scope`` away, which may have been opened before others that are still open."""
    scopes = scopes_here()
    if scopes and scopes[-1] is scope:
        _scopes.set(scopes[:-1])
    else:
        _scopes.set(tuple([other for other in scopes if other is not scope]))
    _count_scopes(-1)


def prepare_scopes(backend: Backend, is_half: bool) -> None:
    """Let the ops make what they need inside the scopes of ``backend``, with or without ``autocast``, once."""
    global _halves_were_open
    _prepare(backend, key_of(backend, is_half))
    if is_half:
        _halves_were_open = True


def _prepare(backend: Backend, key: str) -> None:
    if key in _with_scopes:
        return
    with _lock:
        if key not in _with_scopes:
            for listener in _on_scope:
                listener(backend, key)
            _with_scopes.add(key)


def recount_scopes() -> None:
    """Set ``has_scopes`` again: a program of torch.compile that opens a scope leaves it True."""
    if has_scopes:
        _count_scopes(0)


def _count_scopes(change: int) -> None:
    global _open_scopes, has_scopes
    with _lock:
        _open_scopes += change
        has_scopes = _open_scopes > 0


def _renew_lock() -> None:
    """Make the lock anew in the child of a fork: another thread of the parent may have held it, and is not there."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _renew_lock())  # by name: what importlib.reload defines counts
