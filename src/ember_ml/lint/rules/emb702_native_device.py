"""EMB702: a device is chosen in one library's words."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import natives
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.shared import is_device, value_of
from ember_ml.lint.values import TENSOR, UNKNOWN, form_of

if TYPE_CHECKING:
    from ember_ml.lint.fix import Fix, FixContext
    from ember_ml.lint.flow import Flow


class NativeDevice(Rule):
    """A device is chosen in one library's words."""

    code = "EMB702"
    name = "native-device"
    message = "{0} places data in one library's words; use ops.to_device, or device= where the tensor is made"
    why = (
        "Device names and calls differ between the libraries, and NumPy has none; ops.to_device has one meaning on all."
    )
    nodes = (ast.Call,)
    bad = (
        "def f(x: Tensor):\n    return x.to('cuda')  # bad",
        "def f(x: Tensor):\n    return x.cuda()  # bad",
        "def f(x: Tensor):\n    return x.cpu()  # bad",
        "import torch\nd = torch.device('cuda')",
        "import torch\nok = torch.cuda.is_available()",
        "import mlx.core as mx\nmx.set_default_device(mx.gpu)",
        "import jax\nd = jax.devices()",
        "def f(tensor, device):\n    return tensor.to(device)  # bad",
        "def f(x: Tensor):\n    return ops.sin(x).cuda()  # bad",
        "def f(tensor, device):\n    return mx.array(tensor, device=device)  # bad",
    )
    good = (
        "def f(x: Tensor):\n    return ops.to_device(x, 'cuda')",
        "def f(x: Tensor):\n    return x.device",
        "def f(letter):\n    return letter.to('Bob')",
        "import os\nn = os.cpu_count()",
        "ok = ops.is_available('cuda')",
        "class Machine:\n    def cpu(self):\n        return 1\nn = Machine().cpu()",
        "y = ops.zeros((3,), device='cuda')",
        "def f(args: dict):\n    return args.get('cuda')",
        "def f(model):\n    return model.cpu",
    )

    def check(self, node: Any, flow: Flow) -> None:
        func = node.func
        name = flow.dotted(func)
        if name and natives.library_of(name):
            if natives.library_of(name) in flow.module.allowed:
                return
            if is_device(name) or (
                any(keyword.arg == "device" for keyword in node.keywords)
                and name.rsplit(".", 1)[1] in ("array", "asarray", "tensor", "as_tensor")
                and node.args
                and value_of(node.args[0]).kind == TENSOR
            ):
                flow.report(self, node, name)
            return
        if isinstance(func, ast.Attribute) and func.attr in natives.DEVICE_METHODS:
            owner = value_of(func.value)
            certain = owner.kind == TENSOR and owner.detail not in ("like", "portable")
            likely = owner.kind == UNKNOWN and func.attr == "cuda" and not node.args and form_of(owner) == "param"
            if certain or (likely and flow.module.strict):
                flow.report(self, node, f".{func.attr}()")

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        func = node.func
        name = context.flow.dotted(func) or ""
        if name and natives.library_of(name):
            device = next((keyword.value for keyword in node.keywords if keyword.arg == "device"), None)
            if device is not None and len(node.args) == 1 and len(node.keywords) == 1:
                return context.call_op(node, "to_device", context.text(node.args[0]), context.text(device))
            return None
        owner = context.text(func.value)
        if func.attr in ("cuda", "cpu") and not node.args and not node.keywords:
            return context.call_op(node, "to_device", owner, f'"{func.attr}"')
        if (
            func.attr in ("to", "to_device")
            and len(node.args) + len(node.keywords) == 1
            and not (node.keywords and node.keywords[0].arg != "device")
        ):
            target = node.args[0] if node.args else node.keywords[0].value
            dotted = context.flow.dotted(target) or ""
            if dotted.rsplit(".", 1)[-1] in natives.DTYPE_NAMES:
                return context.call_op(node, "cast", owner, context.text(target))
            if isinstance(target, (ast.Constant, ast.Name)):
                return context.call_op(node, "to_device", owner, context.text(target))
        return None


RULE = NativeDevice()
