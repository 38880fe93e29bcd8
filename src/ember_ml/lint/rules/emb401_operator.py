"""EMB401: a Python operator is applied to a tensor."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import replacements
from ember_ml.lint.expressions import joins_lists
from ember_ml.lint.fix import Edit, Fix
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.shared import value_of
from ember_ml.lint.values import OTHER, TENSOR, form_of

if TYPE_CHECKING:
    from ember_ml.lint.fix import FixContext
    from ember_ml.lint.flow import Flow


class Operator(Rule):
    """A Python operator is applied to a tensor."""

    code = "EMB401"
    name = "operator"
    message = "'{0}' on a tensor follows the rules of its own library; use ops.{1}"
    why = (
        "Operators of native tensors promote dtypes, place results and raise errors as each library pleases: "
        "int32 / int32 gives float64 on NumPy and float32 on torch and MLX; int32 ** -1 is an error on "
        "NumPy and torch and silently 0 "
        "on MLX. Operators are as lazy as ops are; that is not the reason."
    )
    nodes = (ast.BinOp, ast.UnaryOp)
    bad = (
        "def f(x: Tensor, y: Tensor):\n    return x + y  # bad",
        "def f(tensor, mean, std):\n    return (tensor - mean) / std  # bad",
        "y = ops.sum(values) / len(values)",
        "def f(x: Tensor):\n    return -x  # bad",
        "def f(x: Tensor):\n    y = ops.sin(x)\n    return 2 * y  # bad",
        "def f(x: Tensor, w: Tensor):\n    return x @ w  # bad",
        "def f(xs: list[Tensor]):\n    return [x ** 2 for x in xs]  # bad",
        "def f(predictions, targets):\n    diff = predictions - targets  # bad\n    return diff.mean()",
        "def mixed(a, b, c):\n    return ops.multiply(a + b, c)  # bad",
        "class M:\n    def __init__(self):\n        self.w = ops.ones((3,))\n    def f(self, s: float):\n"
        "        return self.w * s  # bad",
        "def g():\n    return ops.ones((3,))\ndef f():\n    return g() % 2  # bad",
        "def f(x: Tensor):\n    q, r = ops.qr(x)\n    return ~r  # bad",
        "def f(x: Tensor):\n    total = 0.0\n    for row in ops.unstack(x):\n        total = total + row "
        " # bad\n    return total",
        "def f(d: dict[str, Tensor]):\n    return d['a'] // 2  # bad",
    )
    good = (
        "def f(x: Tensor):\n    return x.shape[0] + 1",
        "def f(n: int, rate: float):\n    return n * rate",
        "def f(x: Tensor):\n    return ops.reshape(x, (-1,) + ops.shape(x)[1:])",
        "def f(xs: list[Tensor], ys: list[Tensor]):\n    return xs + ys",
        "def f(x: Tensor):\n    return 'shape: %s' % x",
        "def f(x, y):\n    return x + y",
        "def f(x: Tensor, scale: float):\n    return ops.multiply(x, 1.0 - scale)",
        "def f(x: Tensor):\n    return ops.ndim(x) - 1",
        "def f(x: Tensor | None):\n    return -1 if x is None else 1",
        "def f(xs: list[Tensor]):\n    return len(xs) * 2",
        "def f(x: Tensor, text: str):\n    return text + 'end'",
        "def f(x: Tensor):\n    if isinstance(x, float):\n        return x * 2\n    return x",
        "from ember_ml.nn.tensor import EmberTensor\n\ndef f(x: EmberTensor):\n    return x * 2",
        "from ember_ml.nn.tensor import EmberTensor\n\ndef f(w: EmberTensor):\n    return w - 0.1 * w.grad",
        "def f(x: 'int | Tensor_like_name', axis=0):\n    return axis + 1",
        "def f(n):\n    return (made(n) * 2).astype('float32')\n\ndef made(n):\n    return len(n)",
    )

    def check(self, node: Any, flow: Flow) -> None:
        if isinstance(node, ast.UnaryOp):
            if (
                not isinstance(node.op, ast.Not)
                and flow.is_tensor(node.operand)
                and value_of(node.operand).detail != "portable"
            ):
                self._report(node, flow)
            return
        left, right = value_of(node.left), value_of(node.right)
        if form_of(left) == "text" or form_of(right) == "text":
            return
        # a demand can be older than the knowledge of both sides
        demanded = id(node) in flow.unit.demanded and not left.kind == right.kind == OTHER
        if left.kind == TENSOR or right.kind == TENSOR or demanded:
            if not joins_lists(node, left, right) and "portable" not in (left.detail, right.detail):
                self._report(node, flow)
        elif flow.module.strict and value_of(node).kind not in (0, 2):
            self._report(node, flow)

    def _report(self, node: Any, flow: Flow) -> None:
        symbol = type(node.op).__name__
        flow.report(self, node, replacements.SYMBOLS[symbol], replacements.OPERATORS[symbol])

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        op = replacements.OPERATORS[type(node.op).__name__]
        if isinstance(node, ast.BinOp):
            return context.operator(node, node.left, node.right, op)
        prefix = context.prefix()
        if prefix is None:
            return None
        start, operand_start = context.start(node), context.start(node.operand)
        source = context.module.source
        between = source[start + 1 : operand_start]
        after = source[context.end(node.operand) : context.end(node)]
        if between.strip() == "(" and after.strip() == ")":
            between, after = between.replace("(", "", 1), after.replace(")", "", 1)
        edits = (
            Edit(start, operand_start, f"{prefix}.{op}({between.lstrip(' ')}"),
            Edit(context.end(node.operand), context.end(node), after + ")"),
        )
        return Fix(f"use {prefix}.{op}", edits)


RULE = Operator()
