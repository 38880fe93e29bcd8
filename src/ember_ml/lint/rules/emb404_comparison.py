"""EMB404: two tensors are compared with a Python operator."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import replacements
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.shared import value_of
from ember_ml.lint.values import OTHER, TENSOR, form_of

if TYPE_CHECKING:
    from ember_ml.lint.fix import Fix, FixContext
    from ember_ml.lint.flow import Flow

OPERATORS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class Comparison(Rule):
    """Two tensors are compared with a Python operator."""

    code = "EMB404"
    name = "comparison"
    message = "'{0}' between tensors follows the rules of its own library; use ops.{1}"
    why = (
        "Comparisons promote as operators do, and == between tensors of different shapes or libraries is "
        "False on one and an error on another."
    )
    nodes = (ast.Compare,)
    bad = (
        "def f(x: Tensor, y: Tensor):\n    return x == y  # bad",
        "def f(x: Tensor, y: Tensor):\n    return x < y  # bad",
        "def f(x: Tensor):\n    return ops.sin(x) >= ops.cos(x)  # bad",
        "def f(x: Tensor, other):\n    return x != other  # bad",
        "def f(xs: list[Tensor], x: Tensor):\n    return [x > y for y in xs]  # bad",
        "y = ops.ones((3,)) <= ops.zeros((3,))",
        "def f(x: Tensor):\n    return ops.where(x > ops.mean(x), x, 0)  # bad",
        "class M:\n    def __init__(self):\n        self.w = ops.ones((3,))\n    def f(self, x: "
        "Tensor):\n        return self.w == x  # bad",
    )
    good = (
        "def f(x: Tensor, y: Tensor):\n    return x is y",
        "def f(x: Tensor, y: Tensor):\n    return x.shape == y.shape",
        "def f(x: Tensor):\n    return x.dtype == ops.float32",
        "def f(x: Tensor):\n    return x is None",
        "def f(x: Tensor):\n    return ops.ndim(x) > 2",
        "def f(a: int, b: int):\n    return a < b",
        "def f(x: Tensor):\n    return len(x) == 3",
        "def f(mode: str, x: Tensor):\n    return mode == 'add'",
        "def f(x: Tensor):\n    return x == 0",
        "def f(x: Tensor, xs: list[Tensor]):\n    return x in xs",
    )

    def check(self, node: Any, flow: Flow) -> None:
        found = sides(node, flow)
        if found is not None and not found[1]:
            symbol = type(node.ops[0]).__name__
            flow.report(self, node, replacements.SYMBOLS[symbol], replacements.OPERATORS[symbol])

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        return fix_comparison(node, context)


def sides(node: Any, flow: Flow) -> Any:
    """Return ``(True, scalar)`` if a tensor is compared; scalar says whether the other side is a Python number."""
    left, right = node.left, node.comparators[0]
    if len(node.ops) != 1 or not isinstance(node.ops[0], OPERATORS):
        return None
    if not (value_of(left).kind == TENSOR or value_of(right).kind == TENSOR):
        return None
    for side in (left, right):
        if value_of(side).detail == "portable" or form_of(value_of(side)) in (
            "text",
            "none",
            "list",
            "tuple",
            "dict",
            "shape",
        ):
            return None
    scalar = any(value_of(side).kind == OTHER for side in (left, right))
    return True, scalar


def fix_comparison(node: Any, context: FixContext) -> Any:
    """Replace ``a < b`` by ``ops.less(a, b)``."""
    return context.operator(node, node.left, node.comparators[0], replacements.OPERATORS[type(node.ops[0]).__name__])


RULE = Comparison()
