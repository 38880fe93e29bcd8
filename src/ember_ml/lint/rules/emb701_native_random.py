"""EMB701: random numbers are drawn from one library."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import natives
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.shared import is_random

if TYPE_CHECKING:
    from ember_ml.lint.fix import Fix, FixContext
    from ember_ml.lint.flow import Flow


class NativeRandom(Rule):
    """Random numbers are drawn from one library."""

    code = "EMB701"
    name = "native-random"
    message = "{0} draws from one library's generator; use ops.random_* and ops.seed"
    why = (
        "One seed must give the same numbers on every backend; each library's own generator gives "
        "others, and ops.seed does not reach it."
    )
    nodes = (ast.Call,)
    bad = (
        "import numpy as np\ny = np.random.normal(0, 1, (3,))",
        "import torch\ny = torch.randn(3)",
        "y = mx.random.normal(shape=(3,))",
        "import torch\ntorch.manual_seed(0)",
        "from numpy.random import default_rng\nrng = default_rng(0)",
        "import numpy as np\nnp.random.seed(1)",
        "import jax\nkey = jax.random.PRNGKey(0)",
        "import numpy.random as npr\ny = npr.uniform()",
        "import torch\ny = torch.rand_like(x)",
        "from torch import rand\ny = rand(3)",
    )
    good = (
        "y = ops.random_normal((3,))",
        "import random\ny = random.random()",
        "from ember_ml.ops import random\ny = random.normal((3,))",
        "ops.seed(0)",
        "import secrets\ny = secrets.token_hex()",
        "class np:\n    class random:\n        @staticmethod\n        def normal():\n            return "
        "1\ny = np.random.normal()",
        "def f(rng):\n    return rng.normal()",
        "y = ops.random.uniform((3,))",
        "def randn():\n    return 1\ny = randn()",
    )

    def check(self, node: Any, flow: Flow) -> None:
        name = flow.dotted(node.func)
        if (
            name
            and natives.library_of(name)
            and natives.library_of(name) not in flow.module.allowed
            and is_random(name)
        ):
            flow.report(self, node, name)

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        name = context.flow.dotted(node.func) or ""
        found = _translate(name, node, context)
        if found is None:
            return None
        op, arguments = found
        return context.call_op(node, op, *arguments)


def _translate(name: str, node: Any, context: FixContext) -> Any:
    """Return the op and its arguments; defaults are left out."""
    text = context.text
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    args = list(node.args)
    if name in ("numpy.random.seed", "torch.manual_seed", "mlx.core.random.seed") and len(args) == 1:
        return "seed", [text(args[0])]
    if name in ("numpy.random.normal", "numpy.random.uniform"):
        first, second, op = (
            ("loc", "scale", "random_normal") if name.endswith("normal") else ("low", "high", "random_uniform")
        )
        names = ("mean", "stddev") if name.endswith("normal") else ("minval", "maxval")
        values = dict(zip((first, second, "size"), args, strict=False)) | keywords
        if set(values) - {first, second, "size"} or "size" not in values:
            return None
        result = [text(values["size"])]
        for key, target, default in ((first, names[0], 0), (second, names[1], 1)):
            if key in values and not (isinstance(values[key], ast.Constant) and values[key].value == default):
                result.append(f"{target}={text(values[key])}")
        return op, result
    if name in ("torch.randn", "torch.rand", "numpy.random.randn", "numpy.random.rand", "numpy.random.random"):
        op = "random_normal" if name.endswith("randn") else "random_uniform"
        if set(keywords) - {"dtype", "device", "size"} or (not args and "size" not in keywords):
            return None
        if "size" in keywords:
            args = [keywords.pop("size")]
        if len(args) == 1 and not isinstance(args[0], ast.Constant):
            shape = text(args[0])
        else:
            shape = f"({', '.join(text(arg) for arg in args)}{',' if len(args) == 1 else ''})"
        return op, [shape, *(f"{key}={text(value)}" for key, value in keywords.items())]
    if name in ("mlx.core.random.normal",) and not args:
        if set(keywords) - {"shape", "dtype", "loc", "scale"} or "shape" not in keywords:
            return None
        renamed = {"loc": "mean", "scale": "stddev", "dtype": "dtype"}
        return "random_normal", [
            text(keywords["shape"]),
            *(f"{renamed[key]}={text(value)}" for key, value in keywords.items() if key != "shape"),
        ]
    if name == "mlx.core.random.normal" and len(args) == 1 and not keywords:
        return "random_normal", [text(args[0])]
    if name in ("torch.randperm", "numpy.random.permutation") and len(args) == 1 and not keywords:
        return "random_permutation", [text(args[0])]
    return None


RULE = NativeRandom()
