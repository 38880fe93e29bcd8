"""EMB403: a tensor is changed in place."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import natives, replacements
from ember_ml.lint.fix import Edit, Fix
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.shared import value_of
from ember_ml.lint.values import TENSOR, UNKNOWN, form_of

if TYPE_CHECKING:
    from ember_ml.lint.fix import FixContext
    from ember_ml.lint.flow import Flow


class InPlace(Rule):
    """A tensor is changed in place."""

    code = "EMB403"
    name = "in-place"
    message = "a tensor is changed in place; {0}"
    why = (
        "JAX arrays cannot be changed, MLX arrays rebind, NumPy and torch write through every view: the "
        "same line has three "
        "meanings. Compute a new tensor instead."
    )
    nodes = (ast.Assign, ast.AugAssign, ast.Call)
    bad = (
        "def f(x: Tensor):\n    x[0] = 1.0  # bad\n    return x",
        "def f(x: Tensor, y: Tensor):\n    x += y  # bad\n    return x",
        "def f(x: Tensor):\n    x[:, 1] *= 2  # bad\n    return x",
        "def f(x: Tensor):\n    x.add_(1)  # bad\n    return x",
        "def f(x: Tensor, y: Tensor):\n    x.copy_(y)  # bad",
        "y = ops.zeros((3,))\ny -= 1",
        "class M:\n    def __init__(self):\n        self.w = ops.ones((3,))\n    def f(self):\n        "
        "self.w[0] = 2.0  # bad",
        "def f(loss: Tensor):\n    total = 0.0\n    total += loss  # bad\n    return total",
        "def f(x: Tensor):\n    x[0], y = 1, 2  # bad\n    return x",
    )
    good = (
        "def f(xs: list[Tensor], x: Tensor):\n    xs[0] = x",
        "def f(d: dict, x: Tensor):\n    d['x'] = x",
        "def f(xs: list[Tensor], ys: list[Tensor]):\n    xs += ys\n    return xs",
        "def f(x: Tensor):\n    n = 0\n    n += x.shape[0]\n    return n",
        "def f(x: Tensor):\n    x = ops.add(x, 1)\n    return x",
        "def f(x: Tensor):\n    shape = list(x.shape)\n    shape[0] = 1\n    return shape",
        "class M:\n    def f(self, x: Tensor):\n        self.x = x",
        "def f(text: str):\n    text += 'a'\n    return text",
        "def f(x: Tensor):\n    return ops.slice_update(x, (0,), x)",
        "def f(count_):\n    count_.add_('a')",
        "from ember_ml.nn.tensor import EmberTensor\n\ndef f(x: EmberTensor):\n    x[0] = 1.0\n    x.T[1] = 2.0",
    )

    def check(self, node: Any, flow: Flow) -> None:
        if isinstance(node, ast.AugAssign):
            left, right = value_of(node.target), value_of(node.value)
            if "portable" in (left.detail, right.detail):
                return
            if left.kind == TENSOR or (
                right.kind == TENSOR and form_of(left) not in ("list", "text", "dict") and left.kind != 2
            ):
                flow.report(
                    self,
                    node,
                    f"write {_target(node, flow)} = ops.{replacements.OPERATORS[type(node.op).__name__]}(...)",
                )
            return
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else (target,):
                    if (
                        isinstance(part, ast.Subscript)
                        and value_of(part.value).kind == TENSOR
                        and value_of(part.value).detail not in ("like", "portable")
                    ):
                        flow.report(self, node, "use ops.slice_update, ops.index_update or ops.where")
                        return
            return
        func = node.func
        if (
            isinstance(func, ast.Attribute)
            and func.attr.endswith("_")
            and not func.attr.endswith("__")
            and not func.attr.startswith("_")
        ):
            owner = value_of(func.value)
            if owner.kind == TENSOR or (owner.kind == UNKNOWN and func.attr in natives.UNMISTAKABLE_METHODS):
                flow.report(self, node, f".{func.attr} writes into its receiver")

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        if not isinstance(node, ast.AugAssign) or not isinstance(node.target, ast.Name):
            return None
        prefix = context.prefix()
        if prefix is None:
            return None
        op = replacements.OPERATORS[type(node.op).__name__]
        name = node.target.id
        middle = Edit(context.end(node.target), context.start(node.value), f" = {prefix}.{op}({name}, ")
        return Fix(f"use {prefix}.{op}", (middle, Edit(context.end(node.value), context.end(node), ")")))


def _target(node: Any, flow: Flow) -> Any:
    return flow.module.text(node.target)


RULE = InPlace()
