"""EMB202: a tensor is converted to one library's own type."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import natives
from ember_ml.lint.fix import Fix
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.shared import is_conversion, value_of
from ember_ml.lint.values import TENSOR, UNKNOWN

if TYPE_CHECKING:
    from ember_ml.lint.fix import FixContext
    from ember_ml.lint.flow import Flow

_METHODS = frozenset({"numpy", "__array__", "detach", "__dlpack__"})


class Conversion(Rule):
    """A tensor is converted to one library's own type."""

    code = "EMB202"
    name = "conversion"
    message = "{0} leaves the backend; keep the tensor and compute with ops"
    why = (
        "A conversion waits for the device, copies to the host and ends the gradient; the way back is a second copy. "
        "Where data must leave (plots, files), ops.to_numpy says so in one portable word."
    )
    nodes = (ast.Call,)
    bad = (
        "def f(x):\n    return x.numpy()  # bad",
        "def f(x: Tensor):\n    y = x.detach()  # bad\n    return y",
        "import torch\ny = torch.from_numpy(a)",
        "import numpy as np\n\ndef f(x: Tensor):\n    return np.asarray(x)  # bad",
        "import numpy as np\nx = ops.ones((3,))\ny = np.array(x)",
        "x = ops.ones((3,))\ny = x.__array__()",
        "def f(x: Tensor):\n    return x.detach().tolist_like  # bad",
        "y = ops.sin(1.0).numpy()",
        "class M:\n    def f(self, x):\n        return x.numpy()  # bad",
        "import numpy as np\n\ndef f(x: Tensor):\n    return np.ascontiguousarray(x)  # bad",
    )
    good = (
        "y = ops.to_numpy(ops.ones((3,)))",
        "class Book:\n    def numpy(self):\n        return 1\ny = Book().numpy()",
        "def f(x):\n    return x.numpy",
        "def f(parser):\n    return parser.to_string()",
        "text = 'x.numpy()'",
        "y = ops.convert_to_tensor([1.0])",
        "def f(signal: str):\n    return signal.encode()",
        "import numpydoc\ny = numpydoc.numpy()",
        "def f(flags: dict):\n    return flags.numpy()",
    )

    def check(self, node: Any, flow: Flow) -> None:
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr in _METHODS and (not node.args or func.attr != "numpy"):
            owner = value_of(func.value)
            if owner.detail == "portable":
                return
            if owner.kind == TENSOR or (owner.kind == UNKNOWN and func.attr == "numpy"):
                flow.report(self, node, f".{func.attr}()")
            return
        name = flow.dotted(func)
        if (
            name
            and natives.library_of(name)
            and natives.library_of(name) not in flow.module.allowed
            and is_conversion(name, node)
        ):
            flow.report(self, node, name)

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr in _METHODS:
            if func.attr == "detach":
                return context.call_op(node, "stop_gradient", context.text(func.value))
            safe = context.feeds_only_ops(node)
            prefix = context.prefix()
            if prefix is None:
                return None
            text = context.text(func.value) if safe else f"{prefix}.convert_to_tensor({context.text(func.value)})"
            return Fix("keep the tensor", (context.replace(node, text),), safe, needs_ops=not safe)
        arguments = context.arguments(node, "convert_to_tensor")
        return None if arguments is None else context.call_op(node, "convert_to_tensor", *arguments)


RULE = Conversion()
