"""EMB501: code asks whether a value is one library's tensor."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import natives
from ember_ml.lint.fix import Edit, Fix
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.chains import same_bodies, statement_span

if TYPE_CHECKING:
    from ember_ml.lint.fix import FixContext
    from ember_ml.lint.flow import Flow


class IsInstance(Rule):
    """Code asks whether a value is one library's tensor."""

    code = "EMB501"
    name = "isinstance-native"
    message = "{0} is one backend's type; ask ops.is_tensor, or convert with ops.convert_to_tensor"
    why = (
        "Every such test is a list of backends that must grow with each new one, and it is wrong for portable tensors."
    )
    nodes = (ast.Call, ast.Compare)
    bad = (
        "import numpy as np\n\ndef f(x):\n    return isinstance(x, np.ndarray)  # bad",
        "def f(x):\n    if isinstance(x, torch.Tensor):  # bad\n        return 1",
        "import torch\n\ndef f(x):\n    return isinstance(x, (list, torch.Tensor))  # bad",
        "import numpy as np\n\ndef f(x):\n    return type(x) is np.ndarray  # bad",
        "from torch import Tensor as T\n\ndef f(x):\n    return isinstance(x, T)  # bad",
        "import mlx.core as mx\n\ndef f(x):\n    return type(x) == mx.array  # bad",
        "import numpy as np\n\ndef f(x):\n    return isinstance(x, np.generic)  # bad",
        "import numpy as np\n\ndef f(c):\n    return issubclass(c, np.ndarray)  # bad",
        "import numpy as np\n\ndef f(x):\n    return isinstance(x, int | np.ndarray)  # bad",
    )
    good = (
        "def f(x):\n    return isinstance(x, Tensor)",
        "def f(x):\n    return isinstance(x, (int, float))",
        "def f(x):\n    return ops.is_tensor(x)",
        "def f(x):\n    return type(x) is list",
        "class ndarray:\n    pass\n\ndef f(x):\n    return isinstance(x, ndarray)",
        "def f(x):\n    return type(x) == type(1)",
        "import array\n\ndef f(x):\n    return isinstance(x, array.array)",
        "def f(x, kind):\n    return isinstance(x, kind)",
        "def f(x):\n    return x == 'np.ndarray'",
    )

    def check(self, node: Any, flow: Flow) -> None:
        if isinstance(node, ast.Call):
            if flow.dotted(node.func) not in ("builtins.isinstance", "builtins.issubclass") or len(node.args) != 2:
                return
            classes = node.args[1]
        else:
            left = node.left
            if not (isinstance(left, ast.Call) and flow.dotted(left.func) == "builtins.type" and len(left.args) == 1):
                return
            classes = node.comparators[0]
        for part in ast.walk(classes):
            name = flow.dotted(part)
            if name in natives.TENSOR_TYPES and natives.library_of(name) not in flow.module.allowed:
                flow.report(self, node, name)
                return

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        chain = _type_chain(node, context)
        prefix = context.prefix()
        if chain is not None and prefix is not None:
            tested, statement = chain
            start, end = statement_span(statement, context)
            return Fix(
                "convert instead of asking", (Edit(start, end, f"{tested} = {prefix}.convert_to_tensor({tested})"),)
            )
        if (
            isinstance(node, ast.Call)
            and not isinstance(node.args[1], (ast.Tuple, ast.BinOp))
            and context.flow.dotted(node.func) == "builtins.isinstance"
        ):
            return context.call_op(node, "is_tensor", context.text(node.args[0]), safe=False)
        return None


def _type_chain(node: Any, context: FixContext) -> Any:
    """Return the if/elif chain around ``node`` that tests backend types and does the same in each branch."""
    statement = context.module.parent(node)
    if not isinstance(statement, ast.If) or not isinstance(node, ast.Call) or not isinstance(node.args[0], ast.Name):
        return None
    outer = context.module.parent(statement)
    if isinstance(outer, ast.If) and outer.orelse == [statement]:
        return None
    tested = node.args[0].id
    branches = []
    current = statement
    while True:
        test = current.test
        if not (
            isinstance(test, ast.Call)
            and test.args
            and isinstance(test.args[0], ast.Name)
            and test.args[0].id == tested
        ):
            return None
        if getattr(test.func, "id", "") not in ("isinstance", "hasattr"):
            return None
        branches.append(current.body)
        if len(current.orelse) == 1 and isinstance(current.orelse[0], ast.If):
            current = current.orelse[0]
            continue
        if current.orelse:
            branches.append(current.orelse)
        break
    if len(branches) < 2 or not same_bodies(branches) or not isinstance(branches[0][0], ast.Pass):
        return None
    return tested, statement


RULE = IsInstance()
