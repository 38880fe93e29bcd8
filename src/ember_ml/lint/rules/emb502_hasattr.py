"""EMB502: code finds out the backend by probing for attributes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import natives
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.shared import value_of
from ember_ml.lint.values import OTHER

if TYPE_CHECKING:
    from ember_ml.lint.flow import Flow


class HasAttr(Rule):
    """Code finds out the backend by probing for attributes."""

    code = "EMB502"
    name = "hasattr-probe"
    message = "hasattr(..., {0!r}) guesses which library a tensor belongs to; convert with ops.convert_to_tensor"
    why = "The libraries grow each other's methods: what tells them apart today does not tomorrow."
    nodes = (ast.Call,)
    bad = (
        "def f(x):\n    return hasattr(x, 'numpy')  # bad",
        "def f(x):\n    if hasattr(x, 'detach'):  # bad\n        return 1",
        "def f(x: Tensor):\n    return hasattr(x, 'cpu')  # bad",
        "def f(x):\n    return getattr(x, 'detach', None)  # bad",
        "def f(x):\n    return hasattr(x, '__array__')  # bad",
        "def f(x):\n    return hasattr(x, '__dlpack__')  # bad",
        "def f(x):\n    return 1 if hasattr(x, 'requires_grad') else 2  # bad",
        "class M:\n    def f(self, x):\n        return hasattr(x, 'tolist')  # bad",
    )
    good = (
        "def f(x):\n    return hasattr(x, 'name')",
        "def f(x):\n    return hasattr(x, 'shape')",
        "def f(x):\n    return hasattr(x, '__len__')",
        "class M:\n    def f(self):\n        return hasattr(self, 'numpy')",
        "import os\ny = hasattr(os, 'cpu')",
        "def f(hasattr, x):\n    return hasattr(x, 'numpy')",
        "def f(x, name):\n    return hasattr(x, name)",
        "def f(x):\n    return getattr(x, 'title', None)",
        "def f(d: dict):\n    return 'numpy' in d",
    )

    def check(self, node: Any, flow: Flow) -> None:
        if flow.dotted(node.func) not in ("builtins.hasattr", "builtins.getattr") or len(node.args) < 2:
            return
        attribute = node.args[1]
        if not (isinstance(attribute, ast.Constant) and attribute.value in natives.TENSOR_PROBES):
            return
        if flow.dotted(node.func) == "builtins.getattr" and attribute.value not in (
            "numpy",
            "detach",
            "__array__",
            "__dlpack__",
            "requires_grad",
        ):
            return
        owner = value_of(node.args[0])
        if owner.kind == OTHER and type(owner.detail) is tuple and owner.detail[0] in ("inst", "ref", "bound"):
            return
        flow.report(self, node, attribute.value)


RULE = HasAttr()
