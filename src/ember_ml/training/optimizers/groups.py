"""Parameter groups: settings of an optimizer that hold for some of its parameters."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ember_ml.nn.modules.containers import Contents
from ember_ml.nn.modules.module import Module
from ember_ml.tensor.variable import Variable
from ember_ml.training.optimizers.settings import check_setting, find_arguments

if TYPE_CHECKING:
    from ember_ml.training.optimizers.base import Optimizer

__all__ = [
    "Group",
    "GroupsSeen",
    "Match",
    "check_groups",
    "find_groups",
    "find_own_rate",
    "find_rate",
    "find_unmatched",
    "layer_wise_groups",
    "make_member",
]

Match = str | Module | Callable[[str, Variable], bool] | Sequence[Any]
"""Which parameters: a pattern of whole names, a module, a function of name and parameter, or several of these."""
Group = Mapping[str, Any]
_RESERVED = ("match", "optimizer", "learning_rate", "rate_factor", "frozen")
_RATES = ("learning_rate", "rate_factor")
"""Settings that are read at each update; all others make the members."""
_SHARED = ("groups", "max_norm", "max_value")


def layer_wise_groups(layers: Sequence[Match], decay: float) -> list[dict[str, Any]]:
    """Return groups in which each layer's rate is ``decay`` times that of the next; the last has the whole rate.

    >>> from ember_ml.training.optimizers import layer_wise_groups
    >>> [group["rate_factor"] for group in layer_wise_groups(["embed.*", "first.*", "last.*"], 0.5)]
    [0.25, 0.5, 1.0]
    """
    last = len(layers) - 1
    return [{"match": layer, "rate_factor": decay ** (last - place)} for place, layer in enumerate(layers)]


def check_groups(owner: type[Optimizer], kind: type[Optimizer], groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Return copies of ``groups``; raise where one cannot be a group of an ``owner``. ``kind`` is the base class."""
    if isinstance(groups, Mapping) or not isinstance(groups, Sequence):
        raise TypeError(f"groups is a list of dicts, each with a match and settings, not {groups!r:.80}")
    return [_check_group(owner, kind, group, f"groups[{place}]") for place, group in enumerate(groups)]


def _check_group(owner: type[Optimizer], kind: type[Optimizer], group: Any, place: str) -> dict[str, Any]:
    if not isinstance(group, Mapping) or "match" not in group:
        raise ValueError(f"{place} is a dict with a match, such as {{'match': r'.*bias', ...}}, not {group!r:.80}")
    _check_match(group["match"], place)
    if not isinstance(group.get("optimizer"), kind | None):
        raise TypeError(f"the optimizer of {place} is an optimizer, such as SGD(0.1), not {group['optimizer']!r:.80}")
    source = type(group["optimizer"]) if "optimizer" in group else owner
    settings = find_arguments(source)
    unknown = [name for name in group if name not in _RESERVED and (name not in settings or name in _SHARED)]
    if unknown:
        known = [*_RESERVED, *(name for name in settings if name not in (*_RESERVED, *_SHARED))]
        reason = " (which is of all gradients together)" if unknown[0] in _SHARED else ""
        raise ValueError(f"{place} has {', '.join(unknown)}{reason}; a group here can have {', '.join(known)}")
    factor = group.get("rate_factor", 1.0)
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 <= factor < math.inf:
        raise ValueError(f"the rate_factor of {place} is a number from 0 up, not {factor!r}")
    if type(group.get("frozen", False)) is not bool:
        raise TypeError(f"frozen of {place} is True or False, not {group['frozen']!r:.80}")
    if "optimizer" in group:
        shared = [name for name in _SHARED if getattr(group["optimizer"], name, None)]
        if shared:
            raise ValueError(
                f"the optimizer of {place} has {shared[0]}, which only the optimizer that has the groups can have, for "
                "all gradients together"
            )
    return {name: check_setting(name, value, source.ranges, f" of {place}") for name, value in group.items()}


def _check_match(match: Any, place: str) -> None:
    if isinstance(match, str):
        try:
            re.compile(match)
        except re.error as error:
            raise ValueError(f"the match of {place} is no regular expression: {match!r} ({error})") from error
    elif isinstance(match, Sequence):
        for one in match:
            _check_match(one, place)
    elif not callable(match):
        raise TypeError(f"the match of {place} is a pattern, a module or a function, not {match!r:.80}")


