"""EMB203: a name of a tensor library is used without being called."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import natives
from ember_ml.lint.fix import Fix
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.shared import is_device, is_dtype, is_type, value_of

if TYPE_CHECKING:
    from ember_ml.lint.fix import FixContext
    from ember_ml.lint.flow import Flow


class BackendName(Rule):
    """A name of a tensor library is used without being called."""

    code = "EMB203"
    name = "backend-name"
    message = "{0} is a name of one tensor library"
    why = "Constants have plain Python spellings; functions passed by name compute on one backend, as calls of them do."
    nodes = (ast.Attribute, ast.Name)
    bad = (
        "import numpy as np\ny = np.pi",
        "import numpy as np\ny = x[:, np.newaxis]",
        "import numpy as np\ny = list(map(np.sum, xs))",
        "import torch\nf = torch.relu",
        "import numpy as np\ny = np.inf",
        "from numpy import exp\nf = exp",
        "import numpy as np\ndef f(reduce=np.mean):  # bad\n    return reduce",
        "import mlx.core as mx\ntable = {'sin': mx.sin}",
        "import torch\nclass M(torch.nn.Module):  # bad\n    pass",
    )
    good = (
        "import math\ny = math.pi",
        "y = x[:, None]",
        "f = ops.relu",
        "y = list(map(ops.sum, xs))",
        "import cmath as np\ny = np.pi",
        "class np:\n    pi = 3\ny = np.pi",
        "def f(np):\n    return np.pi",
        "y = float('inf')",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy as np\n\ndef f(x: "
        "'np.ndarray') -> 'np.ndarray':\n    return x",
    )

    def check(self, node: Any, flow: Flow) -> None:
        detail = value_of(node).detail
        if value_of(node).kind != 0 or type(detail) is not tuple or detail[0] != "ref":
            return
        name = detail[1]
        library = natives.library_of(name)
        if library is None or library in flow.module.allowed or "." not in name:
            return
        if not isinstance(node.ctx, ast.Load) or name in ("mlx.core", "jax.numpy"):
            return
        parent = getattr(node, "up", None)
        if isinstance(parent, ast.Attribute):
            return
        if isinstance(parent, ast.Call) and parent.func is node:
            return
        if isinstance(parent, ast.Call) and flow.dotted(parent.func) in ("builtins.isinstance", "builtins.issubclass"):
            return
        if (
            isinstance(parent, ast.Tuple)
            and isinstance(_up(parent), ast.Call)
            and flow.dotted(_up(parent).func) == "builtins.isinstance"
        ):
            return
        if isinstance(parent, ast.Compare) and is_type(name):
            return
        if is_dtype(name) or is_device(name):
            return
        flow.report(self, node, name)

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        name = context.flow.dotted(node) or ""
        text = natives.constant_repair(name)
        if text is None:
            return None
        also_import = ""
        if text.startswith("math."):
            held = context.flow.top.get("math")
            if held is None:
                also_import = "import math"
            elif held.detail != ("ref", "math"):
                return None
        return Fix(f"write {text}", (context.replace(node, text),), needs_ops=False, also_import=also_import)


def _up(node: Any) -> Any:
    return getattr(node, "up", None)


RULE = BackendName()
