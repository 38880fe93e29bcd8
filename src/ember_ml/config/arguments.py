"""Read the parameters of classes and functions, and bind plain data to them."""

from __future__ import annotations

import inspect
from contextlib import suppress
from difflib import get_close_matches
from types import SimpleNamespace
from typing import Any, Unpack, get_args, get_origin, get_type_hints

from ember_ml.config.plain_data import at, fit_argument
from ember_ml.errors import ConfigError

__all__ = ["bound_arguments", "signature_of", "title"]


def title(thing: Any) -> str:
    """Return the full name of a class or function."""
    return f"{getattr(thing, '__module__', '?')}.{getattr(thing, '__qualname__', repr(thing))}"


def signature_of(thing: Any) -> inspect.Signature:
    """Return the parameters of a class or function; ``TypeError`` where it does not tell them."""
    try:
        return inspect.signature(thing)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{title(thing)} cannot be registered, since it does not tell its parameters") from error


def _hints(thing: Any) -> dict[str, Any]:
    """Return the annotations of the parameters, without those that only a type checker can resolve."""
    function = inspect.unwrap(thing.__init__ if isinstance(thing, type) else thing)
    found: dict[str, Any] = {}
    for key, hint in getattr(function, "__annotations__", {}).items():
        one = SimpleNamespace(__annotations__={key: hint})
        with suppress(NameError, TypeError, AttributeError, SyntaxError):
            found |= get_type_hints(one, getattr(function, "__globals__", {}))
    return found


def bound_arguments(
    thing: Any, name: str, given: dict[str, Any], source: str, place: str
) -> tuple[list[Any], dict[str, Any]]:
    """Bind arguments to the signature; errors for unknown, missing and ill-typed ones name the key."""
    where = f"{source}: at {place}" if place else source
    hints, left = _hints(thing), dict(given)
    positional: list[Any] = []
    named: dict[str, Any] = {}
    parameters = signature_of(thing).parameters
    options: dict[str, Any] = {}
    more: Any = None
    is_listed = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters.values())
    for key, parameter in parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD and get_origin(hints.get(key)) is Unpack:
            options = get_type_hints(get_args(hints[key])[0])
            named |= {
                name: fit_argument(left.pop(name), options[name], at(place, name), source)
                for name in options
                if name in left
            }
        elif parameter.kind is parameter.VAR_KEYWORD:
            more = hints.get(key, Any)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            values = left.pop(key, [])
            if not isinstance(values, list):
                raise ConfigError(f"{where}: {key!r} of {name} is a list, not {values!r:.60}")
            positional += [
                fit_argument(v, hints.get(key, Any), at(at(place, key), i), source) for i, v in enumerate(values)
            ]
        elif key in left:
            value = fit_argument(left.pop(key), hints.get(key, Any), at(place, key), source)
            if _is_by_place(parameter, is_listed):
                positional.append(value)
            else:
                named[key] = value
        elif parameter.default is parameter.empty:
            raise ConfigError(f"{where}: {name} needs the key {key!r}")
        elif _is_by_place(parameter, is_listed):
            positional.append(parameter.default)
    if left and more is None:
        key = next(iter(left))
        known = [*(name for name, x in parameters.items() if x.kind is not x.VAR_KEYWORD), *options]
        close = get_close_matches(str(key), known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(known) or 'no keys'}"
        raise ConfigError(f"{where}: {name} has no key {key!r:.80}; {hint}")
    return positional, named | {key: fit_argument(value, more, at(place, key), source) for key, value in left.items()}


def _is_by_place(parameter: inspect.Parameter, is_listed: bool) -> bool:
    """Return whether the argument must be positional: by name it would collide with those that follow in a list."""
    return parameter.kind is parameter.POSITIONAL_ONLY or (
        is_listed and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    )
