"""EMB205: a public function that calls ops has parameters or a result without annotation (opt-in)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint.rules.base import Rule

if TYPE_CHECKING:
    from ember_ml.lint.flow import Flow


class MissingAnnotation(Rule):
    """A public function that calls ops has parameters or a result without annotation (opt-in)."""

    code = "EMB205"
    name = "missing-annotation"
    message = "{0} has no annotation; annotated front-end functions are checked better"
    why = "Annotations are the linter's best source: on unannotated code it has to infer what is a tensor."
    nodes = (ast.FunctionDef, ast.AsyncFunctionDef)
    default = False
    bad = (
        "def f(x):  # bad\n    return ops.sin(x)",
        "def f(x: Tensor, axis):  # bad\n    return ops.sum(x, axis=axis)",
        "def f(x: Tensor):  # bad\n    return ops.sin(x)",
        "class Layer:\n    def forward(self, x):  # bad\n        return ops.relu(x)",
        "def f(*, x) -> Tensor:  # bad\n    return ops.cos(x)",
        "async def f(x) -> Tensor:  # bad\n    return ops.cos(x)",
        "def f(x, y: Tensor) -> Tensor:  # bad\n    return ops.add(x, y)",
        "def f(x: Tensor, n=3) -> Tensor:  # bad\n    return ops.tile(x, n)",
    )
    good = (
        "def f(x: Tensor) -> Tensor:\n    return ops.sin(x)",
        "def _f(x):\n    return ops.sin(x)",
        "def f(path):\n    return path.name",
        "class Layer:\n    def forward(self, x: Tensor) -> Tensor:\n        return ops.relu(x)",
        "def f():\n    return 1",
        "class Layer:\n    def __init__(self, units: int):\n        self.w = ops.ones((units,))",
        "f = lambda x: ops.sin(x)",
        "def f(x: Tensor) -> None:\n    print(ops.shape(x))",
        "def outer() -> None:\n    def inner(x):\n        return ops.sin(x)\n    return inner",
    )

    def check(self, node: Any, flow: Flow) -> None:
        if (node.name.startswith("_") and node.name != "__init__") or (
            flow.unit.parent is not None and isinstance(flow.unit.parent.node, (ast.FunctionDef, ast.AsyncFunctionDef))
        ):
            return
        names = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if flow.unit.class_name is not None and names:
            names = names[1:]
        missing = [a.arg for a in names if a.annotation is None]
        if node.returns is None and node.name != "__init__":
            missing.append("the result")
        if missing and _calls_ops(node, flow):
            flow.report(self, node, missing[0])


def _calls_ops(node: Any, flow: Flow) -> Any:
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            func = call.func
            root = func
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name):
                detail = flow.name(root).detail
                if (
                    type(detail) is tuple
                    and detail[0] == "ref"
                    and (flow.profile.is_namespace(detail[1]) or flow.profile.op(detail[1]))
                ):
                    return True
    return False


RULE = MissingAnnotation()
