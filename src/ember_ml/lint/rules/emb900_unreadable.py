"""EMB900: a file that cannot be decoded or parsed. Raised by the engine, not by the walk."""

from __future__ import annotations

from ember_ml.lint.rules.base import Rule


class Unreadable(Rule):
    """A file that cannot be checked."""

    code = "EMB900"
    name = "unreadable"
    message = "{0}"
    why = (
        "A file that cannot be decoded or parsed was not checked at all; the exit code is 2. The examples are texts "
        "that cannot be parsed; bytes that cannot be decoded are tested with files on disk."
    )
    bad = (
        "def f(:",
        "print 'python 2'",
        "x = = 1",
        "class C  # bad\n    pass",
        "return = 3",
        "x = 'not closed",
        "x = [1, 2",
        "if True:\n    x = 1\n  y = 2  # bad",
        "x = 1\0",
        "raise ValueError, 'python 2'",
    )
    good = (
        "",
        "print('python 3')",
        "match = 1\ncase = 2",
        "match [1]:\n    case [x]:\n        pass",
        "if (n := 1) > 0:\n    pass",
        "try:\n    pass\nexcept* ValueError:\n    pass",
        "text = f'{1 + 1!r:>{5}}'",
        "größe = 1",
        "def f(a, /, b, *, c): ...",
        "x = 1 \\\n    + 2",
    )


RULE = Unreadable()