def find_groups(groups: Sequence[Group], name: str, parameter: Variable) -> tuple[int, ...]:
    """Return the places of the groups that a parameter is in."""
    return tuple([place for place, group in enumerate(groups) if _is_match(group["match"], name, parameter)])


def find_unmatched(groups: Sequence[Group], named: Mapping[str, Variable]) -> list[int]:
    """Return the places of the groups that none of these parameters is in, as by a misspelt pattern."""
    matched = {place for name, parameter in named.items() for place in find_groups(groups, name, parameter)}
    return [place for place in range(len(groups)) if place not in matched]


class GroupsSeen:
    """What groups were when they were looked at: a program may change their settings from one update to the next."""

    __slots__ = ("_matches", "_settings", "contents")

    contents: list[Contents]

    def __init__(self, groups: list[dict[str, Any]]) -> None:
        own = [vars(group["optimizer"]) for group in groups if "optimizer" in group]
        self.contents = [*Contents.of_all([groups]), *map(Contents, own)]
        self._matches = [_note(group["match"]) for group in groups]
        self._settings = [_note_settings(held) for held in (*groups, *own)]

    def is_current(self, groups: list[dict[str, Any]]) -> bool:
        """Return whether ``groups`` are those, and none has changed since."""
        return self.contents[0].container is groups and all(map(Contents.is_current, self.contents))

    def has_same_matches(self, other: GroupsSeen) -> bool:
        """Return whether each parameter is in the same groups."""
        return self._matches == other._matches

    def has_same_settings(self, other: GroupsSeen) -> bool:
        """Return whether only rates differ, which are read at each update."""
        return self._settings == other._settings


def _note_settings(held: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a group, or of an optimizer, which make the members."""
    return {name: _note(x) for name, x in held.items() if name not in (*_RATES, "step") and name[0] != "_"}


def _note(value: Any) -> Any:
    """Return what ``value`` can be compared with later: a list may change, and a module have an equality of its own."""
    if isinstance(value, list | tuple):
        return [_note(x) for x in value]
    return id(value) if isinstance(value, Module) else value


def _is_match(match: Any, name: str, parameter: Variable) -> bool:
    if isinstance(match, str):
        return re.fullmatch(match, name) is not None
    if isinstance(match, Module):
        return any(x is parameter for x in match.named_parameters().values())
    if isinstance(match, Sequence):
        return any(_is_match(one, name, parameter) for one in match)
    return bool(match(name, parameter))


def make_member(owner: Optimizer, places: tuple[int, ...]) -> Optimizer | None:
    """Return the optimizer whose rule updates the parameters in the groups at ``places``; None where they are frozen.

    Where several groups set the same, the later one counts.
    """
    source, settings, is_frozen = owner, {}, False
    for place in places:
        group = owner.groups[place]
        if "optimizer" in group:
            source, settings = group["optimizer"], {}
        settings |= {name: value for name, value in group.items() if name not in _RESERVED}
        is_frozen = group.get("frozen", is_frozen)
    if is_frozen:
        return None
    unlimited = {name: () if name == "groups" else None for name in _SHARED}
    parameters = find_arguments(type(source))
    given: dict[str, Any] = (
        source.given() | settings | {name: value for name, value in unlimited.items() if name in parameters}
    )
    return type(source)(**given)


def find_own_rate(group: Group) -> Any:
    """Return the learning rate of a group, or else that of its optimizer; None where it has that of all."""
    own = group["optimizer"].learning_rate if "optimizer" in group else None
    return group.get("learning_rate", own)


def find_rate(owner: Optimizer, places: tuple[int, ...], step: int) -> float:
    """Return the learning rate of the parameters in the groups at ``places``, for the update after ``step`` updates."""
    rate: Any = owner.learning_rate
    factor = 1.0
    for place in places:
        group = owner.groups[place]
        own = find_own_rate(group)
        rate = rate if own is None else own
        factor *= group.get("rate_factor", 1.0)
    value: Any = rate(step) if callable(rate) else rate
    return float(value) * factor
