"""What other libraries call a thing, from the table that the errors use."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from ember_ml.core.other_names import LIBRARIES, rows
from site_pages.text import PAGES, link, table

__all__ = ["find", "list_same_names", "write_table"]

_SAME = {"ops.": ("numpy", "torch", "keras.ops", "jax.numpy"), "nn.": ("torch.nn", "keras.layers", "mlx.nn")}
"""Where a name that is also ours may be found, by ours."""


@cache
def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def find(ours: str, aliases: tuple[str, ...] = ()) -> str:
    """Return what the other libraries call it, as one line, or ""."""
    home, name = ours.rsplit(".", 1)
    found = {row.theirs: row.note for library in LIBRARIES for row in rows(library) if row.ours in (ours, _short(ours))}
    for module in _SAME.get(f"{home}.", ()):
        same = next((other for other in (name, *aliases) if hasattr(_import(module), other)), None)
        if same:
            found.setdefault(f"{module}.{same}", "")
    return "; ".join(f"`{theirs}`" + (f" ({note})" if note else "") for theirs, note in found.items())


def _short(ours: str) -> str:
    return ours.replace("ops.random_", "ops.random.")


def write_table(library: str, path: str) -> str:
    """Return the names of a library and ours as a Markdown table."""
    shown = []
    for row in rows(library):
        name = row.ours.rpartition(".")[2]
        target = PAGES.get(f"random_{name}" if "ops.random." in row.ours else name)
        ours = f"[`{row.ours}`]({link(path, target)})" if target else f"`{row.ours}`"
        shown.append((f"`{row.theirs}`", ours, row.note))
    return table((library, "Ember ML", "what differs"), shown)


def list_same_names(module: str, home: Any) -> str:
    """Return the public names that a module of another library shares with ours, as one line."""
    other = _import(module)
    return ", ".join(f"`{name}`" for name in home.__all__ if hasattr(other, name))
