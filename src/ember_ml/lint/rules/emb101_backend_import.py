"""EMB101: a tensor library is imported outside the backends."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import natives
from ember_ml.lint.fix import Edit, Fix
from ember_ml.lint.rules.base import Rule

if TYPE_CHECKING:
    from ember_ml.lint.fix import FixContext
    from ember_ml.lint.flow import Flow


class BackendImport(Rule):
    """A tensor library is imported outside the backends."""

    code = "EMB101"
    name = "backend-import"
    message = "front-end code imports {0}; use ops instead"
    why = (
        "Code that imports one tensor library runs only where that library is installed and computes only there. "
        "Only the backends may import one. The repair removes the import once nothing in the file uses it."
    )
    nodes = (ast.Import, ast.ImportFrom)
    bad = (
        "import numpy as np",
        "import torch",
        "from torch import nn",
        "import mlx.core as mx",
        "from numpy import dtype as np_dtype",
        "def late():\n    import torch.nn.functional as F  # bad\n    return F",
        "try:\n    import jax.numpy as jnp  # bad\nexcept ImportError:\n    jnp = None",
        "import os, numpy",
        "from mlx import core as mx",
        "from numpy.linalg import norm",
    )
    good = (
        "import math",
        "import numpydoc",
        "import torchmetrics_like_name as t",
        "from ember_ml import ops",
        "from . import numpy",
        "from .torch import thing",
        "import pandas as pd",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy as np",
        "text = 'import numpy as np'",
    )

    def check(self, node: Any, flow: Flow) -> None:
        if isinstance(node, ast.ImportFrom):
            if node.level:
                return
            names = [node.module or ""]
        else:
            names = [alias.name for alias in node.names]
        for name in names:
            library = natives.library_of(name)
            if library is not None and library not in flow.module.allowed and not _for_types_only(node, flow):
                flow.report(self, node, library)
                return

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        bound = {alias.asname or alias.name.split(".", 1)[0] for alias in node.names}
        source = context.module.source
        if (isinstance(node, ast.Import) and len(node.names) > 1) or any(
            f"{name}." in source.replace("import " + name, "") for name in bound
        ):
            return None
        for other in ast.walk(context.module.tree):
            if (isinstance(other, ast.Name) and other.id in bound) or (
                isinstance(other, ast.Constant) and isinstance(other.value, str) and other.value in bound
            ):
                return None
        parent = context.module.parent(node)
        start, end = context.start(node), context.end(node)
        alone = any(
            isinstance(value, list) and value == [node] for _, value in ast.iter_fields(parent)
        ) and not isinstance(parent, ast.Module)
        if alone:
            return Fix("remove the import", (Edit(start, end, "pass"),), safe=True, needs_ops=False)
        line_start = source.rfind("\n", 0, start) + 1
        line_end = source.find("\n", end)
        line_end = len(source) if line_end < 0 else line_end + 1
        if source[line_start:start].strip() or (
            source[end:line_end].strip() and not source[end:line_end].lstrip().startswith("#")
        ):
            return None
        return Fix("remove the import", (Edit(line_start, line_end, ""),), safe=True, needs_ops=False)


def _for_types_only(node: Any, flow: Flow) -> Any:
    if "TYPE_CHECKING" not in flow.module.source:
        return False
    around = flow.module.around(node, ast.If)
    return around is not None and "TYPE_CHECKING" in (getattr(around.test, "id", ""), getattr(around.test, "attr", ""))


RULE = BackendImport()
