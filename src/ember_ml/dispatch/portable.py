"""Ops on portable tensors outside ``ops`` itself: on the tensors' own backend, or with portable results."""

from __future__ import annotations

from typing import Any

from ember_ml.backend.selection import active, backend_of
from ember_ml.dispatch.codegen import bind
from ember_ml.dispatch.declare import KEY, OPS, SEQUENCE, Op
from ember_ml.dispatch.slow_path import dispatch
from ember_ml.tensor.ember_tensor import EmberTensor
from ember_ml.tensor.var import Var

__all__ = ["make_portable", "on_own_backend"]

_FAMILIES = ("creation", "matrices", "sampling", "choices")
_CONVERSIONS = ("array", "asarray", "convert_to_tensor", "from_dlpack", "from_numpy")


def _owner(item: Any) -> Any:
    """The backend that holds ``item``; of a recorded tensor the one that computes."""
    if type(item) is not EmberTensor:
        return item.tape.base if type(item) is Var else backend_of(item)
    array = item._array
    return array.tape.base if type(array) is Var else item._kind.backend


def on_own_backend(op: Op, args: tuple[Any, ...], otherwise: Any = None) -> Any:
    """Run ``op`` on the backend that its tensors share; on the active one where they differ.

    Without any tensor it runs on the backend ``otherwise``. The result is portable.
    """
    found = None
    for index, role in op.roles:
        value = args[index]
        for item in value if role in (SEQUENCE, KEY) and isinstance(value, list | tuple) else (value,):
            owner = _owner(item)
            if owner is None or owner is found:
                continue
            if found is not None:
                return dispatch(op, args, active(), portable=True)
            found = owner
    return dispatch(op, args, found or otherwise or active(), portable=True)


def _on_active_backend(op: Op, args: tuple[Any, ...]) -> Any:
    return dispatch(op, args, active(), portable=True)


def make_portable(namespace: dict[str, Any]) -> None:
    """Replace the ops in ``namespace`` that make tensors by functions that make portable ones."""
    for op in OPS.values():
        if not op.is_plain and (op.family in _FAMILIES or op.name in _CONVERSIONS):
            function = bind(op, _on_active_backend)
            for name in (op.name, *op.aliases):
                if name in namespace:
                    namespace[name] = function
