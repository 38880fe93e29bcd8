"""Configuration: ``[tool.emberlint]`` of the nearest pyproject.toml above the checked file."""

from __future__ import annotations

import fnmatch
import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ember_ml.lint import profiles, rules
from ember_ml.lint.natives import LIBRARIES
from ember_ml.lint.project import Settings


class ConfigError(Exception):
    """The configuration is wrong; the message says where and how."""


@dataclass(frozen=True)
class Config:
    """The settings of one project."""

    root: str = ""
    profile: profiles.Profile = profiles.EMBER
    select: frozenset[str] = rules.DEFAULT
    ignore: frozenset[str] = frozenset()
    per_file_ignores: tuple[tuple[str, frozenset[str]], ...] = ()
    exclude: tuple[str, ...] = ()  # not checked at all
    exempt: tuple[str, ...] = ()  # the backends: only readability is checked
    allow: tuple[tuple[str, frozenset[str]], ...] = ()  # which folders may use which tensor library
    profile_folders: tuple[tuple[str, profiles.Profile], ...] = ()
    strict: bool = False
    baseline: str | None = None
    cache_dir: str = ".emberlint_cache"
    _memo: dict[Any, Settings] = field(default_factory=dict, compare=False, repr=False)

    def relative(self, path: str) -> str:
        """Return a path as the configuration's patterns see it."""
        absolute = os.path.abspath(path)
        base = self.root or os.getcwd()
        try:
            return os.path.relpath(absolute, base).replace(os.sep, "/")
        except ValueError:  # another drive
            return absolute.replace(os.sep, "/")

    def excluded(self, path: str) -> bool:
        """Return whether a file is not checked at all."""
        return bool(self.exclude) and any(matches(pattern, self.relative(path)) for pattern in self.exclude)

    def settings(self, path: str) -> Settings:
        """Return the settings of one file."""
        relative = self.relative(path)
        profile = self.profile
        for pattern, other in self.profile_folders:
            if matches(pattern, relative):
                profile = other
        codes = self.select - self.ignore - expand(profile.ignore, "profile")
        if any(matches(pattern, relative) for pattern in self.exempt):
            codes = frozenset({"EMB900"})
        for pattern, ignored in self.per_file_ignores:
            if matches(pattern, relative):
                codes = codes - ignored
        allowed: frozenset[str] = frozenset()
        for pattern, libraries in self.allow:
            if matches(pattern, relative):
                allowed = allowed | libraries
        key = (profile.name, codes, allowed)
        known = self._memo.get(key)
        if known is None:
            known = self._memo[key] = Settings(profile, codes | {"EMB900"}, self.strict, allowed)
        return known


def matches(pattern: str, path: str) -> bool:
    """Return whether a path is the pattern, lies under it, or is matched by its wildcards.

    >>> matches("src/backend", "src/backend/numpy/a.py"), matches("tests/**", "tests/a/b.py")
    (True, True)
    >>> matches("*_test.py", "a/b_test.py"), matches("src", "other/a.py")
    (True, False)
    """
    pattern = pattern.rstrip("/")
    if pattern.endswith("/**"):
        pattern = pattern[:-3]
    return (
        path == pattern
        or path.startswith(pattern + "/")
        or fnmatch.fnmatch(path, pattern)
        or fnmatch.fnmatch(path, pattern + "/*")
        or ("/" not in pattern and fnmatch.fnmatch(path.rsplit("/", 1)[-1], pattern))
    )


def expand(names: Iterable[str], where: str) -> frozenset[str]:
    """Return rule codes for codes and prefixes such as ``EMB4``.

    Raises:
        ConfigError: for a name that is not a rule.
    """
    result: set[str] = set()
    for name in names:
        found = [code for code in rules.ALL if code.startswith(name.replace("x", ""))] if name.startswith("EMB") else []
        if name == "ALL":
            found = list(rules.ALL)
        if not found:
            raise ConfigError(f"{where}: there is no rule {name!r}; see 'emberlint rules'")
        result.update(found)
    return frozenset(result)


_CONFIGS: dict[str, Config] = {}


def for_file(path: str) -> Config:
    """Return the configuration of a file: the nearest pyproject.toml upwards that has ``[tool.emberlint]``."""
    return _for_folder(os.path.dirname(os.path.abspath(path)))


def _for_folder(folder: str) -> Config:
    known = _CONFIGS.get(folder)
    if known is None:
        candidate = os.path.join(folder, "pyproject.toml")
        table = load_table(candidate) if os.path.isfile(candidate) else None
        if table is not None:
            known = build(table, folder, candidate)
        else:
            parent = os.path.dirname(folder)
            known = Config() if parent == folder else _for_folder(parent)
        _CONFIGS[folder] = known
    return known


