"""Whether a tensor that was made by slicing may be changed in place.

Slices do not write through. Where the tensor that was sliced is gone, nobody can tell, and the slice may be changed;
that is how libraries write ``u = u[:, :k]; u *= s``. While it lives, only the statement ``x[key] += y`` may. Python
runs that statement as three steps: read ``x[key]``, add in place to what was read, store the sum into ``x[key]``. The
middle step must not raise, although it looks like any other in-place change of a slice; what follows it in the caller's
code tells.
"""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Any

__all__ = ["is_item_statement", "refusal", "shows_living_tensor"]

_known: dict[tuple[CodeType, int], bool] = {}


def shows_living_tensor(tensor: Any) -> bool:
    """Whether ``tensor`` is a slice of one that still lives, where its change would be expected to show."""
    return any(source() is not None for source in getattr(tensor, "_sliced_from", ()))


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


def refusal(what: str) -> ValueError:
    """The error for changing a slice in place."""
    return ValueError(
        f"{what} would change a tensor that was made by slicing, and slices do not write through; assign to the tensor "
        "that was sliced (x[:2] = ..., x[:2] += ...), or make a new one (y = y + ..., y = ops.copy(y))"
    )
