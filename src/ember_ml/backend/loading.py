"""Find, import and check backends: the built-in ones, and those that other packages register by an entry point."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from inspect import get_annotations
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from ember_ml.backend import capabilities
from ember_ml.backend.built_in import BUILT_IN
from ember_ml.backend.capabilities import Deferred
from ember_ml.backend.contract import Backend
from ember_ml.core.dtypes import EmberDType
from ember_ml.errors import BrokenBackend, MissingBackend, UnknownBackend

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["backend_names", "check_backend", "import_backend", "installed_backends", "is_installed", "on_load"]

ENTRY_POINT_GROUP = "ember_ml.backends"

_checks: list[Callable[[Backend], None]] = []


def _plugins() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # slow to import

    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def backend_names() -> tuple[str, ...]:
    """Every backend that has a name here, installed or not: the built-in ones, then those of other packages.

    >>> from ember_ml.backend import backend_names
    >>> backend_names()[:3]
    ('numpy', 'torch', 'mlx')
    """
    return (*BUILT_IN, *(name for name in sorted(_plugins()) if name not in BUILT_IN))


def is_installed(name: str) -> bool:
    """Whether the library behind the backend can be found, without importing it."""
    if name not in BUILT_IN:
        return name in _plugins()
    top, *rest = BUILT_IN[name].library.split(".")
    if importlib.util.find_spec(top) is None:
        return False
    return not rest or importlib.util.find_spec(BUILT_IN[name].library) is not None


def installed_backends() -> tuple[str, ...]:
    """The names of the backends whose library is installed here.

    >>> from ember_ml.backend import installed_backends
    >>> "numpy" in installed_backends()
    True
    """
    return tuple(name for name in backend_names() if is_installed(name))


def on_load(check: Callable[[Backend], None]) -> None:
    """Call ``check`` with each backend that is imported from now on; it raises ``BrokenBackend``."""
    _checks.append(check)


def import_backend(name: str) -> Backend:
    """Import a backend and check that it is complete."""
    module = _import(name)
    check_backend(module, name)
    backend = cast(Backend, module)
    for check in _checks:
        check(backend)
    return backend


def _import(name: str) -> Any:
    if name in BUILT_IN:
        if not is_installed(name):
            raise MissingBackend(
                f"the backend {name!r} needs the package {name!r}, which is not installed: "
                f"pip install 'ember-ml[{name}]'"
            )
        try:
            return importlib.import_module(f"ember_ml.backend.{name}")
        except Exception as error:
            raise BrokenBackend(
                f"the backend {name!r} is installed but could not be imported ({type(error).__name__}: {error}); "
                f"reinstall it: pip install --force-reinstall 'ember-ml[{name}]'"
            ) from error
    point = _plugins().get(name)
    if point is None:
        raise UnknownBackend(_explain_unknown(name))
    try:
        return point.load()
    except Exception as error:
        raise BrokenBackend(
            f"the backend {name!r} of {point.value!r} could not be imported ({type(error).__name__}: {error})"
        ) from error


# What each attribute of a backend must be; functions are callable, and capabilities are looked at one by one.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (lambda x: isinstance(x, str), "a string"),
    "key": (lambda x: isinstance(x, str), "a string"),
    "is_tape": (lambda x: x is False, "False: only the tapes of Ember ML record"),
    "tensor_type": (lambda x: isinstance(x, type), "a class"),
    "dtypes": (
        lambda x: isinstance(x, Mapping) and all(isinstance(d, EmberDType) for d in x),
        "a dict from the dtypes of ember_ml to those of the library",
    ),
    "weak_dtypes": (lambda x: isinstance(x, frozenset), "a frozenset of dtypes of ember_ml"),
    "families": (
        lambda x: isinstance(x, tuple) and all(isinstance(module, ModuleType) for module in x),
        "a tuple of modules",
    ),
    "gaps": (lambda x: isinstance(x, Mapping), "a dict from pairs of op and dtype to reasons"),
    "notes": (lambda x: isinstance(x, Mapping), "a dict"),
}
_CAPABILITIES: dict[str, type] = {
    "gradients": capabilities.Gradients,
    "tape_kernels": capabilities.TapeKernels,
    "compilation": capabilities.Compilation,
    "control_flow": capabilities.ControlFlow,
    "optimizer_kernels": capabilities.OptimizerKernels,
    "recurrent": capabilities.Recurrent,
    "random": capabilities.NativeRandom,
    "processes": capabilities.Processes,
    "sharding": capabilities.Sharding,
    "device_mesh": capabilities.DeviceMesh,
    "laziness": capabilities.Laziness,
    "weight_layout": capabilities.WeightLayout,
    "bench_calls": capabilities.BenchCalls,
}


def _explain_unknown(name: str) -> str:
    from difflib import get_close_matches  # slow to import

    from ember_ml.core.other_names import BACKENDS

    known = backend_names()
    meant = BACKENDS.get(name.lower()) or next(iter(get_close_matches(name.lower(), known, 1)), None)
    hint = f"did you mean {meant!r}? " if meant in known else ""
    return f"there is no backend {name!r}; {hint}the backends are {', '.join(known)}"


def check_backend(module: Any, name: str) -> None:
    """Raise ``BrokenBackend``, with all that is wrong, for a module that does not fulfil the contract."""
    problems = [_explain_missing(member, module) for member in _members(Backend) if member not in vars(module)]
    present = [member for member in _members(Backend) if member in vars(module)]
    for member in present:
        value = vars(module)[member]
        if member in _CAPABILITIES:
            problems += _check_capability(member, value)
        elif member in _KINDS:
            is_right, wanted = _KINDS[member]
            if not is_right(value):
                problems.append(f"{member} must be {wanted}, and is {value!r:.60}")
        elif not callable(value):
            problems.append(f"{member} must be a function, and is {value!r:.60}")
    if not problems and module.name != name:
        problems.append(f"it is registered as {name!r}, and calls itself {module.name!r}")
    if problems:
        raise BrokenBackend(
            f"the backend {name!r} does not fulfil the contract of ember_ml.backend.contract.Backend: "
            f"{'; '.join(problems)}"
        )


def _check_capability(capability: str, value: Any) -> list[str]:
    if value is None or type(value) is Deferred:  # which is imported when it is needed
        return []
    lacking = [member for member in _members(_CAPABILITIES[capability]) if member not in dir(value)]
    return [f"{capability}: {_explain_missing(member, value)}" for member in lacking]


def _members(protocol: type) -> list[str]:
    """Return the names that a protocol asks for."""
    classes = [cls for cls in protocol.__mro__ if cls is not object]
    found = [name for cls in classes for name in (*get_annotations(cls), *vars(cls))]
    return [name for name in dict.fromkeys(found) if not name.startswith("_")]


def _explain_missing(member: str, owner: Any) -> str:
    from difflib import get_close_matches  # slow to import, and seldom needed

    close = get_close_matches(member, [name for name in dir(owner) if not name.startswith("_")], 1, 0.8)
    if close:
        return f"{member} is missing; is {close[0]} a misspelling of it?"
    return f"{member} is missing" + (f" ({member} = None where there is none)" if member in _CAPABILITIES else "")
