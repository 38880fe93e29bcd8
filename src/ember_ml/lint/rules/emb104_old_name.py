"""EMB104: the package's old name."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint.fix import Edit, Fix
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.shared import value_of

if TYPE_CHECKING:
    from ember_ml.lint.fix import FixContext
    from ember_ml.lint.flow import Flow

OLD, NEW = "emberharmony", "ember_ml"


class OldName(Rule):
    """The package's old name."""

    code = "EMB104"
    name = "old-package-name"
    message = "the package is now called ember_ml, not emberharmony"
    why = "emberharmony was the name before the first release; nothing can be imported under it."
    nodes = (ast.Import, ast.ImportFrom, ast.Name, ast.Call)
    bad = (
        "from emberharmony import ops",
        "import emberharmony",
        "import emberharmony as eh",
        "from emberharmony.nn import tensor",
        "import emberharmony.ops",
        "def f():\n    from emberharmony import backend  # bad\n    return backend",
        "import importlib\nm = importlib.import_module('emberharmony.ops')",
        "import os, emberharmony",
        "from emberharmony.nn.tensor import Tensor",
    )
    good = (
        "from ember_ml import ops",
        "import ember_ml",
        "title = 'formerly emberharmony'",
        "emberharmony_path = 1",
        "from my_emberharmony import ops",
        "import emberharmony_compat",
        "from .emberharmony import notes",
        "# emberharmony was the old name\nx = 1",
    )

    def check(self, node: Any, flow: Flow) -> None:
        if isinstance(node, ast.Import):
            if any(alias.name.split(".", 1)[0] == OLD for alias in node.names):
                flow.report(self, node)
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0 and node.module and node.module.split(".", 1)[0] == OLD:
                flow.report(self, node)
        elif isinstance(node, ast.Name):
            if node.id == OLD and value_of(node).detail == ("ref", OLD) and isinstance(node.ctx, ast.Load):
                flow.report(self, node)
        elif (flow.dotted(node.func) or "").endswith("import_module") and node.args:
            name = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
            if isinstance(name, str) and name.split(".", 1)[0] == OLD:
                flow.report(self, node)

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        text = context.text(node)
        at = text.find(OLD)
        if at < 0:
            return None
        start = context.start(node)
        edits = []
        while at >= 0:
            edits.append(Edit(start + at, start + at + len(OLD), NEW))
            at = text.find(OLD, at + len(OLD))
        return Fix("rename to ember_ml", tuple(edits), needs_ops=False)


RULE = OldName()
