"""The interface between the parts of the walker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ember_ml.lint.facts import Facts
    from ember_ml.lint.module import Module
    from ember_ml.lint.profiles import Profile
    from ember_ml.lint.unit import Unit
    from ember_ml.lint.values import Value


class Walker:
    """The state that all parts share; ``Flow`` puts the parts together."""

    module: Module
    profile: Profile
    facts: Facts
    unit: Unit
    units: list[Unit]
    pending: dict[int, Unit]
    env: dict[str, Value]
    top: dict[str, Value]
    scopes: list[dict[str, Value]]
    guards: int  # depth of blocks in which a TypeError is expected

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
