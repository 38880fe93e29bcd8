"""EMB900 to EMB903: about files, suppressions and configuration; raised by the engine, not by the walk."""

from __future__ import annotations

from ember_ml.lint.rules.base import Rule


class Unreadable(Rule):
    """A file that cannot be checked."""

    code = "EMB900"
    name = "unreadable"
    message = "{0}"
    why = "A file that cannot be decoded or parsed was not checked at all; the exit code is 2."


class StaleSuppression(Rule):
    """A suppression that hides nothing."""

    code = "EMB901"
    name = "stale-suppression"
    message = "nothing to suppress here: {0} is not found on this line"
    why = "A suppression that outlives its finding hides the next one."
    bad = (
        "y = 1  # emberlint: ignore[EMB401] once an operator\n",
        "y = ops.sin(1.0)  # emberlint: ignore[EMB201] was np.sin",
        "import math  # emberlint: ignore[EMB101] was numpy",
        "def f(x: Tensor):\n    return ops.add(x, 1)  # bad  emberlint: ignore[EMB401] fixed since",
        "y = 'text'  # emberlint: ignore[EMB202] gone",
        "z = [1]  # emberlint: ignore[EMB801] no loop any more",
        "def g():  # bad  emberlint: ignore[EMB503] branch removed\n    return 1",
        "# emberlint: ignore-file[EMB701] nothing random here",
    )
    good = (
        "def f(x: Tensor):\n    return x + 1  # emberlint: ignore[EMB401] shows the operator",
        "import numpy as np  # emberlint: ignore[EMB101] oracle",
        "text = '# emberlint: ignore[EMB401] in a string'",
        "# a comment about emberlint\ny = 1",
        "def f(x):\n    return x.numpy()  # emberlint: ignore[EMB202] plotting",
        "# emberlint: ignore-file[EMB101] oracle\nimport torch",
        "def f(x: Tensor):\n    return float(x)  # emberlint: ignore[EMB301] logging",
        "def f(x: Tensor):\n    return -x + 1  # emberlint: ignore[EMB401] both",
    )


class BadSuppression(Rule):
    """A suppression without rule or reason."""

    code = "EMB902"
    name = "bad-suppression"
    message = "{0}"
    why = "A suppression names its rules and gives a reason, so that the next reader can judge it."
    bad = (
        "import numpy as np  # emberlint: ignore[EMB101]",
        "import numpy as np  # emberlint: ignore",
        "y = 1  # emberlint: ignore[EMB999] no such rule",
        "y = 1  # emberlint: ignore[] empty",
        "y = 1  # emberlint: disable[EMB101] wrong word",
        "y = 1  # emberlint: ignore[W1] not ours",
        "import os\n# emberlint: ignore-file[EMB101]",
        "y = 1  # emberlint: ignore[EMB101 not closed",
    )
    good = (
        "import numpy as np  # emberlint: ignore[EMB101] oracle",
        "import numpy as np  # emberlint: ignore[EMB101, EMB203] oracle",
        "import numpy as np  # noqa: F401  # emberlint: ignore[EMB101] oracle",
        "text = 'emberlint: ignore'",
        "# emberlint is a linter\ny = 1",
        "# emberlint: ignore-file[EMB101] oracle\nimport numpy",
        "y = 1  # type: ignore",
        "y = 1  # see emberlint docs: rules",
    )


class BadConfiguration(Rule):
    """A wrong configuration."""

    code = "EMB903"
    name = "bad-configuration"
    message = "{0}"
    why = "A misspelled key would switch something off silently; emberlint stops with exit code 2 instead."


RULES = (Unreadable(), StaleSuppression(), BadSuppression(), BadConfiguration())
