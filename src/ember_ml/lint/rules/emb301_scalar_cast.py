"""EMB301: a tensor is cast to a Python number."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint.fix import Fix
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.shared import is_asserted, value_of
from ember_ml.lint.values import TENSOR

if TYPE_CHECKING:
    from ember_ml.lint.fix import FixContext
    from ember_ml.lint.flow import Flow


class ScalarCast(Rule):
    """A tensor is cast to a Python number."""

    code = "EMB301"
    name = "scalar-cast"
    message = "{0}() of a tensor waits for the device and leaves the graph; keep it a tensor"
    why = (
        "The value itself is exact; the price is a synchronization, a copy to the host, the end of the "
        "gradient, and an "
        "error inside compiled code. int() also truncates. In an assertion, which has to read values, it is allowed."
    )
    nodes = (ast.Call,)
    bad = (
        "y = float(ops.min(x))",
        "def f(x: Tensor):\n    return int(x)  # bad",
        "def f(x: Tensor):\n    y = ops.sum(x)\n    return float(y)  # bad",
        "y = complex(ops.ones(()))",
        "def f(xs: list[Tensor]):\n    return [float(x) for x in xs]  # bad",
        "def f(x: Tensor):\n    return float(x[0])  # bad",
        "class M:\n    def __init__(self):\n        self.w = ops.ones(())\n    def f(self):\n        "
        "return float(self.w)  # bad",
        "def g():\n    return ops.mean(ops.ones((3,)))\ny = float(g())",
        "def f(x: Tensor):\n    a, b = ops.split(x, 2)\n    return int(b)  # bad",
    )
    good = (
        "y = float('1.5')",
        "def f(n: int):\n    return float(n)",
        "def f(x: Tensor):\n    return float(x.shape[0])",
        "def f(x: Tensor):\n    return int(ops.ndim(x))",
        "def f(xs: list[Tensor]):\n    return float(len(xs))",
        "def f(x):\n    return float(x)",
        "def f(float, x: Tensor):\n    return float(x)",
        "def f(x: Tensor):\n    n = ops.shape(x)[0]\n    return int(n)",
        "assert float(ops.sum(ops.ones((3,)))) == 3.0",
        "def f(x: TensorLike):\n    return float(x) if isinstance(x, int) else 0.0",
    )

    def check(self, node: Any, flow: Flow) -> None:
        if len(node.args) == 1 and not node.keywords and isinstance(node.func, ast.Name):
            name = flow.dotted(node.func)
            if name in ("builtins.float", "builtins.int", "builtins.complex"):
                value = value_of(node.args[0])
                is_found = (value.kind == TENSOR and value.detail != "like") or (
                    flow.module.strict and flow.is_tensor(node.args[0])
                )
                if is_found and not is_asserted(node, flow):
                    flow.report(self, node, name[9:])

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        if context.flow.dotted(node.func) == "builtins.int":
            return None
        return Fix(
            "keep the tensor",
            (context.replace(node, context.text(node.args[0])),),
            context.feeds_only_ops(node),
            needs_ops=False,
        )


RULE = ScalarCast()
