"""EMB405: a tensor is compared with a Python number (opt-in)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import replacements
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.emb404_comparison import fix_comparison, sides

if TYPE_CHECKING:
    from ember_ml.lint.fix import Fix, FixContext
    from ember_ml.lint.flow import Flow


class ScalarComparison(Rule):
    """A tensor is compared with a Python number (opt-in)."""

    code = "EMB405"
    name = "scalar-comparison"
    message = "'{0}' between a tensor and a number; ops.{1} is the portable spelling"
    why = "Comparing with a Python number gives the same answer on every backend, so this is a matter of style: opt-in."
    nodes = (ast.Compare,)
    default = False
    bad = (
        "def f(x: Tensor):\n    return x == 0  # bad",
        "def f(x: Tensor):\n    return x > 1.5  # bad",
        "def f(x: Tensor):\n    return 0 < x  # bad",
        "y = ops.where(ops.ones((3,)) == 0, 1, 2)",
        "def f(x: Tensor, n: int):\n    return x != n  # bad",
        "def f(xs: list[Tensor]):\n    return [x >= 1 for x in xs]  # bad",
        "def f(x: Tensor):\n    return ops.sum(x) <= -1  # bad",
        "def f(x: Tensor, y: Tensor):\n    return x < len([y])  # bad",
    )
    good = (
        "def f(x: Tensor):\n    return x.shape[0] == 0",
        "def f(n: int):\n    return n == 0",
        "def f(x: Tensor):\n    return ops.equal(x, 0)",
        "def f(x: Tensor):\n    return len(x) > 1",
        "def f(x: Tensor, y: Tensor):\n    return x == y",
        "def f(x: Tensor):\n    return x is None",
        "def f(mode: str):\n    return mode == 'a'",
        "def f(x: Tensor):\n    return ops.size(x) != 1",
    )

    def check(self, node: Any, flow: Flow) -> None:
        found = sides(node, flow)
        if found is not None and found[1]:
            symbol = type(node.ops[0]).__name__
            flow.report(self, node, replacements.SYMBOLS[symbol], replacements.OPERATORS[symbol])

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        return fix_comparison(node, context)


RULE = ScalarComparison()
