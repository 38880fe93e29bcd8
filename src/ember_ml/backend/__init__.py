"""Choose which backend computes: for the process, or for a block of code.

Reloading this module keeps the choice, which :mod:`ember_ml.backend.selection` holds.
"""

from ember_ml.backend.selection import (
    auto_select_backend,
    backend_file,
    backend_names,
    backend_of,
    chosen_by,
    get_backend,
    get_backend_module,
    installed_backends,
    is_installed,
    load,
    set_backend,
    starting_backend,
    use_backend,
)

__all__ = [
    "auto_select_backend",
    "backend_file",
    "backend_names",
    "backend_of",
    "chosen_by",
    "get_backend",
    "get_backend_module",
    "installed_backends",
    "is_installed",
    "load",
    "set_backend",
    "starting_backend",
    "use_backend",
]
