"""EMB201: a function of a tensor library is called."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import natives, replacements
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.shared import is_conversion, is_device, is_dtype, is_random, is_type

if TYPE_CHECKING:
    from ember_ml.lint.fix import Fix, FixContext
    from ember_ml.lint.flow import Flow


class BackendCall(Rule):
    """A function of a tensor library is called."""

    code = "EMB201"
    name = "backend-call"
    message = "{0} computes on one backend only; {1}"
    why = (
        "The result belongs to that library whatever backend is active, follows its own promotion rules, and loses the "
        "gradient and the device of its inputs. Aliases, from-imports, late imports and importlib are followed."
    )
    nodes = (ast.Call,)
    bad = (
        "import numpy as np\ny = np.mean([1.0, 2.0])",
        "import torch\ny = torch.cat([a, b], dim=1)",
        "from numpy.linalg import norm\ny = norm([1.0])",
        "import mlx.core as mx\ny = mx.zeros((3,))",
        "def f(x):\n    import numpy\n    return numpy.log(x)  # bad",
        "import importlib\nnp = importlib.import_module('numpy')\ny = np.stack([a, b])",
        "import torch.nn.functional as F\ny = F.relu(x)",
        "import numpy as np\nxp = np\ny = xp.where(c, a, b)",
        "y = np.array(input_data)",
        "y = mlx.core.sin(x)",
        "from torch import matmul as mm\ny = mm(a, b)",
        "import numpy as np\nnp.add.at(out, index, 1)",
    )
    good = (
        "y = ops.mean(x)",
        "y = ops.stats.mean(x)",
        "import math\ny = math.sqrt(2.0)",
        "def f(np):\n    return np.mean()",
        "def f(mlx):\n    return mlx.core.mean()",
        "class torch_like:\n    @staticmethod\n    def cat(xs):\n        return xs\ny = torch_like.cat([1])",
        "import statistics as np\ny = np.mean([1, 2])",
        "np = {'mean': 1}\ny = np.get('mean')",
        "from mylib import numpy\ny = numpy.mean(3)",
        "import torch_geometric\ny = torch_geometric.load()",
    )

    def check(self, node: Any, flow: Flow) -> None:
        name = flow.dotted(node.func)
        if name is None:
            return
        library = natives.library_of(name)
        if library is None or library in flow.module.allowed:
            return
        if is_random(name) or is_device(name) or is_dtype(name) or is_conversion(name, node) or is_type(name):
            return
        op = replacements.op_for(name)
        flow.report(self, node, name, f"use ops.{op}" if op else "write it with ops")

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        name = context.flow.dotted(node.func) or ""
        op = replacements.op_for(name)
        if op is None or any(isinstance(arg, ast.Starred) for arg in node.args) or context.has_comment(node):
            return None
        native = name.split(".", 2)[2] if name.startswith(("mlx.core.", "jax.numpy.")) else name.split(".", 1)[1]
        if len(node.args) > replacements.positional_limit(native):
            return None
        if any(keyword.arg == "dtype" and not _portable_dtype(keyword.value, context) for keyword in node.keywords):
            return None
        if native == "transpose" and name.startswith("torch."):
            op = "swapaxes"
        arguments = context.arguments(node, op)
        if arguments is None:
            return None
        if op == "allclose":  # native ones give a bool
            return context.call_op(node, "item", f"{context.prefix()}.{op}({', '.join(arguments)})")
        return context.call_op(node, op, *arguments)


def _portable_dtype(node: Any, context: FixContext) -> Any:
    dotted = context.flow.dotted(node) or ""
    return not (dotted and natives.library_of(dotted))


RULE = BackendCall()
