"""The pages of everything public that is not an op: classes with their methods, functions, constants, exceptions."""

from __future__ import annotations

import inspect
from functools import cache
from importlib import import_module
from typing import Any

from ember_ml.dispatch.declare import OPS
from ember_ml.dispatch.describe import write_signature
from ember_ml.errors import EmberError
from ember_ml.tensor import EmberTensor
from ember_ml.transforms.captured_variables import Holder
from site_pages import elsewhere
from site_pages.meanings import show_parameters
from site_pages.related import list_relatives
from site_pages.text import (
    PAGES,
    documentation_to_markdown,
    first_sentence,
    link,
    link_source,
    link_types,
    list_search_words,
    read,
    table,
    to_markdown,
)
from site_pages.type_page import TYPES

__all__ = ["SECTIONS", "find_signature", "list_pages", "list_public", "list_sections", "make_navigation", "write_pages"]

_TRACING = frozenset(name for name in vars(Holder) if not name.startswith("_"))
"""Methods that compiled functions call; programs do not."""

_OPS = "ember_ml.ops"

SECTIONS: dict[str, tuple[str, str]] = {
    "ember_ml": ("ember_ml", "Backends, gradients, tensors"),
    "ember_ml.backend": ("ember_ml.backend", "Choosing and asking about backends"),
    "ember_ml.nn": ("nn", "Modules, layers, activations"),
    "ember_ml.nn.blocks": ("nn.blocks", "Blocks of layers"),
    "ember_ml.nn.initializers": ("nn.initializers", "How parameters start"),
    "ember_ml.nn.features": ("nn.features", "Scaling, principal components"),
    "ember_ml.nn.layers.base": ("nn.layers.base", "The base of layers"),
    "ember_ml.nn.layers.specialized": ("nn.layers.specialized", "Layers with a role"),
    "ember_ml.nn.tensor": ("nn.tensor", "Portable tensors, and dtypes by name"),
    "ember_ml.core.dtypes": ("dtypes", "Dtypes, and groups of them"),
    _OPS: ("ops", "Devices and limits"),  # the few names that are no op
    "ember_ml.ops.random": ("ops.random", "The stream of the process"),
    "ember_ml.training": ("training", "Trainer and data"),
    "ember_ml.training.samplers": ("training.samplers", "Which samples make an epoch"),
    "ember_ml.training.collation": ("training.collation", "How samples become a batch"),
    "ember_ml.training.losses": ("training.losses", "Losses"),
    "ember_ml.training.optimizers": ("training.optimizers", "Optimizers"),
    "ember_ml.training.schedules": ("training.schedules", "Learning rate schedules"),
    "ember_ml.training.metrics": ("training.metrics", "Metrics"),
    "ember_ml.training.callbacks": ("training.callbacks", "Callbacks"),
    "ember_ml.training.checkpoints": ("training.checkpoints", "Reading and writing checkpoints"),
    "ember_ml.training.history": ("training.history", "The history of a run"),
    "ember_ml.models": ("models", "Language models"),
    "ember_ml.distributed": ("distributed", "Processes"),
    "ember_ml.distributed.strategy": ("distributed.strategy", "Strategies"),
    "ember_ml.distributed.collectives": ("distributed.collectives", "Collectives"),
    "ember_ml.distributed.planning": ("distributed.planning", "Planning a cluster"),
    "ember_ml.features": ("features", "Features of series and tables"),
    "ember_ml.config.registry": ("registry", "Configuration files and the registry"),
    "ember_ml.memory": ("memory", "Memory"),
    "ember_ml.datasets": ("datasets", "Data to try things with"),
    "ember_ml.errors": ("errors", "Exceptions"),
    "ember_ml.lint": ("lint", "The linter as a library"),
}
"""The public modules that have pages: how programs write them, and a title."""


