"""Read and write configurations, plain data that says what to build, as JSON and TOML files.

Plain data are None, bools, numbers, strings, lists of plain data, and dicts of plain data by strings. A file holds one
dict. Reading returns data and nothing else: no name in a file is imported and nothing is run.
"""

from __future__ import annotations

import json
import math
import os
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from ember_ml.core.atomic_files import replaced
from ember_ml.errors import ConfigError

__all__ = ["DEPTH", "at", "fit_argument", "parse", "read", "text_of", "write"]

DEPTH = 64
"""How deep a configuration may be nested."""
_LARGEST = 1 << 24
"""How many bytes a file may have: far more than any description, and little enough to be read at once."""
_BITS = 1024
"""How many bits an integer may have: those of the largest float."""


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a ``.json`` or ``.toml`` file; ``ConfigError`` names the file where it cannot be read."""
    path = Path(path)
    form = _form(path)
    try:
        with path.open("rb") as file:
            encoded = file.read(_LARGEST + 1)
        text = encoded.decode() if len(encoded) <= _LARGEST else ""
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: the file cannot be read ({error})") from error
    if len(encoded) > _LARGEST:
        raise ConfigError(f"{path}: a configuration has {_LARGEST:,} bytes at most")
    return parse(text, form, str(path))


def parse(text: str, form: Literal["json", "toml"], source: str = "configuration") -> dict[str, Any]:
    """Return the dict that ``text`` in one of the two forms holds; ``source`` names it in errors.

    >>> from ember_ml.config.plain_data import parse
    >>> parse('type = "layers/linear"\\nwidth = 3', "toml")
    {'type': 'layers/linear', 'width': 3}
    """
    try:
        data = _from_json(text) if form == "json" else _from_toml(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{source}: this is no valid {form.upper()} ({error})") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{source}: a configuration is a table of keys and values, not {_show_value(data)}")
    _check(data, form, "", f"{source}: ")
    return data


def _from_json(text: str) -> Any:
    def reject(constant: str) -> Any:
        raise ValueError(f"{constant} is no number of JSON")

    def without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} appears twice")
        return found

    return json.loads(text, parse_constant=reject, object_pairs_hook=without_repetition)


def _from_toml(text: str) -> Any:
    import tomllib  # not every program reads one

    return tomllib.loads(text)


def write(config: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write ``config`` to a ``.json`` or ``.toml`` file, whole or not at all."""
    path = Path(path)
    text = text_of(config, _form(path))
    with replaced(path) as file:
        file.write(text.encode())


def text_of(config: Mapping[str, Any], form: Literal["json", "toml"]) -> str:
    """Return ``config`` as text; what the form cannot hold is a ``ConfigError`` that names the key.

    >>> from ember_ml.config.plain_data import text_of
    >>> print(text_of({"type": "models/mlp", "widths": [3, 4], "act": {"type": "layers/relu"}}, "toml"), end="")
    type = "models/mlp"
    widths = [3, 4]
    act = { type = "layers/relu" }
    """
    _check(config, form, "")
    if form == "json":
        return json.dumps(config, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in config.items())


def _form(path: Path) -> Literal["json", "toml"]:
    if path.suffix == ".json":
        return "json"
    if path.suffix == ".toml":
        return "toml"
    raise ConfigError(f"{path}: configurations are files that end in .json or .toml")


def _check(value: Any, form: str, place: str, source: str = "", depth: int = 0) -> None:
    """Raise unless the form can hold ``value`` such that reading returns the same."""
    where = source + (f"at {place}: " if place else "")
    if depth > DEPTH:
        raise ConfigError(f"{where}a configuration is nested {DEPTH} deep at most")
    if type(value) in (dict, list):
        for key, item in value.items() if type(value) is dict else enumerate(value):
            if type(value) is dict and type(key) is not str:
                raise ConfigError(f"{where}keys are strings, not {_show_value(key)}")
            _check(item, form, at(place, key), source, depth + 1)
    elif type(value) is float and form == "json" and not math.isfinite(value):
        raise ConfigError(f"{where}JSON has no {value}; write a .toml file")
    elif value is None and form == "toml":
        raise ConfigError(f"{where}TOML has no null; leave the key out, or write a .json file")
    elif type(value) is str:
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ConfigError(f"{where}{value!r} is no text that a file can hold ({error.reason})") from error
    elif type(value) is int and value.bit_length() > _BITS:
        raise ConfigError(f"{where}an integer has {_BITS} bits at most, and this one {value.bit_length()}")
    elif value is not None and type(value) not in (bool, int, float):
        raise ConfigError(f"{where}a configuration holds plain data, not {_show_value(value)}")


