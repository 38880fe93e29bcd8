"""EMB402: a method or attribute that belongs to native tensors."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import natives, replacements
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.shared import value_of
from ember_ml.lint.values import TENSOR, UNKNOWN

if TYPE_CHECKING:
    from ember_ml.lint.fix import Fix, FixContext
    from ember_ml.lint.flow import Flow

_OTHER_RULES = frozenset(
    {"numpy", "__array__", "detach", "__dlpack__", "item", "tolist", *natives.DEVICE_METHODS, *natives.CAST_METHODS}
)


class NativeMethod(Rule):
    """A method or attribute that belongs to native tensors."""

    code = "EMB402"
    name = "native-method"
    message = ".{0} is not the same on every backend's tensors; {1}"
    why = (
        "Native tensors share few methods, and the same name does not mean the same: std() divides by n "
        "on NumPy and MLX and by "
        "n - 1 on torch; max(axis) gives a pair on torch. Common to all are shape, dtype, ndim, device and indexing."
    )
    nodes = (ast.Call, ast.Attribute)
    bad = (
        "def f(x: Tensor):\n    return x.mean()  # bad",
        "def f(x: Tensor):\n    return x.reshape(2, 3)  # bad",
        "def f(x: Tensor):\n    return x.T  # bad",
        "y = ops.ones((3,)).sum()",
        "def f(predictions, targets):\n    return (predictions - targets).mean()  # bad",
        "def f(x: Tensor):\n    return x.unsqueeze(0)  # bad",
        "def f(x: Tensor):\n    return x.at[0].add(1)  # bad",
        "def f(x):\n    return x.unsqueeze(1)  # bad",
        "def f(x: Tensor):\n    return x.requires_grad  # bad",
        "def f(xs: list[Tensor]):\n    return [x.flatten() for x in xs]  # bad",
        "from ember_ml.nn.tensor import EmberTensor\n\ndef f(x: Tensor):\n    if type(x) is not EmberTensor:\n"
        "        return x.sum()  # bad",
    )
    good = (
        "def f(x: Tensor):\n    return x.shape",
        "def f(x: Tensor):\n    return x.dtype",
        "def f(df):\n    return df.mean()",
        "def f(xs: list[Tensor]):\n    return xs.copy()",
        "class M:\n    def mean(self):\n        return 1\ny = M().mean()",
        "def f(x: Tensor):\n    return ops.mean(x)",
        "def f(name: str):\n    return name.split(',')",
        "def f(x: Tensor):\n    return x.ndim",
        "def f(xs: dict[str, Tensor]):\n    return xs.values()",
        "def f(x: Tensor):\n    return x.device",
        "from ember_ml.nn.tensor import EmberTensor\ny = EmberTensor([1.0]).reshape((1, 1))",
        "from ember_ml.nn.tensor import EmberTensor\n\ndef f(x: TensorLike):\n    assert type(x) is EmberTensor\n"
        "    return x.requires_grad",
        "from ember_ml.nn.tensor import EmberTensor\n\ndef f(x: Tensor):\n    if type(x) != EmberTensor:\n"
        "        return x\n    return x.sum()",
        "from ember_ml.nn.tensor import EmberTensor\n\ndef f(x: Tensor):\n    if isinstance(x, EmberTensor):\n"
        "        return x.sum()",
    )

    def check(self, node: Any, flow: Flow) -> None:
        if isinstance(node, ast.Attribute):
            if (
                node.attr in natives.NATIVE_ATTRIBUTES
                and isinstance(node.ctx, ast.Load)
                and value_of(node.value).kind == TENSOR
                and value_of(node.value).detail != "portable"
            ):
                flow.report(
                    self,
                    node,
                    node.attr,
                    {
                        "T": "use ops.transpose",
                        "mT": "use ops.matrix_transpose",
                        "real": "use ops.real",
                        "imag": "use ops.imag",
                    }.get(node.attr, "use ops"),
                )
            return
        func = node.func
        if not isinstance(func, ast.Attribute) or func.attr in _OTHER_RULES:
            return
        method = func.attr
        owner = value_of(func.value)
        if method.endswith("_") and not method.endswith("__"):
            return
        known = owner.kind == TENSOR
        if not known and owner.kind == UNKNOWN:
            known = method in natives.UNMISTAKABLE_METHODS or (
                value_of(node).kind == TENSOR and type(owner.detail) is tuple and owner.detail[0] == "node"
            )
        if known and owner.detail not in ("like", "portable") and method not in natives.ATTRIBUTES_OTHER:
            op = replacements.METHODS.get(method)
            flow.report(self, node, method + "()", f"use ops.{op}" if op else "write it with ops")

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        if isinstance(node, ast.Attribute):
            op = {"T": "transpose", "mT": "matrix_transpose", "real": "real", "imag": "imag"}.get(node.attr)
            parent = context.module.parent(node)
            if op is None or (isinstance(parent, ast.Call) and parent.func is node):
                return None
            return context.call_op(node, op, context.text(node.value))
        op = replacements.METHODS.get(node.func.attr)
        if op is None or any(isinstance(arg, ast.Starred) for arg in node.args) or context.has_comment(node):
            return None
        arguments = context.arguments(node, op)
        if arguments is None:
            return None
        method = node.func.attr
        if method not in replacements.VARIADIC_SHAPE and len(node.args) >= replacements.positional_limit(method):
            return None
        owner = context.text(node.func.value)
        if method in replacements.VARIADIC_SHAPE and len(node.args) > 1:
            return context.call_op(
                node,
                op,
                owner,
                f"({', '.join(context.text(arg) for arg in node.args)})",
                *arguments[len(node.args) :],
                safe=method != "transpose",
            )
        # max(axis) and sort(axis) of torch give pairs, std() and var() divide by n - 1: the result can change.
        return context.call_op(
            node,
            op,
            owner,
            *arguments,
            safe=method not in ("max", "min", "std", "var", "repeat", "split", "sort")
            or (not node.args and method in ("max", "min")),
        )


RULE = NativeMethod()