@cache
def list_public() -> dict[str, dict[str, Any]]:
    """Return the public things of each module that have a page here; an op that a module repeats has one already."""
    found: dict[str, dict[str, Any]] = {}
    seen: set[int] = set()
    for module in SECTIONS:
        try:
            face = import_module(module)
        except ModuleNotFoundError:  # a part that this version does not have yet
            continue
        things = {name: getattr(face, name) for name in face.__all__}
        found[module] = {
            name: thing
            for name, thing in things.items()
            if not inspect.ismodule(thing) and not _is_op(thing) and id(thing) not in seen and name not in TYPES
        }
        seen.update(id(thing) for thing in found[module].values())
    return found


def list_sections() -> dict[str, tuple[str, str]]:
    """Return the modules that have pages in this version; ops have their own index."""
    return {module: SECTIONS[module] for module in list_public() if module != _OPS}


def _is_op(thing: Any) -> bool:
    name = getattr(thing, "__name__", "")
    is_code = inspect.isfunction(thing) or inspect.isclass(thing)
    return is_code and name in OPS and thing.__module__ == OPS[name].declaration.__module__


def _path(module: str, name: str) -> str:
    return f"reference/{SECTIONS[module][0]}/{name}.md"


def _index(module: str) -> str:
    return "reference/ops.md" if module == _OPS else f"reference/{SECTIONS[module][0]}/index.md"


def list_pages() -> dict[str, str]:
    """Return the path of the page of each public name."""
    return {name: _path(module, name) for module, things in list_public().items() for name in things}


def make_navigation() -> list[Any]:
    """Return the menu: modules, and the names in each."""
    menu: list[Any] = []
    for module, things in list_public().items():
        pages: list[Any] = [{name: _path(module, name)} for name in things]
        shown, title = SECTIONS[module]
        menu.append({f"{shown}: {title.lower()}": pages} if module == _OPS else {shown: [_index(module), *pages]})
    return menu


def write_pages() -> dict[str, str]:
    """Return the text of every page, by its path."""
    made = {}
    for module, things in list_public().items():
        if module != _OPS:
            made[_index(module)] = _write_index(module, things)
        for name, thing in things.items():
            made[_path(module, name)] = _write_page(module, name, thing)
    return made


def _write_index(module: str, things: dict[str, Any]) -> str:
    shown, title = SECTIONS[module]
    path = _index(module)
    about = documentation_to_markdown(read(import_module(module)).body, path)
    rows = [
        (f"[`{name}`]({link(path, _path(module, name))})", _summarize(thing, path)) for name, thing in things.items()
    ]
    return f"# {shown}: {title[:1].lower()}{title[1:]}\n\n{about}\n\n{table(('name', 'meaning'), rows)}\n"


def _summarize(thing: Any, path: str) -> str:
    """Return one line about a thing: of a constant, what it is."""
    return f"`{_show_constant(thing)}`" if _is_constant(thing) else first_sentence(thing, path)


def _is_constant(thing: Any) -> bool:
    return not (inspect.isclass(thing) or callable(thing)) or not hasattr(thing, "__module__")


def _show_constant(thing: Any) -> str:
    return f"{{{', '.join(sorted(map(repr, thing)))}}}" if isinstance(thing, frozenset) else repr(thing)


def _write_page(module: str, name: str, thing: Any) -> str:
    path, shown = _path(module, name), f"{SECTIONS[module][0]}.{name}"
    if _is_constant(thing):
        return f"# {name}\n\n`{shown}` is a {type(thing).__name__}: `{_show_constant(thing)}`.\n"
    if not inspect.isclass(thing) and not inspect.isfunction(thing):  # an object that is called, such as a loss
        kind = type(thing).__name__
        return f"# {name}\n\n`{shown}` is `{thing!r}`: {first_sentence(type(thing), path)}\n\nClass: `{kind}`.\n"
    documentation = read(thing)
    signature = find_signature(thing)
    parts = [f"# {name}"]
    if signature is not None:
        parts.append(f"```python\n{shown}{write_signature(signature, 88 - len(shown))}\n```")
    parts.append(documentation_to_markdown(documentation.body, path))
    if inspect.isclass(thing) and issubclass(thing, Exception):
        bases = [
            base.__name__ for base in thing.__mro__[1:] if base not in (object, BaseException, Exception, EmberError)
        ]
        parts.append(f"Also caught as: {', '.join(f'`{base}`' for base in bases)}.")
    parameters = show_parameters(thing, signature, path) if signature is not None else ""
    if parameters:
        parts += ["## Parameters", parameters]
    if inspect.isfunction(thing) and signature is not None and signature.return_annotation is not signature.empty:
        parts.append(f"Returns {link_types(signature.return_annotation, path)}.")
    if documentation.raises:
        rows = [(f"`{error}`", to_markdown(text, path)) for error, text in documentation.raises.items()]
        parts += ["## Raises", table(("exception", "when"), rows)]
    if inspect.isclass(thing):
        parts += _write_members(thing, path)
    others = elsewhere.find(shown)
    if others:
        parts += ["## In other libraries", others]
    source = inspect.unwrap(thing).__module__
    siblings = [other for other in list_public()[module] if other != name]
    parts.append(list_relatives(name, siblings, path, SECTIONS[module][0]))
    parts.append(f"Module: [{SECTIONS[module][0]}]({link(path, _index(module))}). Source: {link_source(source)}.")
    parts.append(list_search_words(name))
    return "\n\n".join(filter(None, parts)) + "\n"


