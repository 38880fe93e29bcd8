"""Names for what can be built: models, layers, losses, schedules; and building them from plain configurations.

A configuration is a dict with the registered name as ``type`` and the arguments by their names; what an argument is
built of is such a dict again. JSON and TOML files hold the same. Only what is registered is ever called, with arguments
that its signature has: a file can neither import nor run anything.

>>> from ember_ml.config.registry import Registry
>>> registry = Registry()
>>> @registry.register("models/transformer")
... class TransformerConfig:
...     def __init__(self, hidden_size: int):
...         self.hidden_size = hidden_size
...     def create(self, backend_context):
...         return TransformerModel(self.hidden_size)
>>> class TransformerModel:
...     def __init__(self, hidden_size):
...         self.hidden_size = hidden_size
>>> model = registry.build({"type": "models/transformer", "hidden_size": 64})
>>> type(model).__name__, model.hidden_size
('TransformerModel', 64)
>>> registry.config_of(model)
{'type': 'models/transformer', 'hidden_size': 64}
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, TypeVar

from ember_ml.backend.selection import get_backend
from ember_ml.config.arguments import bound_arguments, signature_of, title
from ember_ml.config.origin import ATTRIBUTE, Origin
from ember_ml.config.plain_data import DEPTH, at, read, write
from ember_ml.errors import ConfigError, UnknownName

__all__ = [
    "BackendContext",
    "Registry",
    "build",
    "config_of",
    "get",
    "load",
    "lookup",
    "names",
    "register",
    "register_function",
    "save",
]

T = TypeVar("T", bound=Callable[..., Any])
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)*")


@dataclasses.dataclass(frozen=True)
class BackendContext:
    """Where ``create`` is asked to make its object: the name of the backend, and the device if one was chosen."""

    backend: str
    device: str | None = None


class Registry:
    """Things by name: classes, and functions that make something.

    ``modules`` are those that register their own things; they are imported when a name is first looked for and not
    found.
    """

    def __init__(self, modules: tuple[str, ...] = ()) -> None:
        self._things: dict[str, Callable[..., Any]] = {}
        self._functions: dict[str, Callable[..., Any]] = {}
        self._modules = list(modules)
        self._lock = threading.RLock()

    def register(self, name: str) -> Callable[[T], T]:
        """Decorate a class or function to be built under ``name``: words that slashes separate, as in a path.

        A name can be given once; the same definition run again takes its own place.
        """
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(f"a name is made of words with slashes between them, as 'models/mlp', not {name!r}")

        def decorate(thing: T) -> T:
            if not callable(thing):
                raise TypeError(f"a class or a function is registered, not {thing!r}")
            if "type" in signature_of(thing).parameters:
                raise ValueError(f"{title(thing)} has a parameter 'type', which in a configuration is the name")
            with self._lock:
                before = self._things.get(name)
                if before is not None and title(before) != title(thing):
                    raise ValueError(f"the name {name!r} is taken by {title(before)}; choose another")
                self._things[name] = thing
            _follow_creation(thing)
            return thing

        return decorate

    def register_function(self, name: str, function: Callable[..., Any]) -> None:
        """Let ``name`` stand for a function itself, which a configuration may hold: an activation, an initializer."""
        if not _NAME.fullmatch(name) or name in self._things:
            raise ValueError(f"{name!r} is no name for a function, or is taken")
        self._functions[name] = function

    def names(self, prefix: str = "") -> list[str]:
        """Return all names, or those that start with ``prefix``, in order."""
        self._import_all()
        return sorted(name for name in (*self._things, *self._functions) if name.startswith(prefix))

    def lookup(self, name: str) -> Callable[..., Any]:
        """Return what is registered under ``name``; ``UnknownName`` tells which names are like it."""
        thing = self._find(name)
        if thing is None:
            with self._lock:
                while (thing := self._find(name)) is None and self._modules:
                    self._import_next()
        if thing is None:
            raise UnknownName(_no_such_name(name, self.names()))
        return thing

    def get(self, folder: str, thing: Any) -> Any:
        """Return ``thing``, or if it is a name, what ``folder/thing`` stands for, with its own settings.

        A class or a function that makes something is called without arguments; a registered function is returned.
        """
        if not isinstance(thing, str):
            return thing
        name = f"{folder}/{thing}"
        found = self.lookup(name)
        return found if name in self._functions else found()

    def __contains__(self, name: object) -> bool:
        self._import_all()
        return name in self._things or name in self._functions

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __repr__(self) -> str:
        return f"<Registry of {len(self._things)} names>"

    def build(self, config: Mapping[str, Any], backend_context: Any = None, source: str = "configuration") -> Any:
        """Return the object that ``config`` describes.

        Dicts with a ``type`` among the arguments, also inside lists and dicts, are built first. A class with a method
        ``create`` is a configuration: its object creates the result, in ``backend_context``, by default the
        :class:`BackendContext` of the active backend. ``source`` names the configuration in errors.
        """
        if backend_context is None:
            backend_context = BackendContext(get_backend())
        if not isinstance(config, Mapping):
            raise ConfigError(f"{source}: a configuration is a dict with the key 'type', not {config!r:.60}")
        return self._build(dict(config), backend_context, source, "", 0)

    def config_of(self, thing: Any) -> dict[str, Any]:
        """Return the configuration from which :meth:`build` makes an object like ``thing``: plain data.

        Modules, and what a ``create`` or a function made, have the arguments that they were made with; other objects
        are read by the attributes, of a dataclass the fields, that are named like the parameters of their class.
        """
        return self._config_of(thing, "")

    def load(self, path: str | os.PathLike[str], backend_context: Any = None) -> Any:
        """Return the object that the configuration in a ``.json`` or ``.toml`` file describes."""
        return self.build(read(path), backend_context, str(path))

    def save(self, thing: Any, path: str | os.PathLike[str]) -> None:
        """Write the configuration of ``thing`` to a ``.json`` or ``.toml`` file, from which :meth:`load` builds it."""
        write(self.config_of(thing), path)

    def _find(self, name: str) -> Callable[..., Any] | None:
        return self._things.get(name, self._functions.get(name))

    def _import_all(self) -> None:
        with self._lock:
            while self._modules:
                self._import_next()

    def _import_next(self) -> None:
        import_module(self._modules[0])
        del self._modules[0]

    def _build(self, config: dict[str, Any], context: Any, source: str, place: str, depth: int) -> Any:
        where = f"{source}: at {place}" if place else source
        if "type" not in config:
            raise ConfigError(f"{where}: the key 'type' is missing, which names what to build")
        name = config["type"]
        if type(name) is not str:
            raise ConfigError(f"{source}: at {at(place, 'type')}: expected a registered name, not {name!r:.60}")
        try:
            thing = self.lookup(name)
        except UnknownName as error:
            raise UnknownName(f"{source}: at {at(place, 'type')}: {error}") from None
        if name in self._functions:
            if len(config) > 1:
                raise ConfigError(f"{where}: {name} is a function as it is, and has no other keys than 'type'")
            return self._functions[name]
        given = {
            key: self._part(value, context, source, at(place, key), depth + 1)
            for key, value in config.items()
            if key != "type"
        }
        positional, named = bound_arguments(thing, name, given, source, place)
        try:
            made = thing(*positional, **named)
            if isinstance(thing, type) and callable(getattr(made, "create", None)):
                made = made.create(context)
        except ConfigError:
            raise
        except Exception as error:
            reason = str(error) or "no reason given"
            raise ConfigError(f"{where}: {name} cannot be built ({type(error).__name__}: {reason})") from error
        if not isinstance(thing, type):
            _note(made, Origin((), given, name))
        return made

    def _part(self, value: Any, context: Any, source: str, place: str, depth: int) -> Any:
        """Return an argument: the object that it describes, or a copy of the plain data."""
        if depth > DEPTH:
            raise ConfigError(f"{source}: a configuration is nested {DEPTH} deep at most")
        if isinstance(value, Mapping):
            if "type" in value:
                return self._build(dict(value), context, source, place, depth)
            return {key: self._part(item, context, source, at(place, key), depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._part(item, context, source, at(place, i), depth + 1) for i, item in enumerate(value)]
        return value

    def _config_of(self, thing: Any, place: str) -> dict[str, Any]:
        self._import_all()
        function = next((name for name, x in self._functions.items() if x is thing), None)
        if function is not None:
            return {"type": function}
        origin = _origin_of(thing)
        if origin is not None and not isinstance(origin.maker, str | None):
            return self._config_of(origin.maker, place)
        name = (origin and origin.maker) or next((n for n, x in self._things.items() if x is type(thing)), None)
        if name is None:
            where = f"at {place}: " if place else ""
            raise ConfigError(
                f"{where}{type(thing).__name__} was not made of a registered class or function; "
                f'decorate its class: @register("...")'
            )
        signature = signature_of(self.lookup(name))
        arguments = _attributes(thing, signature, place) if origin is None else _arguments(origin, signature)
        return {"type": name} | {
            key: self._plain(value, at(place, key))
            for key, value in arguments.items()
            if not (value is None and key in signature.parameters and signature.parameters[key].default is None)
        }

    def _plain(self, value: Any, place: str) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) in (list, tuple):
            return [self._plain(item, at(place, i)) for i, item in enumerate(value)]
        if type(value) is dict:
            if "type" in value:
                raise ConfigError(f"at {place}: a dict with the key 'type' would be read as a configuration")
            return {key: self._plain(item, at(place, key)) for key, item in value.items()}
        return self._config_of(value, place)


def _no_such_name(name: str, known: list[str]) -> str:
    close = get_close_matches(str(name), known, n=3)
    if not close:  # the right word in another folder
        close = [other for other in known if other.rpartition("/")[2] == str(name).rpartition("/")[2]][:3]
    if close:
        return f"nothing is registered as {name!r:.80}; did you mean {' or '.join(map(repr, close))}?"
    folders = sorted({other.rpartition("/")[0] + "/" for other in known if "/" in other})
    listed = f"names begin with {', '.join(folders)}" if folders else f"the names are {', '.join(known) or 'none'}"
    return f"nothing is registered as {name!r:.80}; {listed}"


def _follow_creation(thing: Any) -> None:
    """Let what ``create`` of the class makes have the origin of the configuration that made it."""
    create = getattr(thing, "create", None) if isinstance(thing, type) else None
    if not inspect.isfunction(create):
        return

    @functools.wraps(create)
    def created(config: Any, *args: Any, **kwargs: Any) -> Any:
        made = create(config, *args, **kwargs)
        if type(config) is thing and made is not config:
            _note(made, Origin((), {}, config))
        return made

    thing.create = created


def _note(thing: Any, origin: Origin) -> None:
    """Write the origin past any ``__setattr__``; what has no attributes of its own forgets."""
    if hasattr(thing, "__dict__") and not isinstance(thing, type):
        vars(thing)[ATTRIBUTE] = origin


def _origin_of(thing: Any) -> Origin | None:
    return getattr(thing, "__dict__", {}).get(ATTRIBUTE)


def _arguments(origin: Origin, signature: inspect.Signature) -> dict[str, Any]:
    """Return the arguments by name, those of ``**more`` among the others."""
    if origin.maker is not None:
        return dict(origin.kwargs)
    found: dict[str, Any] = {}
    for key, value in signature.bind(*origin.args, **origin.kwargs).arguments.items():
        if signature.parameters[key].kind is inspect.Parameter.VAR_KEYWORD:
            found |= value
        else:
            found[key] = value
    return found


def _attributes(thing: Any, signature: inspect.Signature, place: str) -> dict[str, Any]:
    """Return the attributes of the object that are named like the parameters."""
    found: dict[str, Any] = {}
    for key, parameter in signature.parameters.items():
        if not hasattr(thing, key):
            where = f"at {place}: " if place else ""
            raise ConfigError(
                f"{where}{type(thing).__name__} does not tell its {key!r}: its constructor must keep the argument as "
                "the attribute of that name"
            )
        value = getattr(thing, key)
        if parameter.kind is parameter.VAR_KEYWORD:
            found |= value
        else:
            found[key] = value
    return found


_default = Registry(
    modules=(
        "ember_ml.nn.registration",
        "ember_ml.training.losses",
        "ember_ml.training.metrics",
        "ember_ml.training.optimizers",
        "ember_ml.training.schedules",
    )
)


def register(name: str) -> Callable[[T], T]:
    """Decorate a class or function to be built under ``name``: see :meth:`Registry.register`.

    >>> from ember_ml.config.registry import build, register
    >>> @register("examples/point")
    ... class Point:
    ...     def __init__(self, x: int, y: int = 0):
    ...         self.x, self.y = x, y
    >>> build({"type": "examples/point", "x": 3}).x
    3
    """
    return _default.register(name)


def register_function(name: str, function: Callable[..., Any]) -> None:
    """Let ``name`` stand for a function itself, which a configuration may hold: an activation, an initializer."""
    _default.register_function(name, function)


def names(prefix: str = "") -> list[str]:
    """Return all registered names, or those that start with ``prefix``, in order.

    >>> from ember_ml.config.registry import names
    >>> "losses/huber_loss" in names("losses/")
    True
    """
    return _default.names(prefix)


def lookup(name: str) -> Callable[..., Any]:
    """Return what is registered under ``name``; ``UnknownName`` tells which names are like it.

    >>> from ember_ml.config.registry import lookup
    >>> lookup("schedules/cosine").__name__
    'Cosine'
    """
    return _default.lookup(name)


def get(folder: str, thing: Any) -> Any:
    """Return ``thing``, or if it is a name, a new object of what is registered as ``folder/thing``.

    >>> from ember_ml.config import registry
    >>> registry.get("losses", "huber_loss")
    Huber(reduction='mean', delta=1.0)
    """
    return _default.get(folder, thing)


def build(config: Mapping[str, Any], backend_context: Any = None, source: str = "configuration") -> Any:
    """Return the object that ``config`` describes: see :meth:`Registry.build`.

    >>> from ember_ml.config.registry import build
    >>> build({"type": "schedules/warmup", "steps": 10, "then": {"type": "schedules/constant", "rate": 0.1}})
    Warmup(steps=10, then=Constant(rate=0.1), start=0.0)
    """
    return _default.build(config, backend_context, source)


def config_of(thing: Any) -> dict[str, Any]:
    """Return the configuration from which :func:`build` makes an object like ``thing``: see :meth:`Registry.config_of`.

    >>> from ember_ml.config.registry import config_of
    >>> from ember_ml.training import losses
    >>> config_of(losses.Huber(0.5))
    {'type': 'losses/huber_loss', 'delta': 0.5, 'reduction': 'mean'}
    """
    return _default.config_of(thing)


def load(path: str | os.PathLike[str], backend_context: Any = None) -> Any:
    """Return the object that the configuration in a ``.json`` or ``.toml`` file describes."""
    return _default.load(path, backend_context)


def save(thing: Any, path: str | os.PathLike[str]) -> None:
    """Write the configuration of ``thing`` to a ``.json`` or ``.toml`` file, from which :func:`load` builds it."""
    _default.save(thing, path)
