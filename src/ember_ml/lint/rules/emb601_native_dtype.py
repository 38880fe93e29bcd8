"""EMB601: a dtype of one library is used."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import natives, opnames
from ember_ml.lint.fix import Fix
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.shared import is_dtype, value_of

if TYPE_CHECKING:
    from ember_ml.lint.fix import FixContext
    from ember_ml.lint.flow import Flow


class NativeDtype(Rule):
    """A dtype of one library is used."""

    code = "EMB601"
    name = "native-dtype"
    message = "{0} is one library's dtype; use ops.{1}"
    why = (
        "A native dtype means nothing to another backend: np.float32 is a type, torch.float32 an object, "
        "and neither compares equal to the other."
    )
    nodes = (ast.Attribute, ast.Name, ast.Call)
    bad = (
        "import numpy as np\ny = ops.zeros((3,), dtype=np.float32)",
        "import torch\ny = ops.cast(x, torch.float16)",
        "from numpy import dtype as np_dtype\n\ndef f(dtype=np_dtype('float32')):  # bad\n    return dtype",
        "import mlx.core as mx\ndtypes = [mx.float32]",
        "import numpy as np\ny = np.dtype('int64')",
        "from torch import float64\ny = float64",
        "import numpy as np\n\ndef f(x: Tensor):\n    return x.dtype == np.int32  # bad",
        "import numpy as np\ny = np.finfo('float32').eps",
        "import torch\nD = {'half': torch.half}",
        "import jax.numpy as jnp\ny = jnp.bfloat16",
    )
    good = (
        "y = ops.zeros((3,), dtype=ops.float32)",
        "y = ops.cast(x, 'float32')",
        "y = ops.finfo(ops.float32)",
        "class np:\n    float32 = 'f'\ny = np.float32",
        "def f(x: Tensor):\n    return x.dtype",
        "import ctypes\ny = ctypes.c_float",
        "def f(torch):\n    return torch.float32",
        "y = tensor.zeros((3,), dtype=tensor.int32)",
        "dtype = 'np.float32'",
    )

    def check(self, node: Any, flow: Flow) -> None:
        if isinstance(node, ast.Call):
            name = flow.dotted(node.func)
            if name is None or not name.endswith((".dtype", ".finfo", ".iinfo")):
                return
        else:
            detail = value_of(node).detail
            if (
                value_of(node).kind != 0
                or type(detail) is not tuple
                or detail[0] != "ref"
                or not isinstance(node.ctx, ast.Load)
            ):
                return
            name = detail[1]
        library = natives.library_of(name)
        if library is None or library in flow.module.allowed or not is_dtype(name):
            return
        if not isinstance(node, ast.Call) and name.endswith((".dtype", ".finfo", ".iinfo")):
            parent = getattr(node, "up", None)
            if isinstance(parent, ast.Call) and parent.func is node:
                return
        flow.report(self, node, name, _portable(name, node) or "its portable twin")

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        target = node.func if isinstance(node, ast.Call) else node
        name = context.flow.dotted(target) or ""
        prefix = context.prefix()
        portable = _portable(name, node)
        if prefix is None or portable is None:
            return None
        if portable in ("finfo", "iinfo"):
            arguments = [context.text(arg) for arg in node.args]
            return context.call_op(node, portable, *arguments)
        return Fix(f"use {prefix}.{portable}", (context.replace(node, f"{prefix}.{portable}"),))


def _portable(name: str, node: Any) -> Any:
    library, _, _ = name.partition(".")
    last = name.rsplit(".", 1)[1]
    if isinstance(node, ast.Call):
        if last in ("finfo", "iinfo"):
            return last
        word = node.args[0].value if len(node.args) == 1 and isinstance(node.args[0], ast.Constant) else None
        return word if word in opnames.DTYPES else None
    table = natives.NUMPY_DTYPE_TO_OPS if library in ("numpy", "jax", "cupy") else natives.DTYPE_TO_OPS
    if last in table:
        return table[last]
    return last if last in opnames.DTYPES else None


RULE = NativeDtype()
