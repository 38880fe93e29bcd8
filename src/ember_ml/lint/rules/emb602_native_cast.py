"""EMB602: a tensor is cast with a method of one library."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import natives
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.shared import value_of
from ember_ml.lint.values import TENSOR

if TYPE_CHECKING:
    from ember_ml.lint.fix import Fix, FixContext
    from ember_ml.lint.flow import Flow


class NativeCast(Rule):
    """A tensor is cast with a method of one library."""

    code = "EMB602"
    name = "native-cast"
    message = ".{0}() is not on every backend's tensors; use ops.cast"
    why = (
        "torch has float(), long() and to(dtype), NumPy and MLX astype(), and each rounds and refuses "
        "differently; ops.cast has one rule."
    )
    nodes = (ast.Call,)
    bad = (
        "def f(x: Tensor):\n    return x.float()  # bad",
        "def f(x: Tensor):\n    return x.astype('float32')  # bad",
        "def f(x: Tensor):\n    return x.long()  # bad",
        "y = ops.ones((3,)).half()",
        "def f(x: Tensor):\n    return ops.sin(x).double()  # bad",
        "def f(xs: list[Tensor]):\n    return [x.int() for x in xs]  # bad",
        "def f(x: Tensor):\n    return x.type(ops.float32)  # bad",
        "def f(x: Tensor, y: Tensor):\n    return x.type_as(y)  # bad",
        "def f(x: Tensor):\n    return x[0].bool()  # bad",
    )
    good = (
        "def f(x: Tensor):\n    return ops.cast(x, ops.float32)",
        "def f(df):\n    return df.astype('float32')",
        "def f(text: str):\n    return text.float()",
        "class M:\n    def float(self):\n        return self\ny = M().float()",
        "def f(x: Tensor):\n    return x.dtype",
        "def f(config: dict):\n    return config.get('float')",
        "def f(x: Tensor):\n    return ops.astype(x, 'int32')",
        "def f(event):\n    return event.type()",
        "def f(xs: list[Tensor]):\n    return xs.count(1)",
    )

    def check(self, node: Any, flow: Flow) -> None:
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr in natives.CAST_METHODS:
            owner = value_of(func.value)
            if owner.kind == TENSOR and owner.detail not in ("like", "portable"):
                flow.report(self, node, func.attr)

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        prefix = context.prefix()
        if prefix is None or context.has_comment(node):
            return None
        method = node.func.attr
        owner = context.text(node.func.value)
        if natives.CAST_METHODS[method]:
            return (
                context.call_op(node, "cast", owner, f"{prefix}.{natives.CAST_METHODS[method]}")
                if not node.args
                else None
            )
        if len(node.args) != 1 or node.keywords:
            return None
        argument = context.text(node.args[0])
        return context.call_op(node, "cast", owner, f"{argument}.dtype" if method == "type_as" else argument)


RULE = NativeCast()
