"""EMB902: a suppression without rule or reason. Raised by the engine, not by the walk."""

from __future__ import annotations

from ember_ml.lint.rules.base import Rule


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


RULE = BadSuppression()
