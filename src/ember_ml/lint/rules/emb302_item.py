"""EMB302: a tensor's values are fetched with item() or tolist()."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint.fix import Fix
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.shared import is_asserted, value_of
from ember_ml.lint.values import TENSOR, UNKNOWN

if TYPE_CHECKING:
    from ember_ml.lint.fix import FixContext
    from ember_ml.lint.flow import Flow


class Item(Rule):
    """A tensor's values are fetched with item() or tolist()."""

    code = "EMB302"
    name = "item"
    message = (
        ".{0}() waits for the device and copies to the host; keep it a tensor, or write ops.item where a "
        "number must leave"
    )
    why = (
        "Fetching a value stops asynchronous and lazy backends until everything before it is computed. In an "
        "assertion, which has to read values, it is allowed."
    )
    nodes = (ast.Call,)
    bad = (
        "def f(x: Tensor):\n    return x.item()  # bad",
        "y = ops.sum(x).item()",
        "def f(x: Tensor):\n    return x.tolist()  # bad",
        "def f(x: Tensor):\n    return [v.item() for v in ops.split(x, 3)]  # bad",
        "def f(x: Tensor):\n    best = ops.argmax(x)\n    return best.item()  # bad",
        "def f(x: Tensor):\n    return x[0].item()  # bad",
        "def f(a, b):\n    return (a - b).item()  # bad",
        "class M:\n    def __init__(self):\n        self.w = ops.ones((3,))\n    def f(self):\n        "
        "return self.w.tolist()  # bad",
    )
    good = (
        "def f(d: dict):\n    return d.items()",
        "def f(cart):\n    return cart.item('apple')",
        "y = ops.item(ops.sum(x))",
        "from array import array\ny = array('d', [1.0]).tolist()",
        "def f(frame):\n    return frame.tolist()",
        "class Cart:\n    def item(self):\n        return 1\ny = Cart().item()",
        "def f(text: str):\n    return text.item()",
        "def f(x: Tensor):\n    return x.shape.tolist()",
        "def f(x: Tensor):\n    assert ops.sort(x).tolist() == [1.0, 2.0]",
    )

    def check(self, node: Any, flow: Flow) -> None:
        func = node.func
        if (
            isinstance(func, ast.Attribute)
            and func.attr in ("item", "tolist")
            and not node.keywords
            and len(node.args) <= (func.attr == "item")
        ):
            owner = value_of(func.value)
            node_source = owner.kind == UNKNOWN and type(owner.detail) is tuple and owner.detail[0] == "node"
            is_found = owner.kind == TENSOR or node_source
            is_found = is_found or (flow.module.strict and owner.kind == UNKNOWN and not node.args)
            if is_found and not is_asserted(node, flow):
                flow.report(self, node, func.attr)

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        if node.func.attr == "item" and not node.args:
            if context.feeds_only_ops(node):
                return Fix("keep the tensor", (context.replace(node, context.text(node.func.value)),), needs_ops=False)
            return context.call_op(node, "item", context.text(node.func.value))
        return None


RULE = Item()
