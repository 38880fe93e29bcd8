"""EMB903: a wrong configuration. Raised by the engine, not by the walk."""

from __future__ import annotations

from ember_ml.lint.rules.base import Rule


class BadConfiguration(Rule):
    """A wrong configuration."""

    code = "EMB903"
    name = "bad-configuration"
    message = "{0}"
    why = "A misspelled key would switch something off silently; emberlint stops with exit code 2 instead."


RULE = BadConfiguration()
