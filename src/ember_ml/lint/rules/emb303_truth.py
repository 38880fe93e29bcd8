"""EMB303: a tensor decides a branch."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.shared import value_of
from ember_ml.lint.values import TENSOR

if TYPE_CHECKING:
    from ember_ml.lint.flow import Flow


class Truth(Rule):
    """A tensor decides a branch."""

    code = "EMB303"
    name = "tensor-truth"
    message = (
        "implicit bool() of a tensor: it waits for the device, and fails in compiled code and for more than one element"
    )
    why = (
        "Branches on values cannot be traced. Use ops.where or ops.cond; to ask whether an optional "
        "tensor was given, compare with None. An assertion of ops.allclose is a check of values, and is allowed."
    )
    nodes = (ast.If, ast.While, ast.Assert, ast.IfExp, ast.BoolOp, ast.UnaryOp, ast.Call, ast.comprehension)
    bad = (
        "def f(x: Tensor):\n    if x:  # bad\n        return 1",
        "def f(x: Tensor):\n    while ops.any(x):  # bad\n        x = ops.subtract(x, 1)",
        "def f(x: Tensor):\n    assert ops.all(x)  # bad",
        "def f(x: Tensor):\n    return 1 if ops.any(x) else 2  # bad",
        "def f(x: Tensor):\n    return not x  # bad",
        "def f(x: Tensor, y: Tensor):\n    return x and y  # bad",
        "def f(x: Tensor):\n    return bool(x)  # bad",
        "def f(x: Tensor, y: Tensor):\n    if ops.greater(x, y):  # bad\n        return x",
        "def f(xs: list[Tensor]):\n    return [1 for x in xs if x]  # bad",
        "def f(mask: Tensor | None):\n    if mask:  # bad\n        return 1",
    )
    good = (
        "def f(x: Tensor | None):\n    if x is None:\n        return 1",
        "def f(x: Tensor):\n    if x.shape[0] > 3:\n        return 1",
        "def f(x: Tensor):\n    if ops.ndim(x) == 2:\n        return 1",
        "def f(xs: list[Tensor]):\n    if xs:\n        return 1",
        "def f(training: bool):\n    return 1 if training else 2",
        "def f(x: Tensor):\n    if isinstance(x, Tensor):\n        return 1",
        "def f(x: Tensor):\n    assert x is not None",
        "def f(x: Tensor, mode: str):\n    if mode == 'add' and x is not None:\n        return 1",
        "def f(x: Tensor):\n    return ops.logical_not(x)",
        "def f(x: Tensor, y: Tensor):\n    assert ops.allclose(x, y)",
        "def f(x: Tensor):\n    if ops.is_tensor(x):\n        return bool(3)",
    )

    def check(self, node: Any, flow: Flow) -> None:
        if isinstance(node, ast.Call):
            if flow.dotted(node.func) != "builtins.bool" or len(node.args) != 1:
                return
            tests = [node.args[0]]
        elif isinstance(node, ast.BoolOp):
            tests = node.values[:-1]
        elif isinstance(node, ast.UnaryOp):
            if not isinstance(node.op, ast.Not):
                return
            tests = [node.operand]
        elif isinstance(node, ast.comprehension):
            tests = [test for test in node.ifs if hasattr(test, "ev")]
        else:
            tests = [node.test]
            if isinstance(node.test, ast.BoolOp):
                tests = [node.test.values[-1]]
            if isinstance(node, ast.Assert):  # a check of values, which has to read them
                tests = [test for test in tests if not _is_allclose(test, flow)]
        for test in tests:
            value = value_of(test)
            if value.kind == TENSOR and value.detail != "like":
                flow.report(self, test if isinstance(node, ast.comprehension) else node)
                return


def _is_allclose(test: Any, flow: Flow) -> bool:
    return isinstance(test, ast.Call) and (flow.dotted(test.func) or "").endswith(".allclose")


RULE = Truth()
