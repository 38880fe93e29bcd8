"""EMB103: a tensor library is imported by its name in a string."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import natives
from ember_ml.lint.rules.base import Rule

if TYPE_CHECKING:
    from ember_ml.lint.flow import Flow


class DynamicImport(Rule):
    """A tensor library is imported by its name in a string."""

    code = "EMB103"
    name = "dynamic-backend-import"
    message = "{0} is loaded by name; front-end code must not load a tensor library at all"
    why = (
        "importlib and __import__ hide the dependency from readers and tools, but the code is tied to "
        "the library all the same."
    )
    nodes = (ast.Call, ast.Subscript)
    bad = (
        "import importlib\nnp = importlib.import_module('numpy')",
        "import importlib\nlib = importlib.import_module('mlx.core')",
        "from importlib import import_module\ntorch = import_module('torch')",
        "np = __import__('numpy')",
        "import importlib as il\nx = il.import_module(name='jax')",
        "import sys\nnp = sys.modules['numpy']",
        "def f():\n    return __import__('torch.nn')  # bad",
        "import importlib\nnp = importlib.__import__('numpy')",
        "from importlib import import_module as load\nmx = load('mlx.core')",
    )
    good = (
        "import importlib\njson = importlib.import_module('json')",
        "import importlib\nplugin = importlib.import_module('numpy_like_plugin')",
        "import importlib.util\nfound = importlib.util.find_spec('torch')",
        "import sys\nhere = 'numpy' in sys.modules",
        "import sys\nme = sys.modules[__name__]",
        "names = {'numpy': 1}\none = names['numpy']",
        "def load(name):\n    return name\nx = load('numpy')",
        "import importlib\n\ndef plug(name):\n    return importlib.import_module(name)",
    )

    def check(self, node: Any, flow: Flow) -> None:
        if isinstance(node, ast.Subscript):
            if flow.dotted(node.value) != "sys.modules":
                return
            first = node.slice
        else:
            if flow.dotted(node.func) not in ("importlib.import_module", "importlib.__import__", "builtins.__import__"):
                return
            first = node.args[0] if node.args else node.keywords[0].value if node.keywords else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            library = natives.library_of(first.value)
            if library is not None and library not in flow.module.allowed:
                flow.report(self, node, library)


RULE = DynamicImport()
