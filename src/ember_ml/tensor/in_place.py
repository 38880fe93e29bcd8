"""Whether a tensor may be changed in place: not if it is a variable, and seldom if it was made by slicing.

Slices do not write through. Where the tensor that was sliced is gone, nobody can tell, and the slice may be changed;
that is how libraries write ``u = u[:, :k]; u *= s``. While it lives, only the statement ``x[key] += y`` may. Python
runs that statement as three steps: read ``x[key]``, add in place to what was read, store the sum into ``x[key]``. The
middle step must not raise, although it looks like any other in-place change of a slice; what follows it in the caller's
code tells.
"""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Any

from ember_ml.tensor.var import Var

__all__ = ["is_fixed", "is_item_statement", "refusal"]

_known: dict[tuple[CodeType, int], bool] = {}


def is_fixed(tensor: Any) -> bool:
    """Whether ``tensor`` must not be changed: it is a slice of one that still lives, or a variable."""
    return _shows_living_tensor(tensor) or _is_variable(tensor._array)


def _shows_living_tensor(tensor: Any) -> bool:
    """Whether ``tensor`` is a slice of one that still lives, where its change would be expected to show."""
    return any(source() is not None for source in getattr(tensor, "_sliced_from", ()))


def _is_variable(array: Any) -> bool:
    """Whether gradients are asked for with respect to this one, which would be lost with it."""
    if type(array) is Var:
        return array.node is not None and array.node.op is None
    return getattr(array, "requires_grad", False) and array.is_leaf  # emberlint: ignore[EMB502] PyTorch


def is_item_statement(caller: FrameType | None) -> bool:
    """Whether ``caller`` is in the middle of ``x[key] += y`` or a statement of that form."""
    if caller is None:
        return False
    place = caller.f_code, caller.f_lasti
    found = _known.get(place)
    if found is None:
        found = _known[place] = _stores_into_item(*place)
    return found


def _stores_into_item(code: CodeType, offset: int) -> bool:
    import dis  # rarely needed, and slow to import

    instructions = iter(dis.get_instructions(code))
    current = next((step for step in instructions if step.offset == offset), None)
    if current is None or current.opname != "BINARY_OP" or not current.argrepr.endswith("="):
        return False
    store = next((step.opname for step in instructions if step.opname.startswith("STORE_")), "")
    return store in ("STORE_SUBSCR", "STORE_SLICE")


def refusal(tensor: Any, what: str) -> Exception:
    """The error for changing in place what must not be changed."""
    if _is_variable(tensor._array):
        return RuntimeError(
            f"{what} would change a variable, and its gradient would be lost; make a new one: "
            "x = x.detach() - step; x.requires_grad = True"
        )
    return ValueError(
        f"{what} would change a tensor that was made by slicing, and slices do not write through; assign to the tensor "
        "that was sliced (x[:2] = ..., x[:2] += ...), or make a new one (y = y + ..., y = ops.copy(y))"
    )
