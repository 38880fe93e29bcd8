"""EMB603: a tensor is created without dtype beside an input tensor (opt-in)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import opnames
from ember_ml.lint.fix import Edit, Fix
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.values import TENSOR

if TYPE_CHECKING:
    from ember_ml.lint.fix import FixContext
    from ember_ml.lint.flow import Flow


class CreationDtype(Rule):
    """A tensor is created without dtype beside an input tensor (opt-in)."""

    code = "EMB603"
    name = "creation-dtype"
    message = "ops.{0} without dtype beside the input {1}: the result is float32 on the default device whatever {1} is"
    why = (
        "A float16 input then meets float32 and the result is widened; on an accelerator the two may "
        "even lie on different devices. Pass dtype (and device) of the input, or use the *_like op."
    )
    nodes = (ast.Call,)
    default = False
    bad = (
        "def f(x: Tensor):\n    return ops.add(x, ops.zeros((3,)))  # bad",
        "def f(x: Tensor):\n    start = ops.ones((2, 2))  # bad\n    return ops.matmul(x, start)",
        "def f(x: Tensor):\n    return ops.full((3,), 1.0)  # bad",
        "def f(x: Tensor):\n    return ops.linspace(0.0, 1.0, 5)  # bad",
        "def f(x: Tensor):\n    return tensor.zeros((3,))  # bad",
        "class M:\n    def forward(self, x: Tensor):\n        return ops.eye(3)  # bad",
        "def f(x: Tensor):\n    return ops.empty(ops.shape(x))  # bad",
        "def f(xs: list[Tensor], x: Tensor):\n    return ops.identity(4)  # bad",
    )
    good = (
        "def f(x: Tensor):\n    return ops.zeros((3,), dtype=x.dtype)",
        "def f(x: Tensor):\n    return ops.zeros_like(x)",
        "def f(n: int):\n    return ops.zeros((n,))",
        "y = ops.ones((3,))",
        "def f(x: Tensor):\n    return ops.zeros((3,), dtype=ops.float32)",
        "def f(x: Tensor):\n    return ops.full_like(x, 2)",
        "def f(x: Tensor):\n    return ops.cast(ops.zeros((3,)), x.dtype)",
        "def f(x: Tensor):\n    return ops.hann_window(1024)",
        "def zeros(n):\n    return n\ndef f(x: Tensor):\n    return zeros(3)",
    )

    def check(self, node: Any, flow: Flow) -> None:
        name = flow.dotted(node.func)
        op = flow.profile.op(name) if name else None
        if op not in opnames.CREATION or any(keyword.arg in ("dtype", None) for keyword in node.keywords):
            return
        parent = getattr(node, "up", None)
        if isinstance(parent, ast.Call) and (flow.dotted(parent.func) or "").endswith((".cast", ".astype")):
            return
        beside = _input(flow)
        if beside is not None:
            flow.report(self, node, op, beside)

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        function = context.module.around(node, ast.FunctionDef, ast.AsyncFunctionDef)
        if function is None:
            return None
        name = next(
            (
                a.arg
                for a in [*function.args.posonlyargs, *function.args.args]
                if a.annotation is not None
                and "Tensor" in ast.unparse(a.annotation)
                and "[" not in ast.unparse(a.annotation)
            ),
            None,
        )
        if name is None:
            return None
        end = context.end(node) - 1
        return Fix("take the input's dtype", (Edit(end, end, f", dtype={name}.dtype"),), safe=False, needs_ops=False)


def _input(flow: Flow) -> Any:
    node = flow.unit.node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    for arg in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
        if arg.annotation is not None and flow.env.get(arg.arg) is not None and flow.env[arg.arg].kind == TENSOR:
            return arg.arg
    return None


RULE = CreationDtype()