def find_signature(thing: Any) -> inspect.Signature | None:
    """Return the signature that the page of a class or function shows; None for exceptions."""
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return None
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return None
    if not inspect.isclass(thing):
        return signature
    given = list(signature.parameters.values())
    is_open = [parameter.name for parameter in given] == ["args", "kwargs"]  # of object: it takes none
    return inspect.Signature([] if is_open else given)


def _write_members(thing: type, path: str) -> list[str]:
    """Return the properties and methods of a class; those of every module are on the page of ``Module`` alone."""
    members: dict[str, Any] = {}
    described = [base for base in thing.__mro__[1:] if PAGES.get(base.__name__, "").startswith("reference/")]
    for owner in reversed(thing.__mro__):
        if not owner.__module__.startswith("ember_ml") or owner in described or owner.__name__ == "Layer":
            continue
        members |= {name: value for name, value in vars(owner).items() if not name.startswith("_")}
    hidden = {*_TRACING, *(name for base in described for name in vars(base))}  # explained on the page of the base
    members = {name: value for name, value in members.items() if name not in hidden}
    parts: list[str] = []
    properties = [(name, value) for name, value in members.items() if isinstance(value, property)]
    if properties:
        rows = [
            (f"`{name}`", link_types(_result_of(value.fget), path), first_sentence(value, path))
            for name, value in properties
        ]
        parts += ["## Properties", table(("property", "type", "meaning"), rows)]
    methods = {name: getattr(thing, name) for name, value in sorted(members.items()) if _is_method(value)}
    if issubclass(thing, EmberTensor):
        ops = sorted(name for name in methods if name in OPS)
        links = ", ".join(f"[`{name}`]({link(path, f'reference/{name}.md')})" for name in ops)
        parts += [
            "## Ops as methods",
            f"`x.name(...)` is `ops.name(x, ...)`, computed on the tensor's own backend: {links}.",
        ]
        methods = {name: method for name, method in methods.items() if name not in OPS}
    if methods:
        parts.append("## Methods")
    for name, method in methods.items():
        parts += [f"### {name}", f"```python\n{name}{write_signature(_without_self(method), 88 - len(name))}\n```"]
        parts.append(documentation_to_markdown(read(method).body, path))
        parameters = show_parameters(method, _without_self(method), path)
        if parameters and read(method).arguments:
            parts.append(parameters)
    if described:
        links = ", ".join(f"[`{base.__name__}`]({link(path, PAGES[base.__name__])})" for base in described)
        parts.append(f"It also has the methods of {links}.")
    return [part for part in parts if part]


def _is_method(value: Any) -> bool:
    return inspect.isfunction(value) or isinstance(value, classmethod | staticmethod)


def _result_of(function: Any) -> Any:
    return getattr(function, "__annotations__", {}).get("return", inspect.Parameter.empty)


def _without_self(method: Any) -> inspect.Signature:
    signature = inspect.signature(method)
    kept = [parameter for parameter in signature.parameters.values() if parameter.name not in ("self", "cls")]
    return signature.replace(parameters=kept)
