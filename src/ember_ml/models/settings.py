"""Read the settings of a model, checked: what ``config.json`` says, with errors that name the key."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ember_ml.errors import ConfigError

__all__ = ["Settings", "count_labels", "parse_json"]

_DEEPEST = 32
_LARGEST_INTEGER = 2**40
_T = TypeVar("_T")


def parse_json(text: bytes, where: str) -> dict[str, Any]:
    """Parse a JSON object; refuse keys that stand twice, NaN, and more than 32 levels.

    >>> from ember_ml.models.settings import parse_json
    >>> parse_json(b'{"hidden_size": 8}', "config.json")
    {'hidden_size': 8}
    """

    def refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        if len(table) < len(pairs):
            raise ValueError("a key stands in it twice")
        return table

    def read_constant(constant: str) -> Any:
        if constant == "Infinity":  # no JSON, but older files have it where there is no limit; so it is written today
            return {"__float__": constant}
        raise ValueError(f"{constant} is not JSON")

    try:
        found = json.loads(text.decode(), object_pairs_hook=refuse_repeats, parse_constant=read_constant)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{where} holds a {type(found).__name__}; it must hold an object with settings by name")
    _check_depth(found, where)
    return found


def _check_depth(value: Any, where: str) -> None:
    level = [value]
    for _ in range(_DEEPEST):
        below = [list(x.values()) if isinstance(x, dict) else x for x in level if isinstance(x, dict | list)]
        level = [part for parts in below for part in parts]
        if not level:
            return
    raise ConfigError(f"{where} is nested more than {_DEEPEST} levels deep")


class Settings:
    """Settings by name, each read with its type; ``null`` and a key that is not there mean the default.

    >>> from ember_ml.models.settings import Settings
    >>> settings = Settings({"hidden_size": 64, "num_attention_heads": 8})
    >>> settings.integer("hidden_size"), settings.integer("num_key_value_heads", 8)
    (64, 8)
    >>> settings.integer("vocab_size")
    Traceback (most recent call last):
    ember_ml.errors.ConfigError: config.json lacks vocab_size
    """

    values: dict[str, Any]
    where: str
    """The file, for messages."""
    sizes: dict[str, int]
    """The integers that were read, which say the shapes of tensors."""

    def __init__(self, values: Mapping[str, Any], where: str = "config.json") -> None:
        self.values, self.where, self.sizes, self._prefix = dict(values), where, {}, ""
        self._assumed: Mapping[str, Any] = {}

    def assume(self, values: Mapping[str, Any]) -> None:
        """Let keys that are not there have these values; ``null`` is there, and still means none.

        >>> from ember_ml.models.settings import Settings
        >>> settings = Settings({"sliding_window": None})
        >>> settings.assume({"sliding_window": 4096, "head_dim": 256})
        >>> settings.get("sliding_window"), settings.get("head_dim"), settings.values
        (None, 256, {'sliding_window': None})
        """
        self._assumed = values

    def section(self, key: str, newer: str | None = None) -> Settings:
        """Return the settings in a table of these, and where there is one, what the table ``newer`` says instead.

        >>> from ember_ml.models.settings import Settings
        >>> part = Settings({"text_config": {"hidden_size": 8}}).section("text_config")
        >>> part.integer("hidden_size"), part.where
        (8, 'config.json (text_config)')
        """
        found = Settings(self.table(key), f"{self.where} ({key})")
        if newer is not None:
            found.values.update(self.table(newer))
        found.sizes, found._prefix = self.sizes, f"{key}."
        return found

    def get(self, key: str, default: Any = None) -> Any:
        """Return a setting of any type."""
        value = self.values.get(key) if key in self.values else self._assumed.get(key)
        return default if value is None else value

    def integer(self, key: str, default: int | None = None, least: int = 1, most: int = _LARGEST_INTEGER) -> int:
        """Return a whole number from ``least`` to ``most``."""
        value = self._read(key, default)
        if type(value) is not int or not least <= value <= most:
            raise ConfigError(
                f"{self.where} has {key} = {value!r:.80}; it must be a whole number from {least} to {most}"
            )
        self.sizes[self._prefix + key] = value
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """Return a finite number."""
        value = self._read(key, default)
        if type(value) not in (int, float) or not math.isfinite(value):
            raise ConfigError(f"{self.where} has {key} = {value!r:.80}; it must be a finite number")
        return float(value)

    def flag(self, key: str, default: bool | None = None) -> bool:
        """Return true or false."""
        value = self._read(key, default)
        if type(value) is not bool:
            raise ConfigError(f"{self.where} has {key} = {value!r:.80}; it must be true or false")
        return value

    def choice(self, key: str, choices: Mapping[str, _T], default: str | None = None) -> _T:
        """Return what stands for a word in ``choices``."""
        value = self._read(key, default)
        if not isinstance(value, str) or value not in choices:
            raise ConfigError(f"{self.where} has {key} = {value!r:.80}; Ember ML has {', '.join(sorted(choices))}")
        return choices[value]

    def integers(
        self, key: str, default: list[int], count: int | None = None, most: int = _LARGEST_INTEGER
    ) -> list[int]:
        """Return a list of whole numbers from 1 to ``most``, of ``count`` of them."""
        value = self.get(key, default)
        is_good = isinstance(value, list) and 0 < len(value) <= 1000 and count in (None, len(value))
        if not is_good or not all(type(x) is int and 0 < x <= most for x in value):
            some = "" if count is None else f" {count}"
            raise ConfigError(
                f"{self.where} has {key} = {value!r:.80}; it must be a list of{some} whole numbers up to {most}"
            )
        self.sizes.update({f"{self._prefix}{key}[{i}]": x for i, x in enumerate(value)})
        return list(value)

    def words(self, key: str, choices: Sequence[str], count: int) -> list[str] | None:
        """Return a list of ``count`` words, each one of ``choices``, or None where the key is not there."""
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != count or any(word not in choices for word in value):
            raise ConfigError(
                f"{self.where} has {key} = {value!r:.80}; it must be a list of {count} words of {', '.join(choices)}"
            )
        return value

    def table(self, key: str) -> dict[str, Any]:
        """Return a table of settings, empty where the key is not there."""
        value = self.get(key, {})
        if not isinstance(value, dict):
            raise ConfigError(f"{self.where} has {key} = {value!r:.80}; it must be a table of settings")
        return value

    def _read(self, key: str, default: Any) -> Any:
        value = self.get(key, default)
        if value is None:
            raise ConfigError(f"{self.where} lacks {key}")
        return value


def count_labels(settings: Settings) -> int:
    """Return the number of classes that ``id2label`` or ``num_labels`` tells."""
    labels = settings.table("id2label")
    count = len(labels) if labels else settings.integer("num_labels", 2)
    if settings.get("num_labels", count) != count:
        raise ConfigError(
            f"{settings.where} has num_labels = {settings.get('num_labels')!r:.80} and {count} labels in id2label"
        )
    settings.sizes["id2label"] = count
    return count
