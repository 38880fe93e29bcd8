"""EMB801: a Python loop walks over the elements of a tensor."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.shared import value_of
from ember_ml.lint.rules.vectorize import pairwise_fix
from ember_ml.lint.values import TENSOR, UNKNOWN

if TYPE_CHECKING:
    from ember_ml.lint.fix import Fix, FixContext
    from ember_ml.lint.flow import Flow


class ElementLoop(Rule):
    """A Python loop walks over the elements of a tensor."""

    code = "EMB801"
    name = "element-loop"
    message = "a Python loop over the elements of {0}: one small op per element; write it with whole-tensor ops"
    why = (
        "Each turn pays the dispatch of every op in it, and a compiled graph grows with the length. "
        "Vectorized ops pay once; ops.vectorized_map and ops.scan serve where there is no vectorized "
        "form."
    )
    nodes = (ast.For, ast.comprehension)
    bad = (
        "def f(x: Tensor):\n    for row in x:  # bad\n        print(row)",
        "def f(x: Tensor):\n    for i in range(len(x)):  # bad\n        print(x[i])",
        "def f(x: Tensor):\n    return [ops.sin(row) for row in x]  # bad",
        "def f(x: Tensor):\n    for i in range(x.shape[0]):  # bad\n        print(x[i])",
        "def f(x: Tensor):\n    for i, row in enumerate(x):  # bad\n        print(i, row)",
        "def f(x: Tensor, y: Tensor):\n    for a, b in zip(x, y):  # bad\n        print(a, b)",
        "def f(x: Tensor):\n    return [x[i] for i in range(ops.shape(x)[0])]  # bad",
        "def pairs(points):\n    out = []\n    for i in range(len(points)):  # bad\n        for j in "
        "range(i + 1, len(points)):  # bad\n            out.append(ops.sum(ops.subtract(points[i], "
        "points[j])))\n    return out",
        "for v in ops.arange(10):  # bad\n    print(v)",
    )
    good = (
        "def f(xs: list[Tensor]):\n    for x in xs:\n        print(x)",
        "def f(x: Tensor):\n    for n in x.shape:\n        print(n)",
        "def f(x: Tensor):\n    for i in range(3):\n        x = ops.add(x, i)",
        "def f(layers, x: Tensor):\n    for i in range(len(layers)):\n        x = layers[i](x)\n    return x",
        "def f(x: Tensor):\n    for part in ops.split(x, 3):\n        print(part)",
        "def f(xs: dict[str, Tensor]):\n    for name in xs:\n        print(name)",
        "def f(x: Tensor):\n    return [n for n in range(len(x))]",
        "def f(xs: list[Tensor]):\n    return ops.concatenate([xs[i] for i in range(len(xs))])",
        "def f(x: Tensor):\n    for axis in range(ops.ndim(x)):\n        x = ops.flip(x, axis=axis)",
        "def f(rows):\n    for i in range(len(rows)):\n        print(rows[i])",
    )

    def check(self, node: Any, flow: Flow) -> None:
        loop = node.iter
        if value_of(loop).kind == TENSOR and value_of(loop).detail != "like":
            flow.report(self, node if isinstance(node, ast.For) else loop, _name(loop))
            return
        if not isinstance(loop, ast.Call):
            return
        name = flow.dotted(loop.func)
        if name in ("builtins.enumerate", "builtins.zip", "builtins.reversed"):
            for arg in loop.args:
                if value_of(arg).kind == TENSOR and value_of(arg).detail != "like":
                    flow.report(self, node if isinstance(node, ast.For) else loop, _name(arg))
                    return
        elif name == "builtins.range" and loop.args and isinstance(node.target, ast.Name):
            walked = _find_walked(loop.args[min(1, len(loop.args) - 1)])
            if walked is None:
                return
            known = value_of(walked).kind == TENSOR and value_of(walked).detail != "like"
            if known and _indexes(node, flow, walked.id, node.target.id):
                flow.report(self, node if isinstance(node, ast.For) else loop, walked.id)
            elif value_of(walked).kind == UNKNOWN and isinstance(node, ast.For) and _pairwise(node, flow, walked.id):
                flow.report(self, node, walked.id)

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        return pairwise_fix(node, context) if isinstance(node, ast.For) else None


def _name(node: Any) -> Any:
    return node.id if isinstance(node, ast.Name) else "a tensor"


def _find_walked(node: Any) -> Any:
    """Return ``x`` in ``len(x)``, ``x.shape[0]`` and ``ops.shape(x)[0]``."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and getattr(node.func, "id", "") == "len":
        node = node.args[0]
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        node = node.value.value
    elif (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Call)
        and getattr(node.value.func, "attr", "") == "shape"
        and node.value.args
    ):
        node = node.value.args[0]
    else:
        return None
    return node if isinstance(node, ast.Name) and hasattr(node, "ev") else None


def _indexes(node: Any, flow: Flow, tensor: str, index: str) -> bool:
    outer = flow.module.parent(node) if isinstance(node, ast.comprehension) else node
    for part in ast.walk(outer):
        if (
            isinstance(part, ast.Subscript)
            and isinstance(part.value, ast.Name)
            and part.value.id == tensor
            and isinstance(part.ctx, ast.Load)
        ) and any(isinstance(name, ast.Name) and name.id == index for name in ast.walk(part.slice)):
            return True
    return False


def _pairwise(node: Any, flow: Flow, sequence: Any) -> Any:
    """Return whether two loops over one unknown sequence pass its elements pair by pair to an op."""
    inner = [s for s in node.body if isinstance(s, ast.For)]
    outer = flow.module.parent(node)
    loops = (node, inner[0]) if inner else (outer, node) if isinstance(outer, ast.For) else None
    if loops is None:
        return False
    names = [getattr(loop.target, "id", "") for loop in loops]
    for call in ast.walk(loops[1]):
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and getattr(call.func.value, "id", "") == flow.profile.prefix
        ):
            used = {
                getattr(arg.slice, "id", "")
                for arg in call.args
                if isinstance(arg, ast.Subscript) and isinstance(arg.value, ast.Name) and arg.value.id == sequence
            }
            if used >= set(names):
                return True
    return False


RULE = ElementLoop()
