"""Questions that several rules ask about a dotted name or a node."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import natives
from ember_ml.lint.values import Value

if TYPE_CHECKING:
    from ember_ml.lint.flow import Flow

_CONVERSIONS = frozenset({"numpy.asarray", "numpy.array", "numpy.ascontiguousarray", "numpy.asanyarray"})


def value_of(node: Any) -> Value:
    """Return the walker's value of an expression."""
    return node.ev


def is_asserted(node: Any, flow: Flow) -> bool:
    """Return whether an expression stands in an assertion, which has to read the values that it checks."""
    return isinstance(flow.module.around(node, ast.stmt), ast.Assert)


def is_random(name: str) -> bool:
    """Return whether ``name`` is a native random function."""
    parts = name.split(".")
    if natives.library_of(name) is None:
        return False
    if "random" in parts[1:]:
        return True
    return parts[0] == "torch" and len(parts) == 2 and parts[1] in natives.RANDOM_NAMES


def is_device(name: str) -> bool:
    """Return whether ``name`` is a native device function or constant."""
    return name in natives.DEVICE_NAMES or any(
        name.startswith(prefix + ".")
        for prefix in ("torch.cuda", "torch.mps", "torch.xpu", "mlx.core.metal", "mlx.core.cuda", "torch.backends")
    )


def is_dtype(name: str) -> bool:
    """Return whether ``name`` is a native dtype, or the function that makes one."""
    if natives.library_of(name) is None:
        return False
    head, _, last = name.rpartition(".")
    if head not in ("numpy", "torch", "mlx.core", "jax.numpy", "tensorflow", "cupy", "tensorflow.dtypes"):
        return False
    return last in natives.DTYPE_NAMES or last in ("dtype", "finfo", "iinfo", "Dtype", "DType")


def is_type(name: str) -> bool:
    """Return whether ``name`` is a native tensor type."""
    return name in natives.TENSOR_TYPES


def is_conversion(name: str, node: ast.Call) -> bool:
    """Return whether a call converts a tensor to another library's."""
    if name in (
        "torch.from_numpy",
        "torch.utils.dlpack.from_dlpack",
        "torch.from_dlpack",
        "numpy.from_dlpack",
        "jax.dlpack.from_dlpack",
        "torch.utils.dlpack.to_dlpack",
    ):
        return True
    if name in _CONVERSIONS and node.args:
        return value_of(node.args[0]).kind == 3
    return False