def forget() -> None:
    """Read configuration files again from now on."""
    _CONFIGS.clear()


def load_table(path: str) -> dict[str, Any] | None:
    """Return ``[tool.emberlint]`` of a file, or ``None``.

    Raises:
        ConfigError: if the file is not TOML.
    """
    try:
        with open(path, "rb") as stream:
            data = tomllib.load(stream)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    tool = data.get("tool")
    table = tool.get("emberlint") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{path}: [tool.emberlint] must be a table")
    return table


_KEYS = {
    "profile": str,
    "profiles": dict,
    "select": list,
    "extend-select": list,
    "ignore": list,
    "per-file-ignores": dict,
    "exclude": list,
    "exempt": list,
    "allow": dict,
    "profile-folders": dict,
    "strict": bool,
    "baseline": str,
    "cache-dir": str,
}


def build(table: dict[str, Any], root: str, where: str) -> Config:
    """Return a configuration from its table.

    Raises:
        ConfigError: for unknown keys, wrong types, unknown rules, profiles or libraries.
    """
    for key, value in table.items():
        if key not in _KEYS:
            raise ConfigError(f"{where}: unknown key {key!r} in [tool.emberlint]; known: {', '.join(_KEYS)}")
        if not isinstance(value, _KEYS[key]):
            raise ConfigError(f"{where}: {key!r} must be a {_KEYS[key].__name__}, not {type(value).__name__}")
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            raise ConfigError(f"{where}: {key!r} must be a list of strings")
    known = dict(profiles.SHIPPED)
    for name, content in table.get("profiles", {}).items():
        if not isinstance(content, dict):
            raise ConfigError(f"{where}: profile {name!r} must be a table")
        try:
            known[name] = profiles.build(name, content)
        except ValueError as error:
            raise ConfigError(f"{where}: {error}") from error
    select = expand(table["select"], where) if "select" in table else rules.DEFAULT
    return Config(
        root=root,
        profile=_profile(table.get("profile", "ember"), known, where),
        select=select | expand(table.get("extend-select", ()), where),
        ignore=expand(table.get("ignore", ()), where),
        per_file_ignores=tuple(
            (pattern, expand(_strings(codes, pattern, where), where))
            for pattern, codes in table.get("per-file-ignores", {}).items()
        ),
        exclude=tuple(table.get("exclude", ())),
        exempt=tuple(table.get("exempt", ())),
        allow=tuple((pattern, _libraries(names, pattern, where)) for pattern, names in table.get("allow", {}).items()),
        profile_folders=tuple(
            (pattern, _profile(name, known, where)) for pattern, name in table.get("profile-folders", {}).items()
        ),
        strict=table.get("strict", False),
        baseline=table.get("baseline"),
        cache_dir=table.get("cache-dir", ".emberlint_cache"),
    )


def with_options(
    config: Config,
    *,
    select: list[str] | None = None,
    extend_select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    strict: bool = False,
    profile: str | None = None,
) -> Config:
    """Return a configuration as the command line changes it."""
    changes: dict[str, Any] = {}
    if select:
        changes["select"] = expand(select, "--select")
        changes["ignore"] = config.ignore - changes["select"]
    if extend_select:
        changes["select"] = changes.get("select", config.select) | expand(extend_select, "--extend-select")
    if ignore:
        changes["ignore"] = changes.get("ignore", config.ignore) | expand(ignore, "--ignore")
    if strict:
        changes["strict"] = True
    if profile:
        changes["profile"] = _profile(profile, profiles.SHIPPED, "--profile")
    result = replace(config, _memo={}, **changes) if changes else config
    if select or extend_select:  # the profile does not switch off rules that are selected by name
        wanted = frozenset(changes["select"]) - (config.select if not select else frozenset())
        result = replace(
            result,
            profile=replace(
                result.profile, ignore=tuple(c for c in result.profile.ignore if c not in wanted), _cache={}
            ),
            _memo={},
        )
    return result


def _strings(value: object, key: str, where: str) -> list[str]:
    if not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        raise ConfigError(f"{where}: {key!r} must be a list of strings")
    return value


def _profile(name: object, known: dict[str, profiles.Profile], where: str) -> profiles.Profile:
    if not isinstance(name, str) or name not in known:
        raise ConfigError(f"{where}: there is no profile {name!r}; there are {', '.join(known)}")
    return known[name]


def _libraries(value: object, key: str, where: str) -> frozenset[str]:
    names = frozenset(_strings(value, key, where))
    if "*" in names:
        return LIBRARIES
    unknown = names - LIBRARIES
    if unknown:
        raise ConfigError(
            f"{where}: allow: {sorted(unknown)[0]!r} is not a tensor library; known: {', '.join(sorted(LIBRARIES))}"
        )
    return names
