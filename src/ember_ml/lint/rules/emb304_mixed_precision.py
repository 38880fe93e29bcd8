"""EMB304: a contraction mixes half precision with a wider float."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import opnames
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.shared import value_of
from ember_ml.lint.values import TENSOR

if TYPE_CHECKING:
    from ember_ml.lint.flow import Flow

_HALF = frozenset({"float16", "bfloat16"})
_WIDE = frozenset({"float32", "float64"})


class MixedPrecision(Rule):
    """A contraction mixes half precision with a wider float."""

    code = "EMB304"
    name = "mixed-precision"
    message = "ops.{0} of {1} and {2} raises TypeError; cast one of them on purpose"
    why = (
        "A contraction of half precision with a wider float would have to drop bits or widen silently; "
        "ops refuse both. A try block or a test that expects the error is left alone."
    )
    nodes = (ast.Call,)
    bad = (
        "y = ops.matmul(ops.ones((2, 2), dtype=ops.float32), ops.ones((2, 2), dtype=ops.float16))",
        "a = ops.ones((2,), dtype='float16')\nb = ops.zeros((2,), dtype='float32')\ny = ops.dot(a, b)",
        "def f(x: Tensor):\n    h = ops.cast(x, ops.bfloat16)\n    w = ops.cast(x, ops.float64)\n    "
        "return ops.matmul(h, w)  # bad",
        "a = tensor.ones((2,), dtype=tensor.float16)\nb = tensor.ones((2,), dtype=tensor.float64)\ny = ops.inner(a, b)",
        "a = ops.cast([1.0], 'float16')\nb = ops.cast([1.0], 'float32')\ny = ops.outer(a, b)",
        "a = ops.reshape(ops.ones((4,), dtype=ops.float16), (2, 2))\nb = ops.ones((2, 2), "
        "dtype=ops.float32)\ny = ops.matmul(a, b)",
        "a = ops.ones((2,), dtype=ops.float16)\nb = ops.ones((2,), dtype=ops.float32)\ny = ops.tensordot(a, b, 1)",
        "a = ops.ones((2,), dtype=ops.float16)\nb = ops.ones((2,), dtype=ops.float32)\ny = ops.einsum('i,i->', a, b)",
    )
    good = (
        "a = ops.ones((2,), dtype=ops.float32)\nb = ops.ones((2,), dtype=ops.float64)\ny = ops.dot(a, b)",
        "a = ops.ones((2,), dtype=ops.float16)\nb = ops.ones((2,), dtype=ops.bfloat16)\ny = ops.add(a, b)",
        "a = ops.ones((2,), dtype=ops.float16)\nb = ops.ones((2,), dtype=ops.float32)\ny = "
        "ops.matmul(ops.cast(a, ops.float32), b)",
        "a = ops.ones((2,), dtype=ops.float16)\nb = ops.ones((2,), dtype=ops.float32)\ny = ops.multiply(a, b)",
        "a = ops.ones((2,), dtype=ops.float16)\nb = ops.ones((2,), dtype=ops.float32)\ntry:\n    "
        "ops.matmul(a, b)\nexcept TypeError:\n    pass",
        "import pytest\na = ops.ones((2,), dtype=ops.float16)\nb = ops.ones((2,), dtype=ops.float32)\n"
        "with pytest.raises(TypeError):\n    ops.matmul(a, b)",
        "a = ops.ones((2,), dtype=ops.int32)\nb = ops.ones((2,), dtype=ops.float16)\ny = ops.matmul(a, b)",
        "def f(x: Tensor, y: Tensor):\n    return ops.matmul(x, y)",
        "a = ops.ones((2,), dtype=ops.float16)\ny = ops.matmul(a, a)",
    )

    def check(self, node: Any, flow: Flow) -> None:
        name = flow.dotted(node.func)
        op = flow.profile.op(name) if name else None
        if op not in opnames.CONTRACTIONS or flow.guards:
            return
        dtypes = {value_of(arg).detail for arg in node.args if value_of(arg).kind == TENSOR}
        half, wide = dtypes & _HALF, dtypes & _WIDE
        if half and wide:
            flow.report(self, node, op, sorted(half)[0], sorted(wide)[0])


RULE = MixedPrecision()
