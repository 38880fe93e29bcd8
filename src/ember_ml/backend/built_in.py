"""The table of the backends that come with Ember ML: adding one adds a line here.

``docs/new-backend.md`` lists what else a new one touches; a test counts where backends are named.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["BUILT_IN", "HOST", "BuiltIn"]


def _always() -> bool:
    return True


def _on_apple_silicon() -> bool:
    return platform.system() == "Darwin" and platform.machine() == "arm64"


class BuiltIn(NamedTuple):
    """A backend in ``ember_ml.backend.<name>``; ``pip install 'ember-ml[<name>]'`` installs what it needs."""

    name: str
    library: str
    """The module that computes; it is looked for, and not imported, to learn whether the backend is installed."""
    distribution: str
    """The package that brings the library, for its version."""
    preference: int
    """Auto-detection takes the backend of the highest preference among those that are installed and suit."""
    suits: Callable[[], bool] = _always
    """Whether auto-detection may take the backend on this machine."""
    tensors: str = ""
    """The package of the tensors' classes, where it is another than the library's."""
    started_by: str = ""
    """What starts several ranks, or passes them each other's addresses, if not the launcher: ``mpi`` or ``ring``."""


BUILT_IN = {
    entry.name: entry
    for entry in (
        BuiltIn("numpy", "numpy", "numpy", 0, started_by="mpi"),
        BuiltIn("torch", "torch", "torch", 20),
        BuiltIn("mlx", "mlx.core", "mlx", 10, _on_apple_silicon, started_by="ring"),
        BuiltIn("jax", "jax", "jax", 5, tensors="jaxlib"),
    )
}
HOST = "numpy"
"""The backend that is always installed: what others lack is computed there."""
