"""EMB204: a public function uses its tensor argument without converting it first (opt-in)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import hints
from ember_ml.lint.fix import Edit, Fix
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.values import TENSOR

if TYPE_CHECKING:
    from ember_ml.lint.fix import FixContext
    from ember_ml.lint.flow import Flow


class MissingConversion(Rule):
    """A public function uses its tensor argument without converting it first (opt-in)."""

    code = "EMB204"
    name = "missing-conversion"
    message = (
        "{0} is used before tensor.convert_to_tensor; Python data and other backends' tensors reach the "
        "body as they are"
    )
    why = (
        "Front-end functions that convert first accept lists, NumPy arrays and tensors of other backends "
        "alike. Ops convert by themselves, so this is a habit, not a bug: opt-in."
    )
    nodes = (ast.FunctionDef, ast.AsyncFunctionDef)
    default = False
    bad = (
        "def f(x: Tensor) -> Tensor:  # bad\n    return ops.sin(x)",
        "def f(x: tensor.Tensor):  # bad\n    return x",
        "def f(x: Tensor, y: Tensor):  # bad\n    x = ops.convert_to_tensor(x)\n    return ops.add(x, y)",
        "class Layer:\n    def forward(self, x: Tensor):  # bad\n        return ops.relu(x)",
        "def f(x: Tensor | None):  # bad\n    return ops.sin(x)",
        "def f(x: 'Tensor'):  # bad\n    return ops.sin(x)",
        "def f(*, x: Tensor):  # bad\n    return ops.cos(x)",
        "async def f(x: Tensor):  # bad\n    return ops.cos(x)",
    )
    good = (
        "def f(x: Tensor):\n    x = tensor.convert_to_tensor(x)\n    return ops.sin(x)",
        "def f(x: Tensor):\n    return ops.sin(ops.convert_to_tensor(x))",
        "def _private(x: Tensor):\n    return ops.sin(x)",
        "def f(n: int):\n    return ops.zeros((n,))",
        "def f(x):\n    return x",
        "def f(x: Tensor, y: Tensor):\n    x, y = ops.asarray(x), ops.asarray(y)\n    return ops.add(x, y)",
        "def f(x: Tensor) -> Tensor: ...",
        "def outer():\n    def inner(x: Tensor):\n        return ops.sin(x)\n    return inner",
        "def f(xs: list[Tensor]):\n    return [tensor.convert_to_tensor(x) for x in xs]",
    )

    def check(self, node: Any, flow: Flow) -> None:
        missing = _missing(node, flow)
        if missing:
            flow.report(self, node, missing[0])

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        body = node.body
        first = (
            body[1]
            if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1
            else body[0]
        )
        prefix = context.prefix()
        if prefix is None or first.lineno == node.lineno:
            return None
        start = context.start(first)
        source = context.module.source
        indent = source[source.rfind("\n", 0, start) + 1 : start]
        if indent.strip():
            return None
        lines = "".join(
            f"{name} = {prefix}.convert_to_tensor({name})\n{indent}" for name in _missing(node, context.flow)
        )
        return Fix("convert the argument first", (Edit(start, start, lines),), safe=False)


def _missing(node: Any, flow: Flow) -> Any:
    if node.name.startswith("_") or (
        flow.unit.parent is not None and isinstance(flow.unit.parent.node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ):
        return []
    if all(isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) for s in node.body):
        return []
    names = [
        a.arg
        for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if a.annotation is not None and hints.read(a.annotation, flow).kind == TENSOR
    ]
    if not names:
        return []
    calls = (call for call in ast.walk(node) if isinstance(call, ast.Call) and call.args)
    converted = {getattr(call.args[0], "id", None) for call in calls if _find_callee(call) in _CONVERTERS}
    return [name for name in names if name not in converted]


def _find_callee(call: Any) -> Any:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


_CONVERTERS = frozenset({"convert_to_tensor", "asarray", "array", "to_tensor"})

RULE = MissingConversion()
