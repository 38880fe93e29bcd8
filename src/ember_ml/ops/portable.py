"""The ops that make tensors, with portable results: the functions of ``nn.tensor``."""

from __future__ import annotations

from typing import Any

from ember_ml.backend import active
from ember_ml.ops.declare import OPS, Op
from ember_ml.ops.dispatch import dispatch
from ember_ml.ops.fastpath import bind

__all__ = ["make_portable"]

_CONVERSIONS = ("array", "asarray", "convert_to_tensor", "from_dlpack", "from_numpy")


def _make(op: Op, args: tuple[Any, ...]) -> Any:
    return dispatch(op, args, active(), portable=True)


def make_portable(namespace: dict[str, Any]) -> None:
    """Replace the ops in ``namespace`` that make tensors by functions that make portable ones, on the active backend."""
    for op in OPS.values():
        if op.family == "creation" or op.name in _CONVERSIONS:
            function = bind(op, _make)
            for name in (op.name, *op.aliases):
                if name in namespace:
                    namespace[name] = function
