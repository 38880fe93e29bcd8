"""EMB901: a suppression that hides nothing. Raised by the engine, not by the walk."""

from __future__ import annotations

from ember_ml.lint.rules.base import Rule


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


RULE = StaleSuppression()
