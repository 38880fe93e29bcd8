"""EMB102: the front end reaches into one backend's own folder."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import natives
from ember_ml.lint.rules.base import Rule

if TYPE_CHECKING:
    from ember_ml.lint.flow import Flow


class BackendInternals(Rule):
    """The front end reaches into one backend's own folder."""

    code = "EMB102"
    name = "backend-internals"
    message = "front-end code imports {0}, which belongs to one backend; go through ops"
    why = (
        "A backend's folder holds the bodies for one library. What is imported from there does not follow a switch of "
        "the backend. The dispatching package itself (get_backend, set_backend, use_backend) is open to everyone."
    )
    nodes = (ast.Import, ast.ImportFrom)
    bad = (
        "from ember_ml.backend.numpy import elementwise",
        "from ember_ml.backend.torch.linearalg import svd",
        "import ember_ml.backend.mlx",
        "import ember_ml.backend.numpy.stats as stats",
        "from ember_ml.backend import torch",
        "from ember_ml.backend import get_backend, numpy",
        "def late():\n    from ember_ml.backend.jax import ops as jax_ops  # bad\n    return jax_ops",
        "try:\n    from ember_ml.backend import mlx as m  # bad\nexcept ImportError:\n    m = None",
        "from ember_ml.backend.torch import *",
    )
    good = (
        "from ember_ml.backend import get_backend",
        "from ember_ml.backend import set_backend, use_backend",
        "import ember_ml.backend",
        "from ember_ml import backend",
        "from ember_ml.ops import linearalg",
        "from ember_ml.backend.contract import Backend",
        "from mypackage.backend.numpy import thing",
        "from ember_ml.backends_list import numpy",
    )

    def check(self, node: Any, flow: Flow) -> None:
        packages = flow.profile.backend_modules
        if not packages:
            return
        if isinstance(node, ast.ImportFrom):
            source = flow.module.absolute(node.module, node.level)
            names = [f"{source}.{alias.name}" for alias in node.names]
        else:
            names = [alias.name for alias in node.names]
        for name in names:
            for package in packages:
                if name.startswith(package + "."):
                    part = name[len(package) + 1 :].split(".", 1)[0]
                    if part in natives.BACKEND_WORDS and part not in flow.module.allowed:
                        flow.report(self, node, f"{package}.{part}")
                        return


RULE = BackendInternals()