def _key(key: str) -> str:
    bare = key.isascii() and key.replace("_", "a").replace("-", "a").isalnum()
    return key if bare else _quote(key)


def _quote(text: str) -> str:
    # a JSON string is a TOML string, except for the one control character that JSON does not escape
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def at(place: str, key: Any) -> str:
    """Return the place of ``key`` inside ``place``, as errors name it.

    >>> from ember_ml.config.plain_data import at
    >>> at(at("", "layers"), 2)
    'layers[2]'
    """
    if isinstance(key, int):
        return f"{place}[{key}]"
    return f"{place}.{key}" if place else str(key)


def fit_argument(value: Any, hint: Any, place: str, source: str) -> Any:
    """Convert ``value`` for a parameter annotated with ``hint``; ``ConfigError`` where it does not fit.

    A list becomes a tuple where the hint asks for one. Hints that say nothing about plain data let everything pass.
    """
    found = _fit(value, hint)
    if found is _NO:
        raise ConfigError(f"{source}: at {place}: expected {_name_hint(hint)}, found {_show_value(value)}")
    return found


_NO = object()
_KINDS = {bool: (bool,), int: (int,), float: (int, float), str: (str,)}


def _fit(value: Any, hint: Any) -> Any:
    """Return ``value``, or the tuple made of it, or ``_NO`` if it does not fit."""
    if hint is None or hint is type(None):
        return value if value is None else _NO
    if hint in _KINDS:
        return value if type(value) in _KINDS[hint] else _NO
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, types.UnionType):
        found = (_fit(value, choice) for choice in arguments)
        return next((fit for fit in found if fit is not _NO), _NO)
    if origin is Literal:
        return value if any(value == item and type(value) is type(item) for item in arguments) else _NO
    # Any (a class since Python 3.11), type variables and new types say nothing about the value
    if origin is Any or not isinstance(origin, type):
        return value
    if origin is tuple:
        return _fit_tuple(value, arguments)
    if issubclass(list, origin) and origin is not object:
        return _fit_list(value, arguments)
    if issubclass(dict, origin) and origin is not object and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            return _NO if _is_plain(value) else value
        inner = {key: _fit(item, arguments[1]) for key, item in value.items()} if arguments else value
        return _NO if any(item is _NO for item in inner.values()) else inner
    return value if not _is_plain(value) or isinstance(value, origin) else _NO


def _fit_list(value: Any, arguments: tuple[Any, ...]) -> Any:
    if not isinstance(value, list):
        return _NO if _is_plain(value) else value
    inner = [_fit(item, arguments[0]) for item in value] if arguments else value
    return _NO if any(item is _NO for item in inner) else inner


def _fit_tuple(value: Any, arguments: tuple[Any, ...]) -> Any:
    if not isinstance(value, list):
        return _NO if _is_plain(value) else value
    if len(arguments) == 2 and arguments[1] is ...:
        arguments = arguments[:1] * len(value)
    if arguments and len(arguments) != len(value):
        return _NO
    inner = tuple(_fit(item, hint) for item, hint in zip(value, arguments, strict=False)) or tuple(value)
    return _NO if any(item is _NO for item in inner) else inner


def _is_plain(value: Any) -> bool:
    """Return whether ``value`` came from the file, rather than being built of a configuration in it."""
    return value is None or type(value) in (bool, int, float, str, list, dict)


def _name_hint(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint).replace("typing.", "")


def _show_value(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"
