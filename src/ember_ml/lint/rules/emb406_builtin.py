"""EMB406: one of Python's own functions computes on tensors."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.shared import value_of
from ember_ml.lint.values import SEQUENCE, TENSOR, element_of

if TYPE_CHECKING:
    from ember_ml.lint.fix import Fix, FixContext
    from ember_ml.lint.flow import Flow


class Builtin(Rule):
    """One of Python's own functions computes on tensors."""

    code = "EMB406"
    name = "builtin"
    message = "{0}() computes with the tensors' own operators; {1}"
    why = (
        "sum(), max() and min() walk over a tensor row by row in Python and compare with ==, < and +; "
        "abs(), round() and pow() call native methods."
    )
    nodes = (ast.Call,)
    bad = (
        "def f(x: Tensor):\n    return abs(x)  # bad",
        "def f(x: Tensor):\n    return sum(x)  # bad",
        "def f(x: Tensor, y: Tensor):\n    return max(x, y)  # bad",
        "def f(x: Tensor):\n    return round(x)  # bad",
        "def f(xs: list[Tensor]):\n    return sum(xs)  # bad",
        "def f(x: Tensor):\n    return pow(x, 2)  # bad",
        "def f(xs: list[Tensor]):\n    return sum(ops.mean(x) for x in xs)  # bad",
        "y = min(ops.ones((3,)))",
        "def f(x: Tensor):\n    return divmod(x, 2)  # bad",
    )
    good = (
        "def f(x: Tensor):\n    return sum(x.shape)",
        "def f(n: int):\n    return abs(n)",
        "def f(xs: list[Tensor]):\n    return max(len(x) for x in xs)",
        "def f(xs: list[Tensor]):\n    return sum(x.shape[0] for x in xs)",
        "def f(x: Tensor):\n    return ops.abs(x)",
        "def f(x: Tensor):\n    return max(ops.ndim(x), 2)",
        "def f(sum, x: Tensor):\n    return sum(x)",
        "def f(x: Tensor):\n    return round(ops.item(x), 2)",
        "def f(xs: list[Tensor]):\n    return sorted(xs, key=id)",
    )

    def check(self, node: Any, flow: Flow) -> None:
        if not isinstance(node.func, ast.Name) or not node.args:
            return
        name = (flow.dotted(node.func) or "")[9:] if (flow.dotted(node.func) or "").startswith("builtins.") else ""
        if name not in _INSTEAD:
            return
        values = [value_of(arg) for arg in node.args]
        if any(value.kind == TENSOR and value.detail != "like" for value in values) or (
            (
                name in ("sum", "max", "min")
                and len(values) <= 2
                and (values[0].kind == SEQUENCE and element_of(values[0]).kind == TENSOR)
            )
            and not any(keyword.arg == "key" for keyword in node.keywords)
        ):
            flow.report(self, node, name, _INSTEAD[name])

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        name = node.func.id
        if node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args) or context.has_comment(node):
            return None
        texts = [context.text(arg) for arg in node.args]
        if name in ("abs", "round") and len(texts) == 1:
            return context.call_op(node, name, *texts)
        if name == "pow" and len(texts) == 2:
            return context.call_op(node, "power", *texts)
        if name in ("max", "min") and len(texts) == 2:
            return context.call_op(node, {"max": "maximum", "min": "minimum"}[name], *texts)
        if name in ("sum", "max", "min") and len(texts) == 1 and value_of(node.args[0]).kind == TENSOR:
            return context.call_op(node, name, texts[0], "axis=0")
        return None


_INSTEAD = {
    "abs": "use ops.abs",
    "sum": "use ops.sum, or ops.stack first",
    "max": "use ops.max or ops.maximum",
    "min": "use ops.min or ops.minimum",
    "round": "use ops.round",
    "pow": "use ops.power",
    "divmod": "use ops.floor_divide and ops.mod",
}

RULE = Builtin()
