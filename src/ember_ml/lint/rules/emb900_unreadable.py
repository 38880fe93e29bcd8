"""EMB900: a file that cannot be decoded or parsed. Raised by the engine, not by the walk."""

from __future__ import annotations

from ember_ml.lint.rules.base import Rule


class Unreadable(Rule):
    """A file that cannot be checked."""

    code = "EMB900"
    name = "unreadable"
    message = "{0}"
    why = "A file that cannot be decoded or parsed was not checked at all; the exit code is 2."


RULE = Unreadable()
